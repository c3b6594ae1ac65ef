//! Names with stars in rules, and words that are nearly right.

use std::fmt;

/// The names that a rule is about: those that match one of its patterns. Without patterns it is about all.
///
/// A pattern is a name in which each `*` stands for any letters, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Vec<String>);

impl Names {
    /// Creates the set of names that match one of these patterns; of all names, if there are no patterns.
    #[must_use]
    pub fn of(patterns: Vec<String>) -> Self {
        Self(patterns)
    }

    /// Whether every name matches, as nothing is said.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// The patterns.
    #[must_use]
    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// The patterns without stars: names that something has to have.
    pub fn exact(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).filter(|pattern| !pattern.contains('*'))
    }

    /// Whether the name matches a pattern, or there are none.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.is_all() || self.0.iter().any(|pattern| matches(pattern, name))
    }

    /// Whether one of the names matches a pattern, or there are no patterns.
    #[must_use]
    pub fn contain_any<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> bool {
        self.is_all() || names.any(|name| self.contains(name))
    }
}

impl fmt::Display for Names {
    /// `` `a` or `b*` ``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, pattern) in self.0.iter().enumerate() {
            write!(f, "{}`{pattern}`", if number == 0 { "" } else { " or " })?;
        }
        Ok(())
    }
}

/// Whether a name matches a pattern with stars. A star takes as little as it can: what comes after the last one has to
/// be the end of the name.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let (middle, last) = others.rsplit_once('*').unwrap_or(("", others));
    for part in middle.split('*') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The known word that is most like another, if one is like it: one letter in three is wrong, at most (Damerau 1964,
/// Levenshtein 1966).
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let far = |known: &str| strsim::damerau_levenshtein(&lower, &known.to_lowercase());
    let near = known.into_iter().map(|known| (far(known), known)).min()?;
    (3 * near.0 <= near.1.chars().count().max(3)).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a name matches, letter by letter.
    fn slowly(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|taken| slowly(rest, &name[taken..])),
            Some((letter, rest)) => name.first() == Some(letter) && slowly(rest, &name[1..]),
        }
    }

    #[test]
    fn stars_match_as_if_every_length_were_tried() {
        let words = |letters: &[char], longest: u32| -> Vec<String> {
            let word = |length: u32, mut number: usize| {
                let letter = |_| {
                    let letter = letters[number % letters.len()];
                    number /= letters.len();
                    letter
                };
                (0..length).map(letter).collect()
            };
            (0..=longest)
                .flat_map(|length| (0..letters.len().pow(length)).map(move |number| (length, number)))
                .map(|(length, number)| word(length, number))
                .collect()
        };
        let names = words(&['a', 'b'], 5);
        for pattern in words(&['a', 'b', '*'], 5) {
            let letters: Vec<char> = pattern.chars().collect();
            for name in &names {
                let expected = slowly(&letters, &name.chars().collect::<Vec<_>>());
                assert_eq!(matches(&pattern, name), expected, "`{pattern}` and `{name}`");
            }
        }
    }

    #[test]
    fn a_word_is_taken_for_one_that_is_like_it() {
        let known = ["priority", "processors", "pinned"];
        assert_eq!(nearest("prioirty", known), Some("priority"));
        assert_eq!(nearest("Processor", known), Some("processors"));
        assert_eq!(nearest("colour", known), None);
    }
}
