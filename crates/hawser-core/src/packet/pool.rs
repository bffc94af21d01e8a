//! Buffers in size classes, used again and again.

/// The largest buffer: an IPv6 packet with the longest payload (65,535 + 40 bytes), rounded up.
pub const LARGEST: usize = 65_536 + 64;
/// Buffer sizes, bytes: acknowledgements, small packets (calls, names, games), one packet, and doublings up to a whole
/// train.
const CLASSES: [usize; 9] = [256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, LARGEST];

/// Free buffers by size class. Empty at first; `take` allocates when it has to. One owner, no sharing.
#[derive(Debug, Default)]
pub struct Pool {
    classes: [Shelf; CLASSES.len()],
}

#[derive(Debug, Default)]
struct Shelf {
    free: Vec<Vec<u8>>,
    /// The fewest free buffers since the last trim: nobody needed these.
    idle: usize,
}

/// The size class that holds `len` bytes. Panics above [`LARGEST`].
fn class_of(len: usize) -> usize {
    CLASSES.iter().position(|&size| len <= size).expect("a buffer for more bytes than a packet can have")
}

impl Pool {
    /// The capacity of the buffer that `take(len)` gives, bytes.
    pub fn size_for(len: usize) -> usize {
        CLASSES[class_of(len)]
    }

    /// A buffer of at least `len` bytes (at most [`LARGEST`]), full of whatever it held before.
    pub fn take(&mut self, len: usize) -> Vec<u8> {
        let class = class_of(len);
        let shelf = &mut self.classes[class];
        let buffer = shelf.free.pop();
        shelf.idle = shelf.idle.min(shelf.free.len());
        buffer.unwrap_or_else(|| vec![0; CLASSES[class]])
    }

    /// Gives back what `take` gave; its length must be unchanged.
    pub fn put(&mut self, buffer: Vec<u8>) {
        let class = class_of(buffer.len());
        debug_assert_eq!(buffer.len(), CLASSES[class], "a buffer of another pool");
        self.classes[class].free.push(buffer);
    }

    /// Frees the buffers that nobody needed since the last call. Call it about once a second.
    pub fn trim(&mut self) {
        for shelf in &mut self.classes {
            shelf.free.truncate(shelf.free.len() - shelf.idle.min(shelf.free.len()));
            shelf.idle = shelf.free.len();
        }
    }

    /// Bytes of the free buffers.
    pub fn bytes(&self) -> usize {
        self.classes.iter().zip(CLASSES).map(|(shelf, size)| shelf.free.len() * size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_freed_when_idle() {
        let mut pool = Pool::default();
        let (a, b) = (pool.take(1_500), pool.take(2_048));
        assert_eq!((a.len(), b.len()), (2_048, 2_048));
        let address = b.as_ptr();
        pool.put(a);
        pool.put(b);
        pool.trim();
        assert_eq!(pool.bytes(), 4_096);
        let b = pool.take(1_300);
        assert_eq!(b.as_ptr(), address);
        pool.put(b);
        pool.trim();
        assert_eq!(pool.bytes(), 2_048, "one of two was needed");
        pool.trim();
        assert_eq!(pool.bytes(), 0);
    }

    #[test]
    fn the_classes_cover_every_packet() {
        for (len, size) in [(0, 256), (257, 512), (513, 1_024), (1_025, 2_048), (32_769, LARGEST), (65_575, LARGEST)] {
            assert_eq!(Pool::size_for(len), size);
        }
    }
}
