//! Literals of Python, as far as headers have them.

/// A value as Python writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Literal<'a> {
    /// As it is written.
    pub(super) text: &'a str,
    pub(super) value: LiteralValue<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LiteralValue<'a> {
    Truth(bool),
    /// A whole number from 0 to before 2^64.
    Count(u64),
    Text(String),
    /// A tuple or a list.
    Sequence(Vec<Literal<'a>>),
    Dictionary(Vec<(Literal<'a>, Literal<'a>)>),
    /// Another number, or `None`.
    Other,
}

impl<'a> Literal<'a> {
    /// The literal that a text is, with blanks around it. None if it is no literal, or one of a kind that headers do
    /// not have.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut rest = Rest(text);
        let literal = rest.literal()?;
        rest.skip_blanks();
        rest.0.is_empty().then_some(literal)
    }

    /// The text, if it is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.value {
            LiteralValue::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The text that is still to be read.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn literal(&mut self) -> Option<Literal<'a>> {
        self.skip_blanks();
        let begin = self.0;
        let value = self.value()?;
        Some(Literal { text: &begin[..begin.len() - self.0.len()], value })
    }

    fn value(&mut self) -> Option<LiteralValue<'a>> {
        if self.take('{') {
            let entry = |rest: &mut Self| {
                let key = rest.literal()?;
                rest.take(':').then_some(())?;
                Some((key, rest.literal()?))
            };
            return Some(LiteralValue::Dictionary(self.items('}', entry)?.0));
        }
        if self.take('[') {
            return Some(LiteralValue::Sequence(self.items(']', Self::literal)?.0));
        }
        if self.take('(') {
            let (mut items, ends_with_comma) = self.items(')', Self::literal)?;
            // In parentheses without a comma, a value is itself.
            return Some(match (items.len(), ends_with_comma) {
                (1, false) => items.remove(0).value,
                _ => LiteralValue::Sequence(items),
            });
        }
        self.text().or_else(|| self.word())
    }

    /// Items between commas up to a closing bracket, and whether a comma is before that.
    fn items<T>(&mut self, close: char, item: impl Fn(&mut Self) -> Option<T>) -> Option<(Vec<T>, bool)> {
        let (mut items, mut ends_with_comma) = (Vec::new(), false);
        while !self.take(close) {
            if !items.is_empty() && !ends_with_comma {
                return None;
            }
            items.push(item(self)?);
            ends_with_comma = self.take(',');
        }
        Some((items, ends_with_comma))
    }

    fn text(&mut self) -> Option<LiteralValue<'a>> {
        let quoted = self.0.strip_prefix(['u', 'U']).unwrap_or(self.0);
        let quote = quoted.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let (mut text, mut letters) = (String::new(), quoted[1..].chars());
        loop {
            match letters.next()? {
                letter if letter == quote => break,
                '\\' => match letters.next()? {
                    letter @ ('\\' | '\'' | '"') => text.push(letter),
                    letter => text.extend(['\\', letter]),
                },
                letter => text.push(letter),
            }
        }
        self.0 = letters.as_str();
        Some(LiteralValue::Text(text))
    }

    fn word(&mut self) -> Option<LiteralValue<'a>> {
        let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '+' | '-');
        let (word, rest) = self.0.split_at(self.0.find(|letter| !is_of_word(letter)).unwrap_or(self.0.len()));
        self.0 = rest;
        match word {
            "True" => Some(LiteralValue::Truth(true)),
            "False" => Some(LiteralValue::Truth(false)),
            "None" => Some(LiteralValue::Other),
            _ => {
                let is_count = word.starts_with(|digit: char| digit.is_ascii_digit());
                match word.parse() {
                    Ok(count) if is_count => Some(LiteralValue::Count(count)),
                    _ => (is_count || word.starts_with(['+', '-', '.'])).then_some(LiteralValue::Other),
                }
            }
        }
    }

    /// Goes past a letter, and blanks before it, if it is next.
    fn take(&mut self, letter: char) -> bool {
        self.skip_blanks();
        let rest = self.0.strip_prefix(letter);
        rest.map(|rest| self.0 = rest).is_some()
    }

    fn skip_blanks(&mut self) {
        self.0 = self.0.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::{Literal, LiteralValue};

    fn value(text: &str) -> Option<LiteralValue<'_>> {
        Literal::parse(text).map(|literal| literal.value)
    }

    #[test]
    fn literals_are_what_python_takes_them_for() {
        assert_eq!(value(" 18446744073709551615 "), Some(LiteralValue::Count(u64::MAX)));
        for other in ["-1", "18446744073709551616", "1.5", "1e3", "None", "+2"] {
            assert_eq!(value(other), Some(LiteralValue::Other), "{other}");
        }
        assert_eq!(value("True"), Some(LiteralValue::Truth(true)));
        for text in ["'a\"b'", "u'a\"b'", r#""a\"b""#, r#"'a"b'"#] {
            assert_eq!(value(text), Some(LiteralValue::Text("a\"b".into())), "{text}");
        }
        let count = |text| Literal { text, value: LiteralValue::Count(text.parse().unwrap()) };
        assert_eq!(value("(3)"), Some(LiteralValue::Count(3)));
        for one in ["(3,)", "[3]", "( 3 , )"] {
            assert_eq!(value(one), Some(LiteralValue::Sequence(vec![count("3")])), "{one}");
        }
        assert_eq!(value("()"), Some(LiteralValue::Sequence(Vec::new())));
        let entry = Literal { text: "'k'", value: LiteralValue::Text("k".into()) };
        assert_eq!(value("{'k': 1, }"), Some(LiteralValue::Dictionary(vec![(entry, count("1"))])));
        assert_eq!(Literal::parse(" ('a', 2) ").unwrap().text, "('a', 2)");
    }

    #[test]
    fn what_is_no_literal_is_none() {
        for text in ["", "(", "(1", "1)", "1 2", "(,)", "[1,,2]", "{1}", "{1: }", "'a", "name", "{1: 2 3: 4}", "'a\\"] {
            assert_eq!(value(text), None, "{text}");
        }
    }
}
