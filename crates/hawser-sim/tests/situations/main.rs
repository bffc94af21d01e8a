//! The whole protocol in named situations; `hawser_sim::situation` says what is checked in each.

mod bottleneck;
mod change;
mod cut;
mod judged;
mod links;
mod outages;
mod peers;
mod repair;
mod schedulers;
mod steady;

/// One test per situation: its name, then the situation.
#[macro_export]
macro_rules! situations {
    ($($name:ident: $case:expr;)*) => {
        $(#[test]
        fn $name() {
            $case.run(stringify!($name));
        })*
    };
}
