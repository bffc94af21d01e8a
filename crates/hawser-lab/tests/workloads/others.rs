//! Requests, calls, pages, downloads by QUIC, connections and pings.

use hawser_lab::workload::Ground;
use hawser_wire::{Direction, Loss};

use crate::{Lab, ends, figure, measured, ms, on, run, shaped, within};

#[test]
fn a_request_takes_a_round_trip_and_clients_ask_side_by_side() {
    on(&[shaped(50.0)], |lab| {
        let found = lab.run(ms(2000), "request", "clients = 3\nanswer = '1kB'\nrequest = 100");
        within(&found, "completion_ms", 20.0, 25.0);
        within(&found, "completion_p99_ms", 20.0, 100.0);
        within(&found, "requests_per_s", 3.0 * 35.0, 3.0 * 50.0);
        within(&found, "jain", 0.95, 1.0);
        // An answer of 1000 bytes for each.
        let expected = figure(&found, "requests_per_s") * 8000.0 / 1e6;
        within(&found, "goodput_mbps", expected * 0.97, expected * 1.03);
    });
}

#[test]
fn a_request_that_is_long_takes_the_link_s_time() {
    on(&[shaped(20.0)], |lab| {
        let found = lab.run(ms(3000), "request", "request = '250kB'\nanswer = '250kB'");
        // A tenth of a second at 20 Mbit/s each way, and two round trips' worth; slow start and losses take their time.
        within(&found, "completion_ms", 220.0, 900.0);
    });
}

#[test]
fn requests_of_several_sizes_over_fresh_streams_are_told_apart() {
    on(&[shaped(20.0)], |lab| {
        let options = "answers = ['3kB', '250kB']\nfresh = true\npause = '50ms'";
        let found = lab.run(ms(3000), "request", options);
        // A round trip of 20 ms to connect, and one for the answer.
        within(&found, "completion_3kB_ms", 40.0, 50.0);
        // And a tenth of a second at 20 Mbit/s with its slow start.
        within(&found, "completion_250kB_ms", 140.0, 600.0);
        let [small, large] = ["3kB", "250kB"].map(|size| found.samples[&format!("completion_{size}_ms")].len());
        assert!(small.abs_diff(large) <= 1, "they take turns: {small} and {large}");
        let each = figure(&found, "completion_3kB_ms") + figure(&found, "completion_250kB_ms") + 2.0 * 50.0;
        within(&found, "requests_per_s", 0.6 * 2000.0 / each, 1.2 * 2000.0 / each);
        assert_eq!(figure(&found, "broken_flows"), 0.0);
    });
}

#[test]
fn a_load_beside_requests_slows_them_and_has_its_own_figure() {
    on(&[shaped(20.0)], |lab| {
        let options = "answers = ['3kB']\nfresh = true\npause = '50ms'";
        let alone = lab.run(ms(3000), "request", options);
        let loaded = lab.run(ms(3000), "request", &format!("{options}\nload = 'down'"));
        within(&loaded, "load_mbps", 12.0, 19.3);
        assert!(!alone.metrics.contains_key("load_mbps"));
        let [before, after] = [&alone, &loaded].map(|found| figure(found, "completion_3kB_ms"));
        assert!(after > before + 20.0, "{before} ms alone, {after} ms in the queue of another");
        assert!(loaded.lines.iter().any(|line| line.name == "load_mbps" && line.values.len() == 6));
        assert_eq!(loaded.lines.iter().filter(|line| line.name == "goodput_mbps").count(), 1, "the requests' own");
    });
}

#[test]
fn several_calls_at_once_are_judged_together() {
    measured(|| {
        let lossy = Direction { loss: Loss::percent(10.0).expect("a percentage"), ..shaped(10.0) };
        let found = Lab::new(&[lossy]).run(ms(2000), "voip", "calls = 5\nbuffer = '100ms'");
        // 500 packets each way: 10 %, and 4 standard deviations are 5.4.
        within(&found, "loss_percent", 4.6, 15.4);
        assert_eq!(figure(&found, "missed_percent"), figure(&found, "loss_percent"), "nothing is late");
        within(&found, "added_delay_p99_ms", 0.0, 5.0);
        within(&found, "delay_p99_ms", 10.0, 15.0);
        // Five times 160 and 12 bytes every 20 ms both ways, less a tenth.
        within(&found, "goodput_mbps", 5.0 * 0.115, 5.0 * 0.132);
        assert!(found.samples["delay_ms"].len() > 850);
    });
}

