//! Tensors in memory.

use std::ops::Range;
use std::sync::Arc;

use super::entries::EntryList;
use super::error::StorageError;
use super::statistics::Known;
use super::value::is_fill;
use crate::element::{Element, ElementType};
use crate::format::{Format, FormatError, Level, LevelExpression, Recovery};
use crate::kernel::Team;
use crate::level::{Component, LevelData, LevelError};
use crate::parallel::{each, ranges};

/// A tensor in memory: what its levels store, and an element for each position of the last one.
///
/// Elements that are not stored have the fill value. Copies share the levels, and so do results of computations that
/// store elements where an operand does ([`shares_levels`](Self::shares_levels)); each has elements of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseTensor<T> {
    format: Format,
    dimensions: Vec<i64>,
    fill: T,
    levels: Arc<Vec<LevelData>>,
    values: Vec<T>,
    known: Known,
}

/// Refuses a format for another number of dimensions, and extents that are negative or so large that sums of
/// coordinates overflow.
pub(super) fn check_extents(format: &Format, dimensions: &[i64], element: ElementType) -> Result<(), StorageError> {
    if format.rank() != dimensions.len() {
        return Err(FormatError::Rank { levels: format.rank(), dimensions: dimensions.len() }.into());
    }
    match dimensions.iter().all(|extent| (0..=i64::MAX / 4).contains(extent)) {
        true => Ok(()),
        false => Err(StorageError::Extents { dimensions: dimensions.to_vec(), rank: format.rank(), element }),
    }
}

impl<T: Element> SparseTensor<T> {
    /// The tensor of levels that are known to be those of the format, and an element for each position of the last one.
    pub fn of(format: &Format, dimensions: &[i64], fill: T, levels: Vec<LevelData>, values: Vec<T>) -> Self {
        let levels = Arc::new(levels);
        Self { format: format.clone(), dimensions: dimensions.to_vec(), fill, levels, values, known: Known::default() }
    }

    /// The tensor with these elements at the positions of a level of this one, the last one of `format`, which has the
    /// same levels up to that one.
    pub fn with_levels_of(&self, format: &Format, dimensions: &[i64], fill: T, values: Vec<T>) -> Self {
        let levels = match format.rank() == self.levels.len() {
            true => Arc::clone(&self.levels),
            false => Arc::new(self.levels[..format.rank()].to_vec()),
        };
        Self { format: format.clone(), dimensions: dimensions.to_vec(), fill, levels, values, known: Known::default() }
    }

    /// The tensor that is stored like this: the components of each level, and an element for each position of the last
    /// one.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if a component does not follow the rules of its level; all of them are checked.
    pub fn from_components(
        format: &Format,
        dimensions: &[i64],
        fill: T,
        components: Vec<Vec<Component>>,
        values: Vec<T>,
    ) -> Result<Self, StorageError> {
        check_extents(format, dimensions, T::TYPE)?;
        let mut levels: Vec<LevelData> = Vec::new();
        let mut components = components.into_iter();
        for (level, expression) in format.expressions().iter().enumerate() {
            let mut data = LevelData {
                bounds: expression.bounds(dimensions),
                properties: format.properties()[level],
                line: format.line(level, dimensions),
                parents: levels.last().map_or(1, |above| above.positions),
                positions: 0,
                components: components.next().unwrap_or_default(),
            };
            let has_coordinates = format.levels()[level].kind().capabilities().has_coordinates;
            if let LevelExpression::Count(_) = expression {
                if !has_coordinates {
                    return Err(StorageError::Uncounted { format: format.to_string(), level });
                }
                // Coordinates count up to what is there.
                let most = data.components.iter().filter(|component| component.name == "crd");
                let most = most.flat_map(|crd| (0..crd.array.len()).map(|place| crd.array.get(place))).max();
                data.bounds = 0..most.map_or(0, |most| most.saturating_add(1));
            }
            let failed = |error| StorageError::Level { format: format.to_string(), level, error };
            data.positions = match data.components.last() {
                Some(last) if has_coordinates => last.array.len(),
                _ => data.positions_of(data.extent()).map_err(failed)?,
            };
            levels.push(data);
        }
        let tensor = Self::of(format, dimensions, fill, levels, values);
        tensor.check()?;
        Ok(tensor)
    }

    /// A dense tensor with these elements, of which the last coordinate varies fastest.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if there are not as many as the extents say.
    pub fn from_elements(dimensions: &[i64], fill: T, elements: Vec<T>) -> Result<Self, StorageError> {
        Self::from_components(&Format::dense(dimensions.len()), dimensions, fill, Vec::new(), elements)
    }

    /// The statistics that are known of the tensor.
    pub(super) fn known(&self) -> &Known {
        &self.known
    }

    /// How it is stored.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// The extent of each dimension.
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// The value of what is not stored.
    pub fn fill(&self) -> T {
        self.fill
    }

    /// The data that the levels store.
    pub fn levels(&self) -> &[LevelData] {
        &self.levels
    }

