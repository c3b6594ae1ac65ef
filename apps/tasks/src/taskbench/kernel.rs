//! The kernel of a task: its work between reading and writing.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

use maniple::bytemuck::cast_slice_mut;

use super::compute::{add_multiple, copy_half, multiply_and_add, multiply_matrices, square_and_add};
use super::hash::uniform;

/// The kind of work that a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKind {
    /// None.
    Empty,
    /// Integer arithmetic in which each step needs the last.
    BusyWait,
    /// Copies within the scratch.
    MemoryBound,
    /// Matrix products in the scratch.
    ComputeDgemm,
    /// Sums of vectors in the scratch.
    MemoryDaxpy,
    /// Arithmetic in registers: 64 lanes.
    ComputeBound,
    /// Arithmetic in registers: 32 lanes, each a sum of products.
    ComputeBound2,
    /// As [`KernelKind::ComputeBound`], with a number of iterations that differs from task to task.
    LoadImbalance,
}

impl KernelKind {
    /// All kinds, in the order of Task Bench.
    pub const ALL: [Self; 8] = [
        Self::Empty,
        Self::BusyWait,
        Self::MemoryBound,
        Self::ComputeDgemm,
        Self::MemoryDaxpy,
        Self::ComputeBound,
        Self::ComputeBound2,
        Self::LoadImbalance,
    ];

    /// Task Bench's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::BusyWait => "busy_wait",
            Self::MemoryBound => "memory_bound",
            Self::ComputeDgemm => "compute_dgemm",
            Self::MemoryDaxpy => "memory_daxpy",
            Self::ComputeBound => "compute_bound",
            Self::ComputeBound2 => "compute_bound2",
            Self::LoadImbalance => "load_imbalance",
        }
    }

    /// The kind in a few words.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Empty => "nothing",
            Self::BusyWait => "a chain of integer operations",
            Self::MemoryBound => "copies within the scratch",
            Self::ComputeDgemm => "matrix products in the scratch",
            Self::MemoryDaxpy => "vector sums in the scratch",
            Self::ComputeBound => "128 floating-point operations an iteration",
            Self::ComputeBound2 => "64 floating-point operations an iteration",
            Self::LoadImbalance => "as compute_bound, more in some tasks than in others",
        }
    }

    /// Whether it works in the scratch.
    #[must_use]
    pub fn needs_scratch(self) -> bool {
        matches!(self, Self::MemoryBound | Self::ComputeDgemm | Self::MemoryDaxpy)
    }

    /// Whether it takes the scratch as numbers to compute with, which must not be subnormal for it to be fast.
    #[must_use]
    pub fn computes_in_scratch(self) -> bool {
        matches!(self, Self::ComputeDgemm | Self::MemoryDaxpy)
    }

    /// Whether it divides the scratch into samples.
    #[must_use]
    pub fn needs_samples(self) -> bool {
        matches!(self, Self::MemoryBound | Self::MemoryDaxpy)
    }
}

impl fmt::Display for KernelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KernelKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| match text {
            "io_bound" => "Task Bench lists it, but nobody implements it".to_owned(),
            _ => format!("there are the kernels {}", Self::ALL.map(Self::name).join(", ")),
        })
    }
}

/// The work of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The kind of work.
    pub kind: KernelKind,
    /// How often it is done.
    pub iterations: i64,
    /// Into how many parts the scratch is divided; an iteration works on one.
    pub samples: i64,
    /// How far iterations differ between tasks, as a fraction of their number.
    pub imbalance: f64,
}

impl Kernel {
    /// Does the work of one task. `scratch` is what [`scratch::prepare`](super::scratch::prepare) made, or empty if the
    /// kernel needs none.
    pub fn execute(&self, graph: i64, step: i64, point: i64, scratch: &mut [u64]) {
        match self.kind {
            KernelKind::Empty => {}
            KernelKind::BusyWait => _ = black_box(busy_wait(black_box(self.iterations))),
            KernelKind::MemoryBound => self.copy_samples(step, scratch),
            KernelKind::ComputeDgemm => self.multiply(scratch),
            KernelKind::MemoryDaxpy => self.add_samples(step, scratch),
            KernelKind::ComputeBound => _ = black_box(square_and_add(black_box(self.iterations))),
            KernelKind::ComputeBound2 => _ = black_box(multiply_and_add(black_box(self.iterations))),
            KernelKind::LoadImbalance => {
                _ = black_box(square_and_add(black_box(self.iterations_of(graph, step, point))));
            }
        }
    }

