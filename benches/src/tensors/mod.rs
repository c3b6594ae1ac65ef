//! Tensor algebra on this runtime, and by what a user would take instead.
//!
//! [`turns`]: programs that take turns; [`contest`]: laying their speeds side by side; [`expected`]: what tensors hold,
//! and what must come out; [`ours`]: this project's program; [`works`]: what it computes; [`rivals`]: starting it and
//! the rivals' programs; [`products`], [`bandwidth`], [`higher`]: the contests; [`kernels`]: how long it takes to make
//! a kernel.

pub mod bandwidth;
pub mod contest;
pub mod expected;
pub mod higher;
pub mod kernels;
pub mod ours;
pub mod products;
pub mod rivals;
pub mod turns;
pub mod works;

use self::contest::Contest;

/// All contests.
pub static CONTESTS: &[Contest] = &[
    products::DOUBLE,
    products::SINGLE,
    products::TWO,
    products::FOUR,
    bandwidth::CONTEST,
    higher::TTM,
    higher::FIRST,
    higher::SECOND,
    higher::THIRD,
];
