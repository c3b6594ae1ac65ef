//! How good the loops are that are chosen for statements on sparse tensors: of each of twenty statements and data, all
//! candidates are run that are not estimated to be far slower.
//!
//! `cargo run --release -p maniple-benches --example sparse_choices` prints for each what the chosen candidate takes
//! relative to the fastest one. Wanted is 1.3 at most. With a word, only statements that contain it are run, and all
//! candidates are listed.

#![allow(clippy::print_stdout)] // that is what it is for

use std::collections::BTreeMap;
use std::time::Instant;

use maniple_tensor::choose::{Processors, choose_sparse};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::generate::Generator;
use maniple_tensor::kernel::{Kernels, Scoped};
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::storage::{Duplicates, SparseTensor, pack};

type Error = Box<dyn std::error::Error>;

/// Candidates that are estimated to take this many times as long as the chosen one are not run.
const FAR: f64 = 25.0;
const ROUNDS: usize = 3;

/// A statement, its size, and of each tensor its name, format and extents, and where its elements come from: a
/// generator, or nothing for a dense operand or the result.
type Case = (&'static str, &'static [(&'static str, &'static str, &'static [i64], &'static str)]);

const CASES: &[Case] = &[
    (
        "y(i) = A(i,j) * x(j)",
        &[
            ("y", "{D}", &[1_000_000], ""),
            ("A", "csr", &[1_000_000, 1_000_000], "poisson:1000"),
            ("x", "{D}", &[1_000_000], ""),
        ],
    ),
    (
        "y(i) = A(i,j) * x(j)",
        &[
            ("y", "{D}", &[500_000], ""),
            ("A", "csc", &[500_000, 500_000], "uniform:1.6e-5"),
            ("x", "{D}", &[500_000], ""),
        ],
    ),
    (
        "y(i) = A(i,j) * x(j)",
        &[("y", "{D}", &[500_000], ""), ("A", "csr", &[500_000, 500_000], "zipf:500000"), ("x", "{D}", &[500_000], "")],
    ),
    (
        "y(j) = A(i,j) * x(i)",
        &[
            ("y", "{D}", &[500_000], ""),
            ("A", "csr", &[500_000, 500_000], "uniform:1.6e-5"),
            ("x", "{D}", &[500_000], ""),
        ],
    ),
    (
        "y(i) = A(i,j) * x(j)",
        &[("y", "{D}", &[300_000], ""), ("A", "csr", &[300_000, 300_000], "arrow"), ("x", "{D}", &[300_000], "")],
    ),
    (
        "Y(i,k) = A(i,j) * X(j,k)",
        &[
            ("Y", "rows", &[250_000, 16], ""),
            ("A", "csr", &[250_000, 250_000], "poisson:500"),
            ("X", "rows", &[250_000, 16], ""),
        ],
    ),
    (
        "Y(i,k) = A(i,j) * X(j,k)",
        &[
            ("Y", "rows", &[200_000, 16], ""),
            ("A", "csr", &[200_000, 200_000], "uniform:4e-5"),
            ("X", "rows", &[200_000, 16], ""),
        ],
    ),
    (
        "Y(i,k) = A(i,j) * X(j,k)",
        &[
            ("Y", "columns", &[200_000, 16], ""),
            ("A", "csr", &[200_000, 200_000], "uniform:4e-5"),
            ("X", "columns", &[200_000, 16], ""),
        ],
    ),
    (
        "Y(i,j) = A(i,k) * B(k,j)",
        &[
            ("Y", "csr", &[50_000, 50_000], ""),
            ("A", "csr", &[50_000, 50_000], "uniform:1.6e-4"),
            ("B", "csr", &[50_000, 50_000], "uniform:1.6e-4"),
        ],
    ),
    (
        "Y(i,j) = A(i,k) * B(k,j)",
        &[
            ("Y", "csr", &[40_000, 40_000], ""),
            ("A", "csr", &[40_000, 40_000], "poisson:200"),
            ("B", "csr", &[40_000, 40_000], "poisson:200"),
        ],
    ),
    (
        "Y(i,j) = A(i,k) * B(k,j)",
        &[
            ("Y", "csr", &[20_000, 20_000], ""),
            ("A", "csr", &[20_000, 20_000], "uniform:4e-4"),
            ("B", "csc", &[20_000, 20_000], "uniform:4e-4"),
        ],
    ),
    (
        "Y(i,j) = A(i,k) * B(k,j)",
        &[
            ("Y", "csr", &[2_000, 2_000], ""),
            ("A", "csr", &[2_000, 2_000], "uniform:0.02"),
            ("B", "csr", &[2_000, 2_000], "uniform:0.02"),
        ],
    ),
    (
        "Y(i,j) = A(i,k) * B(k,j)",
        &[
            ("Y", "csr", &[2_000, 30_000_000], ""),
            ("A", "csr", &[2_000, 2_000], "uniform:0.005"),
            ("B", "csr", &[2_000, 30_000_000], "uniform:1e-6"),
        ],
    ),
    (
        "Y(i,j) = A(i,j) + B(i,j) + C(i,j)",
        &[
            ("Y", "csr", &[300_000, 300_000], ""),
            ("A", "csr", &[300_000, 300_000], "uniform:2.6e-5"),
            ("B", "csr", &[300_000, 300_000], "uniform:2.6e-5"),
            ("C", "csr", &[300_000, 300_000], "uniform:2.6e-5"),
        ],
    ),
    (
        "Y(i,j) = A(i,j) * B(i,j)",
        &[
            ("Y", "csr", &[2_000, 2_000_000], ""),
            ("A", "csr", &[2_000, 2_000_000], "uniform:1e-6"),
            ("B", "csr", &[2_000, 2_000_000], "uniform:2e-3"),
        ],
    ),
    (
        "Y(i,j) = A(i,j) + A(j,i)",
        &[("Y", "csr", &[300_000, 300_000], ""), ("A", "csr", &[300_000, 300_000], "uniform:2.6e-5")],
    ),
    (
        "Y(i,j) = A(i,j) * B(i,k) * C(k,j)",
        &[
            ("Y", "csr", &[100_000, 100_000], ""),
            ("A", "csr", &[100_000, 100_000], "uniform:8e-5"),
            ("B", "rows", &[100_000, 32], ""),
            ("C", "columns", &[32, 100_000], ""),
        ],
    ),
    ("s = L(i,j) * L(i,k) * L(j,k)", &[("s", "{}", &[], ""), ("L", "csr", &[65_536, 65_536], "rmat:16")]),
    (
        "Y(i,l) = T(i,j,k) * C(j,l) * D(k,l)",
        &[
            ("Y", "rows", &[5_000, 16], ""),
            ("T", "csf:3", &[5_000, 1_000, 1_000], "uniform:2e-4"),
            ("C", "rows", &[1_000, 16], ""),
            ("D", "rows", &[1_000, 16], ""),
        ],
    ),
    (
        "Y(i,j) = T(i,j,k) * x(k)",
        &[
            ("Y", "csr", &[20_000, 1_000], ""),
            ("T", "csf:3", &[20_000, 1_000, 500], "uniform:2e-4"),
            ("x", "{D}", &[500], ""),
        ],
    ),
];

