//! Fields of elements of any type, as tasks use them. Tasks are compiled once; only what moves elements is compiled for
//! each type, behind [`ElementRow`].

use maniple::access::Write;
use maniple::space::Rect;
use maniple::task::LeafCall;
use maniple::{Error, FieldId, FieldType};

use crate::element::{Element, ElementType};
use crate::kernel::{Argument, View};
use crate::with_element;

/// The type of a field of elements.
pub(super) fn field_type(element: ElementType) -> FieldType {
    with_element!(element, T => FieldType::of::<T>())
}

/// Positions and coordinates of 32 bits, or of 64.
pub(super) fn index_type(is_narrow: bool) -> ElementType {
    if is_narrow { ElementType::I32 } else { ElementType::I64 }
}

/// Whether 32 bits have all coordinates within these extents.
pub(super) fn is_narrow(extents: &[i64]) -> bool {
    extents.iter().all(|extent| i32::try_from(*extent).is_ok())
}

/// A field of a requirement of a task, over the points of one dimension.
#[derive(Clone, Copy)]
pub(super) struct Required {
    pub(super) requirement: usize,
    pub(super) field: FieldId,
    pub(super) element: ElementType,
}

impl Required {
    /// The only rectangle of points that a task is given; none if it is empty.
    pub(super) fn only(self, call: &LeafCall<'_>) -> maniple::Result<Option<Rect<1>>> {
        let space = call.region(self.requirement)?.space().space().typed::<1>();
        Ok(only(space.map_err(Error::from_task)?.rects()))
    }

    /// The elements that a task is given.
    pub(super) fn read<T: Element, U: From<T>>(self, call: &LeafCall<'_>) -> maniple::Result<Vec<U>> {
        let elements = call.read::<T, 1>(self.requirement, self.field)?;
        let mut all = Vec::new();
        for own in elements.space().rects().iter().filter(|own| own.lo <= own.hi) {
            all.extend(elements.span(*own).iter().map(|&element| U::from(element)));
        }
        Ok(all)
    }

    /// The numbers that a task is given, of 32 or 64 bits.
    pub(super) fn numbers(self, call: &LeafCall<'_>) -> maniple::Result<Vec<i64>> {
        match self.element {
            ElementType::I32 => self.read::<i32, i64>(call),
            _ => self.read::<i64, i64>(call),
        }
    }

    /// Sets the numbers that a task writes, of 32 or 64 bits, which they fit.
    pub(super) fn set_numbers(self, call: &LeafCall<'_>, numbers: &[i64]) -> maniple::Result<()> {
        let Some(own) = self.only(call)? else { return Ok(()) };
        debug_assert_eq!(numbers.len() as u64, own.volume());
        match self.element {
            ElementType::I32 => {
                let mut to = call.write::<i32, 1>(self.requirement, self.field)?;
                to.span_mut(own).iter_mut().zip(numbers).for_each(|(to, &number)| *to = number as i32);
            }
            _ => call.write::<i64, 1>(self.requirement, self.field)?.span_mut(own).copy_from_slice(numbers),
        }
        Ok(())
    }

    /// The elements that a task writes.
    pub(super) fn write<'a>(self, call: &LeafCall<'a>) -> maniple::Result<Box<dyn Column + 'a>> {
        with_element!(self.element, T => Ok(Box::new(call.write::<T, 1>(self.requirement, self.field)?)))
    }
}

/// The only rectangle of a space, as pieces of rows are; none if it is empty.
pub(super) fn only(rects: &[Rect<1>]) -> Option<Rect<1>> {
    rects.first().copied().filter(|rect| rect.lo <= rect.hi)
}

/// The elements of a field that a task writes.
pub(super) trait Column {
    /// The elements at the points of a rectangle.
    fn row(&mut self, row: Rect<1>) -> Box<dyn ElementRow + '_>;
}

/// Elements that follow one another.
pub(super) trait ElementRow {
    /// All of them.
    fn bytes(&self) -> &[u8];

