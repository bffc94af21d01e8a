//! What an initiation says of its own age, in the last bytes of its payload; zero in a response.
//!
//! ```text
//! echo 8 | count 4
//! ```

use super::Offer;

/// That an initiation was made lately, and in which order. Zero where no cookie came yet; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Freshness {
    /// What only somebody knows who was given a cookie lately.
    pub echo: [u8; Freshness::ECHO_LEN],
    /// Counts the initiations of one start of a portal to one peer.
    pub count: u32,
}

impl Freshness {
    /// Bytes of the echo.
    pub const ECHO_LEN: usize = 8;
    /// Bytes of both.
    const LEN: usize = Self::ECHO_LEN + 4;

    /// Writes it into a payload.
    pub fn put(&self, payload: &mut [u8; Offer::LEN]) {
        let (_, room) = payload.split_at_mut(Offer::LEN - Self::LEN);
        room[..Self::ECHO_LEN].copy_from_slice(&self.echo);
        room[Self::ECHO_LEN..].copy_from_slice(&self.count.to_be_bytes());
    }

    /// Takes it out of a payload, which has zeros there then.
    pub fn take(payload: &mut [u8; Offer::LEN]) -> Self {
        let (_, bytes) = payload.split_at_mut(Offer::LEN - Self::LEN);
        let (mut echo, mut count) = ([0; Self::ECHO_LEN], [0; 4]);
        echo.copy_from_slice(&bytes[..Self::ECHO_LEN]);
        count.copy_from_slice(&bytes[Self::ECHO_LEN..]);
        bytes.fill(0);
        Freshness { echo, count: u32::from_be_bytes(count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fills_the_last_twelve_bytes_and_leaves_zeros() {
        let fresh = Freshness { echo: [1, 2, 3, 4, 5, 6, 7, 8], count: 0x0a0b_0c0d };
        let mut payload = [0xee; Offer::LEN];
        fresh.put(&mut payload);
        assert_eq!(payload[..12], [0xee; 12]);
        assert_eq!(payload[12..], [1, 2, 3, 4, 5, 6, 7, 8, 0x0a, 0x0b, 0x0c, 0x0d]);
        assert_eq!(Freshness::take(&mut payload), fresh);
        assert_eq!(payload[..12], [0xee; 12]);
        assert_eq!(payload[12..], [0; 12]);
    }
}
