//! What etcd takes, and a member's view of it, for the simulation of many members (`hawser_sim::million::costs`):
//! `cargo run --release -p hawser-etcd --example measure -- [--members 60] [--epochs 1000000] [--json FILE]`.
//!
//! 1. [`copies`]: a member knows a million epochs. An answer brings forty of them while somebody holds the view from
//!    before; and a look at each of them, as the control thread does for each view.
//! 2. [`servers`]: three servers of the installed etcd on this machine's loopback, without TLS. Peers are added one by
//!    one, and many at once.
//! 3. Members, which are drivers as they run in a portal, own an epoch each at once, and then forty each: how long
//!    until the last knows the last, and what processor time the servers take to tell one member of one transaction.
//!
//! All of it has this machine's processors: on machines of their own servers and members take no longer.

#[path = "../../../hawser-sim/examples/shared/json.rs"]
mod json;

mod copies;
mod members;
mod servers;

use copies::Copies;
use hawser_config::PublicKey;
use json::{array, number, object, text};
use members::Etcd;

/// Members that follow etcd here.
const MEMBERS: usize = 60;
/// Epochs of a hub of a million peers.
const EPOCHS: u64 = 1_000_000;

fn main() {
    let (mut count, mut epochs, mut file) = (MEMBERS, EPOCHS, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        let number = || value.parse::<u64>().unwrap_or_else(|_| panic!("{word} needs a number, not {value}"));
        match word.as_str() {
            "--members" => count = number() as usize,
            "--epochs" => epochs = number(),
            "--json" => file = Some(value),
            _ => panic!("no argument is called {word}"),
        }
    }
    let copies = copies::measure(epochs);
    println!("{copies:?}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let etcd = runtime.block_on(members::measure(count));
    println!("{etcd:?}");
    if let Some(file) = file {
        let command = format!("--members {count} --epochs {epochs} --json FILE");
        write(&file, &command, &copies, &etcd);
    }
}

fn write(file: &str, words: &str, copies: &Copies, etcd: &Etcd) {
    let command = format!("cargo run --release -p hawser-etcd --example measure -- {words}");
    let waves = etcd.waves.iter().map(|wave| {
        object(&[
            ("epochs_of_each", wave.each.to_string()),
            ("all_know_ms", number(wave.known_ms)),
            ("servers_us_a_member_and_transaction", number(wave.told_us)),
        ])
    });
    json::write(
        file,
        "etcd, many members",
        &[
            ("command", text(&command)),
            ("take_in_ms", number(copies.take_in_ms)),
            ("look_at_all_epochs_ms", number(copies.look_ms)),
            ("write_alone_ms", number(etcd.alone_ms)),
            ("known_to_another_member_ms", number(etcd.known_ms)),
            ("writes_a_second_of_many", number(etcd.a_second)),
            ("waves", array(waves)),
        ],
    );
}

/// A key that looks as random as real ones do (SplitMix64's finaliser: Steele, Lea and Flood, OOPSLA 2014).
fn key(name: u64) -> PublicKey {
    let word = |at: u64| {
        let number = (4 * name + at).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)).to_be_bytes()
    };
    let mut bytes = [0; 32];
    for (at, eight) in (0..).zip(bytes.chunks_exact_mut(8)) {
        eight.copy_from_slice(&word(at));
    }
    PublicKey::new(bytes).expect("not all zeroes")
}

/// The middle one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
