//! Tables and values of a mapping file, with their places.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{MappingFileError, Mistake};
use super::words::Words;

/// A table whose entries are taken one by one. What is left in the end has no meaning.
pub(super) struct RuleTable<'t> {
    text: &'t str,
    /// The name of the table in messages.
    name: &'static str,
    span: Range<usize>,
    entries: Vec<(&'t str, Range<usize>, &'t Spanned<DeValue<'t>>)>,
    /// The keys that were asked for.
    known: Vec<&'static str>,
}

/// The value of a key, or one of its elements.
#[derive(Clone, Copy)]
pub(super) struct RuleValue<'t> {
    text: &'t str,
    pub(super) key: &'static str,
    value: &'t Spanned<DeValue<'t>>,
}

impl<'t> RuleTable<'t> {
    pub(super) fn new(text: &'t str, name: &'static str, span: Range<usize>, table: &'t DeTable<'t>) -> Self {
        let entries = table.iter().map(|(key, value)| (&**key.get_ref(), key.span(), value)).collect();
        Self { text, name, span, entries, known: Vec::new() }
    }

    /// The value of a key, if it is given.
    pub(super) fn take(&mut self, key: &'static str) -> Option<RuleValue<'t>> {
        self.known.push(key);
        let place = self.entries.iter().position(|(name, ..)| *name == key)?;
        let (_, _, value) = self.entries.swap_remove(place);
        Some(RuleValue { text: self.text, key, value })
    }

    /// All entries, whatever their keys.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (&'t str, RuleValue<'t>)> + use<'t> {
        let (text, key) = (self.text, self.name);
        std::mem::take(&mut self.entries)
            .into_iter()
            .map(move |(name, _, value)| (name, RuleValue { text, key, value }))
    }

    /// # Errors
    /// [`Mistake::UnknownKey`] if an entry was not asked for.
    pub(super) fn check_all_taken(&self) -> Result<(), MappingFileError> {
        let Some((key, span, _)) = self.entries.iter().min_by_key(|(_, span, _)| span.start) else { return Ok(()) };
        let mistake = Mistake::UnknownKey { key: (*key).to_owned(), table: self.name, known: self.known.clone() };
        Err(MappingFileError::at(self.text, span.start, mistake))
    }

    /// A mistake of the whole table.
    pub(super) fn mistake(&self, mistake: Mistake) -> MappingFileError {
        MappingFileError::at(self.text, self.span.start, mistake)
    }
}

impl<'t> RuleValue<'t> {
    fn mistake(self, mistake: Mistake) -> MappingFileError {
        MappingFileError::at(self.text, self.value.span().start, mistake)
    }

    /// The value is not what it should be.
    pub(super) fn wrong(self, expected: impl Into<String>) -> MappingFileError {
        let found = match self.value.get_ref() {
            DeValue::String(string) => format!("\"{string}\""),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            other => self.text.get(self.value.span()).map_or_else(|| other.type_str().to_owned(), str::to_owned),
        };
        self.mistake(Mistake::WrongValue { key: self.key.to_owned(), expected: expected.into(), found })
    }

    pub(super) fn decision_from(self, condition: &'static str, why: &'static str) -> MappingFileError {
        self.mistake(Mistake::CannotFollow { decision: self.key, condition, why })
    }

    pub(super) fn table(self, name: &'static str) -> Result<RuleTable<'t>, MappingFileError> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(RuleTable::new(self.text, name, self.value.span(), table)),
            _ => Err(self.wrong(format!("a table: write {name} above its keys"))),
        }
    }

    /// The elements of a list; of another value, that alone.
    pub(super) fn each(self) -> impl Iterator<Item = Self> {
        let values = match self.value.get_ref() {
            DeValue::Array(values) => values.iter().collect(),
            _ => vec![self.value],
        };
        values.into_iter().map(move |value| Self { value, ..self })
    }

    pub(super) fn is_list(self) -> bool {
        matches!(self.value.get_ref(), DeValue::Array(_))
    }

    pub(super) fn as_bool(self) -> Option<bool> {
        self.value.get_ref().as_bool()
    }

    pub(super) fn bool(self) -> Result<bool, MappingFileError> {
        self.as_bool().ok_or_else(|| self.wrong("`true` or `false`"))
    }

    pub(super) fn as_str(self) -> Option<&'t str> {
        self.value.get_ref().as_str()
    }

    pub(super) fn string(self) -> Result<String, MappingFileError> {
        self.as_str().map(str::to_owned).ok_or_else(|| self.wrong("a text in quotes"))
    }

    pub(super) fn as_integer(self) -> Option<i128> {
        let integer = self.value.get_ref().as_integer()?;
        i128::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    /// A whole number of a type.
    pub(super) fn integer<T: TryFrom<i128>>(self, expected: &str) -> Result<T, MappingFileError> {
        self.as_integer().and_then(|integer| T::try_from(integer).ok()).ok_or_else(|| self.wrong(expected))
    }

    /// One of the words for a choice.
    pub(super) fn word<T: Words>(self) -> Result<T, MappingFileError> {
        let known: Vec<&'static str> = T::ALL.iter().map(|(word, _)| *word).collect();
        let Some(word) = self.as_str() else {
            return Err(self.wrong(format!("{}, one of {}", T::WHAT, super::error::list(&known))));
        };
        let found = T::ALL.iter().find(|(name, _)| *name == word).map(|(_, value)| value.clone());
        found.ok_or_else(|| self.mistake(Mistake::UnknownWord { word: word.to_owned(), what: T::WHAT, known }))
    }

    /// A number of bytes: a whole number, or a text with a unit.
    pub(super) fn bytes(self) -> Result<u64, MappingFileError> {
        const EXPECTED: &str = "a number of bytes, such as 4096, \"64 KiB\" or \"2 GiB\"";
        let Some(text) = self.as_str() else { return self.integer(EXPECTED) };
        let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let shift = match unit.trim() {
            "" | "B" => Some(0),
            "KiB" => Some(10),
            "MiB" => Some(20),
            "GiB" => Some(30),
            "TiB" => Some(40),
            _ => None,
        };
        let bytes = shift.and_then(|shift| number.parse::<u64>().ok()?.checked_mul(1 << shift));
        bytes.ok_or_else(|| self.wrong(EXPECTED))
    }
}