    /// How many iterations a task does.
    #[must_use]
    pub fn iterations_of(&self, graph: i64, step: i64, point: i64) -> i64 {
        match self.kind {
            KernelKind::LoadImbalance => {
                let share = 1.0 + (uniform([graph, step, point]) - 0.5) * self.imbalance;
                (share * self.iterations as f64).round() as i64
            }
            _ => self.iterations,
        }
    }

    /// How many floating-point operations a task does.
    #[must_use]
    pub fn flops(&self, iterations: i64, scratch_bytes: i64) -> u128 {
        let iterations = iterations as u128;
        match self.kind {
            KernelKind::ComputeDgemm => 2 * (matrix_size(scratch_bytes) as u128).pow(3) * iterations,
            KernelKind::ComputeBound | KernelKind::LoadImbalance => 128 * iterations + 64,
            KernelKind::ComputeBound2 => 64 * iterations,
            KernelKind::Empty | KernelKind::BusyWait | KernelKind::MemoryBound | KernelKind::MemoryDaxpy => 0,
        }
    }

    /// How many bytes of the scratch a task goes over.
    #[must_use]
    pub fn bytes(&self, scratch_bytes: i64) -> u128 {
        match self.kind.needs_samples() {
            true => scratch_bytes as u128 * self.iterations as u128 / self.samples as u128,
            false => 0,
        }
    }

    /// Copies the first half of one sample after the other to its second half. Samples that follow each other in one
    /// pass over the scratch are copied at once.
    fn copy_samples(&self, step: i64, scratch: &mut [u64]) {
        let sample = scratch.len() / self.samples as usize;
        let mut done = 0;
        while done < self.iterations {
            let first = self.sample_of(step, done);
            let count = (self.samples - first).min(self.iterations - done);
            let (from, to) = (first as usize * sample, (first + count) as usize * sample);
            copy_half(&mut scratch[from..to]);
            done += count;
        }
        black_box(scratch);
    }

    /// Adds the first half of one sample after the other to its second half.
    fn add_samples(&self, step: i64, scratch: &mut [u64]) {
        let numbers: &mut [f64] = cast_slice_mut(scratch);
        let sample = numbers.len() / self.samples as usize;
        for iteration in 0..self.iterations {
            let first = self.sample_of(step, iteration) as usize * sample;
            let (x, y) = numbers[first..first + sample].split_at_mut(sample / 2);
            add_multiple(y, 1.0, x);
        }
        black_box(scratch);
    }

    fn sample_of(&self, step: i64, iteration: i64) -> i64 {
        ((i128::from(step) * i128::from(self.iterations) + i128::from(iteration)) % i128::from(self.samples)) as i64
    }

    /// Adds the product of the scratch's first two matrices to the third.
    fn multiply(&self, scratch: &mut [u64]) {
        let n = matrix_size(size_of_val(scratch) as i64);
        if n == 0 {
            return;
        }
        let numbers: &mut [f64] = cast_slice_mut(scratch);
        for _ in 0..self.iterations {
            let (a, rest) = numbers.split_at_mut(n * n);
            let (b, c) = rest.split_at_mut(n * n);
            multiply_matrices(&mut c[..n * n], a, b, n);
        }
        black_box(scratch);
    }
}

/// The columns of three square matrices that take so many bytes.
fn matrix_size(scratch_bytes: i64) -> usize {
    (scratch_bytes / 24).isqrt() as usize
}

