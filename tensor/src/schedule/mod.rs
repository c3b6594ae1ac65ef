//! Schedules: how the loops of a statement run.
//!
//! A [`Command`] makes a statement into another one that computes the same. Statements have a method for each command;
//! a list of commands is a schedule, which can be kept, printed, and [applied](apply). What is illegal is refused with
//! a reason, and the statement stays as it was.
//!
//! ```
//! use maniple_tensor::concrete::Statement;
//! use maniple_tensor::element::ElementType;
//! use maniple_tensor::notation::{TensorVariable, parse};
//!
//! // SUMMA (van de Geijn and Watts, 1997) on a grid of 2 x 2 processors.
//! let tensors = ["A", "B", "C"].map(|name| TensorVariable::new(name, ElementType::F64, [100, 100]));
//! let summa = Statement::new(&parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?)
//!     .distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[2, 2])?
//!     .split("k", "ko", "ki", 10)?
//!     .reorder(["ko", "ii", "ji", "ki"])?
//!     .communicate(["A"], "jo")?
//!     .communicate(["B", "C"], "ko")?;
//!
//! // The same, as text.
//! let text = "distribute({i, j}, {io, jo}, {ii, ji}, {2, 2}); split(k, ko, ki, 10); reorder({ko, ii, ji, ki})
//!     communicate(A, jo)
//!     communicate({B, C}, ko)";
//! let schedule: maniple_tensor::schedule::Schedule = text.parse()?;
//! let product = Statement::new(&parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?);
//! assert_eq!(schedule.apply(&product)?, summa);
//!
//! let mistake = summa.communicate(["B"], "jo").unwrap_err();
//! assert_eq!(
//!     mistake.to_string(),
//!     "communicate(B, jo): B would be communicated at jo and at ko, within one launch; communicate it once"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | `command` | all commands, as data |
//! | `parse` | schedules as text |
//! | `error` | why a command is refused |
//! | `select` | what commands have in common: finding loops, making names |
//! | `split`, `split_at`, `divide`, `fuse`, `bound` | loops to other loops |
//! | `pos` | loops over what an operand stores |
//! | `mergeby` | how loops find what several operands store |
//! | `reorder` | the order of loops |
//! | `precompute`, `store` | workspaces, and how they are stored |
//! | `parallelize`, `chunk`, `unroll`, `substitute` | how the loops of a leaf run |
//! | `distribute`, `communicate`, `rotate` | what runs where, and when data moves |
//! | `validate` | what has to hold of every statement |
//! | `methods` | all commands, as methods of statements |

mod bound;
mod chunk;
mod command;
mod communicate;
mod distribute;
mod divide;
mod error;
mod fuse;
mod mergeby;
mod methods;
mod parallelize;
mod parse;
mod pos;
mod precompute;
mod reorder;
mod rotate;
mod select;
mod split;
mod split_at;
mod store;
mod substitute;
mod unroll;
mod validate;

pub use command::{Command, Schedule, apply};
pub use error::{Reason, ScheduleError};
pub use parallelize::Races;
pub use parse::ParseError;
pub(crate) use pos::{has_positions, is_of_entries};
