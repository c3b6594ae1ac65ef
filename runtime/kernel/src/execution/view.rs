//! Arguments of kernels: views of tensors, and numbers.

use std::marker::PhantomData;

use super::{KernelError, ViewError};
use crate::element::{Element, ElementType, Scalar};
use crate::loops::{Access, Kernel, Parameter};

/// One dimension of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// The lowest index.
    pub low: i64,
    /// The index after the highest.
    pub high: i64,
    /// How many elements lie between an element and the next one.
    pub stride: i64,
}

impl Dimension {
    /// The stride, or 1 if there is at most one index, so that it does not matter.
    pub(super) fn used_stride(self) -> i64 {
        if self.extent() <= 1 { 1 } else { self.stride }
    }

    /// How many indices there are.
    pub fn extent(self) -> i64 {
        self.high.saturating_sub(self.low).max(0)
    }
}

/// A view of a tensor: elements somewhere in memory, for the points of a rectangle.
#[derive(Debug)]
pub struct View<'a> {
    /// The address of the element at the lowest point.
    address: *mut u8,
    element: ElementType,
    dimensions: Vec<Dimension>,
    writable: bool,
    borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: a view is a reference, exclusive if it is writable, to elements that are themselves `Send` and `Sync`;
// `from_raw` demands the same.
unsafe impl Send for View<'_> {}
// SAFETY: as above; nothing is changed through a shared view.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    /// A view of `elements`, of which the first is at the lowest point, with `strides` in elements. `bounds` are the
    /// lowest index and the one after the highest, for each dimension.
    ///
    /// # Errors
    ///
    /// [`ViewError::Rank`] and [`ViewError::Outside`].
    pub fn read<T: Element>(elements: &'a [T], bounds: &[(i64, i64)], strides: &[i64]) -> Result<Self, ViewError> {
        let dimensions = dimensions(bounds, strides)?;
        fits::<T>(&dimensions, elements.len())?;
        Ok(Self {
            address: elements.as_ptr().cast_mut().cast(),
            element: T::TYPE,
            dimensions,
            writable: false,
            borrowed: PhantomData,
        })
    }

    /// The same for elements that may be changed.
    ///
    /// # Errors
    ///
    /// Also [`ViewError::Shared`], if two points would be one element.
    pub fn update<T: Element>(
        elements: &'a mut [T],
        bounds: &[(i64, i64)],
        strides: &[i64],
    ) -> Result<Self, ViewError> {
        let dimensions = dimensions(bounds, strides)?;
        fits::<T>(&dimensions, elements.len())?;
        if !injective(&dimensions) {
            return Err(ViewError::Shared {
                strides: strides.to_vec(),
                extents: dimensions.iter().map(|dimension| dimension.extent()).collect(),
            });
        }
        Ok(Self {
            address: elements.as_mut_ptr().cast(),
            element: T::TYPE,
            dimensions,
            writable: true,
            borrowed: PhantomData,
        })
    }

    /// A view of a whole tensor in row-major order, with indices from 0.
    ///
    /// # Errors
    ///
    /// [`ViewError::Outside`], if there are fewer elements.
    pub fn dense<T: Element>(elements: &'a [T], extents: &[i64]) -> Result<Self, ViewError> {
        Self::read(elements, &whole(extents), &row_major(extents))
    }

    /// The same for elements that may be changed.
    ///
    /// # Errors
    ///
    /// As [`dense`](Self::dense).
    pub fn dense_mut<T: Element>(elements: &'a mut [T], extents: &[i64]) -> Result<Self, ViewError> {
        Self::update(elements, &whole(extents), &row_major(extents))
    }

    /// A view of elements at `address`, where the element at the lowest point is.
    ///
    /// # Safety
    ///
    /// For all of `'a`, the elements at all points must be there, aligned, of type `element`, and not be changed by
    /// others; if `writable`, they must not be read by others either, and different points must be different elements.
    pub unsafe fn from_raw(address: *mut u8, element: ElementType, dimensions: Vec<Dimension>, writable: bool) -> Self {
        Self { address, element, dimensions, writable, borrowed: PhantomData }
    }

    /// A view of those elements whose indices are in `bounds`, too.
    pub fn part(&self, bounds: &[(i64, i64)]) -> View<'_> {
        let (address, dimensions) = self.within(bounds);
        View { address, element: self.element, dimensions, writable: false, borrowed: PhantomData }
    }

    /// The same for elements that may be changed, if they may be through this view.
    pub fn part_mut(&mut self, bounds: &[(i64, i64)]) -> View<'_> {
        let (address, dimensions) = self.within(bounds);
        View { address, element: self.element, dimensions, writable: self.writable, borrowed: PhantomData }
    }

    fn within(&self, bounds: &[(i64, i64)]) -> (*mut u8, Vec<Dimension>) {
        let mut dimensions = self.dimensions.clone();
        let mut offset = 0_i64;
        for (dimension, &(low, high)) in dimensions.iter_mut().zip(bounds) {
            let (low, high) = (dimension.low.max(low), dimension.high.min(high));
            // Without indices it does not matter where they begin.
            let low = low.min(high.max(dimension.low));
            // Where there are elements, nothing overflows; where there are none, it is not used.
            offset = offset.wrapping_add(low.wrapping_sub(dimension.low).wrapping_mul(dimension.stride));
            (dimension.low, dimension.high) = (low, high);
        }
        // Without elements there is nothing to point at.
        let empty = dimensions.iter().any(|dimension| dimension.extent() == 0);
        let offset = if empty { 0 } else { (offset as isize).wrapping_mul(self.element.size() as isize) };
        (self.address.wrapping_offset(offset), dimensions)
    }

    /// The element at a point. None if there is none, or elements are of another type.
    pub fn get<T: Element>(&self, point: &[i64]) -> Option<T> {
        // SAFETY: the view has an element of this type there, which does not change while it is borrowed.
        self.place::<T>(point).map(|place| unsafe { place.read() })
    }

    /// Changes the element at a point. Says whether it did: not if there is none, elements are of another type, or they
    /// may not be changed.
    pub fn set<T: Element>(&mut self, point: &[i64], value: T) -> bool {
        let place = self.place::<T>(point).filter(|_| self.writable);
        // SAFETY: the view has an element of this type there, which it may change, and which is used through no other
        // view while it is borrowed for that.
        place.map(|place| unsafe { place.write(value) }).is_some()
    }

    /// The address of the element at a point; `None` if the view has no element of type `T` there.
    fn place<T: Element>(&self, point: &[i64]) -> Option<*mut T> {
        let has = |(dimension, index): (&Dimension, &i64)| dimension.low <= *index && *index < dimension.high;
        let is_there = point.len() == self.dimensions.len() && self.dimensions.iter().zip(point).all(has);
        if !is_there || self.element != T::TYPE {
            return None;
        }
        let offset = |(dimension, index): (&Dimension, &i64)| (index - dimension.low) * dimension.stride;
        let offset: i64 = self.dimensions.iter().zip(point).map(offset).sum();
        Some(self.address.cast::<T>().wrapping_offset(offset as isize))
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The dimensions.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The address of the element at the lowest point.
    pub fn address(&self) -> *mut u8 {
        self.address
    }

    /// Whether elements may be changed.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.dimensions.iter().any(|dimension| dimension.extent() == 0)
    }
}

