//! What the namespace tests share.

use std::fs;
use std::time::Duration;

use hawser_wire::traffic::UdpReport;
use hawser_wire::{EmulatedLink, End, Moment, Namespace, Way};

pub mod measured;

/// End a's address.
pub const ADDRESS_A: &str = "10.9.0.1";
/// End b's address.
pub const ADDRESS_B: &str = "10.9.0.2";

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Two new namespaces, as the ends of a link.
pub fn between(tag: &str) -> (End, End) {
    let make = || Namespace::new(tag).expect("makes a namespace (these tests need root)");
    (
        End::new(&make(), "wire0", &[&format!("{ADDRESS_A}/24"), "fd09::1/64"]),
        End::new(&make(), "wire0", &[&format!("{ADDRESS_B}/24"), "fd09::2/64"]),
    )
}

/// A hole in a link, and when it was there: who opens and closes it may have had to wait for a processor. Plain data.
#[derive(Debug)]
pub struct Hole {
    pub opening: Moment,
    pub opened: Moment,
    pub closing: Moment,
    pub closed: Moment,
}

impl Hole {
    /// Opens it these ways, and closes it after at least this time.
    pub fn open(link: &EmulatedLink, ways: &[Way], time: Duration) -> Self {
        let opening = Moment::now();
        for way in ways {
            link.black_hole_way(*way, true).expect("it opens");
        }
        let opened = Moment::now();
        std::thread::sleep(time);
        let closing = Moment::now();
        link.restore().expect("it closes");
        Self { opening, opened, closing, closed: Moment::now() }
    }

    /// Whether as many may have vanished there of packets one each interval, give or take a few.
    pub fn may_have_taken(&self, lost: u64, interval: Duration, few: u128) -> bool {
        let within = |time: Duration| time.as_nanos() / interval.as_nanos();
        let (least, most) = (within(self.closing - self.opened), within(self.closed - self.opening));
        (least.saturating_sub(few)..=most + few).contains(&u128::from(lost))
    }
}

/// How long it was from each packet that arrived to the one that arrived this many later.
pub fn stretches(report: &UdpReport, packets: usize) -> Vec<Duration> {
    let stretches = report.arrivals.windows(packets + 1);
    stretches.map(|stretch| stretch[packets].received - stretch[0].received).collect()
}

/// Processor time of this process's threads of a name, to the microsecond (schedstat).
pub fn thread_cpu(name: &str) -> Duration {
    let mut total = Duration::ZERO;
    for task in fs::read_dir("/proc/self/task").expect("lists threads").flatten() {
        let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if read("comm").trim_end() == name {
            let nanos = read("schedstat").split(' ').next().and_then(|word| word.parse().ok());
            total += Duration::from_nanos(nanos.expect("schedstat has a time"));
        }
    }
    total
}
