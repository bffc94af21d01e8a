//! A real Prometheus (Debian's) scrapes a real bond: no complaint of promtool, every query of the dashboard has data,
//! alerts fire on a cut and end with it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use serde_json::Value;

use crate::lab::{Lab, PATIENCE, REMOTE, ms};

const METRICS: &str = "[metrics]\nlisten = \"127.0.0.1:9492\"\n";
/// What the dashboard's variables stand for here: everything, and the last seconds.
const VARIABLES: [(&str, &str); 4] =
    [("$__rate_interval", "10s"), ("$job", ".*"), ("$instance", ".*"), ("$peer", ".*")];
/// Queries of the dashboard; fewer mean that it was not read as it is written.
const QUERIES_MIN: usize = 20;

fn contrib(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name);
    path.canonicalize().unwrap_or_else(|error| panic!("contrib/{name}: {error}"))
}

/// What promtool says, which must be nothing bad.
fn promtool(arguments: &[&str], input: &str) -> String {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool is there (Debian's package prometheus)");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let out = child.wait_with_output().expect("it ends");
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "promtool {arguments:?}: {said}");
    said
}

/// A lab whose portals are scraped, and whose second link has a data cap.
fn lab(tag: &str) -> Lab {
    let lab = Lab::new(tag, METRICS);
    lab.edit("local.toml", "interface = \"two\"\n", "interface = \"two\"\ndata_cap = \"10G\"\n");
    let state = format!("state_dir = \"{}\"\n[tun]", lab.path("state").display());
    lab.edit("local.toml", "[tun]", &state);
    lab
}

/// What `curl` gets in the local namespace.
fn get(lab: &Lab, arguments: &[&str]) -> String {
    let out = lab.local.command("curl").args(["--silent", "--show-error", "--max-time", "10"]).args(arguments).output();
    let out = out.expect("curl is there");
    assert!(out.status.success(), "curl {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

/// A Prometheus in the local namespace; ended when it drops.
struct Prometheus<'a> {
    lab: &'a Lab,
    child: Child,
    log: PathBuf,
}

impl<'a> Prometheus<'a> {
    /// Scrapes the local portal each second, and evaluates the rules of contrib/ as often.
    fn start(lab: &'a Lab) -> Self {
        let rules = contrib("prometheus/hawser.rules.yml");
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\nrule_files: [\"{}\"]\n\
             scrape_configs:\n- job_name: hawser\n  static_configs: [{{targets: [\"127.0.0.1:9492\"]}}]\n",
            rules.display()
        );
        lab.write("prometheus.yml", &config);
        let log = lab.path("prometheus.log");
        let flag = |name: &str, path: &str| format!("--{name}={}", lab.path(path).display());
        let mut command = lab.local.command("prometheus");
        command.args([flag("config.file", "prometheus.yml"), flag("storage.tsdb.path", "tsdb")]);
        command.arg("--web.listen-address=127.0.0.1:9090").stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(fs::File::create(&log).expect("a log")).spawn().expect("prometheus is there");
        Self { lab, child, log }
    }

    /// The series that answer a query now.
    fn query(&self, query: &str) -> Vec<Value> {
        let query = format!("query={query}");
        let answer = get(self.lab, &["--data-urlencode", &query, "http://127.0.0.1:9090/api/v1/query"]);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().expect("a vector").clone()
    }

    /// Asks until the answer is as wanted.
    fn wait_for(&self, query: &str, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            let ready = get_ready(self.lab);
            let series = if ready { self.query(query) } else { Vec::new() };
            if ready && holds(&series) {
                return series;
            }
            assert!(
                Instant::now() < end,
                "{query}: {series:#?}; log:\n{}",
                fs::read_to_string(&self.log).unwrap_or_default()
            );
            sleep(ms(200));
        }
    }
}

impl Drop for Prometheus<'_> {
    fn drop(&mut self) {
        // It was started here, and keeps nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get_ready(lab: &Lab) -> bool {
    let out = lab.local.command("curl").args(["--silent", "--fail", "http://127.0.0.1:9090/-/ready"]).output();
    out.is_ok_and(|out| out.status.success())
}

