//! Entries whose element type is known at run time only.

use std::any::Any;
use std::sync::Arc;

use maniple_kernel::arithmetic::{cast, is_zero};

use super::dynamic::DynamicTensor;
use super::entries::EntryList;
use super::error::StorageError;
use super::pack::Packer;
use super::sort::Duplicates;
use super::tensor::SparseTensor;
use crate::element::{Element, ElementType, Scalar};
use crate::format::Format;
use crate::kernel::Team;
use crate::parallel::threads;
use crate::with_element;

/// An [`EntryList`] whose element type is known at run time only.
#[derive(Debug)]
pub struct DynamicEntries {
    element: ElementType,
    count: usize,
    list: Box<dyn Any + Send + Sync>,
}

/// The invariant of dynamic entries.
const HAVE_TYPE: &str = "entries have elements of the type that is stored with them";

impl<T: Element> From<EntryList<T>> for DynamicEntries {
    fn from(list: EntryList<T>) -> Self {
        Self { element: T::TYPE, count: list.len(), list: Box::new(list) }
    }
}

impl DynamicTensor {
    /// All entries, as [`for_each`](Self::for_each) visits them.
    pub fn entries(&self) -> DynamicEntries {
        with_element!(self.element(), T => self.shared::<T>().entries().into())
    }
}

impl DynamicEntries {
    /// No entries yet of a tensor of `rank` dimensions.
    pub fn new(element: ElementType, rank: usize) -> Self {
        with_element!(element, T => EntryList::<T>::new(rank).into())
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The entries, if their elements are of type `T`.
    pub fn downcast<T: Element>(self) -> Option<EntryList<T>> {
        self.list.downcast::<EntryList<T>>().ok().map(|list| *list)
    }

    /// Leaves out the coordinates of dimensions from `rank` on.
    pub fn truncate(&mut self, rank: usize) {
        with_element!(self.element, T => {
            self.list.downcast_mut::<EntryList<T>>().expect(HAVE_TYPE).coordinates.truncate(rank);
        });
    }

    /// The entries whose elements are not zero.
    #[must_use]
    pub fn without_zeros(self) -> Self {
        with_element!(self.element, T => {
            let list = self.typed::<T>();
            let mut kept = EntryList::new(list.rank());
            let others = list.iter().filter(|(_, value)| !is_zero(value.to_scalar()));
            others.for_each(|(at, value)| kept.push(&at, value));
            kept.into()
        })
    }

    /// The same entries with elements of another type: those that `change` makes of the elements. Elements that have
    /// the type are kept as they are.
    ///
    /// # Errors
    ///
    /// The first element of which `change` makes none of this type.
    pub fn cast(self, element: ElementType, change: &dyn Fn(Scalar) -> Option<Scalar>) -> Result<Self, Scalar> {
        if self.element == element {
            return Ok(self);
        }
        with_element!(self.element, S => {
            let (coordinates, values) = self.typed::<S>().into_parts();
            let mut values = values.into_iter().map(Element::to_scalar);
            with_elements(element, coordinates, &mut values, change)
        })
    }

    /// Stores the entries as a tensor, as [`pack`] does, with the fill value in the type of the elements. Also gives
    /// how many entries had the coordinates of one before.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn pack(
        self,
        format: &Format,
        dimensions: &[i64],
        fill: Scalar,
        duplicates: Duplicates,
    ) -> Result<(DynamicTensor, usize), StorageError> {
        let team = threads(self.count);
        self.pack_by(&Packer::new(&team, format, dimensions), fill, duplicates)
    }

    /// The same to the tensor, or the block of one, of `packer`.
    ///
    /// # Errors
    ///
    /// As of [`pack`](Self::pack).
    pub fn pack_by(
        self,
        packer: &Packer<'_>,
        fill: Scalar,
        duplicates: Duplicates,
    ) -> Result<(DynamicTensor, usize), StorageError> {
        with_element!(self.element, T => {
            let fill = T::from_scalar(cast(fill, T::TYPE)).expect("a scalar is cast to the type that is asked for");
            let (tensor, count) = packer.pack(fill, self.typed::<T>(), duplicates)?;
            Ok((tensor.into(), count))
        })
    }

    fn typed<T: Element>(self) -> EntryList<T> {
        self.downcast().expect(HAVE_TYPE)
    }
}

/// A tensor that was packed from entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed<T> {
    /// The tensor.
    pub tensor: SparseTensor<T>,
    /// How many entries had the coordinates of one before.
    pub duplicates: usize,
}

