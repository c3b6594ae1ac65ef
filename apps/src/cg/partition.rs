//! How rows are split.

use maniple::Rect;

/// Cuts rows, given by where their entries start and the last one's end, into consecutive pieces with about as many entries each, and at
/// least one row. There must not be more pieces than rows.
pub(super) fn balanced(starts: &[usize], pieces: usize) -> Vec<Rect<1>> {
    let (rows, entries) = (starts.len() - 1, starts[starts.len() - 1]);
    let mut end = 0;
    let piece = |piece: usize| {
        let first = end;
        let wanted = (entries as u128 * piece as u128 / pieces as u128) as usize;
        // This piece and all that follow need a row.
        end = starts.partition_point(|&start| start < wanted).clamp(first + 1, rows - (pieces - piece));
        Rect::from(first as i64..end as i64)
    };
    (1..=pieces).map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where rows with so many entries start.
    fn starts(entries: &[usize]) -> Vec<usize> {
        (0..=entries.len()).map(|row| entries[..row].iter().sum()).collect()
    }

    fn sizes(entries: &[usize], pieces: usize) -> Vec<u64> {
        let ranges = balanced(&starts(entries), pieces);
        assert!(ranges.windows(2).all(|pair| pair[0].hi[0] + 1 == pair[1].lo[0]), "consecutive: {ranges:?}");
        ranges.iter().map(Rect::volume).collect()
    }

    #[test]
    fn pieces_have_about_as_many_entries_each() {
        assert_eq!(sizes(&[1; 10], 3), [3, 3, 4]);
        assert_eq!(sizes(&[4, 1, 1, 1, 1], 2), [1, 4]);
    }

    #[test]
    fn every_piece_has_a_row_wherever_the_entries_are() {
        assert_eq!(sizes(&[100, 1, 1, 1], 4), [1, 1, 1, 1]);
        assert_eq!(sizes(&[1, 1, 1, 100], 3), [2, 1, 1]);
        assert_eq!(sizes(&[1, 100, 1, 1], 3), [2, 1, 1]);
        assert_eq!(sizes(&[5], 1), [1]);
    }
}
