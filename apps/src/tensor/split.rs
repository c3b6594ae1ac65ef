//! How index variables are split into blocks.

/// How an index variable is split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// In so many ranges of equal length.
    Ranges(i64),
    /// In ranges that begin at these points, the first one at 0.
    At(Vec<i64>),
}

impl Split {
    /// `8`, or `10,25`.
    pub(super) fn parse(text: &str) -> std::result::Result<(String, Self), String> {
        let expected = || "it must be NAME=N or NAME=POINT,POINT,..., such as i=8 or i=0,10,25".to_owned();
        let (name, numbers) = text.split_once('=').ok_or_else(expected)?;
        let numbers: Vec<i64> = numbers
            .split(',')
            .map(|number| number.trim().parse().ok().filter(|number| *number >= 0))
            .collect::<Option<_>>()
            .ok_or_else(expected)?;
        let split = match numbers[..] {
            [0] => return Err("there has to be one range at least".to_owned()),
            [count] => Self::Ranges(count),
            _ => Self::At(numbers.into_iter().skip_while(|point| *point == 0).collect()),
        };
        Ok((name.trim().to_owned(), split))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_counts_or_points() {
        assert_eq!(Split::parse("i=8"), Ok(("i".to_owned(), Split::Ranges(8))));
        assert_eq!(Split::parse("i=0,10,25"), Ok(("i".to_owned(), Split::At(vec![10, 25]))));
        assert_eq!(Split::parse("j=3, 3"), Ok(("j".to_owned(), Split::At(vec![3, 3]))));
        for wrong in ["i", "i=", "i=-1", "i=a,b", "i=0"] {
            assert!(Split::parse(wrong).is_err(), "{wrong}");
        }
    }
}
