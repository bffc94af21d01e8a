//! What may be wrong with a policy.

/// Why text is no policy: what was read, where, and what was expected. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read \"{text}\", column {column}: {fault}")]
pub struct PolicyError {
    /// What was read.
    pub text: String,
    /// Where, in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub fault: PolicyFault,
}

/// What is wrong at a place of a policy. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFault {
    /// A hop must stand here.
    #[error("a hop is written ISD, ISD-AS, ISD-AS#INTERFACE or ISD-AS#IN,OUT, where 0 is any")]
    Hop,
    /// `1#2`.
    #[error("interfaces belong to an AS: write ISD-AS#INTERFACE")]
    InterfaceWithoutAs,
    /// `#` or `,` without a number.
    #[error("an interface is a number, where 0 is any")]
    Interface,
    /// More than 16 bits.
    #[error("ISDs and interfaces are numbers up to 65535")]
    TooLarge,
    /// `01`, which the reference takes for two hops.
    #[error("numbers are written without leading zeros")]
    LeadingZero,
    /// No AS number after `-`.
    #[error("an AS number is decimal up to 4294967295, or three groups of hex digits, like ff00:0:110")]
    Asn,
    /// A character that means nothing.
    #[error("a sequence has hops, ?, +, *, | and parentheses")]
    Character,
    /// `(` without `)`.
    #[error("the parenthesis is not closed")]
    Unclosed,
    /// Something more, where the text should end.
    #[error("nothing should follow here")]
    End,
    /// This many parentheses in each other.
    #[error("parentheses are nested too deeply")]
    TooDeep,
    /// So long a text.
    #[error("the policy is too long")]
    TooLong,
    /// No sign in front of an entry.
    #[error("an entry begins with + or -, then a space and a hop, like \"- 1-ff00:0:110\"")]
    Sign,
}
