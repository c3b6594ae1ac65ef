//! Formats as text: `{D,C}(0,1)`.

use std::fmt;
use std::str::FromStr;

use super::{Format, FormatError, Level};

/// Text that is no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not of the right shape.
    #[error(
        "`{0}` is no format: expected levels D (dense), C (compressed) or S (singleton), and the order of modes, such as `{{D,C}}(0,1)`"
    )]
    Text(String),
    /// The order of modes is wrong.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = self.levels.iter().map(|level| match level {
            Level::Dense => "D",
            Level::Compressed => "C",
            Level::Singleton => "S",
        });
        let modes: Vec<String> = self.order.iter().map(ToString::to_string).collect();
        write!(formatter, "{{{}}}({})", letters.collect::<Vec<_>>().join(","), modes.join(","))
    }
}

impl FromStr for Format {
    type Err = ParseError;

    /// Reads `{D,C}(0,1)`; without an order, modes are stored as they are numbered.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::Text(text.to_owned());
        let (levels, order) = text.trim().strip_prefix('{').and_then(|rest| rest.split_once('}')).ok_or_else(wrong)?;
        let items = |list: &str| match list.trim() {
            "" => Vec::new(),
            list => list.split(',').map(|item| item.trim().to_owned()).collect(),
        };
        let levels: Option<Vec<Level>> = items(levels)
            .iter()
            .map(|level| match level.as_str() {
                "D" => Some(Level::Dense),
                "C" => Some(Level::Compressed),
                "S" => Some(Level::Singleton),
                _ => None,
            })
            .collect();
        let levels = levels.ok_or_else(wrong)?;
        let order = match order.trim() {
            "" => (0..levels.len()).collect(),
            order => {
                let order = order.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(wrong)?;
                let modes: Result<Vec<usize>, _> = items(order).iter().map(|mode| mode.parse()).collect();
                modes.map_err(|_| wrong())?
            }
        };
        Ok(Self::new(levels, order)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_as_they_are_written() {
        for text in ["{}()", "{D}(0)", "{D,C}(1,0)", "{C,S,S}(2,0,1)"] {
            assert_eq!(text.parse::<Format>().expect("a format").to_string(), text);
        }
        assert_eq!("{D, C}".parse::<Format>().expect("a format").to_string(), "{D,C}(0,1)");
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "D,C", "{D,X}", "{D,C}(0,1", "{D,C}0,1", "{D}(a)", "{D,}"] {
            assert_eq!(text.parse::<Format>(), Err(ParseError::Text(text.to_owned())));
        }
        assert!(matches!("{D,C}(0,0)".parse::<Format>(), Err(ParseError::Format(_))));
    }
}
