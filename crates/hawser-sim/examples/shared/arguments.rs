//! What the examples are asked for.

use hawser_core::policy::{Law, Tuning};
use hawser_sim::family::recorded::Draw;
use hawser_sim::judge::{Network, Question};
use hawser_sim::tcp::Congestion;

/// Everything, with what holds where nothing is said.
pub struct Arguments {
    /// A folder with recordings.
    pub traces: String,
    /// Decides what is drawn.
    pub seed: u64,
    /// How many of it.
    pub cases: usize,
    /// Seconds of each recording.
    pub seconds: usize,
    /// Of the recorded rates of drives.
    pub scale: f64,
    /// Congestion control and direction.
    pub question: Question,
    /// Another seed of what is random within each network; the networks stay.
    pub run: Option<u64>,
    /// Only cases whose name contains this.
    pub case: String,
    /// Constants of the portals' policy.
    pub tuning: Tuning,
}

impl Arguments {
    /// From the command line.
    pub fn read() -> Self {
        let mut given = Arguments {
            traces: String::new(),
            seed: 1,
            cases: 12,
            seconds: 40,
            scale: 0.2,
            question: Question { congestion: Congestion::Cubic, down: true },
            run: None,
            case: String::new(),
            tuning: Tuning::default(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
            given.take(&word, value);
        }
        given
    }

    fn take(&mut self, word: &str, value: String) {
        let number = || value.parse::<f64>().unwrap_or_else(|_| panic!("{word} needs a number, not {value}"));
        match (word, value.as_str()) {
            ("--traces", _) => self.traces = value,
            ("--seed", _) => self.seed = number() as u64,
            ("--cases", _) => self.cases = number() as usize,
            ("--seconds", _) => self.seconds = number() as usize,
            ("--scale", _) => self.scale = number(),
            ("--congestion", "cubic") => self.question.congestion = Congestion::Cubic,
            ("--congestion", "bbr") => self.question.congestion = Congestion::Bbr,
            ("--direction", "down") => self.question.down = true,
            ("--direction", "up") => self.question.down = false,
            ("--run", _) => self.run = Some(number() as u64),
            ("--case", _) => self.case = value,
            ("--without", name) => {
                self.tuning = Tuning::neutral(Law::named(name).unwrap_or_else(|| panic!("no law is called {name}")))
            }
            _ => panic!("no argument is called {word} {value}"),
        }
    }

    /// What is drawn of recordings.
    pub fn draw(&self) -> Draw {
        Draw { seed: self.seed, cases: self.cases, seconds: self.seconds, scale: self.scale }
    }

    /// Those that are asked for, with the seed and the constants that are asked for.
    pub fn choose(&self, networks: &mut Vec<Network>) {
        networks.retain(|network| network.name.contains(&self.case));
        for network in networks {
            (network.seed, network.tuning) = (self.run.unwrap_or(network.seed), self.tuning);
        }
    }
}