fn dimensions(bounds: &[(i64, i64)], strides: &[i64]) -> Result<Vec<Dimension>, ViewError> {
    if bounds.len() != strides.len() {
        return Err(ViewError::Rank { bounds: bounds.len(), strides: strides.len() });
    }
    let one = |(&(low, high), &stride): (&(i64, i64), &i64)| Dimension { low, high, stride };
    Ok(bounds.iter().zip(strides).map(one).collect())
}

/// Checks that all points are in a slice of `length`, whose first element is the lowest point.
fn fits<T: Element>(dimensions: &[Dimension], length: usize) -> Result<(), ViewError> {
    if dimensions.iter().any(|dimension| dimension.extent() == 0) {
        return Ok(());
    }
    let (mut lowest, mut highest) = (0_i128, 0_i128);
    for dimension in dimensions {
        // Saturating: what is so large fits nowhere.
        let reach = i128::from(dimension.extent() - 1) * i128::from(dimension.stride);
        lowest = lowest.saturating_add(reach.min(0));
        highest = highest.saturating_add(reach.max(0));
    }
    // An extent that saturated is wrong, and too large for any slice unless the stride is 0.
    let exact = dimensions.iter().all(|dimension| dimension.high.checked_sub(dimension.low).is_some());
    if exact && lowest >= 0 && highest < length as i128 {
        Ok(())
    } else {
        Err(ViewError::Outside { lowest, highest, element: T::TYPE, length })
    }
}

