//! CUBIC by the numbers of RFC 9438, fed by hand.

use super::super::tests::{ack, loss, secs};
use super::*;

const MTU: ByteCount = ByteCount(1_000);

fn after_loss_at(window: f64) -> Cubic {
    let mut cubic = Cubic::new(MTU);
    cubic.window = window;
    cubic.on_loss(&loss(10.0, 9.9));
    cubic
}

#[test]
fn the_window_function_gives_known_values() {
    // W_max 100 packets, 70 left: K is the cube root of 30 / 0.4 = 75.
    let k = time_to_maximum(70.0, 100.0);
    let table = [(0.0, 70.0), (1.0, 86.6808), (2.0, 95.6403), (k, 100.0), (6.0, 102.2667), (10.0, 177.3540)];
    assert!((k - 4.217_163).abs() < 1e-5);
    for (t, packets) in table {
        let got = w_cubic(t, k, 100.0);
        assert!((got - packets).abs() < 1e-3, "{t} s: {got}, not {packets}");
    }
}

#[test]
fn a_loss_leaves_seven_tenths_once_a_round_trip() {
    let mut cubic = after_loss_at(100.0);
    assert_eq!(cubic.window(), ByteCount(70_000));
    cubic.on_loss(&loss(10.01, 9.95));
    assert_eq!(cubic.window(), ByteCount(70_000), "sent before the reduction");
    cubic.on_loss(&loss(10.1, 10.05));
    assert_eq!(cubic.window(), ByteCount(49_000));
}

#[test]
fn a_shrinking_maximum_converges_fast() {
    let mut cubic = after_loss_at(100.0);
    assert!((cubic.w_max - 100.0).abs() < 1e-9);
    cubic.window = 80.0;
    cubic.on_loss(&loss(12.0, 11.9));
    assert!((cubic.w_max - 68.0).abs() < 1e-9, "80 times 1.7 / 2");
    cubic.window = 90.0;
    cubic.on_loss(&loss(14.0, 13.9));
    assert!((cubic.w_max - 90.0).abs() < 1e-9, "beyond the last maximum: no fast convergence");
}

#[test]
fn growth_follows_the_cubic_concave_then_convex() {
    let mut cubic = after_loss_at(1_000.0);
    let rtt = 0.1;
    let mut window_at = Vec::new();
    for step in 1..=160 {
        let now = 10.0 + f64::from(step) * rtt;
        let acked = cubic.window();
        cubic.on_ack(&ack(now, now - rtt, acked.0, rtt), &[]);
        window_at.push(cubic.window);
    }
    let k = time_to_maximum(700.0, 1_000.0);
    for (index, window) in window_at.iter().enumerate() {
        // A whole window acknowledged each round trip reaches W_cubic(t + RTT).
        let t = (index + 1) as f64 * rtt;
        let want = w_cubic(t + rtt, k, 1_000.0);
        if index > 0 {
            assert!((window - want).abs() < 1.0, "{t} s: {window}, not {want}");
        }
    }
}

#[test]
fn a_short_round_trip_grows_like_reno() {
    let mut cubic = after_loss_at(10.0);
    let rtt = 0.005;
    for step in 1..=100 {
        let now = 10.0 + f64::from(step) * rtt;
        let acked = cubic.window();
        cubic.on_ack(&ack(now, now - rtt, acked.0, rtt), &[]);
    }
    // 3 packets at 0.53 a round trip are about 6 round trips, the other 94 give one packet each.
    assert!((95.0..110.0).contains(&cubic.window), "{}", cubic.window);
}

#[test]
fn idle_and_limited_time_does_not_grow_the_window() {
    let busy = after_loss_at(100.0);
    for limited in [true, false] {
        let mut cubic = busy.clone();
        cubic.on_ack(&ack(10.1, 10.05, 70_000, 0.05), &[]);
        let before = cubic.window;
        if limited {
            let mut event = ack(20.0, 19.95, 1_000, 0.05);
            event.app_limited = true;
            cubic.on_ack(&event, &[]);
        } else {
            cubic.on_sent(secs(20.0), MTU, MTU, false);
        }
        cubic.on_ack(&ack(20.05, 20.0, 1_000, 0.05), &[]);
        assert!(cubic.window - before < 1.0, "limited {limited}: {before} to {}", cubic.window);
    }
}

#[test]
fn a_loss_that_was_none_is_undone() {
    let mut cubic = after_loss_at(100.0);
    cubic.on_ack(&ack(12.0, 11.9, 10_000, 0.1), &[]);
    cubic.on_loss(&loss(13.0, 12.9));
    let prior = cubic.undo.clone().expect("to undo");
    cubic.on_spurious_loss(secs(13.1));
    assert!((cubic.window - prior.window).abs() < 1e-9);
    assert!((cubic.w_max - 100.0).abs() < 1e-9);
    let window = cubic.window;
    cubic.on_spurious_loss(secs(13.2));
    assert!((cubic.window - window).abs() < 1e-9, "there is one undo a reduction");
}

#[test]
fn slow_start_goes_on_after_a_loss_that_was_none() {
    let mut cubic = Cubic::new(MTU);
    cubic.on_ack(&ack(0.1, 0.0, 5_000, 0.1), &[]);
    cubic.on_loss(&loss(0.2, 0.1));
    cubic.on_spurious_loss(secs(0.25));
    let window = cubic.window();
    cubic.on_ack(&ack(0.3, 0.2, 10_000, 0.1), &[]);
    cubic.on_ack(&ack(0.4, 0.3, 20_000, 0.1), &[]);
    assert_eq!(cubic.window(), window + ByteCount(30_000), "by all that is acknowledged");
}

#[test]
fn persistent_congestion_falls_to_the_minimum_and_starts_over() {
    let mut cubic = after_loss_at(100.0);
    let mut event = loss(12.0, 11.9);
    event.persistent = true;
    cubic.on_loss(&event);
    assert_eq!(cubic.window(), ByteCount(2_000));
    cubic.on_ack(&ack(12.5, 12.4, 2_000, 0.1), &[]);
    assert_eq!(cubic.window(), ByteCount(4_000), "slow start below the threshold");
}

#[test]
fn another_mtu_keeps_the_bytes() {
    let mut cubic = after_loss_at(100.0);
    cubic.on_mtu(ByteCount(500));
    assert_eq!(cubic.window(), ByteCount(70_000));
    cubic.on_mtu(MTU);
    assert_eq!(cubic.window(), ByteCount(70_000));
}