    /// Sets those at some places to as many elements. Places beyond the end are skipped.
    fn set(&mut self, places: &[usize], elements: &[u8]);

    /// Puts those from `first` on in another order: element `first + k` becomes the one that was `first + order[k]`.
    fn reorder(&mut self, first: usize, order: &[usize]);

    /// A view of them for a kernel, whose indices are the points.
    fn argument(&mut self) -> maniple::Result<Argument<'_>>;
}

impl<T: Element> Column for Write<'_, T, 1> {
    fn row(&mut self, row: Rect<1>) -> Box<dyn ElementRow + '_> {
        Box::new(Elements { elements: self.span_mut(row), row, before: Vec::new() })
    }
}

/// Elements of a type at the points of a rectangle, and memory for those before they were put in another order.
struct Elements<E, T> {
    elements: E,
    row: Rect<1>,
    before: Vec<T>,
}

impl<E: std::ops::DerefMut<Target = [T]>, T: Element> ElementRow for Elements<E, T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.elements)
    }

    fn set(&mut self, places: &[usize], elements: &[u8]) {
        debug_assert_eq!(elements.len(), places.len() * size_of::<T>());
        let all = &mut *self.elements;
        for (&place, element) in places.iter().zip(elements.chunks_exact(size_of::<T>())) {
            if let Some(to) = all.get_mut(place) {
                *to = bytemuck::checked::pod_read_unaligned(element);
            }
        }
    }

    fn reorder(&mut self, first: usize, order: &[usize]) {
        let some = &mut self.elements[first..first + order.len()];
        self.before.clear();
        self.before.extend_from_slice(some);
        some.iter_mut().zip(order).for_each(|(to, &from)| *to = self.before[from]);
    }

    fn argument(&mut self) -> maniple::Result<Argument<'_>> {
        updated(&mut self.elements, self.row)
    }
}

/// A view of what is at the points of a rectangle.
pub(super) fn updated<T: Element>(elements: &mut [T], row: Rect<1>) -> maniple::Result<Argument<'_>> {
    let view = View::update(elements, &[(row.lo[0], row.hi[0] + 1)], &[1]);
    Ok(Argument::View(view.map_err(Error::from_task)?))
}

/// Numbers of 32 or 64 bits that are there as bytes.
pub(super) fn widened(bytes: &[u8], element: ElementType) -> Vec<i64> {
    match element {
        ElementType::I32 => bytemuck::cast_slice(bytes).iter().map(|number: &i32| i64::from(*number)).collect(),
        _ => bytemuck::cast_slice(bytes).to_vec(),
    }
}

