//! Accessors that know which requirement and field they were asked for.

use std::marker::PhantomData;

use super::FieldId;

pub struct Read<'a, T, const D: usize>(pub usize, pub FieldId, pub PhantomData<&'a T>);
pub struct Write<'a, T, const D: usize>(pub usize, pub FieldId, pub PhantomData<&'a mut T>);
pub struct Reduce<'a, Op, T, const D: usize>(pub usize, pub FieldId, pub PhantomData<(&'a mut T, Op)>);
pub struct PieceInfo<'a, F, const D: usize>(pub usize, pub PhantomData<&'a F>);

impl<T, const D: usize> Read<'_, T, D> {
    pub fn place(&self) -> (usize, u32) {
        (self.0, self.1.0)
    }
}

impl<T, const D: usize> Write<'_, T, D> {
    /// Needs what writing needs.
    pub fn place(&mut self) -> (usize, u32) {
        (self.0, self.1.0)
    }
}

impl<Op, T, const D: usize> Reduce<'_, Op, T, D> {
    pub fn place(&mut self) -> (usize, u32) {
        (self.0, self.1.0)
    }
}

impl<F, const D: usize> PieceInfo<'_, F, D> {
    pub fn first_requirement(&self) -> usize {
        self.0
    }

    pub fn dimensions(&self) -> usize {
        D
    }
}
