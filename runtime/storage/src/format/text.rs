//! Formats as text: `{D,C}(0,1)`, `(i,j) -> (i/4: D, j/4: C, i%4: D, j%4: D)`, and names.

use std::fmt;
use std::str::FromStr;

use super::expression::NAMES;
use super::names::{KNOWN, named};
use super::{Format, FormatError, Level, LevelExpression, Properties};
use crate::level::Width;

/// Text that is no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not of the right shape.
    #[error("`{}` is no format: expected {}", .0, grammar())]
    Text(String),
    /// A part of a text that otherwise looks like a format.
    #[error("`{part}` in `{text}` is wrong: expected {expected}")]
    Part {
        /// The whole text.
        text: String,
        /// The part.
        part: String,
        /// The text that is expected in its place.
        expected: String,
    },
    /// The levels make no format.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// A description of the texts of formats, for messages.
fn grammar() -> String {
    let kinds =
        Level::ALL.iter().map(|level| format!("{} ({})", level.kind().letter(), format!("{level:?}").to_lowercase()));
    format!(
        "levels {}, and the order of modes, such as `{{D,C}}(0,1)`; or what each level stores, such as `(i,j) -> (i/4: D, j/4: C, i%4: D, j%4: D)`; or one of {KNOWN}; or letters such as \
         `ds:1,0`",
        kinds.collect::<Vec<_>>().join(", ")
    )
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = |level: usize| FormatKind { level: self.levels[level], properties: self.properties[level] };
        let list = |item: &dyn Fn(usize) -> String, separator: &str| {
            (0..self.levels.len()).map(item).collect::<Vec<_>>().join(separator)
        };
        if self.is_plain() {
            let modes = list(&|level| self.order[level].to_string(), ",");
            return write!(formatter, "{{{}}}({modes})", list(&|at| level(at).to_string(), ","));
        }
        let modes = &NAMES[..self.rank];
        let levels = list(&|at| format!("{}: {}", self.expressions[at], level(at)), ", ");
        write!(formatter, "({}) -> ({levels})", modes.join(","))
    }
}

/// A kind with its properties.
struct FormatKind {
    level: Level,
    properties: Properties,
}

impl fmt::Display for FormatKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, properties } = self;
        formatter.write_str(level.kind().letter())?;
        if !properties.unique {
            formatter.write_str("~u")?;
        }
        if !properties.ordered {
            formatter.write_str("~o")?;
        }
        let capabilities = level.kind().capabilities();
        let name = |width: Option<Width>| width.map_or("_".to_owned(), |width| width.to_string());
        let mut items = Vec::new();
        if capabilities.has_positions {
            items.push(name(properties.positions));
        }
        if capabilities.has_coordinates {
            items.push(name(properties.coordinates));
        }
        while items.last().is_some_and(|item| item == "_") {
            items.pop();
        }
        if properties.ranges {
            items.push("ranges".to_owned());
        }
        if items.is_empty() { Ok(()) } else { write!(formatter, "<{}>", items.join(",")) }
    }
}

impl Format {
    /// Reads a format for a tensor of `rank` dimensions, of which names such as `coo` need not say how many there are.
    ///
    /// # Errors
    ///
    /// [`ParseError`]; not if the format is for another number of dimensions.
    pub fn for_rank(text: &str, rank: usize) -> Result<Self, ParseError> {
        let trimmed = text.trim();
        if let Some(format) = named(trimmed, rank) {
            return Ok(format?);
        }
        match trimmed.split_once("->") {
            Some((modes, levels)) => long(text, modes, levels),
            None => short(text),
        }
    }
}

impl FromStr for Format {
    type Err = ParseError;

    /// Reads `{D,C}(0,1)`, where without an order modes are stored as they are numbered; or what each level stores; or
    /// a name. Names for any number of dimensions are for two, unless they say so (`coo:3`).
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::for_rank(text, 2)
    }
}