/// Whether different points are different elements: each dimension strides over all that the ones with smaller strides
/// reach. That is more than needed, but holds for all layouts in use.
fn injective(dimensions: &[Dimension]) -> bool {
    let mut sorted: Vec<_> = dimensions.iter().filter(|dimension| dimension.extent() > 1).collect();
    sorted.sort_by_key(|dimension| dimension.stride.unsigned_abs());
    let mut reach = 0_i128;
    dimensions.iter().any(|dimension| dimension.extent() == 0)
        || sorted.iter().all(|dimension| {
            let stride = i128::from(dimension.stride).abs();
            let over = stride > reach;
            reach = reach.saturating_add(i128::from(dimension.extent() - 1).saturating_mul(stride));
            over
        })
}

fn whole(extents: &[i64]) -> Vec<(i64, i64)> {
    extents.iter().map(|&extent| (0, extent)).collect()
}

/// The strides of a row-major tensor.
pub fn row_major(extents: &[i64]) -> Vec<i64> {
    let mut strides = vec![1_i64; extents.len()];
    for dimension in (1..extents.len()).rev() {
        strides[dimension - 1] = strides[dimension].saturating_mul(extents[dimension].max(1));
    }
    strides
}

/// An argument of a kernel.
#[derive(Debug)]
pub enum Argument<'a> {
    /// For a buffer.
    View(View<'a>),
    /// For a scalar.
    Scalar(Scalar),
}

impl<'a> From<View<'a>> for Argument<'a> {
    fn from(view: View<'a>) -> Self {
        Self::View(view)
    }
}

impl<T: Element> From<T> for Argument<'_> {
    fn from(value: T) -> Self {
        Self::Scalar(value.to_scalar())
    }
}

/// Whether all views are contiguous where the kernel expects it. The arguments fit the kernel.
pub(super) fn are_as_expected(kernel: &Kernel, arguments: &[Argument<'_>]) -> bool {
    kernel.parameters.iter().zip(arguments).all(|(parameter, argument)| match (parameter, argument) {
        (Parameter::Buffer(buffer), Argument::View(view)) => {
            buffer.contiguous.is_none_or(|dimension| view.dimensions[dimension].used_stride() == 1)
        }
        _ => true,
    })
}

/// Checks that `arguments` fit the parameters of `kernel`.
pub(super) fn fit(kernel: &Kernel, arguments: &[Argument<'_>]) -> Result<(), KernelError> {
    if kernel.parameters.len() != arguments.len() {
        return Err(KernelError::Count {
            kernel: kernel.name.clone(),
            expected: kernel.parameters.len(),
            found: arguments.len(),
        });
    }
    kernel.parameters.iter().zip(arguments).try_for_each(|(parameter, argument)| {
        let fits = match (parameter, argument) {
            (Parameter::Buffer(buffer), Argument::View(view)) => {
                buffer.element == view.element
                    && buffer.rank == view.dimensions.len()
                    && (buffer.access == Access::Read || view.writable)
            }
            (Parameter::Scalar(variable), Argument::Scalar(scalar)) => variable.element == scalar.element_type(),
            _ => false,
        };
        let describe = |writable: bool, element: ElementType, rank: usize| {
            format!("a {}view of {element} in {rank} dimensions", if writable { "writable " } else { "" })
        };
        if fits {
            return Ok(());
        }
        Err(KernelError::Argument {
            kernel: kernel.name.clone(),
            parameter: parameter.name().to_owned(),
            expected: match parameter {
                Parameter::Buffer(buffer) => describe(buffer.access == Access::Update, buffer.element, buffer.rank),
                Parameter::Scalar(variable) => format!("a number of type {}", variable.element),
            },
            found: match argument {
                Argument::View(view) => describe(view.writable, view.element, view.dimensions.len()),
                Argument::Scalar(scalar) => format!("a number of type {}", scalar.element_type()),
            },
        })
    })
}
