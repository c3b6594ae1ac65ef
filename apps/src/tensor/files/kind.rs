//! What is in a file of a tensor: as its name says, what is said before it, or its first bytes.

use std::path::Path;

use maniple_files::{npy, tcs};

/// A form of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `.mtx`.
    MatrixMarket,
    /// `.tns`.
    Coordinates,
    /// `.tcs`.
    Levels,
    /// `.npz`.
    Archive,
    /// `.npy`.
    Numpy,
}

/// What is to be done where a name tells nothing.
pub const OF_NAMES: &str = "the name must end with .npy (NumPy), .mtx (Matrix Market), .tns (FROSTT), .tcs (levels) or .npz (SciPy), or have one of these before it, as in mtx:/dev/stdout";

impl Kind {
    const ALL: [(&str, Self); 5] = [
        ("mtx", Self::MatrixMarket),
        ("tns", Self::Coordinates),
        ("tcs", Self::Levels),
        ("npz", Self::Archive),
        ("npy", Self::Numpy),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// A file as it is named: what is said of it, or its name says, and its path. A kind is said before it, as in
    /// `mtx:/dev/stdin`.
    pub fn said(text: &str) -> (Option<Self>, &Path) {
        match text.split_once(':').and_then(|(kind, rest)| Some((Self::named(kind)?, rest))) {
            Some((kind, path)) if !path.is_empty() => (Some(kind), Path::new(path)),
            _ => (Path::new(text).extension().and_then(|ending| Self::named(ending.to_str()?)), Path::new(text)),
        }
    }

    /// What the first bytes of a file say. Lines of numbers alone are those of a `.tns` file.
    pub fn of_content(start: &[u8]) -> Self {
        match () {
            () if start.starts_with(npy::MAGIC) => Self::Numpy,
            () if start.starts_with(b"PK") => Self::Archive,
            () if start.starts_with(&tcs::MAGIC) => Self::Levels,
            () if start.starts_with(b"%") => Self::MatrixMarket,
            () => Self::Coordinates,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_may_be_said_before_a_name() {
        for (text, kind, path) in [
            ("a.mtx", Some(Kind::MatrixMarket), "a.mtx"),
            ("mtx:/dev/stdout", Some(Kind::MatrixMarket), "/dev/stdout"),
            ("tns:a.mtx", Some(Kind::Coordinates), "a.mtx"),
            ("/dev/stdin", None, "/dev/stdin"),
            ("npz:", None, "npz:"),
            ("other:a.npy", Some(Kind::Numpy), "other:a.npy"),
        ] {
            assert_eq!(Kind::said(text), (kind, Path::new(path)), "{text}");
        }
    }
}
