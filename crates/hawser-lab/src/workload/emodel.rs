//! How good a call sounds: the E-model of ITU-T G.107 (06/2015), with its default values for all but delay and loss.
//!
//! 1. The rating R begins with what noise and quantising leave of the best: Ro − Is.
//! 2. Delay takes Id: talker's and listener's echo, and mere lateness beyond 100 ms.
//! 3. The codec and lost packets take Ie,eff; losses in bursts take more than those by chance.
//! 4. R becomes a mean opinion score from 1 to 4.5.

/// Ro and Is, of all default values. Source: G.107, 7.2 and 7.3 with table 2.
const BASIC: f64 = 94.77;
const SIMULTANEOUS: f64 = 1.41;
/// Sum of all noise sources, dBm0p. Source: G.107, equation 7-3 with table 2.
const NOISE: f64 = -61.18;
/// Receive loudness rating, talker's echo loudness rating, weighted echo path loss, in dB. Source: G.107, table 2.
const RLR: f64 = 2.0;
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
/// Lateness below it takes nothing, in ms. Source: G.107, 7.4.
const UNNOTICED_MS: f64 = 100.0;
/// Echo below it is heard as sidetone, in ms. Source: G.107, 7.4.
const SIDETONE_MS: f64 = 1.0;
/// The most that a codec and its losses take. Source: G.107, equation 7-29.
const MOST_IMPAIRMENT: f64 = 95.0;

/// A codec's two figures, and its frames. Source of the figures: G.113 (11/2007), appendix I. Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Codec {
    /// Ie: what it takes without any loss.
    pub(super) impairment: f64,
    /// Bpl: how well it stands losses.
    pub(super) robustness: f64,
    /// Bytes of voice in a packet of 20 ms.
    pub(super) bytes: usize,
}

impl Codec {
    /// G.711 that conceals losses (its appendix I).
    pub(super) const G711: Self = Self { impairment: 0.0, robustness: 25.1, bytes: 160 };
    /// G.711 that plays silence instead.
    pub(super) const G711_PLAIN: Self = Self { impairment: 0.0, robustness: 4.3, bytes: 160 };
    /// G.729A with voice activity detection.
    pub(super) const G729A: Self = Self { impairment: 11.0, robustness: 19.0, bytes: 20 };
}

/// What a listener gets. Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Heard {
    /// From mouth to ear, in ms.
    pub(super) delay_ms: f64,
    /// Packets that are not played, from 0 to 1.
    pub(super) loss: f64,
    /// BurstR: how long bursts of loss are beside those of chance; at least 1.
    pub(super) burst: f64,
}

impl Heard {
    /// Step 4. Source: G.107, annex B.
    pub(super) fn mos(self, codec: Codec) -> f64 {
        let r = self.rating(codec).clamp(0.0, 100.0);
        // Just above zero the formula dips below 1, which is no score.
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }

    /// Steps 1 to 3. Source: G.107, equation 7-1, without an advantage factor.
    fn rating(self, codec: Codec) -> f64 {
        let delay = talker_echo(self.delay_ms) + listener_echo(2.0 * self.delay_ms) + lateness(self.delay_ms);
        let percent = 100.0 * self.loss;
        let equipment = codec.impairment
            + (MOST_IMPAIRMENT - codec.impairment) * percent / (percent / self.burst + codec.robustness);
        BASIC - SIMULTANEOUS - delay - equipment
    }
}

/// Idte. Source: G.107, equations 7-20 to 7-23.
fn talker_echo(delay_ms: f64) -> f64 {
    if delay_ms < SIDETONE_MS {
        return 0.0;
    }
    let t = delay_ms;
    let loudness = TELR - 40.0 * ((1.0 + t / 10.0) / (1.0 + t / 150.0)).log10() + 6.0 * (-0.3 * t * t).exp();
    let with_echo = 80.0 + 2.5 * (loudness - 14.0);
    let without = -1.5 * (NOISE - RLR);
    let half = (without - with_echo) / 2.0;
    (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-t).exp())
}

/// Idle, of the round trip. Source: G.107, equations 7-25 and 7-26.
fn listener_echo(round_trip_ms: f64) -> f64 {
    let with_echo = 10.5 * (WEPL + 7.0) * (round_trip_ms + 1.0).powf(-0.25);
    let half = (BASIC - with_echo) / 2.0;
    half + (half * half + 169.0).sqrt()
}

/// Idd. Source: G.107, equations 7-27 and 7-28 with the default sensitivity.
fn lateness(delay_ms: f64) -> f64 {
    let x = (delay_ms / UNNOTICED_MS).log2().max(0.0);
    25.0 * ((1.0 + x.powi(6)).powf(1.0 / 6.0) - 3.0 * (1.0 + (x / 3.0).powi(6)).powf(1.0 / 6.0) + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(delay_ms: f64, loss: f64, burst: f64) -> Heard {
        Heard { delay_ms, loss, burst }
    }

    /// Computed by hand from the equations of the recommendation, to a tenth.
    #[test]
    fn ratings_are_those_of_the_recommendation() {
        let table = [
            (Codec::G711, heard(0.0, 0.0, 1.0), 93.2, "all default values: as the recommendation itself says"),
            (Codec::G711, heard(100.0, 0.0, 1.0), 90.7, "Idte 1.96, Idle 0.73"),
            (Codec::G711, heard(200.0, 0.0, 1.0), 85.8, "Idte 3.57, Idle 0.94, Idd 3.04"),
            (Codec::G711_PLAIN, heard(0.0, 0.01, 1.0), 75.3, "95 · 1 / (1 + 4.3) = 17.92"),
            (Codec::G711, heard(0.0, 0.05, 1.0), 77.4, "95 · 5 / (5 + 25.1) = 15.78"),
            (Codec::G711, heard(0.0, 0.05, 2.0), 76.0, "95 · 5 / (5 / 2 + 25.1) = 17.21"),
            (Codec::G729A, heard(0.0, 0.02, 1.0), 74.2, "11 + 84 · 2 / (2 + 19) = 19"),
        ];
        for (codec, heard, expected, why) in table {
            let rating = heard.rating(codec);
            assert!((rating - expected).abs() < 0.06, "{heard:?}: {rating}, not {expected}: {why}");
        }
    }

    /// Table B.1 of the recommendation, which rounds up by less than a hundredth.
    #[test]
    fn scores_are_those_of_the_recommendation_within_one_and_four_and_a_half() {
        // At no delay and Ie alone, R is 93.21 less Ie.
        let table = [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)];
        let score = |impairment| heard(0.0, 0.0, 1.0).mos(Codec { impairment, ..Codec::G711 });
        for (rating, expected) in table {
            let score = score(heard(0.0, 0.0, 1.0).rating(Codec::G711) - rating);
            assert!((score - expected).abs() < 0.01, "R {rating}: {score}, not {expected}");
        }
        // R 3: the formula alone would give 0.99.
        assert_eq!((score(90.2), score(-50.0)), (1.0, 4.5));
        assert_eq!(heard(3000.0, 1.0, 1.0).mos(Codec::G711_PLAIN), 1.0);
    }
}
