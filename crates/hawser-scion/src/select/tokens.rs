//! The words of a path policy (antlr/Sequence.g4 of the reference implementation).
//!
//! Stricter than the reference, where it would understand something else than was meant: it reads `01` as the two hops
//! `0 1`, takes numbers that no path can have, and compares AS numbers as text, so that `1-FF00:0:110` matches nothing.

use super::error::{PolicyError, PolicyFault};
use super::hop::{HopPredicate, Interfaces};
use crate::addr::{Asn, Isd, IsdAs};
use crate::path::InterfaceId;

/// Longest policy that is read, in characters; bounds memory and work.
const LONGEST: usize = 8192;

/// A word. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// An ISD or an interface.
    Number(u16),
    /// `-` and an AS number.
    Asn(Asn),
    /// `#`
    Hash,
    /// `,`
    Comma,
    /// `?`
    Optional,
    /// `+`
    Plus,
    /// `*`
    Star,
    /// `|`
    Or,
    /// `(`
    Open,
    /// `)`
    Close,
}

/// The words of a text, and which comes next. Stands before the first one at first. Owned by one reader.
#[derive(Debug)]
pub struct Tokens<'t> {
    text: &'t str,
    tokens: Vec<(usize, Token)>,
    next: usize,
}

impl<'t> Tokens<'t> {
    /// Finds the words.
    pub fn read(text: &'t str) -> Result<Tokens<'t>, PolicyError> {
        let mut all = Tokens { text, tokens: Vec::new(), next: 0 };
        if text.len() > LONGEST {
            return Err(all.error_at(0, PolicyFault::TooLong));
        }
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            let (length, token) = word(&text[at..], first).map_err(|fault| all.error_at(at, fault))?;
            all.tokens.extend(token.map(|token| (at, token)));
            at += length;
        }
        Ok(all)
    }

    /// The next word, which stays.
    pub fn peek(&self) -> Option<Token> {
        self.tokens.get(self.next).map(|(_, token)| *token)
    }

    /// The next word, if it is this one.
    pub fn take(&mut self, token: Token) -> bool {
        let is = self.peek() == Some(token);
        self.next += usize::from(is);
        is
    }

    /// A hop.
    pub fn hop(&mut self) -> Result<HopPredicate, PolicyError> {
        let isd = self.number().ok_or_else(|| self.error(PolicyFault::Hop))?;
        let asn = match self.peek() {
            Some(Token::Asn(asn)) => asn,
            Some(Token::Hash) => return Err(self.error(PolicyFault::InterfaceWithoutAs)),
            _ => return Ok(HopPredicate { isd_as: IsdAs::new(Isd(isd), Asn::WILDCARD), ..HopPredicate::default() }),
        };
        self.next += 1;
        let isd_as = IsdAs::new(Isd(isd), asn);
        let interfaces = if self.take(Token::Hash) { self.interfaces()? } else { Interfaces::default() };
        Ok(HopPredicate { isd_as, interfaces })
    }

    fn interfaces(&mut self) -> Result<Interfaces, PolicyError> {
        let first = self.interface()?;
        if !self.take(Token::Comma) {
            return Ok(Interfaces::Either(first));
        }
        Ok(Interfaces::Both { ingress: first, egress: self.interface()? })
    }

    fn interface(&mut self) -> Result<InterfaceId, PolicyError> {
        self.number().map(InterfaceId).ok_or_else(|| self.error(PolicyFault::Interface))
    }

    fn number(&mut self) -> Option<u16> {
        let Some(Token::Number(number)) = self.peek() else { return None };
        self.next += 1;
        Some(number)
    }

    /// Nothing may follow.
    pub fn end(&self) -> Result<(), PolicyError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.error(PolicyFault::End)) }
    }

    /// A fault of the next word.
    pub fn error(&self, fault: PolicyFault) -> PolicyError {
        self.error_at(self.tokens.get(self.next).map_or(self.text.len(), |(at, _)| *at), fault)
    }

    fn error_at(&self, at: usize, fault: PolicyFault) -> PolicyError {
        let column = self.text[..at].chars().count() + 1;
        PolicyError { text: self.text.to_owned(), column, fault }
    }
}

/// The word that a text begins with, and its bytes; white space is none.
fn word(text: &str, first: char) -> Result<(usize, Option<Token>), PolicyFault> {
    let token = match first {
        ' ' | '\t' | '\r' | '\n' => return Ok((1, None)),
        '0'..='9' => {
            let digits = run(text, |byte| byte.is_ascii_digit());
            refuse_leading_zero(digits)?;
            let number = digits.parse().map_err(|_| PolicyFault::TooLarge)?;
            return Ok((digits.len(), Some(Token::Number(number))));
        }
        '-' => {
            let asn = run(&text[1..], |byte| byte.is_ascii_hexdigit() || byte == b':');
            asn.split(':').try_for_each(refuse_leading_zero)?;
            let number = asn.parse().map_err(|_| PolicyFault::Asn)?;
            return Ok((1 + asn.len(), Some(Token::Asn(number))));
        }
        '#' => Token::Hash,
        ',' => Token::Comma,
        '?' => Token::Optional,
        '+' => Token::Plus,
        '*' => Token::Star,
        '|' => Token::Or,
        '(' => Token::Open,
        ')' => Token::Close,
        _ => return Err(PolicyFault::Character),
    };
    Ok((1, Some(token)))
}

/// The bytes that a text begins with and that are such.
fn run(text: &str, is_such: impl Fn(u8) -> bool) -> &str {
    &text[..text.bytes().position(|byte| !is_such(byte)).unwrap_or(text.len())]
}

fn refuse_leading_zero(digits: &str) -> Result<(), PolicyFault> {
    if digits.len() > 1 && digits.starts_with('0') { Err(PolicyFault::LeadingZero) } else { Ok(()) }
}
