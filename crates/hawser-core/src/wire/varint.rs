//! The variable-length integer of RFC 9000 section 16: the top two bits of the first byte tell
//! whether one, two, four or eight bytes hold the number.

use super::{EncodeError, WireError};

/// The largest number that fits (RFC 9000 section 16: 62 bits).
pub const MAX: u64 = (1 << 62) - 1;

/// The bits of the first byte that belong to the number.
const VALUE_BITS: u8 = 0x3f;

/// Bytes that `value` takes, in its shortest form.
///
/// # Errors
/// [`EncodeError::OutOfRange`] above [`MAX`].
pub const fn len(value: u64) -> Result<usize, EncodeError> {
    match value {
        0..=0x3f => Ok(1),
        0x40..=0x3fff => Ok(2),
        0x4000..=0x3fff_ffff => Ok(4),
        0x4000_0000..=MAX => Ok(8),
        _ => Err(EncodeError::OutOfRange),
    }
}

/// Writes `value` over all of `out`, whose length is what [`len`] told.
pub(super) fn encode(value: u64, out: &mut [u8]) {
    let len = out.len();
    out.copy_from_slice(&value.to_be_bytes()[8 - len..]);
    out[0] |= (len.trailing_zeros() as u8) << 6;
}

/// The number at the start of `bytes`, and how many bytes hold it. Longer forms than needed are
/// accepted, as RFC 9000 section 16 has it.
///
/// # Errors
/// [`WireError::Truncated`] where the bytes end inside the number.
pub fn decode(bytes: &[u8]) -> Result<(u64, usize), WireError> {
    let first = *bytes.first().ok_or(WireError::Truncated)?;
    let len = 1_usize << (first >> 6);
    let tail = bytes.get(1..len).ok_or(WireError::Truncated)?;
    let value = tail.iter().fold(u64::from(first & VALUE_BITS), |value, byte| value << 8 | u64::from(*byte));
    Ok((value, len))
}
