//! Golden vectors, round trips and hostile bytes for every format of this module.

mod frames;
mod messages;
mod properties;

use super::fuzz::encode;
use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn written(encode: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let mut out = Writer::new(&mut buffer);
    encode(&mut out).expect("fits");
    out.written().to_vec()
}

fn bucket(number: u16) -> FlowBucket {
    FlowBucket::new(number).expect("below 4096")
}
