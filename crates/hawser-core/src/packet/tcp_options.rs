//! The options of a TCP header, one after the other (RFC 9293 section 3.2).

/// The end of the list, and padding.
pub(crate) const END: u8 = 0;
pub(crate) const NOTHING: u8 = 1;
/// Kind and length, bytes.
const HEAD: usize = 2;

/// An option says that it is longer than the header, or shorter than its own head. Nothing can be read behind it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Malformed;

/// The options of `bytes`, what follows the fixed header; each with its kind and length, without padding.
pub fn options(mut bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], Malformed>> {
    std::iter::from_fn(move || {
        while let [NOTHING, rest @ ..] = bytes {
            bytes = rest;
        }
        let (&kind, behind) = bytes.split_first()?;
        if kind == END {
            return None;
        }
        let len = behind.first().map_or(0, |&len| usize::from(len));
        let cut = bytes.split_at_checked(len).filter(|_| len >= HEAD);
        let (option, rest) = cut.unwrap_or_default();
        bytes = rest;
        Some(cut.map(|_| option).ok_or(Malformed))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_one_by_one_until_the_end_or_what_cannot_be_read() {
        let (timestamps, mss) = ([8, 10, 0, 0, 0, 1, 0, 0, 0, 2], [2, 4, 5, 180]);
        let all = |bytes: &[u8]| options(bytes).map(|option| option.map(<[u8]>::to_vec)).collect::<Vec<_>>();
        let both = vec![Ok(timestamps.to_vec()), Ok(mss.to_vec())];
        assert_eq!(all(&[&[1, 1][..], &timestamps, &[1], &mss].concat()), both);
        assert_eq!(all(&[&timestamps[..], &mss, &[0, 8, 99]].concat()), both, "what follows the end is padding");
        assert_eq!(all(&[1, 1, 1]), []);
        for cut in [&[8][..], &[8, 10, 0], &[8, 1, 0], &[8, 0]] {
            assert_eq!(all(&[&mss[..], cut].concat()), [Ok(mss.to_vec()), Err(Malformed)], "{cut:?}");
        }
    }
}
