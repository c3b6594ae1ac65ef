//! Tensors made of segments: what is stored below each parent of their last level.

use super::error::StorageError;
use super::tensor::{SparseTensor, check_extents};
use crate::element::Element;
use crate::format::{Format, Level};
use crate::kernel::Team;
use crate::level::{Array, Component, LevelData, Width, filled};

/// Coordinates of 32 or 64 bits.
pub enum Coordinates {
    /// Of 32 bits.
    Narrow(Vec<i32>),
    /// Of 64 bits.
    Wide(Vec<i64>),
}

/// The stored data of a tensor whose levels are dense but for the last one, which is compressed, with offsets, and has
/// each coordinate once below a parent.
pub struct Segments<T> {
    /// The beginning of the segment of each parent, and the end of the last one.
    pub starts: Vec<i64>,
    /// The coordinates of all segments.
    pub coordinates: Coordinates,
    /// The elements at these.
    pub values: Vec<T>,
}

impl<T: Element> Segments<T> {
    /// The tensor of a format and extents, and whether all segments were in order. Those that were not are sorted by
    /// `team`.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn into_tensor(
        mut self,
        format: &Format,
        dimensions: &[i64],
        fill: T,
        team: &dyn Team,
    ) -> Result<(SparseTensor<T>, bool), StorageError> {
        check_extents(format, dimensions, T::TYPE)?;
        let were_sorted = match &mut self.coordinates {
            Coordinates::Narrow(coordinates) => sort(&self.starts, coordinates, &mut self.values, team),
            Coordinates::Wide(coordinates) => sort(&self.starts, coordinates, &mut self.values, team),
        };
        let total = self.values.len();
        let mut levels: Vec<LevelData> = Vec::new();
        let mut last = Some((self.starts, self.coordinates));
        for (level, kind) in format.levels().iter().enumerate() {
            let failed = |error| StorageError::Level { format: format.to_string(), level, error };
            let mut data = LevelData {
                bounds: format.expressions()[level].bounds(dimensions),
                properties: format.properties()[level],
                line: None,
                parents: levels.last().map_or(1, |above| above.positions),
                positions: 0,
                components: Vec::new(),
            };
            if *kind == Level::Dense {
                data.positions = data.positions_of(data.extent()).map_err(failed)?;
            } else if let Some((starts, coordinates)) = last.take() {
                data.positions = total;
                let pos = in_width(Coordinates::Wide(starts), data.position_width(total).map_err(failed)?);
                let crd = in_width(coordinates, data.coordinate_width(false).map_err(failed)?);
                let (pos, crd) = (pos.map_err(failed)?, crd.map_err(failed)?);
                data.components = vec![Component { name: "pos", array: pos }, Component { name: "crd", array: crd }];
            }
            levels.push(data);
        }
        Ok((SparseTensor::of(format, dimensions, fill, levels, self.values), were_sorted))
    }
}

/// Numbers in a width that holds them.
fn in_width(numbers: Coordinates, width: Width) -> Result<Array, crate::level::LevelError> {
    match (numbers, width) {
        (Coordinates::Narrow(numbers), Width::I32) => Ok(Array::I32(numbers)),
        (Coordinates::Wide(numbers), Width::I64) => Ok(Array::I64(numbers)),
        (Coordinates::Wide(numbers), Width::I32) => {
            let mut narrow = filled(0, numbers.len())?;
            narrow.iter_mut().zip(&numbers).for_each(|(narrow, &number)| *narrow = number as i32);
            Ok(Array::I32(narrow))
        }
        (numbers, width) => {
            let (count, get): (usize, Box<dyn Fn(usize) -> i64>) = match numbers {
                Coordinates::Narrow(numbers) => (numbers.len(), Box::new(move |place| i64::from(numbers[place]))),
                Coordinates::Wide(numbers) => (numbers.len(), Box::new(move |place| numbers[place])),
            };
            let mut array = Array::filled(width, 0, count)?;
            (0..count).for_each(|place| array.set(place, get(place)));
            Ok(array)
        }
    }
}

/// A part of the segments, which one thread sorts.
struct Part<'a, C, T> {
    starts: &'a [i64],
    coordinates: &'a mut [C],
    values: &'a mut [T],
    were_sorted: bool,
}

/// Sorts the entries of each segment whose coordinates don't ascend, and tells whether there was none.
fn sort<C: Number, T: Copy + Send>(starts: &[i64], coordinates: &mut [C], values: &mut [T], team: &dyn Team) -> bool {
    let parts = team.size().max(1);
    let (total, mut parted) = (coordinates.len(), Vec::new());
    let (mut coordinates, mut values, mut first) = (coordinates, values, 0);
    for part in 1..=parts {
        let end = match part == parts {
            true => starts.len() - 1,
            false => {
                starts.partition_point(|&start| start < (total * part / parts) as i64).clamp(first, starts.len() - 1)
            }
        };
        let length = (starts[end] - starts[first]) as usize;
        let (own, others) = coordinates.split_at_mut(length);
        let (own_values, other_values) = values.split_at_mut(length);
        parted.push(parking_lot::Mutex::new(Part {
            starts: &starts[first..=end],
            coordinates: own,
            values: own_values,
            were_sorted: true,
        }));
        (coordinates, values, first) = (others, other_values, end);
    }
    team.run(parts, &|part| parted[part].lock().sort());
    parted.into_iter().all(|part| part.into_inner().were_sorted)
}

impl<C: Number, T: Copy> Part<'_, C, T> {
    fn sort(&mut self) {
        let (mut keys, mut sorted) = (Vec::new(), Vec::new());
        let base = self.starts[0];
        for segment in self.starts.windows(2) {
            let segment = (segment[0] - base) as usize..(segment[1] - base) as usize;
            let (coordinates, values) = (&mut self.coordinates[segment.clone()], &mut self.values[segment]);
            if coordinates.is_sorted() {
                continue;
            }
            self.were_sorted = false;
            keys.clear();
            keys.extend(coordinates.iter().zip(0..).map(|(&coordinate, place)| coordinate.key(place)));
            keys.sort_unstable();
            sorted.clear();
            sorted.extend(keys.iter().map(|&key| values[C::place(key)]));
            values.copy_from_slice(&sorted);
            coordinates.iter_mut().zip(&keys).for_each(|(coordinate, &key)| *coordinate = C::of(key));
        }
    }
}

/// A coordinate, which is sorted in one word with its place.
pub trait Number: Copy + Ord + Send {
    /// The word.
    type Key: Copy + Ord;
    /// The coordinate with its place.
    fn key(self, place: usize) -> Self::Key;
    /// The coordinate.
    fn of(key: Self::Key) -> Self;
    /// The place.
    fn place(key: Self::Key) -> usize;
}

impl Number for i32 {
    type Key = u64;

    fn key(self, place: usize) -> u64 {
        (self as u64) << 32 | place as u64
    }

    fn of(key: u64) -> Self {
        (key >> 32) as Self
    }

    fn place(key: u64) -> usize {
        key as u32 as usize
    }
}

impl Number for i64 {
    type Key = (i64, usize);

    fn key(self, place: usize) -> (i64, usize) {
        (self, place)
    }

    fn of(key: (i64, usize)) -> Self {
        key.0
    }

    fn place(key: (i64, usize)) -> usize {
        key.1
    }
}
