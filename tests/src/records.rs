//! Records of the nodes of a trial, one each.

use std::collections::BTreeMap;
use std::fmt;

use maniple::record::Record;

/// The records of nodes, by number. Of a node that was killed there is none.
#[derive(Clone, Debug, Default)]
pub struct Records(pub BTreeMap<usize, Record>);

impl Records {
    /// The only record of a trial on one node.
    ///
    /// # Panics
    /// If there are several, or none.
    #[must_use]
    pub fn only(self) -> Record {
        let mut records = self.0.into_values();
        match (records.next(), records.next()) {
            (Some(record), None) => record,
            (first, _) => panic!("expected the record of one node, found {}", first.map_or("none", |_| "several")),
        }
    }
}

impl fmt::Display for Records {
    /// One after the other, each behind the number of its node if there are several.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (node, record) in &self.0 {
            if self.0.len() > 1 {
                writeln!(f, "the record of node {node}:")?;
            }
            write!(f, "{record}")?;
        }
        Ok(())
    }
}
