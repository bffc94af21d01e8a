use hawser_core::congestion::Kind;
use hawser_sim::host::flow::*;
use hawser_sim::portal::Recipe;
use hawser_sim::situation::{address, second};
use hawser_sim::topology::Topology;
use hawser_sim::world::*;
use std::cell::RefCell;
use std::rc::Rc;
fn main() {
    let a: Vec<f64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let t = Topology::random(a[0] as u64);
    let end = a[1];
    let backlog = a[2];
    let step = a[3];
    let links = if a.len() > 4 { vec![t.links[a[4] as usize].clone()] } else { t.links.clone() };
    let mut w = World::new(Setup { seed: t.seed, links, recipes: [LOCAL, REMOTE].map(|s| Recipe::of(s, Kind::Bbr)), clocks: None, both_greet: false });
    let l = Rc::<RefCell<Ledger>>::default();
    let e = [LOCAL, REMOTE].map(|s| address(s, 10));
    let rate: u64 = t.links.iter().map(|l| l.up.rate.0).sum();
    let plan = Plan::greedy(((rate as f64 * backlog / 1e3) as u64).max(32768));
    w.add_host(LOCAL, e[0], Source::new(plan, e[0], e[1], Rc::clone(&l)));
    w.add_host(REMOTE, e[1], Sink(Rc::clone(&l)));
    let mut at = 0.0;
    while at < end {
        w.run_until(second(at + step));
        let got = l.borrow().bytes_between(second(at), second(at + step)) as f64 * 8e-6 / step;
        at += step;
        print!("{at:.2} {got:7.2} Mbit/s ");
        for side in [LOCAL, REMOTE] {
            match w.portals[side].session(w.now) {
                None => print!(" side {side}: no session"),
                Some(s) => {
                    print!(" side {side}: queued {} resend {} held {}", s.queued.0, s.resend.0, s.held.0);
                    if side == 0 { for p in &s.paths { print!(" [{} {:?} rtt {:.0} rate {:.2} cwnd {} inflight {} loss {:.3} mtu {} chosen {} d {:?} tx {}]", p.id, p.state, p.rtt.as_secs_f64() * 1e3, p.rate.map_or(0., |r| r.as_bits() as f64 / 1e6), p.window.0, p.in_flight.0, p.loss, p.mtu, p.chosen, p.delay_us, p.tx_bytes.0); } }
                }
            }
        }
        println!();
    }
    for side in [LOCAL, REMOTE] { println!("side {side} drops {:?} told {:?}", w.portals[side].endpoint.snapshot(w.now).drops, w.portals[side].told); }
    for l in &w.links { println!("up {:?} down {:?}", l.up.counters, l.down.counters); }
}