#[test]
fn a_clean_call_scores_high_and_a_lossy_one_as_the_model_says() {
    on(&[shaped(10.0)], |lab| {
        let found = lab.run(ms(2000), "voip", "ping = true");
        within(&found, "mos", 4.3, 4.41);
        within(&found, "delay_ms", 10.0, 13.0);
        within(&found, "jitter_ms", 0.0, 3.0);
        assert_eq!((figure(&found, "loss_percent"), figure(&found, "up_late_percent")), (0.0, 0.0));
        within(&found, "rtt_ms", 20.0, 25.0);
        // 172 bytes every 20 ms, both ways.
        within(&found, "goodput_mbps", 0.135, 0.139);

        let lossy = Direction { loss: Loss::percent(10.0).expect("a percentage"), ..shaped(10.0) };
        let found = Lab::new(&[lossy]).run(ms(3000), "voip", "codec = 'g711-plain'");
        // 150 packets each way: 10 %, and 4 standard deviations are 9.8.
        within(&found, "loss_percent", 2.0, 22.0);
        // 4 % takes 46, so R is 45 and the score 2.3; 20 % takes 78: R 13, score 1.
        let percent = figure(&found, "loss_percent");
        let mos = figure(&found, "mos");
        assert!(mos < 3.6 - percent * 0.1 && mos >= 1.0, "{mos} at {percent} %");
    });
}

#[test]
fn a_constant_rate_is_kept_in_one_direction() {
    on(&[shaped(10.0)], |lab| {
        let found = lab.run(ms(2000), "voip", "rate = '5M'\ndirection = 'down'");
        // 1200 of each 1228 bytes.
        within(&found, "goodput_mbps", 4.75, 4.9);
        assert_eq!(figure(&found, "loss_percent"), 0.0);
        assert!(!found.metrics.contains_key("up_mos"), "nobody speaks up");
        let found = lab.run(ms(2000), "voip", "rate = '20M'\ndirection = 'up'");
        within(&found, "goodput_mbps", 8.5, 9.8);
        within(&found, "loss_percent", 40.0, 55.0);
    });
}

#[test]
fn a_page_takes_its_round_trips_and_its_bytes() {
    on(&[shaped(20.0)], |lab| {
        let found = lab.run(ms(4000), "web", "objects = 20");
        // Four round trips at least: two streams after each other, each to be connected first.
        within(&found, "page_ms", 80.0, 1500.0);
        within(&found, "object_ms", 40.0, 500.0);
        within(&found, "pages", 2.0, 50.0);
        let kept = lab.run(ms(4000), "web", "objects = 20\nkeep-alive = true");
        // A round trip less for each object but the first of a connection.
        let (median, without) = (figure(&kept, "object_ms"), figure(&found, "object_ms"));
        assert!(median < without, "{median} ms with keep-alive, {without} ms without");
        let lossy = Direction { loss: Loss::percent(3.0).expect("a percentage"), ..shaped(20.0) };
        let found = Lab::new(&[lossy]).run(ms(3000), "web", "objects = 20");
        within(&found, "retransmissions", 5.0, 1000.0);
        within(&found, "out_of_order_packets", 5.0, 5000.0);
    });
}

#[test]
fn an_http3_download_fills_the_link_under_either_congestion_control() {
    on(&[shaped(20.0)], |lab| {
        for congestion in ["bbr", "cubic"] {
            let found = lab.run(ms(3000), "http3", &format!("congestion = '{congestion}'"));
            within(&found, "goodput_mbps", 13.0, 19.6);
            assert_eq!(figure(&found, "broken_flows"), 0.0);
            assert!(!found.metrics.contains_key("completion_ms"), "it does not end");
        }
        let ground = Ground { ends: ends("fd09:0::"), ..lab.ground() };
        let found = run(ground, ms(5000), "http3", "bytes = '2MB'\nping = true");
        // 0.8 s at 20 Mbit/s.
        within(&found, "completion_ms", 800.0, 2500.0);
        let expected = 16.0 / (figure(&found, "completion_ms") / 1e3);
        within(&found, "goodput_mbps", expected * 0.98, expected * 1.02);
    });
}

#[test]
fn connecting_takes_a_round_trip_and_fails_into_a_hole() {
    on(&[shaped(10.0)], |lab| {
        let found = lab.run(ms(1000), "connect", "interval = '20ms'\nping = true");
        within(&found, "connect_ms", 20.0, 25.0);
        // What was due within the last round trip does not stand in time.
        within(&found, "connect_failures", 0.0, 3.0);
        assert!(found.samples["connect_ms"].len() >= 46);
        lab.links[0].black_hole(true).expect("it opens");
        let found = lab.run(ms(300), "connect", "");
        within(&found, "connect_failures", 6.0, 6.0);
        assert!(!found.metrics.contains_key("connect_ms"), "none stood");
    });
}

#[test]
fn a_ping_alone_tells_the_idle_latency() {
    on(&[shaped(10.0)], |lab| {
        let found = lab.run(ms(1000), "ping", "interval = '10ms'");
        within(&found, "rtt_ms", 20.0, 22.0);
        within(&found, "ping_loss_percent", 0.0, 0.0);
        assert_eq!(found.samples["round_trip_ms"].len(), 100);
    });
}
