//! Tensors in `.tcs` files, as tests write them.

use std::collections::BTreeMap;
use std::io::Cursor;

use fastrand::Rng;
use maniple_files::Number;
use maniple_files::tcs::{Duplicates, Extent, Listed, StoragePlan, TcsLevelKind, Width, survey, write};
use maniple_tensor::element::Element;
use maniple_tensor::notation::TensorVariable;

/// A tensor to be written: extents, levels from the outermost as letters and the dimension of each, and elements by
/// coordinates.
pub(crate) struct Case<T> {
    pub(crate) extents: Vec<u64>,
    pub(crate) levels: &'static str,
    pub(crate) order: Vec<usize>,
    pub(crate) entries: BTreeMap<Vec<u64>, T>,
}

impl<T: Element + Number> Case<T> {
    /// So many entries at random places.
    pub(crate) fn random(
        extents: &[u64],
        (levels, order): (&'static str, &[usize]),
        count: usize,
        value: impl Fn(u64) -> T,
    ) -> Self {
        let mut rng = Rng::with_seed(7);
        let mut entries = BTreeMap::new();
        if extents.iter().all(|extent| *extent > 0) {
            for number in 0..count as u64 {
                entries.insert(extents.iter().map(|extent| rng.u64(..extent)).collect(), value(number + 1));
            }
        }
        Self { extents: extents.to_vec(), levels, order: order.to_vec(), entries }
    }

    /// The bytes of the file, by the streaming converter.
    pub(crate) fn file(&self, width: Width) -> Vec<u8> {
        let kind = |letter: char| if letter == 'd' { TcsLevelKind::Dense } else { TcsLevelKind::Sparse };
        let by_level = |at: &Vec<u64>| self.order.iter().map(|mode| at[*mode]).collect::<Vec<_>>();
        let mut entries: Vec<(Vec<u64>, T)> = self.entries.iter().map(|(at, value)| (at.clone(), *value)).collect();
        entries.sort_by_key(|(at, _)| by_level(at));
        let plan = StoragePlan {
            kinds: self.levels.chars().map(kind).collect(),
            order: self.order.clone(),
            extents: self.extents.iter().map(|extent| Extent::Given(0..*extent)).collect(),
            width,
            duplicates: Duplicates::Refuse,
        };
        let mut file = Cursor::new(Vec::new());
        let found = survey(Listed::new(&entries), &plan).unwrap();
        write(&found, Listed::new(&entries), &plan, &mut file).unwrap();
        file.into_inner()
    }

    /// The variable by which statements name it.
    pub(crate) fn variable(&self, name: &str) -> TensorVariable {
        let levels: Vec<&str> = self.levels.chars().map(|letter| if letter == 'd' { "D" } else { "C" }).collect();
        let order: Vec<String> = self.order.iter().map(ToString::to_string).collect();
        let format = format!("{{{}}}({})", levels.join(","), order.join(","));
        let extents: Vec<i64> = self.extents.iter().map(|extent| *extent as i64).collect();
        TensorVariable::new(name, <T as Element>::TYPE, extents).stored(format.parse().unwrap())
    }
}

/// A matrix of about four megabytes, most of whose entries are in few rows.
pub(crate) fn skewed() -> Case<f64> {
    let entries = (1..2001_u64).flat_map(|row| (0..50_000 / row).map(move |column| (vec![row - 1, column], 1.5)));
    Case { extents: vec![2000, 50_000], levels: "ds", order: vec![0, 1], entries: entries.collect() }
}
