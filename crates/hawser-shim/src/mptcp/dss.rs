//! DSS (RFC 8684 section 3.3): where a segment's data belongs in the connection, what of the connection has arrived,
//! its end.

/// Flags (RFC 8684 section 3.3): end of data; a mapping, with 8 bytes; an acknowledgment, with 8 bytes.
const DATA_FIN: u8 = 0x10;
const LONG_MAPPING: u8 = 0x08;
const MAPPING: u8 = 0x04;
const LONG_ACK: u8 = 0x02;
const ACK: u8 = 0x01;

/// A data sequence number, whole or its lower half. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataSequence {
    /// All 64 bits.
    Full(u64),
    /// The lower 32 bits.
    Low(u32),
}

/// What of the connection's data has arrived: the next number that is expected.
pub type DataAck = DataSequence;

/// A data sequence signal. Says nothing by default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dss {
    /// What has arrived.
    pub ack: Option<DataAck>,
    /// Where data of this subflow belongs.
    pub mapping: Option<Mapping>,
    /// No data follows the mapping's.
    pub data_fin: bool,
}

/// Where bytes of a subflow belong in the connection. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The first byte's place in the connection.
    pub sequence: DataSequence,
    /// Its place in the subflow, from the subflow's beginning.
    pub subflow_sequence: u32,
    /// How many bytes; an end of data counts as one.
    pub len: u16,
    /// Over data and mapping, where it was agreed on.
    pub checksum: Option<u16>,
}

/// Takes bytes off the front. Lives while an option is read.
struct Rest<'p>(&'p [u8]);

impl Dss {
    /// What follows the subtype; bits that mean nothing are passed over.
    pub(super) fn parse(rest: &[u8]) -> Option<Self> {
        let (&flags, rest) = rest.split_first()?;
        let mut rest = Rest(rest);
        let ack = match flags & (ACK | LONG_ACK) {
            0 | LONG_ACK => None,
            ACK => Some(rest.low()?),
            _ => Some(rest.full()?),
        };
        let mapping = match flags & (MAPPING | LONG_MAPPING) {
            0 | LONG_MAPPING => None,
            MAPPING => Some(rest.low()?),
            _ => Some(rest.full()?),
        };
        let mapping = mapping.and_then(|sequence| rest.mapping(sequence));
        let wants_mapping = flags & MAPPING != 0;
        let is_whole = rest.0.is_empty() && mapping.is_some() == wants_mapping;
        is_whole.then_some(Self { ack, mapping, data_fin: flags & DATA_FIN != 0 })
    }
}

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn low(&mut self) -> Option<DataSequence> {
        self.take().map(|bytes| DataSequence::Low(u32::from_be_bytes(bytes)))
    }

    fn full(&mut self) -> Option<DataSequence> {
        self.take().map(|bytes| DataSequence::Full(u64::from_be_bytes(bytes)))
    }

    fn mapping(&mut self, sequence: DataSequence) -> Option<Mapping> {
        let subflow_sequence = u32::from_be_bytes(self.take()?);
        let len = u16::from_be_bytes(self.take()?);
        let checksum = if self.0.is_empty() { None } else { Some(u16::from_be_bytes(self.take()?)) };
        Some(Mapping { sequence, subflow_sequence, len, checksum })
    }
}
