//! Settings in the words of `tc`, and what `tc` shows read back.

use super::super::codel::Codel;
use super::super::jitter::Jitter;
use super::super::loss::GilbertElliott;
use super::super::medium::{Access, Medium};
use super::super::spec::Reorder;
use super::super::trace::Trace;
use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn p(fraction: f64) -> Probability {
    Probability::new(fraction).expect("a probability")
}

#[test]
fn settings_become_these_commands() {
    let plain = Direction::default();
    let rate = |queue| Direction { rate: Some(Rate::mbit(10.0)), queue, overhead: 14, ..Direction::default() };
    let jitter = |spread| Some(Jitter { amplitude: ms(5), spread, reorder: true });
    let bursts =
        Loss::Bursts(GilbertElliott { to_bad: p(0.01), to_good: p(0.25), lost_in_good: p(0.0), lost_in_bad: p(0.9) });
    let netem = "qdisc add dev x root handle 1: netem limit 100000";
    let table: Vec<(Direction, Vec<String>)> = vec![
        (plain.clone(), vec![]),
        (Direction { delay: ms(20), ..plain.clone() }, vec![format!("{netem} delay 20000us")]),
        (
            Direction { delay: ms(20), jitter: jitter(Spread::Uniform), ..plain.clone() },
            vec![format!("{netem} delay 20000us 5000us")],
        ),
        (
            Direction { delay: ms(20), jitter: jitter(Spread::Normal), ..plain.clone() },
            vec![format!("{netem} delay 20000us 5000us distribution normal")],
        ),
        (Direction { loss: Loss::Random(p(0.015)), ..plain.clone() }, vec![format!("{netem} loss random 1.50000%")]),
        (
            Direction { loss: bursts, ..plain.clone() },
            vec![format!("{netem} loss gemodel 1.00000% 25.00000% 90.00000% 0.00000%")],
        ),
        (
            Direction { duplicate: p(0.02), corrupt: p(0.001), ..plain },
            vec![format!("{netem} duplicate 2.00000% corrupt 0.10000%")],
        ),
        (
            rate(QueueDepth::Bytes(60_000)),
            vec!["qdisc add dev x root handle 1: tbf rate 10000000bit burst 3028 limit 60000".to_owned()],
        ),
        (
            Direction { overhead: 0, ..Direction::shaped(100.0, ms(10), ms(20)) },
            vec![
                "qdisc add dev x root handle 1: netem limit 101953 delay 10000us".to_owned(),
                "qdisc add dev x parent 1:1 handle 2: stab overhead -14 tbf rate 100000000bit burst 12500 limit 250000"
                    .to_owned(),
            ],
        ),
        (
            rate(QueueDepth::Packets(50)),
            vec![
                "qdisc add dev x root handle 1: tbf rate 10000000bit burst 3028 limit 1073741824".to_owned(),
                "qdisc add dev x parent 1:1 handle 2: pfifo limit 50".to_owned(),
            ],
        ),
        (
            Direction { codel: Some(Codel::default()), overhead: 38, delay: ms(1), ..rate(QueueDepth::Bytes(30_000)) },
            vec![
                "qdisc add dev x root handle 1: netem limit 100019 delay 1000us".to_owned(),
                "qdisc add dev x parent 1:1 handle 2: stab overhead 24 tbf rate 10000000bit burst 3028 limit 1073741824"
                    .to_owned(),
                "qdisc add dev x parent 2:1 handle 3: codel limit 20 target 5000us interval 100000us noecn".to_owned(),
            ],
        ),
    ];
    for (way, lines) in table {
        assert_eq!(commands("x", "add", &stages(&way, false).expect("it fits")), lines, "{way:?}");
    }
    let hole = stages(&Direction { loss: bursts, ..Direction::default() }, true).expect("it fits");
    assert_eq!(
        commands("x", "change", &hole),
        ["qdisc change dev x root handle 1: netem limit 100000 loss random 100%"]
    );
}

#[test]
fn what_the_kernel_cannot_do_is_refused_by_name() {
    let plain = Direction::default;
    let table = [
        (Direction { trace: Trace::parse("1\n").ok(), ..plain() }, "netem replays no trace"),
        (Direction { medium: Some(Medium::new(Access::turns())), ..plain() }, "netem knows no shared medium"),
        (Direction { random_drop: true, ..plain() }, "tbf drops the packet that comes, not any"),
        (
            Direction { reorder: Some(Reorder { share: p(0.1), by: ms(1) }), ..plain() },
            "netem holds no packets back: it sends some at once",
        ),
        (
            Direction { jitter: Some(Jitter { amplitude: ms(1), spread: Spread::Uniform, reorder: false }), ..plain() },
            "netem's jitter reorders",
        ),
        (Direction { longest: Some(1400), ..plain() }, "netem lets packets of any length pass"),
        (Direction { codel: Some(Codel::default()), ..plain() }, "codel needs a rate to wait for"),
    ];
    for (way, reason) in table {
        assert_eq!(stages(&way, false), Err(reason));
    }
}

#[test]
fn counters_are_read_from_what_tc_shows() {
    let json = br#"[{"kind":"netem","handle":"1:","root":true,"refcnt":3,"options":{"limit":1000},"bytes":151400,"packets":100,
        "drops":30,"overlimits":0,"requeues":0,"backlog":0,"qlen":12},
        {"kind":"tbf","handle":"2:","parent":"1:1","options":{},"bytes":151400,"packets":100,"drops":20,"overlimits":7,
        "requeues":0,"backlog":3028,"qlen":2}]"#;
    let got = counters(json).expect("it parses");
    let expected = Counters {
        packets_in: 142,
        packets_out: 100,
        bytes_out: 150_000,
        dropped_by_queue: 20,
        lost: 10,
        queue_packets: 2,
        queue_bytes: 3000,
        ..Counters::default()
    };
    assert_eq!(got, expected);
    assert_eq!(counters(b"[]"), None);
    assert_eq!(counters(b"not json"), None);
}

#[test]
fn an_interface_without_disciplines_counts_what_it_has_sent() {
    let text = "Inter-|   Receive                            |  Transmit\n face |bytes    packets\n    \
                lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n  eth01: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n   \
                eth0: 500 5 0 0 0 0 0 0 4514 4 0 0 0 0 0 0\n";
    let counted = of_interface(text, "eth0").expect("it is there");
    assert_eq!((counted.packets_in, counted.packets_out), (4, 4));
    assert_eq!((counted.bytes_in, counted.bytes_out), (4514 - 4 * 14, 4514 - 4 * 14));
    assert!(of_interface(text, "eth").is_none());
}
