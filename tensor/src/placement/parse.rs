//! Placements as text.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::{Along, Cut, Distribution, ParseError, ParseErrorKind, Placement};

impl FromStr for Placement {
    type Err = ParseError;

    /// Reads `xy -> xy`, or one such statement for each level, separated by `;`. Names are single letters, or longer
    /// ones separated by commas: `row,column -> column,*`. Names on the right are those of the left.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut levels = Vec::new();
        let mut start = 0;
        for statement in text.split(';') {
            let span = start..start + statement.len();
            levels.push(distribution(text, span).map_err(|(span, kind)| ParseError {
                text: text.into(),
                span,
                kind,
            })?);
            start += statement.len() + 1;
        }
        Ok(Self { levels })
    }
}

/// The bytes of the text that are wrong, and the kind of error.
type Wrong = (Range<usize>, ParseErrorKind);

/// A word on one side.
enum Item {
    Name(String),
    Number(usize),
    Star,
    Cyclic(String, usize),
    NonZero(String),
}

fn distribution(text: &str, span: Range<usize>) -> Result<Distribution, Wrong> {
    let statement = &text[span.clone()];
    let arrow = statement.find("->").ok_or((span.clone(), ParseErrorKind::Arrow))? + span.start;
    let mut dimensions: Vec<String> = Vec::new();
    for (item, place) in items(text, span.start..arrow, &[])? {
        let Item::Name(name) = item else { return Err((place, ParseErrorKind::Name)) };
        if dimensions.contains(&name) {
            return Err((place, ParseErrorKind::Duplicate(name)));
        }
        dimensions.push(name);
    }
    let mut right = arrow + 2..span.end;
    // A name for all that is stored.
    let mut fused = None;
    if let Some(colon) = text[right.clone()].find(':').map(|colon| colon + right.start) {
        fused = match &mut items(text, right.start..colon, &[])?[..] {
            [(Item::Name(name), _)] if !dimensions.contains(name) => Some(std::mem::take(name)),
            _ => return Err((right.start..colon, ParseErrorKind::Fused)),
        };
        right.start = colon + 1;
    }
    let mut grid = Vec::new();
    let mut used: Vec<String> = Vec::new();
    for (item, place) in items(text, right, &dimensions)? {
        let (name, cut) = match item {
            Item::Star => {
                grid.push(Along::Broadcast);
                continue;
            }
            Item::Number(index) => {
                grid.push(Along::Fixed(index));
                continue;
            }
            Item::NonZero(name) if Some(&name) == fused.as_ref() && !used.contains(&name) => {
                grid.push(Along::Entries);
                used.push(name);
                continue;
            }
            Item::Name(name) => (name, Cut::Blocked),
            Item::NonZero(name) => (name, Cut::Positions),
            Item::Cyclic(name, block) => (name, Cut::Cyclic(block)),
        };
        if used.contains(&name) {
            return Err((place, ParseErrorKind::Duplicate(name)));
        }
        grid.push(match dimensions.iter().position(|dimension| *dimension == name) {
            Some(dimension) => Along::Partition(dimension, cut),
            None if cut == Cut::Blocked => return Err(unknown(text, place, &dimensions)),
            None if cut == Cut::Positions => return Err((place, ParseErrorKind::NonZero)),
            None => return Err((place, ParseErrorKind::Cyclic(name))),
        });
        used.push(name);
    }
    Ok(Distribution { dimensions, grid })
}

/// A name of no dimension: the whole word that it is in, if that has no letter which is one.
fn unknown(text: &str, place: Range<usize>, dimensions: &[String]) -> Wrong {
    let known = if dimensions.is_empty() { "none".to_owned() } else { dimensions.join(", ") };
    let is_other = |character: char| !(character.is_alphanumeric() || character == '_');
    let start = text[..place.start]
        .rfind(is_other)
        .map_or(0, |before| before + text[before..].chars().next().map_or(1, char::len_utf8));
    let end = text[place.end..].find(is_other).map_or(text.len(), |after| place.end + after);
    let has_known = text[start..end].chars().any(|letter| dimensions.contains(&letter.to_string()));
    let place = if has_known { place } else { start..end };
    (place.clone(), ParseErrorKind::Unknown { name: text[place].to_owned(), known })
}

