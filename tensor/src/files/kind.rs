//! The kind of a file of a tensor: by the ending of its name, the prefix of its name, or its first bytes.

use std::path::Path;

use maniple_files::{npy, tcs};

/// A form of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
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

/// The advice to a user who names a file whose name tells no kind.
pub(super) const OF_NAMES: &str = "the name must end with .npy (NumPy), .mtx (Matrix Market), .tns (FROSTT), .tcs (levels) or .npz (SciPy), or have one of these before it, as in mtx:/dev/stdout";

impl FileKind {
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

    /// A file as the user names it: its kind, by prefix or by the ending of its name, and its path. A prefix is a kind,
    /// as in `mtx:/dev/stdin`.
    pub(super) fn said(text: &str) -> (Option<Self>, &Path) {
        match text.split_once(':').and_then(|(kind, rest)| Some((Self::named(kind)?, rest))) {
            Some((kind, path)) if !path.is_empty() => (Some(kind), Path::new(path)),
            _ => (Path::new(text).extension().and_then(|ending| Self::named(ending.to_str()?)), Path::new(text)),
        }
    }

    /// Returns the kind of a file by its first bytes. A file of no other kind counts as `.tns`, which has lines of
    /// numbers alone.
    pub(super) fn of_content(start: &[u8]) -> Self {
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
            ("a.mtx", Some(FileKind::MatrixMarket), "a.mtx"),
            ("mtx:/dev/stdout", Some(FileKind::MatrixMarket), "/dev/stdout"),
            ("tns:a.mtx", Some(FileKind::Coordinates), "a.mtx"),
            ("/dev/stdin", None, "/dev/stdin"),
            ("npz:", None, "npz:"),
            ("other:a.npy", Some(FileKind::Numpy), "other:a.npy"),
        ] {
            assert_eq!(FileKind::said(text), (kind, Path::new(path)), "{text}");
        }
    }
}
