//! Conjugate gradients on the Poisson problem of 1000 x 1000 unknowns: ours against a plain loop on two threads over
//! the same arrays.

use std::sync::Arc;
use std::time::Instant;

use maniple_apps::cg::matrix::{Matrix, poisson, rows};
use maniple_apps::cg::problem::CgProblem;
use maniple_apps::cg::{self, CgOptions};
use maniple_apps::options::RuntimeOptions;
use maniple_benches::{line, median};
use maniple_tensor::level::Array;

const SIDE: usize = 1000;
const TOLERANCE: f64 = 1e-2;
const ROUNDS: usize = 5;

fn main() {
    let matrix = Arc::new(poisson(SIDE).expect("the matrix fits"));
    let options = CgOptions {
        poisson: SIDE,
        tolerance: TOLERANCE,
        runtime: RuntimeOptions { workers: Some(2), ..CgOptions::default().runtime },
        ..CgOptions::default()
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let runtime = options.runtime.start().expect("two workers can be started");
        let problem = CgProblem::given("Poisson", &matrix);
        let report = cg::solve(&runtime, &options, &problem).expect("the iteration converges");
        ours.push(report.time.as_secs_f64() / report.iterations as f64);
        let (time, residual) = plain(&matrix, report.iterations);
        theirs.push(time / report.iterations as f64);
        assert!(residual <= 1.1 * TOLERANCE, "the rival is where it should be: {residual}");
    }
    let (ours, theirs) = (median(ours), median(theirs));
    line("conjugate gradients, ours", ours * 1e3, "ms/iter", "");
    line("conjugate gradients, plain loop on two threads", theirs * 1e3, "ms/iter", "");
    line("speed relative to the plain loop", theirs / ours, "", "at least 0.7");
}

/// Preconditioned conjugate gradients as one would write it by hand: each loop over the rows is done by two threads, a
/// half each. Gives the seconds, and the relative residual.
fn plain(matrix: &Matrix, iterations: usize) -> (f64, f64) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads can be started");
    pool.install(|| plain_on_two_threads(matrix, iterations))
}

fn plain_on_two_threads(matrix: &Matrix, iterations: usize) -> (f64, f64) {
    let rows = rows(matrix);
    let half = rows / 2;
    let inverse: Vec<f64> = (0..rows).map(|row| 1.0 / matrix.get(&[row as i64, row as i64])).collect();
    let (mut x, mut r, mut q) = (vec![0.0; rows], vec![1.0; rows], vec![0.0; rows]);
    let mut p = inverse.clone();
    let mut inner = dot(&p, &r);
    let mut residual = 0.0;
    let start = Instant::now();
    for _ in 0..iterations {
        let (q_low, q_high) = q.split_at_mut(half);
        let (low, high) = rayon::join(|| multiply(matrix, 0, &p, q_low), || multiply(matrix, half, &p, q_high));
        let alpha = inner / (low + high);

        let ((x_low, x_high), (r_low, r_high)) = (x.split_at_mut(half), r.split_at_mut(half));
        let (low, high) = rayon::join(
            || advance(alpha, (x_low, r_low), (&p[..half], &q[..half], &inverse[..half])),
            || advance(alpha, (x_high, r_high), (&p[half..], &q[half..], &inverse[half..])),
        );
        let next = low[1] + high[1];
        let beta = next / inner;
        (residual, inner) = (low[0] + high[0], next);

        let (p_low, p_high) = p.split_at_mut(half);
        rayon::join(
            || turn(beta, p_low, &r[..half], &inverse[..half]),
            || turn(beta, p_high, &r[half..], &inverse[half..]),
        );
    }
    (start.elapsed().as_secs_f64(), (residual / rows as f64).sqrt())
}

/// The rows of q = A p from `first` on; gives p . q over them.
fn multiply(matrix: &Matrix, first: usize, p: &[f64], q: &mut [f64]) -> f64 {
    let numbers = |component| match matrix.levels()[1].component(component) {
        Array::I32(numbers) => numbers,
        other => panic!("{component} is {:?}", other.width()),
    };
    let (starts, columns, values) = (numbers("pos"), numbers("crd"), matrix.values());
    for (row, q) in (first..).zip(&mut *q) {
        let entries = starts[row] as usize..starts[row + 1] as usize;
        let products = columns[entries.clone()].iter().zip(&values[entries]);
        *q = products.map(|(&column, value)| value * p[column as usize]).sum();
    }
    dot(&p[first..first + q.len()], q)
}

/// x += alpha p and r -= alpha q; gives r . r and r . z.
fn advance(alpha: f64, (x, r): (&mut [f64], &mut [f64]), (p, q, inverse): (&[f64], &[f64], &[f64])) -> [f64; 2] {
    let mut products = [0.0; 2];
    for ((x, r), ((p, q), inverse)) in x.iter_mut().zip(r).zip(p.iter().zip(q).zip(inverse)) {
        *x += alpha * p;
        *r -= alpha * q;
        products[0] += *r * *r;
        products[1] += *r * *r * inverse;
    }
    products
}

/// p = z + beta p.
fn turn(beta: f64, p: &mut [f64], r: &[f64], inverse: &[f64]) {
    for (p, (r, inverse)) in p.iter_mut().zip(r.iter().zip(inverse)) {
        *p = r * inverse + beta * *p;
    }
}

/// The inner product, with eight sums side by side for the vector units.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (chunks_a, chunks_b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = chunks_a.remainder().iter().zip(chunks_b.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 8];
    for (a, b) in chunks_a.zip(chunks_b) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum::<f64>() + rest
}
