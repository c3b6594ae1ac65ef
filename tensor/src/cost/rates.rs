//! How fast machines are.

use crate::element::ElementType;

/// How fast each processor of a machine computes, and gets data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Operations of f64 a second in matrix products by a library.
    pub products: f64,
    /// Operations of f64 a second in compiled loops.
    pub loops: f64,
    /// Bytes a second between a processor and its memory.
    pub memory: f64,
    /// Bytes a second that a processor sends or gets.
    pub network: f64,
    /// Seconds for each message, however short.
    pub latency: f64,
    /// Seconds for each point of each launch.
    pub launch: f64,
    /// Which part of moving data a processor does not notice while it computes: 1 if something else moves it, 0 if it
    /// waits all the time.
    pub overlap: f64,
    /// How many bytes a processor's memory has, if that matters.
    pub capacity: Option<u64>,
}

impl Default for Rates {
    /// A core of a laptop of 2020 or later, which talks to others by a local network connection. At 3 GHz two
    /// multiplications with additions of vectors of four a cycle would be 48e9 operations a second, of which libraries
    /// get some 30e9; loops that are bound by loads get a tenth. One core reads some 10e9 bytes a second. A connection
    /// through the loopback interface passes some 2e9 bytes a second, and takes 20 microseconds; so does a task with
    /// its analysis. The cores copy data themselves, so that half of moving it takes their time.
    ///
    /// Programs for which these numbers matter should [measure](Self::measured) and pass their own.
    fn default() -> Self {
        Self {
            products: 30e9,
            loops: 3e9,
            memory: 10e9,
            network: 2e9,
            latency: 20e-6,
            launch: 20e-6,
            overlap: 0.5,
            capacity: None,
        }
    }
}

/// How long an operation takes, if one on f64 takes 1: half as long for half the size, and a complex product with its
/// sum is four of each.
pub(super) fn weight(element: ElementType) -> f64 {
    let size = element.part_size() as f64 / 8.0;
    if element.is_complex() { 4.0 * size } else { size }
}
