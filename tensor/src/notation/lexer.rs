//! Text to words.

use std::fmt;

use super::error::{NotationError, NotationErrorKind as Kind};
use super::variable::TextPlace;

/// A word, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    Name(&'a str),
    /// Digits alone.
    Integer(&'a str),
    /// Digits with a point, an exponent, or both.
    Real(&'a str),
    Symbol(char),
    /// `==` and its like.
    Compare(&'a str),
    /// `+=` and its like: the operator before the `=`.
    Accumulate(&'a str),
    End,
}

/// A word and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub word: Word<'a>,
    pub place: TextPlace,
}

impl fmt::Display for Word<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(text) | Self::Integer(text) | Self::Real(text) => formatter.write_str(text),
            Self::Symbol(symbol) => write!(formatter, "{symbol:?}"),
            Self::Compare(operator) => write!(formatter, "'{operator}'"),
            Self::Accumulate(operator) => write!(formatter, "'{operator}='"),
            Self::End => formatter.write_str("the end"),
        }
    }
}

/// The words of `text`; the last is [`Word::End`].
pub(super) fn words(text: &str) -> Result<Vec<Token<'_>>, NotationError> {
    let mut words = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        let (word, length) = match first {
            _ if first.is_whitespace() => {
                start += first.len_utf8();
                continue;
            }
            '=' | '!' | '<' | '>' if rest[1..].starts_with('=') => (Word::Compare(&rest[..2]), 2),
            '<' | '>' => (Word::Compare(&rest[..1]), 1),
            '+' | '-' | '*' if rest[1..].starts_with('=') => (Word::Accumulate(&rest[..1]), 2),
            'm' if !words.is_empty() && (rest.starts_with("min=") || rest.starts_with("max=")) => {
                (Word::Accumulate(&rest[..3]), 4)
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = prefix(rest, |letter| letter.is_ascii_alphanumeric() || letter == '_');
                (Word::Name(&rest[..length]), length)
            }
            '0'..='9' | '.' if first != '.' || rest[1..].starts_with(|digit: char| digit.is_ascii_digit()) => {
                let length = number(rest);
                let digits = &rest[..length];
                let real = digits.contains(['.', 'e', 'E']);
                (if real { Word::Real(digits) } else { Word::Integer(digits) }, length)
            }
            '+' | '-' | '*' | '/' | '(' | ')' | '{' | '}' | ',' | '=' | ':' | ';' | '?' => (Word::Symbol(first), 1),
            other => {
                let place = TextPlace::new(start, start + other.len_utf8());
                return Err(Kind::Syntax { expected: "an expression", found: format!("{other:?}") }.at(place));
            }
        };
        words.push(Token { word, place: TextPlace::new(start, start + length) });
        start += length;
    }
    words.push(Token { word: Word::End, place: TextPlace::new(text.len(), text.len()) });
    Ok(words)
}

/// The length of what `accept` accepts at the start of `text`.
fn prefix(text: &str, accept: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !accept(letter)).unwrap_or(text.len())
}

/// The length of the number at the start of `text`.
fn number(text: &str) -> usize {
    let digits = |from: usize| from + prefix(&text[from..], |letter| letter.is_ascii_digit());
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}
