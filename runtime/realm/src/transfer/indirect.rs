//! Gathers and scatters: copies through a field of pointers.
//!
//! Of the three instances, two store the points of the space, the pointers and the *near* values, and are visited in
//! runs. The third stores the *far* values, wherever the pointers point among the targets.

use maniple_space::{AnyPoint, AnySpace, IndexSpace, Membership, Point, for_dimension};

use super::kernels::{Opaque, with_usual_size};
use super::runs::{PointRun, for_each_run};
use super::{InstanceField, Side, TransferError};
use crate::layout::{FieldAddress, FieldLayout};
use crate::machine::MemoryId;

/// The treatment of a pointer to a point that is not among the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dangling {
    /// The transfer fails, and names the first such pointer.
    Fail,
    /// The point is left out. With this, values that lie in several instances are gathered by one transfer for each.
    Skip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// From far to near.
    Gather,
    /// From near to far.
    Scatter,
}

/// A checked gather or scatter.
#[derive(Clone, Debug)]
pub(super) struct Indirection {
    direction: Direction,
    pointers: Side,
    near: Side,
    far: Side,
    targets: AnySpace,
    dangling: Dangling,
}

impl Indirection {
    pub(super) fn gather(
        space: &AnySpace,
        pointers: InstanceField,
        from: InstanceField,
        to: Side,
        targets: AnySpace,
        dangling: Dangling,
    ) -> Result<Self, TransferError> {
        let far = Side::of(from, &targets)?;
        to.expect_size(far.layout.size())?;
        Self::new(Direction::Gather, space, pointers, to, far, targets, dangling)
    }

    pub(super) fn scatter(
        space: &AnySpace,
        pointers: InstanceField,
        from: Side,
        to: InstanceField,
        targets: AnySpace,
        dangling: Dangling,
    ) -> Result<Self, TransferError> {
        let far = Side::of(to, &targets)?;
        far.expect_size(from.layout.size())?;
        Self::new(Direction::Scatter, space, pointers, from, far, targets, dangling)
    }

    fn new(
        direction: Direction,
        space: &AnySpace,
        pointers: InstanceField,
        near: Side,
        far: Side,
        targets: AnySpace,
        dangling: Dangling,
    ) -> Result<Self, TransferError> {
        let pointers = Side::of(pointers, space)?;
        pointers.expect_size(targets.dim() * size_of::<i64>())?;
        let (written, meet) = match direction {
            Direction::Gather => (&near, !space.is_empty()),
            Direction::Scatter => (&far, space.overlaps(&targets).unwrap_or(true)),
        };
        if pointers.is(written) && meet {
            return Err(TransferError::OverwritesPointers { instance: pointers.instance.id(), field: pointers.field });
        }
        Ok(Self { direction, pointers, near, far, targets, dangling })
    }

    /// The memories read and written, pointers not counted.
    pub(super) fn channel(&self) -> (MemoryId, MemoryId) {
        let (near, far) = (self.near.instance.memory(), self.far.instance.memory());
        match self.direction {
            Direction::Gather => (far, near),
            Direction::Scatter => (near, far),
        }
    }

    pub(super) fn value_size(&self) -> usize {
        self.near.layout.size()
    }

    /// Whether the outcome depends on the order of the points: then they are visited row by row.
    pub(super) fn is_ordered(&self) -> bool {
        self.direction == Direction::Scatter || self.near.is(&self.far)
    }

    /// # Safety
    ///
    /// As [`Transfer::execute`](super::Transfer::execute); `space` is the one that it was checked against.
    pub(super) unsafe fn execute<const D: usize>(&self, space: &IndexSpace<D>) -> Result<(), TransferError> {
        // SAFETY: the caller's promise is passed on.
        let dangles = unsafe { for_dimension!(&self.targets, |targets| self.follow(space, targets)) }?;
        if dangles && self.dangling == Dangling::Fail {
            // SAFETY: as above; the pointers are as they were.
            return Err(unsafe { self.first_dangling(space) });
        }
        Ok(())
    }

    /// Follows every pointer, or all up to one that dangles, if that is an error. Returns whether one did.
    ///
    /// # Safety
    ///
    /// As [`execute`](Self::execute).
    unsafe fn follow<const D: usize, const E: usize>(
        &self,
        space: &IndexSpace<D>,
        targets: &IndexSpace<E>,
    ) -> Result<bool, TransferError> {
        let (pointers, near, far) = (self.pointers.base()?, self.near.base()?, self.far.base()?);
        let (size, dangling) = (self.value_size(), self.dangling);
        let follow_run = follow_run_of::<E>(size, self.direction);
        let through = Through { targets: targets.membership(), far, layout: &self.far.layout, size, dangling };
        let mut dangles = false;
        let visit = |run: PointRun<2>| {
            if dangles && self.dangling == Dangling::Fail {
                return;
            }
            // SAFETY: the run lies inside the two instances that the space was checked against, and the third stores
            // the targets.
            dangles |= unsafe { follow_run(&through, pointers.add(run.offsets[0]), near.add(run.offsets[1]), run) };
        };
        let layouts = [&self.pointers.layout, &self.near.layout];
        if self.is_ordered() {
            for_each_run(space.rows(), layouts, visit);
        } else {
            for_each_run(space.rects().iter().copied(), layouts, visit);
        }
        Ok(dangles)
    }

