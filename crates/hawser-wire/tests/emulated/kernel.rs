//! Links by the kernel's own means, as far as this kernel has them. Needs root and the `tc` program.

use crate::common::measured::measured;
use crate::common::{ADDRESS_B, between, ms};
use hawser_wire::traffic::{UdpFlow, UdpReport};
use hawser_wire::{
    Backend, Direction, EmulatedLink, LinkSpec, Loss, Medium, Probability, QueueDepth, Rate, Reorder, Trace, Way,
    WireError,
};

fn link(way: &Direction) -> Result<EmulatedLink, WireError> {
    let (a, b) = between("kernel");
    EmulatedLink::new(LinkSpec { backend: Backend::Netem, ..LinkSpec::symmetric("kernel", a, b, way) })
}

fn flow(link: &EmulatedLink, megabits: f64) -> UdpReport {
    let [a, b] = link.ends();
    let flow = UdpFlow {
        from: a.namespace.clone(),
        to: b.namespace.clone(),
        destination: format!("{ADDRESS_B}:9000").parse().expect("an address"),
        payload: 1472,
        rate: Rate::mbit(megabits),
        duration: ms(600),
        linger: ms(150),
    };
    flow.run().expect("the flow runs")
}

#[test]
fn the_kernels_rate_and_queue_are_what_was_told_and_change_while_it_runs() {
    measured(|| {
        // Fewer packets than a socket may send: where they wait in its own host, they count as its own.
        let shaped = Direction::shaped(20.0, ms(0), ms(20));
        for queue in [QueueDepth::Time(ms(20)), QueueDepth::Packets(40)] {
            let link = link(&Direction { queue, ..shaped.clone() }).expect("the kernel has tbf (this test needs root)");
            assert_eq!(link.timekeeping(), None);
            for mbit in [20.0, 40.0] {
                link.set(Way::AToB, |way| way.rate = Some(Rate::mbit(mbit))).expect("the rate changes");
                let before = link.counters(Way::AToB);
                let report = flow(&link, mbit * 1.3);
                let received = report.steady_rate().expect("packets arrive") / 1e6;
                // The kernel's is up to 4.2 % less in some minutes of a quiet machine, never more.
                assert!((0.95..1.02).contains(&(received / mbit)), "{received} Mbit/s of {mbit}");
                let counters = link.counters(Way::AToB);
                let [out, dropped] =
                    [counters.packets_out - before.packets_out, counters.dropped_by_queue - before.dropped_by_queue];
                // Neighbour discovery is counted too.
                assert!(out.abs_diff(report.arrivals.len() as u64) < 20, "{counters:?}");
                assert!(dropped.abs_diff(report.lost()) < 20 && dropped > 50, "{counters:?}");
            }
            link.set(Way::AToB, |way| way.rate = None).expect("the rate goes");
            assert_eq!(flow(&link, 60.0).lost(), 0);
            link.set(Way::AToB, |way| way.rate = Some(Rate::mbit(20.0))).expect("the rate comes back");
            assert!(flow(&link, 60.0).lost() > 0);
        }
    });
}

#[test]
fn the_kernels_link_can_be_cut_and_restored() {
    measured(|| {
        let link = link(&Direction::shaped(20.0, ms(0), ms(50))).expect("the kernel has tbf (this test needs root)");
        link.cut().expect("it is cut");
        assert_eq!(flow(&link, 1.0).arrivals.len(), 0);
        link.restore().expect("it is whole");
        // Linux takes up to a second to send by a veth whose other end has come up (net/core/link_watch.c).
        std::thread::sleep(ms(1200));
        assert_eq!(flow(&link, 1.0).lost(), 0);
    });
}

#[test]
fn a_kernel_without_netem_says_which_module_it_lacks() {
    let made = link(&Direction { delay: ms(5), ..Direction::default() });
    match (Backend::Netem.available(), made) {
        (Ok(()), made) => assert_eq!(flow(&made.expect("a link with a delay"), 1.0).lost(), 0),
        (Err(lacking), Err(refused)) => {
            for error in [lacking, refused] {
                assert!(matches!(error, WireError::NoDiscipline { discipline: "netem", .. }), "{error:?}");
                let words = error.to_string();
                assert!(words.starts_with("set netem by tc: the kernel has no module sch_netem: "), "{words}");
            }
        }
        (Err(lacking), Ok(_)) => panic!("a link with a delay was made, though {lacking}"),
    }
    assert!(Backend::Thread.available().is_ok());
}

#[test]
fn settings_that_no_link_of_a_kind_can_have_are_refused() {
    let trace = Trace::parse("1\n").ok();
    let share = Probability::new(0.1).expect("a probability");
    let refused = |way: &Direction| match link(way) {
        Err(WireError::Unfit { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&Direction { trace: trace.clone(), ..Direction::default() }), "netem replays no trace");
    let reorder = Some(Reorder { share, by: ms(1) });
    let held = Direction { reorder, ..Direction::default() };
    assert_eq!(refused(&held), "netem holds no packets back: it sends some at once");

    let ours = |way: &Direction, back: &Direction| {
        let (a, b) = between("unfit");
        EmulatedLink::new(LinkSpec { b_to_a: back.clone(), ..LinkSpec::symmetric("unfit", a, b, way) })
    };
    let on_air = || Direction { medium: Some(Medium::new(hawser_wire::Access::turns())), ..Direction::default() };
    let table = [
        (ours(&on_air(), &on_air()), "its ways are on two different media"),
        (ours(&Direction { trace, ..on_air() }, &Direction::default()), "a way on a medium has a rate, no trace"),
    ];
    for (made, expected) in table {
        assert!(matches!(&made, Err(WireError::Unfit { reason, .. }) if *reason == expected), "{made:?}");
    }
    let link = ours(&Direction::default(), &Direction::default()).expect("a plain link (this test needs root)");
    let changed = link.set(Way::AToB, |way| {
        way.medium = on_air().medium;
        way.loss = Loss::Random(Probability::ALWAYS);
    });
    assert!(
        matches!(changed, Err(WireError::Unfit { reason: "its medium is set when it is made", .. })),
        "{changed:?}"
    );
    assert_eq!(link.settings(Way::AToB).loss, Loss::None, "what is refused changes nothing");
}
