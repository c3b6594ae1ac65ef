//! The data that a plan moves: the sender, the receiver and the size of each part of a tensor, in each step.
//!
//! [`Traffic`] is a function of a plan, a machine, and the placements that its tensors have on the machine. Nothing is
//! run.
//!
//! | assumed | |
//! | --- | --- |
//! | who computes | Points are numbered with the last dimension running fastest, and so are processors: point n runs on processor n. If there are more points than processors, each gets a block of them. |
//! | when data moves | In each [step](crate::plan::PlanOrder), a processor fetches what it needs and does not have. The result stays where it is computed until others need it, or the last step ends. |
//! | what is kept | What is placed on a processor stays there. Beside it a processor has what it needs in a step, and what it needed in the step before: this is not fetched again, and others may fetch it from there. |
//! | who sends | Of all that have an element before the step, the nearest: fewest hops on the grid, each of whose dimensions is a ring. On a machine of several levels the outermost level counts first. Of those that are equally near, one that needed it in the step before, so that processors pass on what they had. |
//! | launches in launches | What is fetched around a launch, and only read, goes to the first of the processors that it is for, before those fetch their parts, and stays there as long. |
//! | reductions | A processor combines values in a buffer as long as it needs the same part of the result, and then sends the buffer to where this part is placed. |
//! | the end | Parts of the result that were computed elsewhere go to where they are placed. What it is filled with at first is not sent. |
//!
//! ```
//! use maniple_tensor::algorithms;
//! use maniple_tensor::concrete::Statement;
//! use maniple_tensor::element::ElementType;
//! use maniple_tensor::notation::{TensorVariable, parse};
//! use maniple_tensor::plan::Plan;
//! use maniple_tensor::traffic::Traffic;
//!
//! let tensors = ["A", "B", "C"].map(|name| TensorVariable::new(name, ElementType::F64, [100, 100]));
//! let product = Statement::new(&parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?);
//! let cannon = algorithms::cannon(&product, [2, 2])?;
//! let traffic = Traffic::new(&Plan::new(&cannon.statement)?, &"2x2".parse()?, &cannon.placements)?;
//! // Each of four processors gets one tile of 50 x 50 of each operand, and nothing of the result moves.
//! assert_eq!(traffic.of_tensor("B"), 4 * 50 * 50 * 8);
//! assert_eq!(traffic.of_tensor("A"), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | [`Message`], [`Traffic`] | what is sent, and sums of it |
//! | `needs` | what each processor needs |
//! | `holders` | which processors have what |
//! | `count` | what is sent, step by step |
//! | `loads` | what some processors get and send, for machines of many |
//! | [`draw()`] | a picture of each step's messages |

mod count;
mod draw;
mod holders;
mod loads;
mod message;
mod needs;

pub use count::TrafficError;
pub use draw::draw;
pub(crate) use loads::{Load, Loads, Sample};
pub use message::{Cause, Message, Traffic};
pub(crate) use needs::points_of;

use crate::machine::Machine;
use crate::notation::TensorVariable;
use crate::placement::Placement;
use crate::plan::Plan;

/// The messages of so many processors are listed.
const MOST_PROCESSORS: usize = 256;
/// The messages of so many processors times steps are listed.
const MOST_LISTED: i64 = 1 << 14;

impl Traffic {
    /// The traffic of `plan`, as [`new`](Self::new) gives it, or, where that would take long, as
    /// [`estimated`](Self::estimated) does.
    ///
    /// # Errors
    ///
    /// [`TrafficError`], if a placement is missing or does not fit.
    pub fn of(
        plan: &Plan,
        machine: &Machine,
        placements: &[(TensorVariable, Placement)],
    ) -> Result<Self, TrafficError> {
        let (size, order) = (machine.size(), plan.order());
        let leaves = order.steps().saturating_mul(order.points().max(size as i64));
        let is_small = size <= MOST_PROCESSORS && leaves <= MOST_LISTED;
        if is_small { Self::new(plan, machine, placements) } else { Self::estimated(plan, machine, placements) }
    }

    /// How many bytes `plan` moves, without messages: what processors need, and do not have, is found for some of them
    /// in some steps, and stands for all. It takes the same time for any number of processors and steps. On grids that
    /// cut tensors into tiles of one size it is what [`new`](Self::new) says, but for a few in a hundred.
    ///
    /// # Errors
    ///
    /// [`TrafficError`], if a placement is missing or does not fit.
    pub fn estimated(
        plan: &Plan,
        machine: &Machine,
        placements: &[(TensorVariable, Placement)],
    ) -> Result<Self, TrafficError> {
        let loads = Loads::new(plan, machine, placements)?;
        let tensors = loads.of.iter().map(|(tensor, _)| tensor.clone()).collect();
        let of = |(number, (tensor, _)): (usize, &(TensorVariable, _))| {
            (loads.moved(number) * tensor.element().size() as f64).round() as u64
        };
        let bytes = loads.of.iter().enumerate().map(of).collect();
        let unlisted = Some((bytes, loads.memory().round() as u64));
        let (machine, steps) = (machine.clone(), plan.order().steps());
        Ok(Self { machine, tensors, steps, messages: Vec::new(), memory: Vec::new(), unlisted })
    }
}
