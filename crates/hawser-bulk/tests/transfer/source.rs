//! What a sender reads: bytes of a seed.

use std::time::Duration;

use hawser_bulk::digest::Digest;
use hawser_bulk::layout::{FileInfo, FileName};
use hawser_bulk::sender::SendPlan;
use hawser_bulk::wire::{Have, Verdict};
use hawser_bulk::{BLOCK_LEN, BlockId, Layout};

use super::world::{Order, bytes_of};

/// Where the sender reads.
pub struct Source {
    order: Order,
    files: Vec<Vec<u8>>,
    have: Vec<Option<Have>>,
    next: u32,
    pub digests: Vec<(usize, Digest)>,
    pub results: Vec<Option<Verdict>>,
}

impl Source {
    pub fn new(order: &Order) -> Source {
        let files: Vec<_> =
            order.sizes.iter().enumerate().map(|(file, size)| bytes_of(file, *size, order.seed)).collect();
        let have = vec![None; files.len()];
        let results = vec![None; files.len()];
        Source { order: order.clone(), files, have, next: 0, digests: Vec::new(), results }
    }

    pub fn plan(&self, answered: (usize, Duration)) -> SendPlan {
        let name = |file: usize| FileName::new(format!("file{file}").as_bytes()).expect("a name");
        let info = |(file, size): (usize, &u64)| FileInfo { name: name(file), size: *size, modified: 1 };
        SendPlan {
            files: self.order.sizes.iter().enumerate().map(info).collect(),
            payloads: vec![1392; self.order.links.len()],
            answered,
            law: self.order.law,
            ceiling: self.order.ceiling,
            most_datagrams: self.order.most_datagrams,
            seed: self.order.seed,
        }
    }

    pub fn answered(&mut self, file: usize, verdict: Verdict, have: Have) {
        assert_eq!(verdict, Verdict::Good);
        self.have[file] = Some(have);
        let blocks = self.files[file].chunks(BLOCK_LEN).map(Digest::of_block).collect::<Vec<_>>();
        self.digests.push((file, Digest::of_file(&blocks)));
    }

    pub fn read(&mut self) -> Option<(BlockId, Vec<u8>)> {
        let layout = Layout::new(self.order.sizes.iter().copied(), 1000).expect("an offer");
        while self.next < layout.blocks() {
            let block = BlockId(self.next);
            self.next += 1;
            let (file, at) = layout.place(block).expect("a block");
            let have = self.have[file].as_ref().expect("it was answered");
            if !have.has(block.0 - layout.blocks_of(file).start) {
                let end = (at as usize + BLOCK_LEN).min(self.files[file].len());
                return Some((block, self.files[file][at as usize..end].to_vec()));
            }
        }
        None
    }
}