/// The bytes of numbers in 32 or 64 bits, which they fit. Those of 32 are kept in `narrow`.
pub(super) fn narrowed<'a>(numbers: &'a [i64], element: ElementType, narrow: &'a mut Vec<i32>) -> &'a [u8] {
    match element {
        ElementType::I32 => {
            narrow.clear();
            narrow.extend(numbers.iter().map(|&number| number as i32));
            bytemuck::cast_slice(narrow)
        }
        _ => bytemuck::cast_slice(numbers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Complex, Scalar};
    use maniple_storage::identical;

    /// Elements of each type, among them those that `==` does not tell apart from others, or from themselves.
    fn each_type(mut check: impl FnMut(&[Scalar])) {
        check(&[true, false, true].map(Scalar::Bool));
        check(&[0, 1, u8::MAX].map(Scalar::U8));
        check(&[0, -1, i8::MIN].map(Scalar::I8));
        check(&[0, 1, u16::MAX].map(Scalar::U16));
        check(&[0, -1, i16::MIN].map(Scalar::I16));
        check(&[0, 1, u32::MAX].map(Scalar::U32));
        check(&[0, -1, i32::MIN].map(Scalar::I32));
        check(&[0, 1, u64::MAX].map(Scalar::U64));
        check(&[0, -1, i64::MIN].map(Scalar::I64));
        check(&[0.0, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE].map(Scalar::F32));
        check(&[0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE].map(Scalar::F64));
        check(
            &[Complex::new(-0.0, f32::NAN), Complex::new(f32::INFINITY, 0.0), Complex::new(1.0, -2.0)].map(Scalar::C32),
        );
        check(
            &[Complex::new(-0.0, f64::NAN), Complex::new(f64::INFINITY, 0.0), Complex::new(1.0, -2.0)].map(Scalar::C64),
        );
    }

    fn of_type<T: Element>(scalars: &[Scalar]) -> Vec<T> {
        scalars.iter().map(|scalar| T::from_scalar(*scalar).expect("elements of the type")).collect()
    }

    /// A row of as many zeros, and the elements as bytes.
    fn zeros<T: Element>(scalars: &[Scalar]) -> (Elements<Vec<T>, T>, Vec<u8>) {
        let (elements, row) = (vec![T::zeroed(); scalars.len()], Rect::from(0..scalars.len() as i64));
        (Elements { elements, row, before: Vec::new() }, bytemuck::cast_slice(&of_type::<T>(scalars)).to_vec())
    }

    fn check(row: &[impl Element], expected: &[Scalar]) {
        assert_eq!(row.len(), expected.len());
        let same = row.iter().zip(expected).all(|(found, expected)| identical(found.to_scalar(), *expected));
        assert!(same, "{row:?} and {expected:?}");
    }

    #[test]
    fn elements_of_all_types_keep_their_bits_when_they_are_set_as_bytes() {
        each_type(|scalars| {
            with_element!(scalars[0].element_type(), T => {
                let (mut row, bytes) = zeros::<T>(scalars);
                let reversed: Vec<usize> = (0..scalars.len()).rev().collect();
                row.set(&reversed, &bytes);
                check(&row.elements, &scalars.iter().rev().copied().collect::<Vec<_>>());
                // A place that there is not is left out.
                row.set(&[usize::MAX, scalars.len(), 0], &bytes[..3 * size_of::<T>()]);
                check(&row.elements[..1], &scalars[2..3]);
            });
        });
    }

    #[test]
    fn elements_of_all_types_keep_their_bits_in_another_order() {
        each_type(|scalars| {
            with_element!(scalars[0].element_type(), T => {
                let (mut row, bytes) = zeros::<T>(scalars);
                row.set(&(0..scalars.len()).collect::<Vec<_>>(), &bytes);
                assert_eq!(row.bytes(), bytes);
                row.reorder(1, &[1, 0]);
                check(&row.elements[..3], &[scalars[0], scalars[2], scalars[1]]);
                row.reorder(0, &[2, 0, 1]);
                check(&row.elements[..3], &[scalars[1], scalars[0], scalars[2]]);
                check(&row.elements[3..], &scalars[3..]);
            });
        });
    }

    #[test]
    fn a_view_has_the_type_and_the_points_of_its_row() {
        each_type(|scalars| {
            with_element!(scalars[0].element_type(), T => {
                let elements = of_type::<T>(scalars);
                let end = 5 + elements.len() as i64;
                let mut row = Elements { elements, row: Rect::from(5..end), before: Vec::new() };
                let Ok(Argument::View(view)) = row.argument() else { panic!("it is a view") };
                assert_eq!(view.element(), T::TYPE);
                let dimensions: Vec<_> = view.dimensions().iter().map(|d| (d.low, d.high, d.stride)).collect();
                assert_eq!(dimensions, [(5, end, 1)]);
            });
        });
    }

    #[test]
    fn numbers_are_the_same_in_either_width() {
        let numbers = [0, -1, 7, i32::MAX.into(), i32::MIN.into()];
        for element in [ElementType::I32, ElementType::I64] {
            let mut narrow = vec![1; 3];
            let bytes = narrowed(&numbers, element, &mut narrow);
            assert_eq!((bytes.len(), widened(bytes, element)), (numbers.len() * element.size(), numbers.to_vec()));
        }
    }
}
