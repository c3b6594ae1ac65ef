//! Matrix products, TTM and MTTKRP by the crate `gemm` with one and two threads, beside OpenBLAS where it is installed.
//!
//! `cargo run --release -p maniple-tensor --example products -- [SIZE]`, with `OPENBLAS_NUM_THREADS=2`. The library is
//! the one that the environment variable `OPENBLAS` names, or `libopenblas.so.0`. Versions that do not know the
//! processor take code for an old one: `OPENBLAS_CORETYPE=SkylakeX` helps. Wanted: 0.95 of OpenBLAS with two threads.

use std::time::Instant;

use libloading::Library;
use maniple_tensor::element::Element;
use maniple_tensor::kernel::{Scoped, Serial, Team, View};
use maniple_tensor::substitute::{Mttkrp, Operand, contract, mttkrp, use_library};

type Gemm<T> = unsafe extern "C" fn(i32, i32, i32, i32, i32, i32, T, *const T, i32, *const T, i32, T, *mut T, i32);

/// Something that takes time.
type Run<'a> = Box<dyn FnMut() + 'a>;

/// For each of `runs`, the best and the median of seconds. They take turns, so that what else the machine does disturbs
/// all alike.
fn time(mut runs: Vec<Run<'_>>) -> Vec<[f64; 2]> {
    let mut times = vec![Vec::new(); runs.len()];
    for repeat in 0..8 {
        for (run, times) in runs.iter_mut().zip(&mut times) {
            let start = Instant::now();
            run();
            // The first time warms up.
            times.extend((repeat > 0).then(|| start.elapsed().as_secs_f64()));
        }
    }
    times
        .iter_mut()
        .map(|times| {
            times.sort_by(f64::total_cmp);
            [times[0], times[times.len() / 2]]
        })
        .collect()
}

fn product<T: Element + From<f32>>(
    size: usize,
    one: T,
    blas: Option<Gemm<T>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let elements = |seed: usize| (0..size * size).map(|i| T::from((i * seed % 1000) as f32 / 1e3)).collect::<Vec<T>>();
    let (b, c, mut a) = (elements(7919), elements(104_729), elements(1));
    let extents = [size as i64; 2];
    let speed = |seconds: f64| 2.0 * (size as f64).powi(3) / seconds / 1e9;
    let (b_view, c_view) = (View::dense(&b, &extents)?, View::dense(&c, &extents)?);
    let (mut a2, mut a3) = (a.clone(), a.clone());
    let mut results = [View::dense_mut(&mut a, &extents)?, View::dense_mut(&mut a2, &extents)?];
    let [first, second] = &mut results;
    let left = Operand { view: &b_view, indices: &["i", "k"] };
    let right = Operand { view: &c_view, indices: &["k", "j"] };
    let ours = |result: &mut View<'_>, team: &dyn Team| {
        contract(result, &["i", "j"], &left, &right, true, team).expect("a product");
    };
    let n = size as i32;
    let mut runs: Vec<(&str, Run<'_>)> = vec![
        ("1 thread", Box::new(|| ours(first, &Serial))),
        ("2 threads", Box::new(|| ours(second, &Scoped { threads: 2 }))),
    ];
    if let Some(gemm) = blas {
        let (b, c, a) = (&b, &c, &mut a3);
        runs.push((
            "OpenBLAS",
            Box::new(move || {
                // SAFETY: row-major matrices of n times n elements each.
                unsafe { gemm(101, 111, 111, n, n, n, one, b.as_ptr(), n, c.as_ptr(), n, one, a.as_mut_ptr(), n) }
            }),
        ));
    }
    let (names, runs): (Vec<&str>, Vec<_>) = runs.into_iter().unzip();
    let times = time(runs);
    let last = times[times.len() - 1];
    for (name, [best, median]) in names.iter().zip(times) {
        let of = [last[0] / best, last[1] / median];
        println!(
            "{} {size} {name}: median {:.1} ({:.2} of the last), best {:.1} ({:.2}) GFLOP/s",
            T::TYPE,
            speed(median),
            of[1],
            speed(best),
            of[0]
        );
    }
    Ok(())
}

fn tensors() -> Result<(), Box<dyn std::error::Error>> {
    let (n, rank) = (200_usize, 32_usize);
    let b: Vec<f64> = (0..n * n * n).map(|i| (i % 1013) as f64 / 1e3).collect();
    let factor: Vec<f64> = (0..n * rank).map(|i| (i % 101) as f64 / 1e2).collect();
    let [n, rank] = [n as i64, rank as i64];
    let (b, factor) = (View::dense(&b, &[n, n, n])?, View::dense(&factor, &[n, rank])?);
    for threads in [1, 2] {
        let team: &dyn Team = if threads == 1 { &Serial } else { &Scoped { threads } };
        let mut a = vec![0.0_f64; (n * n * rank) as usize];
        let mut result = View::dense_mut(&mut a, &[n, n, rank])?;
        let (left, right) =
            (Operand { view: &b, indices: &["i", "j", "k"] }, Operand { view: &factor, indices: &["k", "l"] });
        let run = || contract(&mut result, &["i", "j", "l"], &left, &right, false, team).expect("a product");
        let [best, median] = time(vec![Box::new(run)])[0];
        println!("TTM {threads} threads: median {:.2} ms, best {:.2} ms", median * 1e3, best * 1e3);
        for [x, y, z] in [["i", "j", "k"], ["j", "i", "k"], ["k", "i", "j"]] {
            let mut a = vec![0.0_f64; (n * rank) as usize];
            let mut result = View::dense_mut(&mut a, &[n, rank])?;
            let operands = Mttkrp {
                tensor: Operand { view: &b, indices: &["i", "j", "k"] },
                first: Operand { view: &factor, indices: &[y, "l"] },
                second: Operand { view: &factor, indices: &[z, "l"] },
            };
            let run = || mttkrp(&mut result, &[x, "l"], &operands, false, team).expect("an MTTKRP");
            let [best, median] = time(vec![Box::new(run)])[0];
            println!("MTTKRP A({x},l) {threads} threads: median {:.2} ms, best {:.2} ms", median * 1e3, best * 1e3);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // An OpenBLAS in its place would be told to have one thread, and so would the one that this is compared with.
    use_library("none")?;
    let size = std::env::args().nth(1).map_or(Ok(2048), |size| size.parse())?;
    let path = std::env::var("OPENBLAS").unwrap_or_else(|_| "libopenblas.so.0".to_owned());
    // SAFETY: OpenBLAS starts threads when it is loaded, and nothing else.
    let blas = unsafe { Library::new(&path) };
    if let Err(error) = &blas {
        println!("OpenBLAS is not compared with: {error}");
    }
    let blas = blas.as_ref().ok();
    // SAFETY: these are the types of CBLAS.
    unsafe {
        product(size, 1.0_f64, blas.and_then(|blas| blas.get(b"cblas_dgemm").ok()).map(|gemm| *gemm))?;
        product(size, 1.0_f32, blas.and_then(|blas| blas.get(b"cblas_sgemm").ok()).map(|gemm| *gemm))?;
    }
    tensors()
}