    /// Looks again for the first pointer that dangles: errors name the same one whatever the layouts.
    ///
    /// # Safety
    ///
    /// As [`execute`](Self::execute); there is such a pointer.
    unsafe fn first_dangling<const D: usize>(&self, space: &IndexSpace<D>) -> TransferError {
        let dim = self.targets.dim();
        let pointer_of = |point: Point<D>| {
            let mut coordinates = [0i64; 4];
            let base = self.pointers.instance.base().expect("the pointers were read just now").as_ptr();
            // SAFETY: the point is one of the space; a pointer has as many coordinates as the targets.
            unsafe {
                let pointer = base.add(self.pointers.layout.offset(point));
                std::ptr::copy_nonoverlapping(pointer, coordinates.as_mut_ptr().cast(), dim * size_of::<i64>());
            }
            AnyPoint::new(&coordinates[..dim]).expect("targets have 1 to 4 dimensions")
        };
        let mut followed = space.points().map(|point| (point, pointer_of(point)));
        let (point, pointer) = followed
            .find(|(_, pointer)| !self.targets.contains(*pointer))
            .expect("a pointer was found dangling just now, and nothing writes pointers meanwhile");
        TransferError::DanglingPointer {
            instance: self.pointers.instance.id(),
            field: self.pointers.field,
            point: point.into(),
            pointer,
            targets: Box::new(self.targets.bounds()),
        }
    }
}

/// The targets of pointers, and the instance that stores their values.
struct Through<'a, const E: usize> {
    targets: &'a Membership<E>,
    far: *mut u8,
    layout: &'a FieldLayout,
    size: usize,
    dangling: Dangling,
}

/// Follows the pointers of one run: `(through, first pointer, first near value, run)`. Returns whether one dangled.
type FollowRun<const E: usize> = unsafe fn(&Through<'_, E>, *const u8, *mut u8, PointRun<2>) -> bool;

/// Stands for a size that is known only when running.
const UNUSUAL: usize = 0;

/// The loop for values of a size.
fn follow_run_of<const E: usize>(size: usize, direction: Direction) -> FollowRun<E> {
    match direction {
        Direction::Gather => with_usual_size!(size, SIZE => follow_run::<E, SIZE, true>,
            otherwise => follow_run::<E, UNUSUAL, true>),
        Direction::Scatter => with_usual_size!(size, SIZE => follow_run::<E, SIZE, false>,
            otherwise => follow_run::<E, UNUSUAL, false>),
    }
}

/// # Safety
///
/// The run's pointers and near values are readable or writable as the direction needs; `through` holds an instance that
/// stores the targets; nothing else touches them.
unsafe fn follow_run<const E: usize, const SIZE: usize, const GATHER: bool>(
    through: &Through<'_, E>,
    pointers: *const u8,
    near: *mut u8,
    run: PointRun<2>,
) -> bool {
    // What the loop needs is copied to locals, since for all that the compiler knows each value written may change it.
    match through.layout.single().and_then(FieldAddress::affine).filter(|_| through.targets.is_dense()) {
        Some(affine) => {
            let bounds = *through.targets.bounds();
            let locate = |point| bounds.contains(point).then(|| affine.offset(point));
            // SAFETY: the caller's promise; a target is located where it is stored.
            unsafe { follow_each::<E, SIZE, GATHER>(through, pointers, near, run, locate) }
        }
        None => {
            let (targets, layout) = (through.targets, through.layout.clone());
            let locate = |point| targets.contains(point).then(|| layout.offset(point) as isize);
            // SAFETY: as above.
            unsafe { follow_each::<E, SIZE, GATHER>(through, pointers, near, run, locate) }
        }
    }
}

/// # Safety
///
/// As [`follow_run`]; `locate` gives the offset of the value of a target, and nothing for other points.
#[inline(always)]
unsafe fn follow_each<const E: usize, const SIZE: usize, const GATHER: bool>(
    through: &Through<'_, E>,
    pointers: *const u8,
    near: *mut u8,
    run: PointRun<2>,
    locate: impl Fn(Point<E>) -> Option<isize>,
) -> bool {
    let Through { far, size, dangling, .. } = *through;
    let (mut next_pointer, mut next_near) = (pointers, near);
    let mut dangles = false;
    for _ in 0..run.count {
        // SAFETY: one of the run's pointers; its bytes are any point.
        let pointer = Point(unsafe { next_pointer.cast::<[i64; E]>().read_unaligned() });
        let near = next_near;
        next_pointer = next_pointer.wrapping_offset(run.strides[0]);
        next_near = next_near.wrapping_offset(run.strides[1]);
        let Some(offset) = locate(pointer) else {
            dangles = true;
            if dangling == Dangling::Fail {
                break;
            }
            continue;
        };
        // SAFETY: the target is stored, and so is this point of the run. The two values may be one, if a field is
        // gathered from itself: then a value of any size is moved as if through a buffer.
        unsafe {
            let far = far.offset(offset);
            let (from, to) = if GATHER { (far, near) } else { (near, far) };
            if SIZE == UNUSUAL {
                std::ptr::copy(from, to, size);
            } else {
                to.cast::<Opaque<SIZE>>().write(from.cast::<Opaque<SIZE>>().read());
            }
        }
    }
    dangles
}
