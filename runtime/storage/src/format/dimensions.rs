//! How loops over dimensions go through formats whose levels store diagonals.
//!
//! A loop over a dimension visits its coordinates in their order. Where a level stores diagonals, the coordinates of a
//! row ascend with these. So loops see such a format as a plain one, with a level for each dimension.

use super::{Format, Level, LevelExpression};

/// How the levels that loops see follow from those that are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredDimension {
    /// They are the same.
    Plain,
    /// The first level stores diagonals, and the second one a dimension along them: the coordinate of the other
    /// dimension is that of the diagonal and this one with this sign.
    Diagonals(i64),
}

impl Format {
    /// The format as loops over dimensions see it, whose levels store dimensions: itself, if it is plain. None if there
    /// are no loops that visit coordinates in their order.
    pub fn by_dimensions(&self) -> Option<(Self, StoredDimension)> {
        if self.is_plain() {
            return Some((self.clone(), StoredDimension::Plain));
        }
        self.of_diagonals()
    }

    fn of_diagonals(&self) -> Option<(Self, StoredDimension)> {
        let [Level::Compressed, Level::Range] = self.levels[..] else { return None };
        let LevelExpression::Mode(along) = self.expressions[1] else { return None };
        // Others descend where diagonals ascend.
        let (_, sign, 1, other) = self.diagonal(1)? else { return None };
        let mut format = Self::new([Level::Dense, Level::Compressed], [along, other]).ok()?;
        format.properties[1] = self.properties[0];
        Some((format, StoredDimension::Diagonals(sign)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Option<(String, StoredDimension)> {
        let format: Format = text.parse().expect("a format");
        format.by_dimensions().map(|(format, stored)| (format.to_string(), stored))
    }

    #[test]
    fn diagonals_are_rows_or_columns_in_order() {
        assert_eq!(seen("csc"), Some(("{D,C}(1,0)".to_owned(), StoredDimension::Plain)));
        assert_eq!(seen("dia"), Some(("{D,C}(0,1)".to_owned(), StoredDimension::Diagonals(1))));
        assert_eq!(seen("(i,j) -> (i+j: C, j: R)"), Some(("{D,C}(1,0)".to_owned(), StoredDimension::Diagonals(-1))));
    }

    #[test]
    fn others_are_not_gone_through_in_order() {
        for format in [
            // Rows ascend where diagonals descend.
            "(i,j) -> (j-i: C, j: R)",
            "(i,j) -> (i-j: C, i: R)",
            "(i,j) -> (i-j: B, i: R)",
            "bcsr:2x3",
        ] {
            assert_eq!(seen(format), None, "{format}");
        }
    }
}