/// `{D,C}(0,1)`.
fn short(text: &str) -> Result<Format, ParseError> {
    let wrong = || ParseError::Text(text.to_owned());
    let (levels, order) = text.trim().strip_prefix('{').and_then(|rest| rest.split_once('}')).ok_or_else(wrong)?;
    let levels = items(levels).into_iter().map(|item| kind(text, item)).collect::<Result<Vec<_>, _>>()?;
    let order = match order.trim() {
        "" => (0..levels.len()).collect(),
        order => {
            let order = order.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(wrong)?;
            let modes: Result<Vec<usize>, _> = items(order).iter().map(|mode| mode.parse()).collect();
            modes.map_err(|_| wrong())?
        }
    };
    let (kinds, properties): (Vec<_>, Vec<_>) = levels.into_iter().unzip();
    let mut format = Format::new(kinds, order)?;
    format.properties = properties;
    Ok(format)
}

/// `(i,j) -> (i/4: D, j/4: C, i%4: D, j%4: D)`.
fn long(text: &str, modes: &str, levels: &str) -> Result<Format, ParseError> {
    let wrong = || ParseError::Text(text.to_owned());
    let inside =
        |list: &'_ str| -> Option<String> { Some(list.trim().strip_prefix('(')?.strip_suffix(')')?.to_owned()) };
    let (modes, levels) = (inside(modes).ok_or_else(wrong)?, inside(levels).ok_or_else(wrong)?);
    let modes = items(&modes);
    for (place, mode) in modes.iter().enumerate() {
        if !mode.starts_with(|first: char| first.is_ascii_alphabetic())
            || !mode.chars().all(|letter| letter.is_ascii_alphanumeric())
            || modes[..place].contains(mode)
        {
            return Err(part(text, mode, "a name for each dimension, no two alike"));
        }
    }
    let level = |item: &str| {
        let (expression, level) = item
            .split_once(':')
            .ok_or_else(|| part(text, item, "what the level stores, a colon and a kind, such as `i: C`"))?;
        let (level, properties) = kind(text, level.trim())?;
        Ok((self::expression(text, &modes, expression.trim())?, level, properties))
    };
    let levels = items(&levels).into_iter().map(level).collect::<Result<Vec<_>, ParseError>>()?;
    Ok(Format::of_levels(modes.len(), levels)?)
}

fn part(text: &str, part: &str, expected: &str) -> ParseError {
    ParseError::Part { text: text.to_owned(), part: part.to_owned(), expected: expected.to_owned() }
}

/// The items of a list between its commas, except for commas in brackets.
fn items(list: &str) -> Vec<&str> {
    if list.trim().is_empty() {
        return Vec::new();
    }
    let mut depth = 0_i32;
    let at_comma = |letter: char| {
        depth += i32::from("<(".contains(letter)) - i32::from(">)".contains(letter));
        letter == ',' && depth == 0
    };
    list.split(at_comma).map(str::trim).collect()
}

/// `i`, `i/4`, `i%4`, `j-i`, `i+j`, `#i` or `#(i,j)`.
fn expression(text: &str, modes: &[&str], item: &str) -> Result<LevelExpression, ParseError> {
    let mode = |name: &str| {
        let found = modes.iter().position(|mode| *mode == name.trim());
        found.ok_or_else(|| part(text, name.trim(), &format!("one of the dimensions {}", modes.join(", "))))
    };
    let size = |size: &str| {
        let found = size.trim().parse().ok().filter(|size| *size >= 1);
        found.ok_or_else(|| part(text, size.trim(), "the size of a block, 1 or more"))
    };
    if let Some(counted) = item.strip_prefix('#') {
        let counted = counted.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(counted);
        return Ok(LevelExpression::Count(items(counted).into_iter().map(mode).collect::<Result<_, _>>()?));
    }
    let Some(operator) = item.find(['/', '%', '-', '+']) else { return Ok(LevelExpression::Mode(mode(item)?)) };
    let (first, second) = (&item[..operator], &item[operator + 1..]);
    Ok(match item.as_bytes()[operator] {
        b'/' => LevelExpression::Block(mode(first)?, size(second)?),
        b'%' => LevelExpression::Within(mode(first)?, size(second)?),
        b'-' => LevelExpression::Difference(mode(first)?, mode(second)?),
        _ => LevelExpression::Sum(mode(first)?, mode(second)?),
    })
}