fn operand(tensor: &TensorVariable, generator: &str, seed: u64) -> Result<SparseTensor<f64>, Error> {
    if generator.is_empty() {
        let count = tensor.dimensions().iter().product::<i64>() as usize;
        let elements = (0..count).map(|at| (at % 5) as f64 + 1.0).collect();
        return Ok(SparseTensor::from_elements(tensor.dimensions(), 0.0, elements)?.convert(tensor.format())?);
    }
    let entries = generator.parse::<Generator>()?.rows(tensor.dimensions(), 0..tensor.dimensions()[0], seed)?;
    Ok(pack(tensor.format(), tensor.dimensions(), 0.0, entries, Duplicates::First)?.tensor)
}

fn main() -> Result<(), Error> {
    let wanted = std::env::args().nth(1);
    let threads = std::thread::available_parallelism()?.get();
    let mut worst: f64 = 1.0;
    for (number, (text, tensors)) in CASES.iter().enumerate() {
        if wanted.as_ref().is_some_and(|wanted| !text.contains(wanted) && number.to_string() != *wanted) {
            continue;
        }
        let declared = tensors.iter().map(|(name, format, extents, _)| {
            Ok::<_, Error>(TensorVariable::new(name, F64, *extents).stored(format.parse()?))
        });
        let declared = declared.collect::<Result<Vec<_>, _>>()?;
        let assignment = parse(text, &declared)?;
        let result = assignment.left().tensor.name().to_owned();
        let mut operands: Vec<(&str, SparseTensor<f64>)> = Vec::new();
        for (seed, (tensor, (name, _, _, generator))) in declared.iter().zip(*tensors).enumerate() {
            if *name != result {
                operands.push((name, operand(tensor, generator, seed as u64)?));
            }
        }
        let known: BTreeMap<_, _> =
            operands.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.statistics().clone())).collect();
        let choice = choose_sparse(&assignment, &known, &Processors { threads, ..Processors::default() })?;
        let given: Vec<(&str, &SparseTensor<f64>)> = operands.iter().map(|(name, tensor)| (*name, tensor)).collect();
        let most = FAR * choice.best().estimate.seconds.max(1e-3);
        let mut times = Vec::new();
        for candidate in choice.candidates().iter().filter(|candidate| candidate.estimate.seconds <= most) {
            let mut best = f64::INFINITY;
            for round in 0..=ROUNDS {
                let start = Instant::now();
                candidate.computation.run_by(&given, Kernels::shared(), &Scoped { threads })?;
                // The first time makes the kernel.
                if round > 0 {
                    best = best.min(start.elapsed().as_secs_f64());
                }
                if best > 2.0 && best < f64::INFINITY {
                    break;
                }
            }
            if wanted.is_some() {
                println!(
                    "    {:<50} {:>9.2} ms, estimated {:>9.2}",
                    candidate.name,
                    best * 1e3,
                    candidate.estimate.seconds * 1e3
                );
            }
            times.push((best, &candidate.name));
        }
        let fastest = times.iter().min_by(|one, other| one.0.total_cmp(&other.0)).ok_or("there is a candidate")?;
        let ratio = times[0].0 / fastest.0;
        worst = worst.max(ratio);
        let (name, _, _, generator) = tensors[1];
        println!(
            "{number:>2} {text} ({name} {generator}): {ratio:.2} of {} ({:.2} ms): chosen {}, fastest {}",
            times.len(),
            times[0].0 * 1e3,
            times[0].1,
            fastest.1
        );
    }
    println!("the worst is {worst:.2}; wanted is 1.3 at most");
    Ok(())
}
