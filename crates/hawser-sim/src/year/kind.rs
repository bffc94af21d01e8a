//! What can happen to a home's line, how often, and for how long.
//!
//! The rates are those of no line in particular: they are chosen so that a year has more than 10^5 faults, each kind at
//! least once a day but for those that a line has once a day at most. At night everything is [`AT_NIGHT`] as frequent.

use crate::random::Seeded;
use std::time::Duration;

/// The part of a kind's rate that nights have.
pub const AT_NIGHT: f64 = 0.5;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident $name:literal $scope:ident $per_day:literal $least:literal..$most:literal),+ $(,)?) => {
        /// A kind of fault: a row of the table.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        pub enum Kind { $($(#[doc = $doc])+ $kind),+ }

        /// Every kind, with its rate.
        pub const KINDS: &[Row] = &[$(Row {
            kind: Kind::$kind,
            name: $name,
            scope: Scope::$scope,
            per_day: $per_day,
            lasts: ($least, $most),
        }),+];
    };
}

/// What a fault strikes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// One line, in what it carries; others stay as they are.
    Line,
    /// The DSL line alone.
    Dsl,
    /// A line behind a NAT.
    Nat,
    /// The LTE line alone.
    Lte,
    /// Nothing that carries datagrams: somebody hostile, or a store that is full.
    Nothing,
    /// All lines, or what they all need.
    All,
    /// A portal, which does not run meanwhile: gaps count from the fault's end.
    Portal,
}

/// A row of the table. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Row {
    /// Which kind.
    pub kind: Kind,
    /// Its name in reports.
    pub name: &'static str,
    /// What it strikes.
    pub scope: Scope,
    /// How many a day has, on the mean.
    pub per_day: f64,
    /// The least and the most that it lasts, s; uniform on a logarithmic scale.
    pub lasts: (f64, f64),
}

