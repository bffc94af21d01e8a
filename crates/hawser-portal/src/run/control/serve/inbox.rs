//! What the packet thread reports, in the order in which it is done: what a member of a hub announces first, all of it
//! at once, as packets wait for those routes. The rest in its order, one by one.

use std::collections::VecDeque;
use std::future::pending;

use hawser_core::endpoint::Event;
use hawser_core::units::PeerId;
use hawser_hub::gate::Announced;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::run::messages::{News, Report};

/// What was reported and is not done. Nothing at first; the control thread owns it.
#[derive(Default)]
pub struct Inbox<'a> {
    /// None before the packet thread runs.
    reports: Option<&'a mut UnboundedReceiver<Report>>,
    announced: Vec<Announced>,
    /// How long packets to peers may be: all peers are looked at for it.
    fits: Vec<(PeerId, u16)>,
    others: VecDeque<Report>,
    /// One of the others comes next, if there is one: what comes without pause keeps nobody waiting.
    yields: bool,
    /// Of what does not yield, `fits` waited for the last announcements, and comes next.
    fits_next: bool,
}

/// What is to be done next. Owned data.
pub enum Due {
    /// What this member is to peers from now on.
    Announced(Vec<Announced>),
    /// How long packets to peers may be.
    Fits(Vec<(PeerId, u16)>),
    /// All else.
    Other(Report),
}

impl<'a> Inbox<'a> {
    pub fn new(reports: &'a mut UnboundedReceiver<Report>) -> Self {
        Self { reports: Some(reports), ..Self::default() }
    }

    /// What is next; none once the packet thread has ended. May be dropped at any await without loss.
    pub async fn next(&mut self) -> Option<Due> {
        loop {
            self.take();
            if let Some(due) = self.due() {
                return Some(due);
            }
            self.wait().await?;
        }
    }

    /// What is announced next, whatever else waits; never, once the packet thread has ended. May be dropped at any
    /// await without loss.
    #[cfg(feature = "etcd")]
    pub async fn announced(&mut self) -> Vec<Announced> {
        loop {
            self.take();
            if !self.announced.is_empty() {
                return std::mem::take(&mut self.announced);
            }
            if self.wait().await.is_none() {
                pending::<()>().await;
            }
        }
    }

    fn due(&mut self) -> Option<Due> {
        let yields = std::mem::take(&mut self.yields) && !self.others.is_empty();
        if !yields {
            let fits_next = std::mem::take(&mut self.fits_next);
            if !self.announced.is_empty() && !fits_next {
                (self.yields, self.fits_next) = (true, !self.fits.is_empty());
                return Some(Due::Announced(std::mem::take(&mut self.announced)));
            }
            if !self.fits.is_empty() {
                self.yields = true;
                return Some(Due::Fits(std::mem::take(&mut self.fits)));
            }
        }
        self.others.pop_front().map(Due::Other)
    }

    /// Takes all that was sent.
    fn take(&mut self) {
        while let Some(Ok(report)) = self.reports.as_mut().map(|reports| reports.try_recv()) {
            self.sort(report);
        }
    }

    async fn wait(&mut self) -> Option<()> {
        let report = match &mut self.reports {
            Some(reports) => reports.recv().await?,
            None => pending().await,
        };
        self.sort(report);
        Some(())
    }

    fn sort(&mut self, report: Report) {
        match report {
            Report::Hub(News::Announced(announced)) => self.announced.push(announced),
            Report::Event(Event::PeerMtu { peer, mtu }) => self.fits.push((peer, mtu)),
            other => self.others.push_back(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use hawser_core::handshake::PublicKey;
    use hawser_hub::claim::Announcement;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    fn announced(number: u8) -> Report {
        let key = PublicKey([number; 32]);
        Report::Hub(News::Announced(Announced { key, announcement: Announcement::Owner, epoch: None }))
    }

    fn fit(number: u32) -> Report {
        Report::Event(Event::PeerMtu { peer: PeerId(number), mtu: 1_400 })
    }

    fn closed(number: u32) -> Report {
        Report::Event(Event::Closed { peer: PeerId(number) })
    }

    /// In words, with how many go together.
    fn told(due: Option<Due>) -> String {
        match due {
            Some(Due::Announced(all)) => format!("{} announced", all.len()),
            Some(Due::Fits(all)) => format!("{} fits", all.len()),
            Some(Due::Other(Report::Event(Event::Closed { peer }))) => format!("closed {}", peer.0),
            Some(Due::Other(_)) => "another".to_owned(),
            None => "none".to_owned(),
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn all_that_is_announced_comes_first_and_at_once_and_then_one_of_the_others() {
        let (tell, mut reports) = unbounded_channel();
        let send = |report| tell.send(report).expect("it is heard");
        let mut inbox = Inbox::new(&mut reports);
        [closed(1), announced(1), fit(1), closed(2), announced(2), fit(2)].into_iter().for_each(send);
        assert_eq!(told(inbox.next().await), "2 announced");
        send(announced(3));
        assert_eq!(told(inbox.next().await), "closed 1", "more is announced, and it has its turn");
        assert_eq!(told(inbox.next().await), "2 fits", "they, too");
        send(fit(3));
        for expected in ["closed 2", "1 announced", "1 fits"] {
            assert_eq!(told(inbox.next().await), expected);
        }
        drop(tell);
        assert_eq!(told(inbox.next().await), "none");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn fits_without_pause_keep_none_of_the_others_waiting() {
        let (tell, mut reports) = unbounded_channel();
        let send = |report| tell.send(report).expect("it is heard");
        let mut inbox = Inbox::new(&mut reports);
        [closed(1), closed(2), closed(3), fit(1)].into_iter().for_each(send);
        for number in 1..=3 {
            assert_eq!(told(inbox.next().await), "1 fits");
            send(fit(number));
            assert_eq!(told(inbox.next().await), format!("closed {number}"));
        }
    }

    #[cfg(feature = "etcd")]
    #[tokio::test(flavor = "current_thread")]
    async fn what_else_comes_meanwhile_is_not_lost() {
        let (tell, mut reports) = unbounded_channel();
        let mut inbox = Inbox::new(&mut reports);
        tell.send(closed(1)).expect("it is heard");
        assert!(now(inbox.announced()).await.is_none(), "nothing is announced");
        tell.send(announced(1)).expect("it is heard");
        assert_eq!(inbox.announced().await.len(), 1);
        assert_eq!(told(inbox.next().await), "closed 1");
    }

    /// What it gives without waiting.
    #[cfg(feature = "etcd")]
    async fn now<T>(work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = std::future::ready(()) => None,
        }
    }
}
