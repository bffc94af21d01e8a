//! What happens to links: every arrow of the stage's states, at its time.

use std::sync::Arc;

use hawser_lab::contender::{Offer, Transport};
use hawser_lab::experiment::Findings;
use hawser_lab::scenario::{Event, Family, Figure, Happening};
use hawser_lab::stage::{Ends, Stage, Timeline};
use hawser_wire::{EmulatedLink, Moment, Rate, Trace, Way};

use crate::common::{self, EXACT, SILENCE, Talk, both_of, build, goodput, measured, ms, near, scenario, watch};

fn event(at: u64, link: &str, what: Happening) -> Event {
    Event { name: String::new(), at: ms(at), link: link.to_owned(), what }
}

fn happen(stage: &Stage, link: &str, what: Happening) {
    stage.happen(&event(0, link, what)).expect("it happens");
}

/// No contender's program.
fn nobody(stage: &Stage) -> Offer {
    Offer { ends: stage.hosts, socket: Transport::Tcp, programs: Vec::new(), portals: None }
}

fn talk(stage: &Stage, link: usize) -> Talk {
    Talk::new(&stage.client, &stage.server, stage.ends_of(link))
}

fn answers(talk: &Talk) -> bool {
    talk.ask_within(SILENCE).is_ok()
}

#[test]
fn a_cut_takes_the_interface_and_its_routes_and_a_restore_brings_them_back() {
    for family in [Family::V4, Family::V6] {
        let stage = build(&both_of(family), "");
        let (cut, other) = (talk(&stage, 0), talk(&stage, 1));
        let before = routes(&stage);
        assert!(answers(&cut) && answers(&other) && stage.is_up(0));
        happen(&stage, "wifi", Happening::Cut);
        assert!(!stage.is_up(0) && !answers(&cut) && answers(&other));
        assert!(!is_interface_up(&stage, "wifi") && is_interface_up(&stage, "eth"));
        assert!(routes(&stage) != before, "the link's routes have gone");
        happen(&stage, "wifi", Happening::Cut);
        happen(&stage, "wifi", Happening::Restore);
        assert!(stage.is_up(0) && is_interface_up(&stage, "wifi"));
        cut.ask().expect("the same sockets go on");
        assert_eq!(routes(&stage), before, "every route is back");
    }
}

#[test]
fn a_recording_begins_with_the_workload_and_until_then_the_link_has_its_mean_rate() {
    let mut scenario = scenario("bystander = [{ name = \"beside\", rate = \"10M\", delay = \"20ms\" }]", "");
    // A bystander's link and one way of the client's: 8 Mbit/s in the mean, nothing in the first second.
    let trace = Trace::rates(ms(1000), &[0.0, 16.0]).expect("a trace");
    let case = &mut scenario.cases[0];
    for link in [&mut case.links[1], &mut case.bystanders[0]] {
        link.down.trace = Some(trace.clone());
    }
    let stage = Arc::new(common::stage(&scenario));
    let ways = |link: &EmulatedLink| Way::BOTH.map(|way| (link.settings(way).rate, link.settings(way).trace));
    let mean = Some(Rate::mbit(8.0));
    let steady = [(Some(Rate::mbit(10.0)), None), (mean, None)];
    let recorded = [(Some(Rate::mbit(10.0)), None), (None, Some(trace))];
    let (link, beside) = (&stage.links[1].link, &stage.bystanders[0].link);
    assert_eq!((ways(link), ways(beside)), (steady.clone(), steady.clone()));
    let talk = talk(&stage, 1);
    assert!(answers(&talk), "it is there before the recording begins");
    let start = Moment::now() + ms(300);
    let timeline = Timeline::start(&stage, &nobody(&stage), &[], start).expect("it starts");
    assert_eq!(ways(link), steady, "not yet");
    (start + ms(100)).sleep_until();
    assert_eq!((ways(link), ways(beside)), (recorded.clone(), recorded));
    assert!(!answers(&talk), "its first second has nothing");
    talk.ask().expect("and its second has");
    assert!(Moment::now() > start + ms(990), "the answer was kept until then");
    assert_eq!(timeline.finish().expect("nothing failed"), Findings::default());
}

