//! When a link really carries packets.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hawser_lab::stage::Stage;
use hawser_wire::{Moment, Namespace, Way};

use crate::common::ms;

/// How exact an event's time is.
pub const EXACT: Duration = ms(10);

/// A time without a packet: after which one, before which one. None: from the beginning, or for good.
pub type Silence = [Option<Duration>; 2];

/// A silence begins and ends when it was told to: not before, and hardly later.
pub fn near(silence: Silence, told: [Option<u64>; 2], late: Duration) {
    for (seen, told) in silence.into_iter().zip(told) {
        match (seen, told.map(ms)) {
            (None, None) => {}
            (Some(seen), Some(told)) => assert!(seen + EXACT >= told && seen < told + late, "{seen:?} for {told:?}"),
            (seen, told) => panic!("{seen:?} for {told:?}"),
        }
    }
}

/// Packets over a link, one each ms, until it is asked. Runs until then; one owner.
pub struct Watch {
    receiver: std::thread::JoinHandle<Vec<Moment>>,
    stop: Arc<AtomicBool>,
    way: Duration,
}

impl Watch {
    pub fn start(stage: &Stage, link: usize, port: u16) -> Self {
        let ends = stage.ends_of(link);
        let bind =
            |host: &Namespace, to: (IpAddr, u16)| host.run(|| UdpSocket::bind(to)).expect("enters").expect("binds");
        // Addresses outlast a link that is down.
        let (near, far) = (bind(&stage.client, (ends.client, 0)), bind(&stage.server, (ends.server, port)));
        far.set_read_timeout(Some(ms(50))).expect("is set");
        let stop = Arc::new(AtomicBool::new(false));
        let (sender_stop, receiver_stop) = (Arc::clone(&stop), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !sender_stop.load(Ordering::Relaxed) {
                // Refused where the interface is down.
                let _ = near.send_to(b"?", (ends.server, port));
                std::thread::sleep(ms(1));
            }
        });
        let receiver = std::thread::spawn(move || {
            let mut arrived = Vec::new();
            while !receiver_stop.load(Ordering::Relaxed) {
                if far.recv(&mut [0]).is_ok() {
                    arrived.push(Moment::now());
                }
            }
            arrived
        });
        let way = stage.links[link].link.settings(Way::AToB).delay;
        Self { receiver, stop, way }
    }

    /// Silences of more than 100 ms, counted from a moment. A packet on its way when a link ends is lost: the last to
    /// arrive did so when it ended; the first that comes later was sent a way's time before.
    pub fn silences(self, start: Moment) -> Vec<Silence> {
        self.stop.store(true, Ordering::Relaxed);
        let end = Moment::now();
        let arrived = self.receiver.join().expect("it ends");
        let since = |moment: Moment| moment.since(start);
        let mut silences = Vec::new();
        let mut last = None;
        for &moment in &arrived {
            if since(moment) > last.unwrap_or_default() + ms(100) {
                silences.push([last, Some(since(moment).saturating_sub(self.way))]);
            }
            last = Some(since(moment));
        }
        if since(end) > last.unwrap_or_default() + ms(100) {
            silences.push([last, None]);
        }
        silences
    }
}