    /// The levels, shared.
    pub fn shared_levels(&self) -> &Arc<Vec<LevelData>> {
        &self.levels
    }

    /// Whether both have the same levels in memory, so that elements of both are at the same positions. It is not
    /// looked whether other levels store the same.
    pub fn shares_levels<U>(&self, other: &SparseTensor<U>) -> bool {
        Arc::ptr_eq(&self.levels, &other.levels)
    }

    /// The elements, one for each position of the last level.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The elements, to change them; the structure stays.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The bytes of all components and elements.
    pub fn bytes(&self) -> usize {
        let components = self.levels.iter().flat_map(|level| &level.components);
        components.map(|component| component.array.bytes()).sum::<usize>() + size_of_val(&self.values[..])
    }

    /// Whether an entry with the fill value differs from none: not if the last level has a position for every
    /// coordinate.
    pub fn keeps_fill(&self) -> bool {
        self.format.levels().last().is_some_and(|level| !level.kind().capabilities().full)
    }

    /// Visits all entries with their coordinates, in the order in which they are stored. If the tensor does not [keep
    /// them](Self::keeps_fill), those with the fill value are left out.
    pub fn for_each(&self, mut visit: impl FnMut(&[i64], T)) {
        let mut at = vec![0; self.levels.len()];
        self.walk(0, 0, &mut at, &mut self.visitor(&mut visit));
    }

    /// Visits the entries at a range of positions of the last level, as [`for_each`](Self::for_each) does: ranges that
    /// follow one another, up to the number of [`values`](Self::values), have all entries, in the same order. So
    /// threads can share the entries, even those of one row. The cost is that of the range where all levels are dense,
    /// compressed or singleton; other levels are gone through each time.
    pub fn for_each_within(&self, positions: Range<usize>, mut visit: impl FnMut(&[i64], T)) {
        if positions.is_empty() {
            return;
        }
        // At each level, the positions that may have some of these below them.
        let mut within = vec![positions];
        for (data, level) in self.levels.iter().zip(self.format.levels()).rev() {
            let parents = level.kind().parents(data, within[within.len() - 1].clone());
            within.push(parents);
        }
        within.reverse();
        let mut at = vec![0; self.levels.len()];
        self.walk_within(&within[1..], 0, &mut at, &mut self.visitor(&mut visit));
    }

    /// How many entries [`for_each_within`](Self::for_each_within) visits.
    pub fn count_within(&self, positions: Range<usize>) -> usize {
        let has_all = |(level, data): (&Level, &LevelData)| match level {
            Level::Dense => true,
            Level::Compressed => !data.properties.ranges,
            _ => false,
        };
        if !self.format.is_plain() || !self.format.levels().iter().zip(self.levels.iter()).all(has_all) {
            let mut count = 0;
            self.for_each_within(positions, |_, _| count += 1);
            count
        } else if self.keeps_fill() {
            positions.len()
        } else {
            self.values[positions].iter().filter(|value| !is_fill(**value, self.fill)).count()
        }
    }

    /// A function that visits entries, given the coordinates of all levels and the position of the last one.
    fn visitor(&self, mut visit: impl FnMut(&[i64], T)) -> impl FnMut(&[i64], usize) {
        let recovery = self.format.recovery();
        let mut coordinates = vec![0; self.dimensions.len()];
        let (skips_fill, is_plain) = (!self.keeps_fill(), self.format.is_plain());
        move |at, position| {
            let value = self.values[position];
            if skips_fill && is_fill(value, self.fill) {
                return;
            }
            recovery.iter().for_each(|step: &Recovery| step.apply(at, &mut coordinates));
            // Blocks and diagonals reach beyond the tensor.
            let is_inside = |(coordinate, extent): (&i64, &i64)| (0..*extent).contains(coordinate);
            if is_plain || coordinates.iter().zip(&self.dimensions).all(is_inside) {
                visit(&coordinates, value);
            }
        }
    }

    /// Visits the positions of the last level, with the coordinates of all levels.
    fn walk(&self, level: usize, parent: usize, at: &mut Vec<i64>, visit: &mut dyn FnMut(&[i64], usize)) {
        let Some(data) = self.levels.get(level) else { return visit(at, parent) };
        let along = data.line.as_ref().map_or(0, |line| at[line.level]);
        self.format.levels()[level].kind().visit(data, parent, along, &mut |coordinate, position| {
            at[level] = coordinate;
            self.walk(level + 1, position, at, visit);
        });
    }

    /// [Walks](Self::walk) below `parent`, which is a position above the next level, within a range of positions of
    /// this level and each below.
    fn walk_within(
        &self,
        within: &[Range<usize>],
        parent: usize,
        at: &mut [i64],
        visit: &mut impl FnMut(&[i64], usize),
    ) {
        let level = self.levels.len() - within.len();
        let [positions, below @ ..] = within else { return visit(at, parent) };
        let data = &self.levels[level];
        let along = data.line.as_ref().map_or(0, |line| at[line.level]);
        let kind = self.format.levels()[level].kind();
        kind.visit_within(data, parent, along, positions.clone(), &mut |coordinate, position| {
            at[level] = coordinate;
            self.walk_within(below, position, at, visit);
        });
    }

