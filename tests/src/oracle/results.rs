//! Results that are computed from others.

use super::{Health, Results, Trouble, World};
use crate::program::{Derived, FutureName};
use crate::value::{Operator, Word, mix};

impl World {
    pub(super) fn derive(&mut self, name: FutureName, derived: Derived) -> Result<(), Trouble> {
        let one = |name: FutureName| {
            let results = self.results(name)?;
            match (results.domain, &results.values[..]) {
                (None, [value]) => Ok(*value),
                _ => Err(Trouble::Meaningless(format!("{name:?} is no single result"))),
            }
        };
        let value = match derived {
            Derived::Map(source) => {
                let (value, health) = one(source)?;
                (mapped(value), health)
            }
            Derived::Zip(left, right) => {
                let ((left, health), (right, other)) = (one(left)?, one(right)?);
                (mix(left, right), health.max(other))
            }
            Derived::Reduce(source, operator) => {
                let results = self.results(source)?;
                let fold = |folded, &(value, _): &_| reduce_words(operator, folded, value);
                (results.values.iter().fold(identity(operator), fold), results.health())
            }
            Derived::Fold(source) => {
                let results = self.results(source)?;
                (results.values.iter().fold(7, |folded, &(value, _)| mix(folded, value)), results.health())
            }
            Derived::Scan(source, operator, inclusive) => {
                let results = self.results(source)?;
                let mut folded = (identity(operator), Health::Sound);
                let values = results.values.iter().map(|&(value, health)| {
                    let before = folded;
                    folded = (reduce_words(operator, before.0, value), before.1.max(health));
                    if inclusive { folded } else { before }
                });
                let (domain, values) = (results.domain, values.collect());
                self.futures.insert(name, Results { domain, values });
                return Ok(());
            }
            Derived::Point(source, point) => {
                let results = self.results(source)?;
                let domain = results.domain.ok_or_else(|| Trouble::Meaningless("no index launch".into()))?;
                if !domain.contains(point) {
                    return Err(Trouble::Refused("no such point".into()));
                }
                results.values[domain.linear(point) as usize]
            }
        };
        self.futures.insert(name, Results { domain: None, values: vec![value] });
        Ok(())
    }
}

/// The function of [`Derived::Map`].
#[must_use]
pub fn mapped(value: Word) -> Word {
    mix(value, 3)
}

/// The result of a reduction of no unsigned results.
fn identity(operator: Operator) -> Word {
    if operator == Operator::Min { Word::MAX } else { 0 }
}

/// Reduces unsigned results, as [`Derived::Reduce`] does.
#[must_use]
pub fn reduce_words(operator: Operator, left: Word, right: Word) -> Word {
    match operator {
        Operator::Max => left.max(right),
        Operator::Min => left.min(right),
        Operator::Xor => left ^ right,
        Operator::Sum | Operator::Stamp | Operator::Tally => left.wrapping_add(right),
    }
}