#[test]
fn a_timeline_that_ends_before_its_start_replays_nothing() {
    let mut scenario = scenario("", "");
    scenario.cases[0].links[0].up.trace = Trace::rates(ms(1000), &[0.0, 16.0]).ok();
    let stage = Arc::new(common::stage(&scenario));
    let timeline = Timeline::start(&stage, &nobody(&stage), &[], Moment::now() + ms(5000)).expect("it starts");
    assert_eq!(timeline.finish().expect("it ends at once"), Findings::default());
    assert!(stage.links[0].link.settings(Way::AToB).trace.is_none());
}

#[test]
fn a_black_hole_is_silent_both_ways_until_it_is_restored() {
    let stage = build("", "");
    let talk = talk(&stage, 0);
    assert!(answers(&talk));
    happen(&stage, "wifi", Happening::BlackHole);
    assert!(stage.is_up(0) && is_interface_up(&stage, "wifi") && !answers(&talk));
    happen(&stage, "wifi", Happening::Restore);
    talk.ask().expect("it is whole again");
    happen(&stage, "wifi", Happening::BlackHole);
    happen(&stage, "wifi", Happening::Cut);
    happen(&stage, "wifi", Happening::Restore);
    talk.ask().expect("a cut black hole is whole again too");
}

#[test]
fn an_absent_link_comes_with_a_restore_or_a_handover() {
    for by_handover in [false, true] {
        let stage = build("", "absent = [\"eth\"]");
        let (wifi, eth) = (talk(&stage, 0), talk(&stage, 1));
        assert!(!stage.is_up(1) && !answers(&eth) && answers(&wifi));
        match by_handover {
            true => happen(&stage, "wifi", Happening::Handover { to: "eth".to_owned() }),
            false => happen(&stage, "eth", Happening::Restore),
        }
        eth.ask().expect("it is there");
        assert_eq!(answers(&wifi), !by_handover);
        assert_eq!([stage.is_up(0), stage.is_up(1)], [!by_handover, true]);
    }
}

#[test]
fn a_change_says_some_figures_and_leaves_the_others() {
    measured(|| {
        let stage = build("", "");
        let slow = vec![Figure::Rate(Rate::mbit(5.0))];
        happen(&stage, "wifi", Happening::Change { up: slow.clone(), down: slow });
        happen(&stage, "wifi", Happening::Change { up: vec![], down: vec![Figure::Delay(ms(25))] });
        let got = goodput(&stage, stage.ends_of(0));
        assert!((4.2..=5.0).contains(&got), "{got} Mbit/s");
        let trip = talk(&stage, 0).trip();
        assert!((ms(30)..ms(35)).contains(&trip), "5 ms there and 25 ms back: {trip:?}");
    });
}

#[test]
fn a_new_address_takes_the_old_ones_place_and_its_routes() {
    for family in [Family::V4, Family::V6] {
        let stage = build(&format!("{}lan = true", both_of(family)), "");
        let hosts = stage.forward_over(&[0]).expect("routes");
        let between = Talk::new(&stage.client, &stage.server, hosts);
        for _ in 0..3 {
            let old = stage.address(0);
            happen(&stage, "wifi", Happening::Address);
            let new = stage.address(0);
            assert_ne!(new, old);
            assert!(stage.local.run(|| std::net::UdpSocket::bind((old, 0))).expect("enters").is_err(), "{old} is gone");
            let ends = Ends { client: new, server: stage.endpoint };
            let seen = Talk::new(&stage.local, &stage.remote, ends).ask_over(&stage, 0);
            assert_eq!(seen.ip(), new);
            between.ask_over(&stage, 0);
        }
    }
}

#[test]
fn a_new_address_of_a_link_that_is_down_is_there_when_it_comes_back() {
    let stage = build("", "");
    happen(&stage, "wifi", Happening::Cut);
    happen(&stage, "wifi", Happening::Address);
    happen(&stage, "wifi", Happening::Restore);
    assert_eq!(talk(&stage, 0).ask_over(&stage, 0).ip(), stage.address(0));
}

#[test]
fn a_router_that_forgets_its_translations_shows_another_port() {
    let stage = build("nat = true", "");
    let talk = talk(&stage, 0);
    let mut ports = vec![talk.ask().expect("answers").port()];
    assert_eq!(talk.ask().expect("answers").port(), ports[0], "it is kept");
    for _ in 0..2 {
        happen(&stage, "wifi", Happening::NatRebind);
        ports.push(talk.ask().expect("answers from the same socket").port());
    }
    assert!(ports[0] != ports[1] && ports[1] != ports[2], "{ports:?}");
}