    /// All elements, of which the last coordinate varies fastest, stored or not.
    pub fn elements(&self) -> Vec<T> {
        let count = self.dimensions.iter().product::<i64>().max(0) as usize;
        if self.format.is_dense() && self.format.is_plain() && self.format.order().is_sorted() {
            return self.values.clone();
        }
        let mut elements = vec![self.fill; count];
        self.for_each(|coordinates, value| {
            let place = coordinates.iter().zip(&self.dimensions).fold(0, |place, (at, extent)| place * extent + at);
            elements[place as usize] = value;
        });
        elements
    }

    /// All entries, as [`for_each`](Self::for_each) visits them.
    pub fn entries(&self) -> EntryList<T> {
        let mut entries = EntryList::new(self.dimensions.len());
        self.for_each(|coordinates, value| entries.push(coordinates, value));
        entries
    }

    /// [`entries`](Self::entries), gathered by the threads of `team`.
    pub(super) fn entries_by(&self, team: &dyn Team) -> Result<EntryList<T>, StorageError> {
        let Some(top) = self.levels.first().filter(|_| team.size() > 1) else { return Ok(self.entries()) };
        let mut children = Vec::new();
        self.format.levels()[0]
            .kind()
            .visit(top, 0, 0, &mut |coordinate, position| children.push((coordinate, position)));
        let lists = each(team, ranges(children.len(), 4 * team.size()), |_: &mut (), range| {
            let mut entries = EntryList::new(self.dimensions.len());
            let mut visit = self.visitor(|coordinates, value| entries.push(coordinates, value));
            let mut at = vec![0; self.levels.len()];
            for &(coordinate, position) in &children[range] {
                at[0] = coordinate;
                self.walk(1, position, &mut at, &mut visit);
            }
            drop(visit);
            entries
        });
        EntryList::concatenated(self.dimensions.len(), lists)
    }

    /// The element at `coordinates`: the first that is stored there, or the fill value.
    ///
    /// # Panics
    ///
    /// If there is not a coordinate for each dimension.
    pub fn get(&self, coordinates: &[i64]) -> T {
        assert_eq!(coordinates.len(), self.dimensions.len(), "a coordinate for each dimension");
        let is_inside = |(coordinate, extent): (&i64, &i64)| (0..*extent).contains(coordinate);
        if !coordinates.iter().zip(&self.dimensions).all(is_inside) {
            return self.fill;
        }
        if self.format.is_dense() && self.format.is_plain() {
            let order = self.format.order().iter();
            let position = order.fold(0, |position, &mode| position * self.dimensions[mode] + coordinates[mode]);
            return self.values[position as usize];
        }
        let at: Vec<i64> = self.format.expressions().iter().map(|expression| expression.value(coordinates)).collect();
        self.find(0, 0, &at).map_or(self.fill, |position| self.values[position])
    }

    /// The first position of the last level below `parent` that has the coordinates `at`.
    fn find(&self, level: usize, parent: usize, at: &[i64]) -> Option<usize> {
        let Some(data) = self.levels.get(level) else { return Some(parent) };
        let along = data.line.as_ref().map_or(0, |line| at[line.level]);
        let kind = self.format.levels()[level].kind();
        let mut found = None;
        // Where a full level ends, a position with the fill value is no entry: there may be one below another count, or
        // another of several equal coordinates.
        let skips_fill = !self.keeps_fill();
        let is_entry = |position: &usize| !(skips_fill && is_fill(self.values[*position], self.fill));
        let mut below = |position: usize| found = found.or_else(|| self.find(level + 1, position, at).filter(is_entry));
        match self.format.expressions()[level] {
            // Which count an entry has depends on others.
            LevelExpression::Count(_) => kind.visit(data, parent, along, &mut |_, position| below(position)),
            _ => kind.locate(data, parent, at[level], along, &mut below),
        }
        found
    }

    /// Checks all that is taken for granted of what is stored.
    ///
    /// # Errors
    ///
    /// [`StorageError::Level`] at the first component that breaks a rule; [`StorageError::Elements`].
    pub fn check(&self) -> Result<(), StorageError> {
        let mut parents = 1;
        for (level, data) in self.levels.iter().enumerate() {
            let failed = |error| StorageError::Level { format: self.format.to_string(), level, error };
            if data.parents != parents {
                let (expected, found) = (format!("{parents} parents"), data.parents.to_string());
                return Err(failed(LevelError::Broken { component: "level", place: 0, expected, found }));
            }
            self.format.levels()[level].kind().check(data).map_err(failed)?;
            parents = data.positions;
        }
        match self.values.len() {
            found if found == parents => Ok(()),
            found => Err(StorageError::Elements { expected: parents, found }),
        }
    }
}
