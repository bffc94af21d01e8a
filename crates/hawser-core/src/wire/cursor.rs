//! Checked cursors over byte slices: neither can run past its end.

use super::varint;
use super::{EncodeError, WireError};

/// Reads fields from a slice, front to back. Starts at the first byte; a failed read moves nothing.
/// Borrowed data: share it as you would the slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Fails with [`WireError::Trailing`] unless everything was read.
    pub fn finish(&self) -> Result<(), WireError> {
        match self.bytes.len() {
            0 => Ok(()),
            left => Err(WireError::Trailing(left)),
        }
    }

    /// All bytes that are left, possibly none.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Everything that is left, without moving.
    pub(super) fn peek(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let (head, tail) = self.bytes.split_at_checked(len).ok_or(WireError::Truncated)?;
        self.bytes = tail;
        Ok(head)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], WireError> {
        let (head, tail) = self.bytes.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.bytes = tail;
        Ok(head)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|bytes| bytes[0])
    }

    /// The next two bytes, network byte order.
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// The next three bytes, network byte order.
    pub fn u24(&mut self) -> Result<u32, WireError> {
        self.array::<3>().map(|b| u32::from_be_bytes([0, b[0], b[1], b[2]]))
    }

    /// The next four bytes, network byte order.
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// The next eight bytes, network byte order.
    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(|bytes| u64::from_be_bytes(*bytes))
    }

    /// A variable-length integer (RFC 9000 section 16).
    pub fn varint(&mut self) -> Result<u64, WireError> {
        let (value, len) = varint::decode(self.bytes)?;
        self.bytes = &self.bytes[len..];
        Ok(value)
    }
}

/// Writes fields into a slice, front to back. Starts empty; a failed write changes nothing.
/// Exclusive, as the slice it borrows.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    written: usize,
}

impl<'a> Writer<'a> {
    /// A writer at the start of `out`.
    pub fn new(out: &'a mut [u8]) -> Self {
        Writer { out, written: 0 }
    }

    /// Bytes that still fit.
    pub fn remaining(&self) -> usize {
        self.out.len() - self.written
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.written
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// What was written so far.
    pub fn written(&self) -> &[u8] {
        &self.out[..self.written]
    }

    /// Fails with [`EncodeError::NoRoom`] unless `len` more bytes fit.
    pub fn reserve(&self, len: usize) -> Result<(), EncodeError> {
        if len > self.remaining() {
            return Err(EncodeError::NoRoom);
        }
        Ok(())
    }

    /// Gives the next `len` bytes to the caller to fill.
    pub fn put_room(&mut self, len: usize) -> Result<&mut [u8], EncodeError> {
        self.reserve(len)?;
        let start = self.written;
        self.written += len;
        Ok(&mut self.out[start..start + len])
    }

    /// Appends `bytes`.
    pub fn put_bytes(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.put_room(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Appends a byte.
    pub fn put_u8(&mut self, value: u8) -> Result<(), EncodeError> {
        self.put_bytes(&[value])
    }

    /// Appends two bytes, network byte order.
    pub fn put_u16(&mut self, value: u16) -> Result<(), EncodeError> {
        self.put_bytes(&value.to_be_bytes())
    }

    /// Appends the low three bytes, network byte order; a larger value is out of range.
    pub fn put_u24(&mut self, value: u32) -> Result<(), EncodeError> {
        match value.to_be_bytes() {
            [0, bytes @ ..] => self.put_bytes(&bytes),
            _ => Err(EncodeError::OutOfRange),
        }
    }

    /// Appends four bytes, network byte order.
    pub fn put_u32(&mut self, value: u32) -> Result<(), EncodeError> {
        self.put_bytes(&value.to_be_bytes())
    }

    /// Appends eight bytes, network byte order.
    pub fn put_u64(&mut self, value: u64) -> Result<(), EncodeError> {
        self.put_bytes(&value.to_be_bytes())
    }

    /// Appends a variable-length integer (RFC 9000 section 16) in its shortest form.
    pub fn put_varint(&mut self, value: u64) -> Result<(), EncodeError> {
        let len = varint::len(value)?;
        varint::encode(value, self.put_room(len)?);
        Ok(())
    }

    /// Forgets what was written after `len` bytes.
    pub(super) fn truncate(&mut self, len: usize) {
        self.written = self.written.min(len);
    }

    /// Overwrites two bytes that were written before.
    pub(super) fn patch_u16(&mut self, at: usize, value: u16) {
        self.out[..self.written][at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}
