//! The whole protocol in named situations: see `hawser_sim::situation` for what is always checked.

use hawser_sim::net::link;
use hawser_sim::on;

#[test]
fn equal() {
    on(&[link(50.0, 20.0), link(50.0, 20.0)]).share(0.9).run("equal");
}
#[test]
fn one() {
    on(&[link(50.0, 20.0)]).share(0.9).run("one");
}