/// Stores `entries`, in any order, as a tensor of extents `dimensions` in a format. What is not among them has the
/// value `fill`. Entries with this value are stored too, as far as the last level can tell what is stored from what is
/// not.
///
/// Takes time for sorting by counting, unless entries have the order of the format, and for what the levels store; many
/// entries are packed by all processors, as by [`pack_by`].
///
/// # Errors
///
/// [`StorageError`]; nothing is stored in part.
pub fn pack<T: Element>(
    format: &Format,
    dimensions: &[i64],
    fill: T,
    entries: EntryList<T>,
    duplicates: Duplicates,
) -> Result<Packed<T>, StorageError> {
    pack_by(&threads(entries.len()), format, dimensions, fill, entries, duplicates)
}

/// [`pack`] by the threads of `team`. The tensor is the same for any team: sums of duplicates are in the order of
/// entries.
///
/// # Errors
///
/// As of [`pack`].
pub fn pack_by<T: Element>(
    team: &dyn Team,
    format: &Format,
    dimensions: &[i64],
    fill: T,
    entries: EntryList<T>,
    duplicates: Duplicates,
) -> Result<Packed<T>, StorageError> {
    // By way of what is compiled here, and not in each crate that packs.
    let entries = DynamicEntries::from(entries);
    let (tensor, duplicates) = entries.pack_by(&Packer::new(team, format, dimensions), fill.to_scalar(), duplicates)?;
    let tensor = Arc::into_inner(tensor.into_shared()).expect("a packed tensor is not shared yet");
    Ok(Packed { tensor, duplicates })
}

/// Entries with the elements of a type that `change` makes of others: not compiled for each pair of types.
fn with_elements(
    element: ElementType,
    coordinates: Vec<Vec<i64>>,
    values: &mut dyn Iterator<Item = Scalar>,
    change: &dyn Fn(Scalar) -> Option<Scalar>,
) -> Result<DynamicEntries, Scalar> {
    with_element!(element, T => {
        let changed = values.map(|value| change(value).and_then(T::from_scalar).ok_or(value));
        Ok(EntryList::of(coordinates, changed.collect::<Result<Vec<T>, Scalar>>()?).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of a type that is the same as one of another.
    fn as_element(value: Scalar, element: ElementType) -> Option<Scalar> {
        let found = cast(value, element);
        (cast(found, value.element_type()) == value).then_some(found)
    }

    fn entries<T: Element>(values: &[T]) -> DynamicEntries {
        let numbers: Vec<i64> = (0..values.len() as i64).collect();
        EntryList::of(vec![numbers.clone(), numbers], values.to_vec()).into()
    }

    #[test]
    fn elements_are_cast_from_each_type_to_each_other() {
        let numbers = |element| {
            let of_type = |value| Some(cast(value, element));
            entries(&[0_i64, 1, 1]).cast(element, &of_type).unwrap()
        };
        for from in ElementType::ALL {
            for to in ElementType::ALL {
                let made = numbers(from).cast(to, &|value| Some(cast(value, to))).unwrap();
                assert_eq!((made.element(), made.len()), (to, 3));
                with_element!(to, T => assert_eq!(made.downcast::<T>(), numbers(to).downcast()));
            }
        }
    }

    #[test]
    fn the_first_element_that_another_type_does_not_have_is_told() {
        let cast = |given: DynamicEntries, element| {
            given.cast(element, &|value| as_element(value, element)).map(|made| made.element())
        };
        let integers = [1_i64 << 53, (1 << 53) + 1, i64::MAX];
        assert_eq!(cast(entries(&integers), ElementType::F64), Err(Scalar::I64(integers[1])));
        assert_eq!(cast(entries(&integers[..1]), ElementType::F64), Ok(ElementType::F64));
        let floats = [0.5, f64::INFINITY, 1e300];
        assert_eq!(cast(entries(&floats), ElementType::F32), Err(Scalar::F64(floats[2])));
        assert_eq!(cast(entries(&floats[..2]), ElementType::F32), Ok(ElementType::F32));
        assert_eq!(cast(entries(&floats), ElementType::I32), Err(Scalar::F64(floats[0])));
    }

    #[test]
    fn entries_are_packed_and_given_back() {
        let given = || entries(&[1.5_f32, -2.0]);
        let (packed, duplicates) =
            given().pack(&"csr".parse().unwrap(), &[2, 2], Scalar::I64(0), Duplicates::Sum).unwrap();
        assert_eq!((packed.count(), packed.fill(), duplicates), (2, Scalar::F32(0.0), 0));
        assert_eq!(packed.entries().downcast::<f32>(), given().downcast());
        let mut rows = given();
        rows.truncate(1);
        assert_eq!(rows.downcast::<f32>().unwrap().iter().collect::<Vec<_>>(), [(vec![0], 1.5), (vec![1], -2.0)]);
    }
}