kinds! {
    /// The provider separates the DSL line, which comes back with other addresses: once a night, and told.
    Reconnect "reconnection" Dsl 0.0 3.0..40.0,
    /// All that is sent vanishes.
    Cut "cut" Line 25.0 0.1..60.0,
    /// What the home sends vanishes.
    CutUp "cut_up" Line 12.0 0.1..60.0,
    /// What the home is sent vanishes.
    CutDown "cut_down" Line 12.0 0.1..60.0,
    /// The interface goes, and the portal is told.
    Down "interface_down" Line 8.0 0.5..120.0,
    /// Goes and comes every 0.2 to 2 s.
    Flapping "flapping" Line 6.0 10.0..30.0,
    /// Spells in which all is lost, ten datagrams long on the mean.
    LossBursts "loss_bursts" Line 30.0 1.0..30.0,
    /// 1 to 30 % is lost at random.
    Loss "random_loss" Line 12.0 5.0..60.0,
    /// In 0.1 to 5 % of the datagrams a bit is wrong.
    BitErrors "bit_errors" Line 10.0 1.0..30.0,
    /// Datagrams overtake each other by up to 80 ms.
    Reordering "reordering" Line 12.0 2.0..60.0,
    /// 1 to 50 % arrives twice.
    Duplication "duplication" Line 10.0 2.0..60.0,
    /// The round trip grows by 20 to 600 ms at once.
    DelayJump "delay_jump" Line 15.0 1.0..120.0,
    /// The delay varies by up to 300 ms, in order.
    Jitter "jitter" Line 10.0 2.0..60.0,
    /// 1 Mbit/s with a buffer of 4 s, and web pages at the same time.
    Bufferbloat "bufferbloat" Line 12.0 5.0..60.0,
    /// The rate falls to 1 to 50 % of what it was.
    RateFall "rate_fall" Line 12.0 5.0..120.0,
    /// Packets of more than 1,280 to 1,420 bytes vanish, and a router says so.
    MtuTold "mtu_fall_told" Line 4.0 10.0..300.0,
    /// The same, and nobody says so.
    MtuSilent "mtu_fall_silent" Line 4.0 10.0..300.0,
    /// Nothing is sent, and what waits is kept until the end.
    Stall "stall" Line 20.0 0.2..30.0,
    /// The same in the direction to the home.
    StallDown "stall_down" Line 8.0 0.2..30.0,
    /// The NAT gives the line another port.
    Rebind "nat_rebinding" Nat 20.0 0.1..0.2,
    /// One of the IP versions of the DSL line goes, and the portal is told.
    Family "address_family" Dsl 4.0 5.0..300.0,
    /// The LTE stick is pulled out and put in again: the link is removed, and added.
    Unplugged "link_removed" Lte 2.0 5.0..100.0,
    /// Both links of the first tier are cut.
    FirstTier "first_tier_cut" All 6.0 1.0..60.0,
    /// All lines are cut.
    AllCut "all_cut" Portal 3.0 0.5..60.0,
    /// The home's portal is killed, and started again.
    LocalKilled "local_killed" Portal 2.0 0.1..5.0,
    /// It ends in order, and is started again.
    LocalClosed "local_closed" Portal 1.0 0.1..5.0,
    /// The remote portal is killed, and started again.
    RemoteKilled "remote_killed" Portal 2.0 0.1..5.0,
    /// It ends in order, and is started again.
    RemoteClosed "remote_closed" Portal 1.0 0.1..5.0,
    /// The home's machine sleeps.
    Sleep "local_sleeps" Portal 3.0 1.0..600.0,
    /// The remote portal's process is stopped, and goes on; its sockets keep what they have room for.
    Freeze "remote_frozen" Portal 4.0 0.1..20.0,
    /// The clock of one side jumps ahead by 1 s to 1 h.
    ClockJump "clock_jump" All 4.0 0.1..0.2,
    /// Noise, initiations of nobody, changed datagrams, from anywhere.
    Forged "forged" Nothing 15.0 1.0..20.0,
    /// Recorded datagrams, of now and of days ago, from where they came and from elsewhere.
    Replayed "replayed" Nothing 15.0 1.0..20.0,
    /// ICMP in a router's name, with a wrong quotation.
    ForgedIcmp "forged_icmp" Nothing 8.0 1.0..20.0,
    /// Handshake messages vanish: beyond the end of the keys where it lasts.
    HandshakesLost "handshakes_lost" All 3.0 10.0..250.0,
    /// 20 % is lost on all lines for longer than keys are used.
    KeyChange "key_change_under_loss" All 2.0 130.0..200.0,
    /// Packets at once, more than a store and a queue hold.
    FullStore "full_store" Nothing 2.0 3.0..10.0,
    /// Both portals read the configuration of their peer again, and it is the same.
    Reloaded "peer_reloaded" Nothing 4.0 0.1..0.2,
    /// The remote portal removes its peer, and adds it again.
    Removed "peer_removed" Portal 1.0 0.1..5.0,
    /// The LTE line may not be used.
    Barred "terms_barred" Lte 3.0 5.0..100.0,
    /// The LTE line is one of the first tier.
    Metric "metric_changed" Lte 2.0 5.0..100.0,
}

impl Row {
    /// How long one of these lasts.
    pub fn length(&self, rng: &mut Seeded) -> Duration {
        Duration::from_secs_f64(rng.log_between(self.lasts.0, self.lasts.1))
    }

    /// The time until the next one, drawn as a Poisson process has it; `None` where they are not drawn.
    pub fn wait(&self, rng: &mut Seeded) -> Option<Duration> {
        const DAY: f64 = 86_400.0;
        (self.per_day > 0.0).then(|| Duration::from_secs_f64(-(1.0 - rng.unit()).ln() * DAY / self.per_day))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_year_has_more_than_a_hundred_thousand_faults_of_more_than_twenty_kinds() {
        let per_day: f64 = KINDS.iter().map(|row| row.per_day).sum();
        // A quarter of the day is night; the reconnection comes once a night.
        let a_year = 365.0 * (per_day * (0.75 + 0.25 * AT_NIGHT) + 1.0);
        assert!(a_year > 1e5, "{a_year} faults");
        assert!(KINDS.len() > 20);
        let in_order = KINDS.iter().enumerate().all(|(index, row)| row.kind as usize == index);
        assert!(in_order, "a kind is its row's number");
    }

    #[test]
    fn faults_come_as_often_as_the_table_says() {
        let mut rng = Seeded::new(1);
        let row = KINDS[Kind::Cut as usize];
        let waits = (0..10_000).filter_map(|_| row.wait(&mut rng)).sum::<Duration>();
        let a_day = 10_000.0 / (waits.as_secs_f64() / 86_400.0);
        assert!((row.per_day * 0.97..row.per_day * 1.03).contains(&a_day), "{a_day} a day");
    }
}