/// `C`, `C~u`, `C<i64,i32,ranges>`.
fn kind(text: &str, item: &str) -> Result<(Level, Properties), ParseError> {
    let (name, list) = match item.split_once('<') {
        None => (item, ""),
        Some((name, list)) => (name, list.strip_suffix('>').ok_or_else(|| part(text, item, "a `>` at its end"))?),
    };
    let mut words = name.split('~');
    let letter = words.next().unwrap_or_default();
    let found = Level::ALL.iter().find(|level| level.kind().letter() == letter);
    let &level = found.ok_or_else(|| ParseError::Text(text.to_owned()))?;
    let mut properties = Properties::default();
    let capabilities = level.kind().capabilities();
    for word in words {
        match word {
            "u" if capabilities.has_coordinates && level != Level::Hashed => properties.unique = false,
            "o" if level == Level::Compressed => properties.ordered = false,
            _ => {
                return Err(part(
                    text,
                    item,
                    "`~u` (coordinates more than once, of C or S) or `~o` (in any order, of C) after the kind",
                ));
            }
        }
    }
    let mut types = Vec::new();
    for word in items(list) {
        match (word, Width::named(word)) {
            ("offsets", _) => {}
            ("ranges", _) if level == Level::Compressed => properties.ranges = true,
            ("_", _) => types.push(None),
            (_, Some(width)) => types.push(Some(width)),
            _ => {
                return Err(part(
                    text,
                    item,
                    "types (u8, i16, i32, i64, or _ for the narrowest), and of C `offsets` or `ranges`, between < and >",
                ));
            }
        }
    }
    let places = usize::from(capabilities.has_positions) + usize::from(capabilities.has_coordinates);
    if types.len() > places {
        return Err(part(
            text,
            item,
            &format!("at most {places} types: of positions, if the kind has them, and of coordinates"),
        ));
    }
    let mut types = types.into_iter();
    if capabilities.has_positions {
        properties.positions = types.next().flatten();
    }
    if capabilities.has_coordinates {
        properties.coordinates = types.next().flatten();
    }
    Ok((level, properties))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_as_they_are_written() {
        let long = [
            "(i,j) -> (i/4: D, j/4: C, i%4: D, j%4: D)",
            "(i,j) -> (j-i: C<_,i32>, i: R)",
            "(i,j) -> (i+j: D, j: R)",
            "(i,j,k) -> (#(i,j): D, i: D, j: D, k: S<i16>)",
            "(i,j) -> (#i: C~o, i: C~u<ranges>, j: S~u)",
        ];
        for text in ["{}()", "{D}(0)", "{D,C}(1,0)", "{C,S,S}(2,0,1)", "{C~u<i64,i32>,S}(0,1)", "{D,H<i64,u8>}(0,1)"]
            .into_iter()
            .chain(long)
        {
            assert_eq!(text.parse::<Format>().expect("a format").to_string(), text);
        }
        for (text, written) in [
            ("{D, C}", "{D,C}(0,1)"),
            ("{D,C<_,_>}", "{D,C}(0,1)"),
            ("(a, b)->(b: D,a: C<ranges,i64>)", "{D,C<i64,ranges>}(1,0)"),
            ("(i,j) -> (i : E, j- i: C)", "(i,j) -> (i: E, j-i: C)"),
        ] {
            let format: Format = text.parse().expect("a format");
            assert_eq!((format.to_string().as_str(), format.to_string().parse()), (written, Ok(format)));
        }
    }

    #[test]
    fn names_stand_for_formats() {
        for (name, text) in [
            ("dense", "{D,D}(0,1)"),
            ("columns", "{D,D}(1,0)"),
            ("csr", "{D,C}(0,1)"),
            ("csc", "{D,C}(1,0)"),
            ("coo", "{C~u,S}(0,1)"),
            ("coo:3", "{C~u,S~u,S}(0,1,2)"),
            ("coo:1", "{C}(0)"),
            ("dcsr", "{C,C}(0,1)"),
            ("csf:3", "{C,C,C}(0,1,2)"),
            ("bcsr:2x3", "(i,j) -> (i/2: D, j/3: C, i%2: D, j%3: D)"),
            ("ell", "{D,E}(0,1)"),
            ("dia", "(i,j) -> (j-i: C, i: R)"),
            ("bitmap", "{D,B}(0,1)"),
            ("hash", "{H,H}(0,1)"),
            ("ds", "{D,C}(0,1)"),
            ("ds:1,0", "{D,C}(1,0)"),
            ("ucq", "{C~u,S~u,S}(0,1,2)"),
        ] {
            assert_eq!(name.parse::<Format>().expect("a name").to_string(), text, "{name}");
        }
        assert_eq!(Format::for_rank("coo", 4).expect("a name").to_string(), "{C~u,S~u,S~u,S}(0,1,2,3)");
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "D,C",
            "{D,X}",
            "{D,C}(0,1",
            "{D,C}0,1",
            "{D}(a)",
            "{D,}",
            "csr:3",
            "bcsr",
            "bcsr:0x1",
            "coo:9",
            "dsx",
            "(i) -> i: C",
        ] {
            assert_eq!(text.parse::<Format>(), Err(ParseError::Text(text.to_owned())));
        }
        assert!(matches!("{D,C}(0,0)".parse::<Format>(), Err(ParseError::Format(_))));
        assert!(matches!("ds:1,1".parse::<Format>(), Err(ParseError::Format(_))));
    }

    #[test]
    fn wrong_parts_are_named_with_what_to_write_instead() {
        for (text, part, expected) in [
            ("{D,C<i7>}", "C<i7>", "types (u8"),
            ("{D<i32>,C}", "D<i32>", "at most 0 types"),
            ("{D,C<i32,i32,i32>}", "C<i32,i32,i32>", "at most 2 types"),
            ("{D,C<i32}", "C<i32", "a `>`"),
            ("{D~u,C}", "D~u", "`~u`"),
            ("{D,H~u}", "H~u", "`~u`"),
            ("(i,i) -> (i: D)", "i", "a name for each dimension"),
            ("(i,j) -> (i: D, k: C)", "k", "one of the dimensions i, j"),
            ("(i,j) -> (i/0: D, j: C)", "0", "the size of a block"),
            ("(i,j) -> (i, j: C)", "i", "a colon and a kind"),
        ] {
            let error = text.parse::<Format>().expect_err("wrong");
            assert!(error.to_string().starts_with(&format!("`{part}` in `{text}` is wrong: expected ")), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn levels_from_which_coordinates_do_not_follow_are_refused() {
        for (text, message) in [
            (
                "(i,j) -> (i/4: D, j: C)",
                "nothing in (i,j) -> (i/4: D, j: C) tells i: add levels that store it, or both i/b and i%b",
            ),
            (
                "(i,j) -> (j-i: D, i+j: C)",
                "nothing in (i,j) -> (j-i: D, i+j: C) tells i: add levels that store it, or both i/b and i%b",
            ),
            (
                "(i,j) -> (i: D, j: C, i: C)",
                "level 2 of (i,j) -> (i: D, j: C, i: C) stores i, which follows from other levels: leave it out",
            ),
            (
                "(i,j) -> (i: D, j: R)",
                "level 1 of {D,R}(0,1) is Range, which must store a dimension below a level that stores a difference or sum with it: use another kind",
            ),
        ] {
            assert_eq!(text.parse::<Format>().expect_err("no inverse").to_string(), message);
        }
    }
}