/// So many steps of a multiplicative congruential generator.
fn busy_wait(iterations: i64) -> i64 {
    (0..iterations).fold(113, |value, _| value * 139 % 2_147_483_647)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taskbench::scratch::{is_intact, prepare};

    fn kernel(kind: KernelKind, iterations: i64) -> Kernel {
        Kernel { kind, iterations, samples: 4, imbalance: 0.0 }
    }

    fn scratch(kernel: &Kernel, words: usize) -> Vec<u64> {
        let mut scratch = vec![0; words];
        prepare(kernel.kind, &mut scratch);
        scratch
    }

    #[test]
    fn kernels_are_read_by_the_names_they_print() {
        for kind in KernelKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("io_bound".parse::<KernelKind>().is_err_and(|message| message.contains("nobody implements it")));
    }

    #[test]
    fn operations_and_bytes_are_counted_as_task_bench_does() {
        assert_eq!(kernel(KernelKind::ComputeBound, 10).flops(10, 0), 1344);
        assert_eq!(kernel(KernelKind::ComputeBound2, 10).flops(10, 0), 640);
        assert_eq!(kernel(KernelKind::ComputeDgemm, 3).flops(3, 24 * 101), 6000, "10 by 10, as 11 by 11 does not fit");
        assert_eq!(kernel(KernelKind::MemoryBound, 10).bytes(1000), 2500);
        assert_eq!(kernel(KernelKind::MemoryDaxpy, 10).bytes(1000), 2500);
        assert_eq!(kernel(KernelKind::BusyWait, 10).flops(10, 0) + kernel(KernelKind::BusyWait, 10).bytes(1000), 0);
    }

    #[test]
    fn imbalance_spreads_iterations_evenly_around_their_number() {
        let kernel = Kernel { imbalance: 0.5, ..kernel(KernelKind::LoadImbalance, 1000) };
        let iterations: Vec<i64> = (0..1000).map(|point| kernel.iterations_of(0, 7, point)).collect();
        assert!(iterations.iter().all(|iterations| (750..=1250).contains(iterations)));
        let mean = iterations.iter().sum::<i64>() / 1000;
        assert!((990..=1010).contains(&mean), "{mean}");
        assert_eq!(kernel.iterations_of(1, 2, 3), 1013, "1000 (1 + (0.5252 - 0.5) 0.5), by Task Bench's hash");
        assert_eq!(Kernel { imbalance: 0.0, ..kernel }.iterations_of(1, 2, 3), 1000);
    }

    #[test]
    fn every_kernel_leaves_the_scratch_as_the_next_task_wants_it() {
        for kind in KernelKind::ALL {
            let kernel = kernel(kind, 9);
            let mut scratch = scratch(&kernel, 64);
            (0..3).for_each(|step| kernel.execute(0, step, 0, &mut scratch));
            assert!(is_intact(&scratch), "{kind}");
        }
    }

    #[test]
    fn copies_go_through_all_samples_in_turn() {
        let kernel = kernel(KernelKind::MemoryBound, 3);
        let mut scratch: Vec<u64> = (0..8).collect();
        kernel.execute(0, 0, 0, &mut scratch);
        assert_eq!(scratch, [0, 1, 2, 0, 1, 2, 6, 7], "samples 0 to 2 at once");
        let mut scratch: Vec<u64> = (0..8).collect();
        kernel.execute(0, 1, 0, &mut scratch);
        assert_eq!(scratch, [0, 1, 0, 1, 4, 5, 6, 6], "sample 3, then 0 and 1");
    }

    #[test]
    fn sums_go_through_all_samples_in_turn() {
        let kernel = kernel(KernelKind::MemoryDaxpy, 5);
        let mut scratch = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0].map(f64::to_bits);
        kernel.execute(0, 0, 0, &mut scratch);
        assert_eq!(scratch.map(f64::from_bits), [1.0, 4.0, 3.0, 7.0, 5.0, 11.0, 7.0, 15.0]);
    }

    #[test]
    fn products_are_added_to_the_third_matrix() {
        let kernel = kernel(KernelKind::ComputeDgemm, 2);
        let mut scratch = [1.0, 2.0, 3.0, 4.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0].map(f64::to_bits);
        kernel.execute(0, 0, 0, &mut scratch);
        assert_eq!(scratch.map(f64::from_bits)[8..], [2.0, 4.0, 6.0, 8.0]);
    }
}
