//! Copies of parts of tensors.

use num_complex::Complex;

use crate::element::{Element, ElementType, Scalar};
use crate::kernel::{View, ViewError, row_major};
use crate::notation::{self, DenseArray};
use crate::rectangle::Rectangle;

/// The elements of a tensor in a rectangle, in the order of their coordinates, the last dimension fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    rectangle: Rectangle,
    elements: Elements,
}

#[derive(Clone, Debug, PartialEq)]
enum Elements {
    Bool(Vec<bool>),
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    C32(Vec<Complex<f32>>),
    C64(Vec<Complex<f64>>),
}

/// Does the same for elements of each type.
macro_rules! each {
    ($elements:expr, $values:ident => $result:expr) => {
        match $elements {
            Elements::Bool($values) => $result,
            Elements::U8($values) => $result,
            Elements::I8($values) => $result,
            Elements::U16($values) => $result,
            Elements::I16($values) => $result,
            Elements::U32($values) => $result,
            Elements::I32($values) => $result,
            Elements::U64($values) => $result,
            Elements::I64($values) => $result,
            Elements::F32($values) => $result,
            Elements::F64($values) => $result,
            Elements::C32($values) => $result,
            Elements::C64($values) => $result,
        }
    };
}

impl Piece {
    /// A piece with `value` everywhere.
    pub fn filled(rectangle: Rectangle, value: Scalar) -> Self {
        let count = usize::try_from(rectangle.volume()).unwrap_or(0);
        let elements = match value {
            Scalar::Bool(value) => Elements::Bool(vec![value; count]),
            Scalar::U8(value) => Elements::U8(vec![value; count]),
            Scalar::I8(value) => Elements::I8(vec![value; count]),
            Scalar::U16(value) => Elements::U16(vec![value; count]),
            Scalar::I16(value) => Elements::I16(vec![value; count]),
            Scalar::U32(value) => Elements::U32(vec![value; count]),
            Scalar::I32(value) => Elements::I32(vec![value; count]),
            Scalar::U64(value) => Elements::U64(vec![value; count]),
            Scalar::I64(value) => Elements::I64(vec![value; count]),
            Scalar::F32(value) => Elements::F32(vec![value; count]),
            Scalar::F64(value) => Elements::F64(vec![value; count]),
            Scalar::C32(value) => Elements::C32(vec![value; count]),
            Scalar::C64(value) => Elements::C64(vec![value; count]),
        };
        Self { rectangle, elements }
    }

    /// All elements of an array.
    pub fn of(array: &DenseArray) -> Self {
        let zero = DenseArray::zeros(array.element(), &[]).values()[0];
        let mut piece = Self::filled(Rectangle::whole(array.dimensions()), zero);
        for (position, value) in array.values().iter().enumerate() {
            piece.put(position, *value);
        }
        piece
    }

    /// The elements as an array, without their place.
    pub fn to_array(&self) -> DenseArray {
        let mut next = 0..;
        DenseArray::from_fn(self.element(), &self.rectangle.extents(), |_| self.at(next.next().unwrap_or(0)))
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        fn of<T: Element>(_: &[T]) -> ElementType {
            T::TYPE
        }
        each!(&self.elements, values => of(values))
    }

    /// The rectangle of the elements in the tensor.
    pub fn rectangle(&self) -> &Rectangle {
        &self.rectangle
    }

    fn at(&self, position: usize) -> Scalar {
        each!(&self.elements, values => values[position].to_scalar())
    }

    fn put(&mut self, position: usize, value: Scalar) {
        fn one<T: Element>(values: &mut [T], position: usize, value: Scalar) {
            if let Some(value) = T::from_scalar(value) {
                values[position] = value;
            }
        }
        each!(&mut self.elements, values => one(values, position, value));
    }

    fn position(&self, point: &[i64]) -> usize {
        let extents = self.rectangle.extents();
        let offset =
            |(position, ((coordinate, low), extent)): (i64, ((&i64, &i64), &i64))| position * extent + coordinate - low;
        let coordinates = point.iter().zip(&self.rectangle.low).zip(&extents);
        coordinates.fold(0, |position, coordinate| offset((position, coordinate))) as usize
    }

    /// A copy of the part in `rectangle`; none if the piece has not all of it.
    pub fn part(&self, rectangle: &Rectangle) -> Option<Self> {
        if !self.rectangle.covers(rectangle) {
            return None;
        }
        let zero = DenseArray::zeros(self.element(), &[]).values()[0];
        let mut part = Self::filled(rectangle.clone(), zero);
        for (position, point) in points(rectangle).enumerate() {
            part.put(position, self.at(self.position(&point)));
        }
        Some(part)
    }

    /// Puts those elements of `part` that are in a rectangle, which both pieces have, into this piece; with an
    /// operator, combines them with those that are there.
    pub fn merge(&mut self, part: &Self, rectangle: &Rectangle, operator: Option<notation::Reduction>) {
        for point in points(rectangle) {
            let (here, there) = (self.position(&point), part.position(&point));
            let value = match operator {
                Some(operator) => notation::reduce(operator, self.at(here), part.at(there)),
                None => part.at(there),
            };
            self.put(here, value);
        }
    }

    /// A view for a kernel that updates the elements.
    pub(super) fn update(&mut self) -> Result<View<'_>, ViewError> {
        let bounds: Vec<_> = self.rectangle.bounds().collect();
        let strides = row_major(&self.rectangle.extents());
        each!(&mut self.elements, values => View::update(values, &bounds, &strides))
    }

    /// A view for a kernel that reads the elements.
    pub(super) fn read(&self) -> Result<View<'_>, ViewError> {
        let bounds: Vec<_> = self.rectangle.bounds().collect();
        let strides = row_major(&self.rectangle.extents());
        each!(&self.elements, values => View::read(values, &bounds, &strides))
    }
}

/// All points of a rectangle, the last dimension fastest.
fn points(rectangle: &Rectangle) -> impl Iterator<Item = Vec<i64>> + '_ {
    let extents = rectangle.extents();
    (0..rectangle.volume()).map(move |mut rest| {
        let mut point = rectangle.low.clone();
        for (coordinate, extent) in point.iter_mut().zip(&extents).rev() {
            *coordinate += rest % extent;
            rest /= extent;
        }
        point
    })
}