/// The words of one side, with their places. Words that are names in `known` need no commas.
fn items(text: &str, side: Range<usize>, known: &[String]) -> Result<Vec<(Item, Range<usize>)>, Wrong> {
    let part = &text[side.clone()];
    // Commas inside of `cyclic(x, 4)` separate nothing.
    let mut depth = 0;
    let outer_comma = part.chars().any(|character| {
        depth += i32::from(character == '(') - i32::from(character == ')');
        character == ',' && depth == 0
    });
    let is_whole = |word: &str| outer_comma || known.iter().any(|name| name == word);
    let mut items = Vec::new();
    let mut at = side.start;
    while at < side.end {
        let rest = &text[at..side.end];
        let Some(first) = rest.chars().next() else { break };
        let run = |test: fn(char) -> bool| rest.find(|character| !test(character)).unwrap_or(rest.len());
        let word = run(|character| character.is_alphanumeric() || character == '_');
        let (item, length) = match first {
            _ if first.is_whitespace() || first == ',' && outer_comma => {
                at += first.len_utf8();
                continue;
            }
            '*' => (Item::Star, 1),
            '~' => {
                let after = &rest[1..];
                let skipped = after.len() - after.trim_start().len();
                let name = &after[skipped..];
                let length = match name.chars().next() {
                    Some(first) if first.is_alphabetic() || first == '_' => {
                        let is_word = |character: char| character.is_alphanumeric() || character == '_';
                        let word = name.find(|character| !is_word(character)).unwrap_or(name.len());
                        if is_whole(&name[..word]) { word } else { first.len_utf8() }
                    }
                    _ => return Err((at..at + 1, ParseErrorKind::NonZero)),
                };
                (Item::NonZero(name[..length].to_owned()), 1 + skipped + length)
            }
            '0'..='9' => {
                // `xy00` is two zeros; with commas, `10` is ten.
                let length = if outer_comma { run(|character| character.is_ascii_digit()) } else { 1 };
                (Item::Number(number(text, at..at + length)?), length)
            }
            _ if rest.starts_with("cyclic(") => {
                let end = rest.find(')').ok_or((at..side.end, ParseErrorKind::Item))?;
                (cyclic(text, at + "cyclic(".len()..at + end)?, end + 1)
            }
            _ if first.is_alphabetic() || first == '_' => {
                let length = if is_whole(&rest[..word]) { word } else { first.len_utf8() };
                (Item::Name(rest[..length].to_owned()), length)
            }
            _ => return Err((at..at + first.len_utf8(), ParseErrorKind::Item)),
        };
        items.push((item, at..at + length));
        at += length;
    }
    Ok(items)
}

/// Reads the text in the parentheses of `cyclic(x, 4)`.
fn cyclic(text: &str, span: Range<usize>) -> Result<Item, Wrong> {
    let inner = &text[span.clone()];
    let (name, block) = match inner.split_once(',') {
        Some((name, block)) => {
            let start = span.end - block.len();
            let trimmed = start + (block.len() - block.trim_start().len());
            let block = number(text, trimmed..trimmed + block.trim().len())?;
            if block == 0 {
                return Err((trimmed..span.end, ParseErrorKind::Number));
            }
            (name, block)
        }
        None => (inner, 1),
    };
    let name = name.trim();
    let good = name.chars().all(|character| character.is_alphanumeric() || character == '_')
        && name.chars().next().is_some_and(|first| !first.is_numeric());
    if good { Ok(Item::Cyclic(name.to_owned(), block)) } else { Err((span, ParseErrorKind::Item)) }
}

fn number(text: &str, span: Range<usize>) -> Result<usize, Wrong> {
    text[span.clone()].parse().map_err(|_| (span, ParseErrorKind::Number))
}

impl fmt::Display for Placement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels: Vec<String> = self.levels.iter().map(ToString::to_string).collect();
        formatter.write_str(&levels.join("; "))
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let along: Vec<String> = self
            .grid
            .iter()
            .map(|along| {
                let name = |dimension: &usize| {
                    self.dimensions.get(*dimension).cloned().unwrap_or_else(|| format!("?{dimension}"))
                };
                match along {
                    Along::Partition(dimension, Cut::Blocked) => name(dimension),
                    Along::Partition(dimension, Cut::Cyclic(1)) => format!("cyclic({})", name(dimension)),
                    Along::Partition(dimension, Cut::Cyclic(block)) => format!("cyclic({}, {block})", name(dimension)),
                    Along::Partition(dimension, Cut::Positions) => format!("~{}", name(dimension)),
                    Along::Entries => format!("~{}", self.fused()),
                    Along::Fixed(index) => index.to_string(),
                    Along::Broadcast => "*".to_owned(),
                }
            })
            .collect();
        // Longer words need commas, one alone too.
        let side = |words: &[String]| {
            let short =
                |word: &String| word.trim_start_matches('~').chars().count() == 1 || word.starts_with("cyclic(");
            match words {
                [word] if !short(word) => format!("{word},"),
                _ => words.join(if words.iter().all(short) { "" } else { "," }),
            }
        };
        write!(formatter, "{} -> ", side(&self.dimensions))?;
        if self.grid.contains(&Along::Entries) {
            write!(formatter, "{} : ", self.fused())?;
        }
        write!(formatter, "{}", side(&along))
    }
}

impl Distribution {
    /// A name for all that is stored, of no dimension.
    fn fused(&self) -> String {
        let is_free = |name: &String| !self.dimensions.contains(name);
        ('f'..='z').chain('a'..='e').map(String::from).find(is_free).unwrap_or_default()
    }
}
