//! Files with how fast a machine is.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use maniple_tensor::cost::Rates;

use crate::error::{Error, Result};

/// Names, what they are in words, and the rates: all that files have.
fn all(rates: &mut Rates) -> [(&'static str, &'static str, &mut f64); 7] {
    let Rates { products, loops, memory, network, latency, launch, overlap, .. } = rates;
    [
        ("products", "operations on f64 a second in products by a library, one processor", products),
        ("loops", "operations on f64 a second in compiled loops, one processor", loops),
        ("memory", "bytes a second between a processor and its memory", memory),
        ("network", "bytes a second that a processor sends or gets", network),
        ("latency", "seconds for each message", latency),
        ("launch", "seconds for each point of a launch", launch),
        ("overlap", "which part of moving data a processor does not notice while it computes, 0 to 1", overlap),
    ]
}

/// Rates as the text of a file.
#[must_use]
pub fn text(mut rates: Rates) -> String {
    let mut text = String::new();
    for (name, what, rate) in all(&mut rates) {
        // Writing to a string succeeds.
        let _ = writeln!(text, "{name} = {rate:.3e} # {what}");
    }
    text
}

/// The rates of a file; those that it does not name are as they are by default.
///
/// # Errors
/// [`Error::Usage`] if it cannot be read, or has something else than positive numbers by these names.
pub fn read(file: &Path) -> Result<Rates> {
    let refused = |problem: String| Error::Usage(format!("--rates {}: {problem}", file.display()));
    let told = fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    let table: toml::Table = toml::from_str(&told).map_err(|error| refused(error.to_string()))?;
    let mut rates = Rates::default();
    let known = all(&mut rates);
    for (name, value) in table {
        let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
        let number =
            number.filter(|number| number.is_finite() && *number >= 0.0 && (*number > 0.0 || name == "overlap"));
        let names = || known.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
        let place = known.iter().position(|(own, ..)| *own == name);
        match (place, number) {
            (Some(place), Some(number)) => *known[place].2 = number,
            (Some(_), None) => {
                return Err(refused(format!("{name}: expected a positive number, and no other {}", value.type_str())));
            }
            (None, _) => return Err(refused(format!("there is no rate {name}; there are {}", names()))),
        }
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_mistakes_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rates.toml");
        let rates = Rates { products: 4e10, latency: 3e-6, overlap: 0.0, ..Rates::default() };
        fs::write(&file, text(rates)).unwrap();
        assert_eq!(read(&file).unwrap(), rates);
        fs::write(&file, "loops = 2\n").unwrap();
        assert_eq!(read(&file).unwrap(), Rates { loops: 2.0, ..Rates::default() });
        for (told, expected) in [
            ("speed = 1", "there is no rate speed; there are products, loops"),
            ("loops = -1", "loops: expected a positive number"),
            ("loops = 0", "expected a positive number"),
            ("loops = \"fast\"", "expected a positive number"),
            ("loops = ", "expected"),
        ] {
            fs::write(&file, told).unwrap();
            let error = read(&file).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("rates.toml"), "{error}");
        }
        assert!(read(&folder.path().join("none")).unwrap_err().to_string().contains("none"));
    }
}
