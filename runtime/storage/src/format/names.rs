//! Formats that have a name.

use super::{Format, FormatError, Level, LevelExpression, Properties};

/// The names that [`named`] knows, for messages.
pub(super) const KNOWN: &str = "dense, rows, columns, csr, csc, coo, dcsr, dcsc, csf, bcsr:RxC, ell, dia, bitmap, hash";

/// The most that a block may have in one dimension.
const LARGEST_BLOCK: i64 = 1 << 20;

/// The format called `name`, for a tensor of `rank` dimensions where the name does not say how many; none if nothing is
/// called so.
///
/// Names of formats for any number of dimensions may say it: `coo:3`. In letters of TACO (`ds`, `ds:1,0`), `d` is
/// dense, `s` compressed, `u` compressed with coordinates more than once, `q` and `c` singleton, the latter with
/// coordinates more than once.
pub(super) fn named(name: &str, rank: usize) -> Option<Result<Format, FormatError>> {
    use Level::{Bitmap, Compressed, Counter, Dense, Hashed, Range};
    let (word, after) = name.split_once(':').map_or((name, None), |(word, after)| (word, Some(after)));
    let matrix = |levels: [Level; 2], order: [usize; 2]| after.is_none().then(|| Format::new(levels, order));
    let count = after.map_or(Some(rank), |after| after.parse().ok().filter(|count| *count <= super::MOST_DIMENSIONS));
    let all = |level: Level| count.map(|count| Format::new(vec![level; count], (0..count).collect::<Vec<_>>()));
    let with_last = |level: Level, last: Level| {
        let levels = |count: usize| (0..count).map(|at| if at + 1 == count { last } else { level }).collect::<Vec<_>>();
        count.map(|count| Format::new(levels(count), (0..count).collect::<Vec<_>>()))
    };
    let general = |levels: Vec<(LevelExpression, Level)>| {
        let level = |(expression, level)| (expression, level, Properties::default());
        Some(Format::of_levels(2, levels.into_iter().map(level).collect()))
    };
    match word {
        "dense" => all(Dense),
        "rows" => matrix([Dense, Dense], [0, 1]),
        "columns" => matrix([Dense, Dense], [1, 0]),
        "csr" => matrix([Dense, Compressed], [0, 1]),
        "csc" => matrix([Dense, Compressed], [1, 0]),
        "dcsr" => matrix([Compressed, Compressed], [0, 1]),
        "dcsc" => matrix([Compressed, Compressed], [1, 0]),
        "csf" => all(Compressed),
        "hash" => all(Hashed),
        "bitmap" => with_last(Dense, Bitmap),
        "coo" => count.map(|count| Ok(Format::coordinates(count))),
        "ell" => matrix([Dense, Counter], [0, 1]),
        "dia" if after.is_none() => {
            general(vec![(LevelExpression::Difference(1, 0), Compressed), (LevelExpression::Mode(0), Range)])
        }
        "bcsr" => {
            let (rows, columns) = after?.split_once('x')?;
            let size = |text: &str| text.parse().ok().filter(|size| (1..=LARGEST_BLOCK).contains(size));
            let (rows, columns) = (size(rows)?, size(columns)?);
            general(vec![
                (LevelExpression::Block(0, rows), Dense),
                (LevelExpression::Block(1, columns), Compressed),
                (LevelExpression::Within(0, rows), Dense),
                (LevelExpression::Within(1, columns), Dense),
            ])
        }
        _ => letters(word, after),
    }
}

/// TACO's letters, and the order of modes after a colon.
fn letters(word: &str, order: Option<&str>) -> Option<Result<Format, FormatError>> {
    let repeated = Properties { unique: false, ..Properties::default() };
    let level = |letter: char| {
        Some(match letter {
            'd' => (Level::Dense, Properties::default()),
            's' => (Level::Compressed, Properties::default()),
            'u' => (Level::Compressed, repeated),
            'q' => (Level::Singleton, Properties::default()),
            'c' => (Level::Singleton, repeated),
            _ => return None,
        })
    };
    let levels: Vec<_> = word.chars().map(level).collect::<Option<_>>()?;
    let order: Vec<usize> = match order {
        None => (0..levels.len()).collect(),
        Some(order) => order.split(',').map(|mode| mode.trim().parse().ok()).collect::<Option<_>>()?,
    };
    (!levels.is_empty()).then(|| {
        let kinds: Vec<Level> = levels.iter().map(|(kind, _)| *kind).collect();
        let mut format = Format::new(kinds, order)?;
        format.properties = levels.into_iter().map(|(_, properties)| properties).collect();
        Ok(format)
    })
}