/// Every query of the dashboard, its variables replaced.
fn dashboard_queries() -> Vec<String> {
    fn collect(value: &Value, queries: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| match value.as_str() {
                Some(query) if key == "expr" => queries.push(query.to_owned()),
                _ => collect(value, queries),
            }),
            Value::Array(items) => items.iter().for_each(|item| collect(item, queries)),
            _ => {}
        }
    }
    let text = fs::read_to_string(contrib("grafana/hawser.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut queries = Vec::new();
    collect(&dashboard["panels"], &mut queries);
    assert!(queries.len() >= QUERIES_MIN, "only {queries:#?}");
    let replaced =
        |query: &String| VARIABLES.iter().fold(query.clone(), |query, (name, value)| query.replace(name, value));
    queries.iter().map(replaced).collect()
}

fn assert_every_query_has_data(prometheus: &Prometheus<'_>) {
    for query in dashboard_queries() {
        prometheus.wait_for(&query, |series| !series.is_empty());
    }
}

#[test]
fn the_alert_rules_are_right_and_do_what_their_tests_say() {
    let path = |name: &str| contrib(name).display().to_string();
    promtool(&["check", "rules", &path("prometheus/hawser.rules.yml")], "");
    promtool(&["test", "rules", &path("prometheus/hawser.rules.test.yml")], "");
    promtool(&["check", "config", &path("prometheus/prometheus.yml")], "");
}

#[test]
fn a_prometheus_scrapes_a_portal_and_every_query_of_the_dashboard_has_data() {
    let lab = lab("prom");
    let (local, remote) = lab.start_both();
    let prometheus = Prometheus::start(&lab);
    lab.assert_none_lost(&lab.ping(REMOTE, ms(10), ms(300)).run().expect("a ping"));
    let text = get(&lab, &["http://127.0.0.1:9492/metrics"]);
    assert_eq!(promtool(&["check", "metrics"], &text), "", "{text}");
    let open = get(&lab, &["--header", "Accept: application/openmetrics-text", "http://127.0.0.1:9492/metrics"]);
    assert!(open.ends_with("# EOF\n"), "{open}");
    prometheus.wait_for("hawser_path_up == 1", |paths| paths.len() == 2);
    assert_every_query_has_data(&prometheus);
    assert!(prometheus.query("ALERTS").is_empty(), "{:#?}", prometheus.query("ALERTS"));
    // The side that is called has no links of its own, and its paths one name.
    let out =
        lab.remote.command("curl").args(["--silent", "http://127.0.0.1:9492/metrics"]).output().expect("curl is there");
    let text = String::from_utf8(out.stdout).expect("text");
    assert_eq!(promtool(&["check", "metrics"], &text), "", "{text}");
    assert!(text.contains("hawser_path_up{peer=\"home\",link=\"0.0.0.0:4920\",path=\"1\"} 1"), "{text}");
    drop((local, remote));
}

#[cfg(feature = "endure")]
mod long {
    use super::*;
    use crate::lab::{self, LINKS, parse};
    use hawser_wire::{Direction, Moment};

    /// How long it scrapes, when a link is cut in it, and for how long.
    const SCRAPED_S: u64 = 300;
    const CUT_AT_S: u64 = 60;
    const CUT_FOR_S: u64 = 90;
    /// Scrapes that may be missing: what a second of a busy machine takes at the start and the end.
    const MISSING_MAX: u64 = 5;
    const FIRING: &str = "ALERTS{alertname=\"HawserLinkDown\", alertstate=\"firing\", link=\"one\"}";

    fn figure(series: &[Value]) -> u64 {
        let value =
            series.first().and_then(|series| series["value"][1].as_str()).unwrap_or_else(|| panic!("{series:?}"));
        value.parse().expect("a number")
    }

    /// `make metrics-test`.
    #[test]
    fn five_minutes_of_scrapes_with_a_cut() {
        let lab = super::lab("prom5");
        // As fast as veth is, a transfer would come to the data cap.
        let [cut, _other] = LINKS.map(|link| lab.emulate(link, &Direction::shaped(20.0, ms(10), ms(100))));
        let (_local, _remote) = lab.start_both();
        let (prometheus, start) = (Prometheus::start(&lab), Moment::now());
        prometheus.wait_for("hawser_path_up == 1", |paths| paths.len() == 2);
        let series_before = figure(&prometheus.query("count({job=\"hawser\"})"));
        let transfer =
            lab::transfer(&lab.local, &lab.remote, parse(&format!("{REMOTE}:5001")), ms(SCRAPED_S * 1_000 - 5_000));
        let running = transfer.start().expect("a connection");
        (start + ms(CUT_AT_S * 1_000)).sleep_until();
        assert!(prometheus.query("ALERTS{alertstate=\"firing\"}").is_empty(), "{:#?}", prometheus.query("ALERTS"));
        cut.black_hole(true).expect("a black hole");
        // Down after some probes, and then for half a minute: 30 s that the alert waits, and 15 to see it and to look.
        let begun = Moment::now();
        while prometheus.query(FIRING).is_empty() {
            assert!(Moment::now().since(begun) < ms(45_000), "{:#?}", prometheus.query("hawser_link_up"));
            sleep(ms(500));
        }
        println!("the alert fired {:.1} s after the cut", Moment::now().since(begun).as_secs_f64());
        (start + ms((CUT_AT_S + CUT_FOR_S) * 1_000)).sleep_until();
        cut.black_hole(false).expect("no black hole");
        let begun = Moment::now();
        while !prometheus.query(FIRING).is_empty() {
            assert!(Moment::now().since(begun) < ms(15_000), "{:#?}", prometheus.query("hawser_link_up"));
            sleep(ms(500));
        }
        println!("the alert ended {:.1} s after the cut did", Moment::now().since(begun).as_secs_f64());
        (start + ms(SCRAPED_S * 1_000 - 8_000)).sleep_until();
        assert_every_query_has_data(&prometheus);
        println!("{} bytes were transferred", running.finish().expect("a transfer").total_bytes());
        let of_all = |function: &str| figure(&prometheus.query(&format!("{function}(up{{job=\"hawser\"}}[5m])")));
        let scrapes = of_all("count_over_time");
        assert!(scrapes + MISSING_MAX >= SCRAPED_S - 10, "only {scrapes} scrapes");
        assert_eq!(of_all("min_over_time"), 1, "every scrape succeeded");
        let series = figure(&prometheus.query("count({job=\"hawser\"})"));
        println!("{scrapes} scrapes of {series} series, at first {series_before}");
        assert_eq!(series, series_before, "labels have bounds");
        let firing = prometheus.query("ALERTS{alertstate=\"firing\"}");
        assert!(firing.is_empty(), "{firing:#?}");
        assert_eq!(promtool(&["check", "metrics"], &get(&lab, &["http://127.0.0.1:9492/metrics"])), "");
    }
}
