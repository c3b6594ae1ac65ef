//! Rows in parts with about as many elements each.

use maniple::Context;

use super::error::DistributedError;
use super::pending::Pending;
use super::shares::{Ends, is_in_order};
use super::tensor::Tensor;

impl Tensor {
    /// Finds where to cut the coordinates of the outermost level so that there are up to so many parts with about as
    /// many elements each: for [`split_at`](crate::concrete::Statement::split_at), whose loops are then distributed.
    /// Rows are not cut, so a part has less than an equal share and the elements of one row. If rows are so long that
    /// parts would begin at the same one, there are fewer parts. Tasks look up the stored data of the tensor in the
    /// blocks that nodes have, as it is after all that was launched before.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use maniple::prelude::*;
    /// use maniple_tensor::distributed::{self, Tensor};
    /// use maniple_tensor::element::ElementType::F64;
    /// use maniple_tensor::notation::{TensorVariable, parse};
    /// use maniple_tensor::plan::Plan;
    /// use maniple_tensor::sparse::Computation;
    ///
    /// // The first row has as many elements as half of the others.
    /// let a = TensorVariable::new("A", F64, [100, 100]).stored("csr".parse()?);
    /// let [x, y] = ["x", "y"].map(|name| TensorVariable::new(name, F64, [100]));
    /// let statement = parse("y(i) = A(i,j) * x(j)", &[a.clone(), x.clone(), y.clone()])?;
    /// let loops = Computation::new(&statement)?;
    ///
    /// let runtime = Runtime::builder().workers(2).build()?;
    /// let cuts = runtime.run(async |cx| {
    ///     let a = Tensor::generated(cx, &a, &"arrow".parse().map_err(maniple::Error::from_task)?, 0).await?;
    ///     let cuts = a.balanced(cx, 3).await?;
    ///     let statement = loops.statement().split_at("i", "part", "ii", &cuts);
    ///     let statement = statement.and_then(|statement| statement.distribute_loops(["part"]));
    ///     let plan = Arc::new(Plan::new(&statement.map_err(maniple::Error::from_task)?).map_err(maniple::Error::from_task)?);
    ///     let [x, y] = [Tensor::new(cx, &x)?, Tensor::new(cx, &y)?];
    ///     distributed::compute(cx, &plan, &[&y, &a, &x]).await?.await?;
    ///     Ok(cuts)
    /// })?;
    /// assert_eq!(cuts, [1, 51]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DistributedError::Dense`] if it is not in levels; [`DistributedError::Unfit`] if its outermost level does not
    /// store coordinates in order; [`DistributedError::Runtime`].
    pub fn balanced<'a>(&'a self, cx: &'a Context, parts: usize) -> Pending<'a, Vec<i64>> {
        Box::pin(async move {
            let (tensor, format) = (self.variable().name().to_owned(), self.variable().format());
            if !self.is_in_levels() {
                return Err(DistributedError::Dense { tensor });
            }
            if !is_in_order(format) {
                let reason = format!("its outermost level does not store coordinates in order, as {format}");
                return Err(DistributedError::Unfit { tensor, reason });
            }
            let last = format.levels().len() - 1;
            let ends = Ends::new(cx, self, last, parts.max(1) as i64).await?;
            let begins = ends.rows().iter().filter(|(first, end)| first < end).map(|(first, _)| *first);
            let mut cuts: Vec<i64> = begins.skip(1).filter(|first| *first > 0).collect();
            cuts.dedup();
            Ok(cuts)
        })
    }
}
