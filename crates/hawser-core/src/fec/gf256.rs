//! The field GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (RFC 5510 section 8.1), and the
//! coefficients of repair symbols.

/// What x^8 is replaced by.
const REDUCTION: u8 = 0x1d;
/// Field elements.
const ELEMENTS: usize = 256;
/// 2 generates all elements but zero, of which there are this many (RFC 5510 section 8.1).
const GENERATED: usize = ELEMENTS - 1;
/// Half of the elements name symbols, the other half repairs.
pub(super) const HALF: usize = ELEMENTS / 2;

/// 1/x for every x but zero.
const INVERSE: [u8; ELEMENTS] = inverses();

const fn double(x: u8) -> u8 {
    (x << 1) ^ (REDUCTION * (x >> 7))
}

const fn inverses() -> [u8; ELEMENTS] {
    let mut powers = [0; ELEMENTS];
    let (mut at, mut power) = (0, 1u8);
    while at < GENERATED {
        powers[at] = power;
        power = double(power);
        at += 1;
    }
    let mut inverses = [0; ELEMENTS];
    at = 0;
    while at < GENERATED {
        inverses[powers[at] as usize] = powers[(GENERATED - at) % GENERATED];
        at += 1;
    }
    inverses
}

/// 1/x; zero has none, and gives zero.
pub(super) fn inverse(x: u8) -> u8 {
    INVERSE[usize::from(x)]
}

/// Adds `factor` times `input` to the front of `out`, which is as long at least. Without tables, so
/// that the compiler makes vectors of it.
pub(super) fn add_scaled(out: &mut [u8], factor: u8, input: &[u8]) {
    let masks: [u8; 8] = std::array::from_fn(|bit| 0u8.wrapping_sub(factor >> bit & 1));
    for (out, &input) in out[..input.len()].iter_mut().zip(input) {
        let (mut power, mut sum) = (input, 0);
        for mask in masks {
            sum ^= power & mask;
            power = (power << 1) ^ (REDUCTION & 0u8.wrapping_sub(power >> 7));
        }
        *out ^= sum;
    }
}

/// Multiplies all of `bytes` by `factor`.
pub(super) fn scale(bytes: &mut [u8], factor: u8) {
    for byte in bytes {
        *byte = multiply(*byte, factor);
    }
}

/// The product.
pub(super) fn multiply(one: u8, other: u8) -> u8 {
    let mut out = [0];
    add_scaled(&mut out, one, &[other]);
    out[0]
}

/// The factor of symbol `number` in repair `row`: 1/(x + y), a Cauchy matrix, whose every square part can be solved.
/// So n repairs that cover the same n lost symbols always bring them back. Never zero.
pub(super) fn coefficient(row: u8, number: u64) -> u8 {
    let x = HALF + usize::from(row) % HALF;
    let y = (number % HALF as u64) as usize;
    inverse((x ^ y) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_times_its_inverse_is_one() {
        assert_eq!(inverse(0), 0);
        for x in 1..=u8::MAX {
            assert_eq!(multiply(x, inverse(x)), 1, "{x}");
        }
    }

    #[test]
    fn the_products_are_those_of_long_multiplication() {
        let slow = |one: u8, other: u8| {
            let mut wide =
                (0..8).filter(|bit| other >> bit & 1 == 1).fold(0u16, |sum, bit| sum ^ u16::from(one) << bit);
            for bit in (8..16).rev().filter(|bit| *bit >= 8) {
                if wide >> bit & 1 == 1 {
                    wide ^= 0x11d << (bit - 8);
                }
            }
            wide as u8
        };
        for one in 0..=u8::MAX {
            for other in 0..=u8::MAX {
                assert_eq!(multiply(one, other), slow(one, other), "{one} {other}");
            }
        }
    }

    #[test]
    fn adding_twice_is_adding_nothing_and_longer_output_keeps_its_end() {
        let input: Vec<u8> = (0..100).collect();
        let mut out = vec![7; 120];
        add_scaled(&mut out, 29, &input);
        assert_ne!(out[..100], [7; 100]);
        add_scaled(&mut out, 29, &input);
        assert_eq!(out, [7; 120]);
    }

    #[test]
    fn no_coefficient_is_zero_and_no_two_of_a_row_are_alike() {
        for row in 0..HALF as u8 {
            let mut seen = [false; ELEMENTS];
            for number in 1_000..1_000 + HALF as u64 {
                let factor = coefficient(row, number);
                assert!(factor != 0 && !seen[usize::from(factor)]);
                seen[usize::from(factor)] = true;
            }
        }
    }
}
