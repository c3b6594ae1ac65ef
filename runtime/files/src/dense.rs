//! Dense arrays.

/// The order in which the elements of a dense array follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last coordinate varies fastest, as in C.
    Rows,
    /// The first coordinate varies fastest, as in Fortran.
    Columns,
}

/// A dense array: as many elements as the product of its extents. An array without extents has one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<T> {
    /// The extent of each dimension.
    pub shape: Vec<u64>,
    /// The order of the elements.
    pub order: Order,
    /// The elements.
    pub elements: Vec<T>,
}

impl<T: Copy> Dense<T> {
    /// The same array in [`Order::Rows`]. Elements are only copied if they have the other order and several dimensions.
    #[must_use]
    pub fn by_rows(self) -> Self {
        if self.order == Order::Rows || self.shape.len() < 2 {
            return Self { order: Order::Rows, ..self };
        }
        let mut strides = vec![1; self.shape.len()];
        for dimension in 1..self.shape.len() {
            strides[dimension] = strides[dimension - 1] * self.shape[dimension - 1] as usize;
        }
        let element = |mut rest: usize| {
            let mut place = 0;
            for (&extent, stride) in self.shape.iter().zip(&strides).rev() {
                place += rest % extent as usize * stride;
                rest /= extent as usize;
            }
            self.elements[place]
        };
        let elements = (0..self.elements.len()).map(element).collect();
        Self { order: Order::Rows, elements, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_rows() {
        let columns = Dense { shape: vec![2, 3], order: Order::Columns, elements: vec![1, 4, 2, 5, 3, 6] };
        assert_eq!(columns.by_rows().elements, [1, 2, 3, 4, 5, 6]);
        let cube = Dense { shape: vec![2, 2, 2], order: Order::Columns, elements: vec![0, 4, 2, 6, 1, 5, 3, 7] };
        assert_eq!(cube.by_rows().elements, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
