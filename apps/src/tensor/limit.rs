//! How many tasks a statement may be.

use maniple_tensor::plan::Plan;

use crate::error::{Error, Result};

/// More tasks take minutes to launch.
const MOST_TASKS: i128 = 1 << 18;

/// Checks that a plan has not more tasks than can be launched.
///
/// # Errors
/// [`Error::Usage`] if it has.
pub(super) fn check_tasks(plan: &Plan) -> Result<()> {
    let order = plan.order();
    let tasks = i128::from(order.points()) * i128::from(order.steps());
    if tasks <= MOST_TASKS {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{} points in {} steps are {tasks} tasks, and there can be {MOST_TASKS} at most: take a smaller --grid, or a larger --chunk",
        order.points(),
        order.steps()
    )))
}
