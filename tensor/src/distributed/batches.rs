//! Entries of any type of elements, handed on some at a time: what is done with them is compiled once.

use crate::element::{Element, ElementType, Scalar};
use crate::with_scalar;

/// Entries of a batch.
const AT_ONCE: usize = 1 << 10;

/// Takes some entries: the coordinates of each dimension, and the bytes of their elements, if these are kept.
pub(super) type Take<'a> = dyn FnMut(&[Vec<i64>], &[u8]) + 'a;

/// Entries that were listed, and not yet handed on.
pub(super) struct Batches<'a> {
    coordinates: Vec<Vec<i64>>,
    elements: Vec<u8>,
    /// The type of the elements, if they are kept.
    element: Option<ElementType>,
    count: usize,
    take: &'a mut Take<'a>,
}

impl<'a> Batches<'a> {
    /// No entries yet, of so many dimensions, and with elements of this type. Without a type, elements are not kept.
    pub(super) fn new(order: usize, element: Option<ElementType>, take: &'a mut Take<'a>) -> Self {
        Self { coordinates: vec![Vec::new(); order], elements: Vec::new(), element, count: 0, take }
    }

    /// Adds an entry, with a coordinate for each dimension and an element of the type.
    #[inline]
    pub(super) fn push<T: Element>(&mut self, at: &[i64], element: T) {
        self.coordinates.iter_mut().zip(at).for_each(|(all, &at)| all.push(at));
        if let Some(expected) = self.element {
            debug_assert_eq!(T::TYPE, expected);
            self.elements.extend_from_slice(bytemuck::bytes_of(&element));
        }
        self.count += 1;
        if self.count == AT_ONCE {
            self.flush();
        }
    }

    /// Adds an entry whose element has the type of a scalar.
    pub(super) fn push_scalar(&mut self, at: &[i64], element: Scalar) {
        with_scalar!(element, element => self.push(at, element));
    }

    /// Hands on what is left, after the last entry.
    pub(super) fn finish(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        (self.take)(&self.coordinates, &self.elements);
        self.coordinates.iter_mut().for_each(Vec::clear);
        self.elements.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Complex, ElementType};
    use crate::with_element;

    /// The coordinates and the elements of the entries that are handed on.
    fn handed_on(
        (order, element): (usize, ElementType),
        list: impl FnOnce(&mut Batches<'_>),
    ) -> (Vec<Vec<i64>>, Vec<u8>) {
        let mut all = (vec![Vec::new(); order], Vec::new());
        let mut take = |coordinates: &[Vec<i64>], elements: &[u8]| {
            all.0.iter_mut().zip(coordinates).for_each(|(all, some)| all.extend_from_slice(some));
            all.1.extend_from_slice(elements);
        };
        let mut batches = Batches::new(order, Some(element), &mut take);
        list(&mut batches);
        batches.finish();
        all
    }

    #[test]
    fn all_entries_are_handed_on_in_their_order() {
        for count in [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE] {
            let (coordinates, elements) = handed_on((2, ElementType::F64), |batches| {
                (0..count as i64).for_each(|number| batches.push(&[number, -number], number as f64));
            });
            assert!(coordinates[0].iter().copied().eq(0..count as i64));
            assert!(coordinates[1].iter().copied().eq((0..count as i64).map(|number| -number)));
            let expected: Vec<f64> = (0..count).map(|number| number as f64).collect();
            assert_eq!(elements, bytemuck::cast_slice::<f64, u8>(&expected));
        }
    }

    #[test]
    fn a_scalar_is_handed_on_as_an_element_of_its_type() {
        for element in ElementType::ALL {
            with_element!(element, T => {
                let number = crate::notation::cast(Scalar::C64(Complex::new(-0.0, 1.0)), element);
                let value = T::from_scalar(number).expect("it was cast");
                let typed = handed_on((3, element), |batches| batches.push(&[1, 2, 3], value));
                assert_eq!(typed, handed_on((3, element), |batches| batches.push_scalar(&[1, 2, 3], number)));
                assert_eq!(typed.1, bytemuck::bytes_of(&value));
            });
        }
    }
}
