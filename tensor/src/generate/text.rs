//! Generators as text.

use std::fmt;
use std::str::FromStr;

use super::Generator;

/// Text that is no generator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no generator: expected uniform:DENSITY (0 to 1), zipf:ENTRIES, band:WIDTH, poisson:SIDE, poisson3:SIDE, rmat:SCALE (1 to 40; rmat:SCALE,EDGES a vertex), arrow, or \
     hypersparse:ENTRIES"
)]
pub struct ParseError(String);

impl fmt::Display for Generator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform { density } => write!(formatter, "uniform:{density}"),
            Self::Zipf { entries } => write!(formatter, "zipf:{entries}"),
            Self::Band { width } => write!(formatter, "band:{width}"),
            Self::Poisson { side, dimensions: 2 } => write!(formatter, "poisson:{side}"),
            Self::Poisson { side, .. } => write!(formatter, "poisson3:{side}"),
            Self::Rmat { scale, edges: 16 } => write!(formatter, "rmat:{scale}"),
            Self::Rmat { scale, edges } => write!(formatter, "rmat:{scale},{edges}"),
            Self::Arrow => formatter.write_str("arrow"),
            Self::Hypersparse { entries } => write!(formatter, "hypersparse:{entries}"),
        }
    }
}

impl FromStr for Generator {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError(text.to_owned());
        let (name, number) =
            text.trim().split_once(':').map_or((text.trim(), None), |(name, number)| (name, Some(number)));
        let whole = |most: i64| {
            let number = number.and_then(|number| number.trim().parse::<i64>().ok());
            number.filter(|number| (0..=most).contains(number)).ok_or_else(wrong)
        };
        let side = |most: i64| whole(most).and_then(|side| if side > 0 { Ok(side) } else { Err(wrong()) });
        Ok(match name {
            "uniform" => {
                let density = number.and_then(|number| number.trim().parse().ok());
                Self::Uniform { density: density.filter(|density| (0.0..=1.0).contains(density)).ok_or_else(wrong)? }
            }
            "zipf" => Self::Zipf { entries: whole(1 << 48)? },
            "band" => Self::Band { width: whole(1 << 48)? },
            "poisson" => Self::Poisson { side: side(1 << 24)?, dimensions: 2 },
            "poisson3" => Self::Poisson { side: side(1 << 16)?, dimensions: 3 },
            "rmat" => {
                let (scale, edges) =
                    number.and_then(|number| number.split_once(',')).unwrap_or((number.unwrap_or(""), "16"));
                let (scale, edges) = (scale.trim().parse().ok(), edges.trim().parse().ok());
                let scale = scale.filter(|scale| (1..=40).contains(scale)).ok_or_else(wrong)?;
                Self::Rmat { scale, edges: edges.filter(|edges| (0..=1 << 20).contains(edges)).ok_or_else(wrong)? }
            }
            "arrow" if number.is_none() => Self::Arrow,
            "hypersparse" => Self::Hypersparse { entries: whole(1 << 48)? },
            _ => return Err(wrong()),
        })
    }
}
