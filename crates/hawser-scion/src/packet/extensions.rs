//! Extension headers, passed over (scion-header.rst, "SCION Extension Headers").
//!
//! 1. [`skip`]: at most one for hops, then at most one for the end host.
//! 2. The options of each fill it exactly; none of them is needed here.

use super::header::{Malformed, Part, need};
use super::wire::{LINE_LEN, protocol};

/// Bytes of an extension's NextHdr and ExtLen.
const EXTENSION_HEAD_LEN: usize = 2;
/// Bytes of an option's type and length.
const OPTION_HEAD_LEN: usize = 2;
/// The type of the option that is one byte of padding, without a length.
const PAD_1: u8 = 0;

/// What is carried after extensions: its protocol and its bytes.
#[inline]
pub(super) fn skip(next_header: u8, bytes: &[u8]) -> Result<(u8, &[u8]), Malformed> {
    let (next_header, bytes) = skip_one(protocol::HOP_BY_HOP, next_header, bytes)?;
    let (next_header, bytes) = skip_one(protocol::END_TO_END, next_header, bytes)?;
    match next_header {
        protocol::HOP_BY_HOP | protocol::END_TO_END => Err(Malformed::ExtensionOrder(next_header)),
        carried => Ok((carried, bytes)),
    }
}

/// What follows one extension, if it is the one that comes next.
#[inline]
fn skip_one(extension: u8, next_header: u8, bytes: &[u8]) -> Result<(u8, &[u8]), Malformed> {
    if next_header != extension { Ok((next_header, bytes)) } else { skip_this(bytes) }
}

fn skip_this(bytes: &[u8]) -> Result<(u8, &[u8]), Malformed> {
    need(bytes, EXTENSION_HEAD_LEN, Part::Extension)?;
    let len = (usize::from(bytes[1]) + 1) * LINE_LEN;
    need(bytes, len, Part::Extension)?;
    check_options(&bytes[EXTENSION_HEAD_LEN..len])?;
    Ok((bytes[0], &bytes[len..]))
}

fn check_options(mut options: &[u8]) -> Result<(), Malformed> {
    while let Some(kind) = options.first() {
        let len = if *kind == PAD_1 {
            1
        } else {
            need(options, OPTION_HEAD_LEN, Part::ExtensionOption)?;
            OPTION_HEAD_LEN + usize::from(options[1])
        };
        need(options, len, Part::ExtensionOption)?;
        options = &options[len..];
    }
    Ok(())
}
