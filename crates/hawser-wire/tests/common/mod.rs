//! What the namespace tests share.

use std::fs;
use std::time::Duration;

use hawser_wire::{End, Namespace};

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