#[test]
fn forwarding_follows_links_that_go_and_come() {
    for family in [Family::V4, Family::V6] {
        let stage = build(&format!("lan = true\ninner = \"{family}\""), "");
        let hosts = stage.forward_over(&[0, 1]).expect("routes");
        let talk = Talk::new(&stage.client, &stage.server, hosts);
        talk.ask().unwrap_or_else(|error| panic!("{family:?}: {error}"));
        for (cut, kept) in [("wifi", 1), ("eth", 0)] {
            happen(&stage, cut, Happening::Cut);
            talk.ask_over(&stage, kept);
            happen(&stage, cut, Happening::Restore);
            talk.ask().unwrap_or_else(|error| panic!("{family:?} after {cut}: {error}"));
        }
        happen(&stage, "wifi", Happening::Cut);
        happen(&stage, "eth", Happening::Cut);
        assert!(!answers(&talk), "no link is left");
        happen(&stage, "eth", Happening::Restore);
        talk.ask_over(&stage, 1);
    }
}

#[test]
fn events_happen_at_their_times_and_are_told() {
    measured(|| {
        let stage = Arc::new(build("", ""));
        let events = [
            event(700, "wifi", Happening::Restore),
            event(300, "wifi", Happening::BlackHole),
            event(60_000, "wifi", Happening::Cut),
        ];
        // The probe sends by then.
        let start = Moment::now() + ms(100);
        let end = start + ms(1000);
        let silences = watch(&stage, 0, 4200, [start, end]);
        let timeline = Timeline::start(&stage, &nobody(&stage), &events, start).expect("it starts");
        end.sleep_until();
        let marks = timeline.finish().expect("they happened").marks;
        let told: Vec<&str> = marks.iter().map(|mark| mark.what.as_str()).collect();
        assert_eq!(told, ["wifi black hole", "wifi restored"], "what was to come later does not happen");
        for (mark, at_s) in marks.iter().zip([0.3, 0.7]) {
            assert!((0.0..EXACT.as_secs_f64()).contains(&(mark.at_s - at_s)), "{mark:?}");
        }
        let silences = silences.join().expect("it ends");
        assert!(silences.len() == 1, "{silences:?}");
        near(silences[0], [Some(300), Some(700)], EXACT);
    });
}

#[test]
fn a_cut_and_a_handover_take_effect_at_their_times() {
    measured(|| {
        let stage = Arc::new(build("", "absent = [\"eth\"]"));
        let to = "eth".to_owned();
        let events = [
            event(300, "wifi", Happening::Cut),
            event(500, "wifi", Happening::Restore),
            event(900, "wifi", Happening::Handover { to }),
        ];
        let start = Moment::now() + ms(100);
        let end = start + ms(1400);
        let silences = [(0, 4300), (1, 4301)].map(|(link, port)| watch(&stage, link, port, [start, end]));
        let timeline = Timeline::start(&stage, &nobody(&stage), &events, start).expect("it starts");
        end.sleep_until();
        assert_eq!(timeline.finish().expect("they happened").marks.len(), 3);
        let [wifi, eth] = silences.map(|silences| silences.join().expect("it ends"));
        // What ends ends at once; what comes up takes the time of some netlink requests.
        assert!(wifi.len() == 2 && eth.len() == 1, "{wifi:?} {eth:?}");
        near(wifi[0], [Some(300), Some(500)], 5 * EXACT);
        near(wifi[1], [Some(900), None], EXACT);
        near(eth[0], [None, Some(900)], 5 * EXACT);
    });
}

fn is_interface_up(stage: &Stage, link: &str) -> bool {
    let output = stage.local.command("ip").args(["-o", "link", "show", "dev", link]).output().expect("ip runs");
    String::from_utf8_lossy(&output.stdout).contains(",UP")
}

/// All routes and rules of all hosts.
fn routes(stage: &Stage) -> Vec<String> {
    let hosts = [&stage.local, &stage.remote].into_iter().chain(stage.links.iter().map(|link| &link.router));
    let mut all = Vec::new();
    for host in hosts {
        for family in ["-4", "-6"] {
            for what in [&["route", "show", "table", "all"][..], &["rule"]] {
                let output = host.command("ip").arg(family).args(what).output().expect("ip runs");
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                all.extend(text.lines().map(|line| format!("{} {line}", host.name())));
            }
        }
    }
    all.sort();
    all
}
