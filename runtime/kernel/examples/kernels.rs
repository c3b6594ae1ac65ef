//! How long kernels take to compile, to be found again, and to run: GFLOP/s and GB/s of loops that should be
//! vectorised, beside the same loops written in Rust.
//!
//! `cargo run --release -p maniple-kernel --example kernels`. Wanted: at most 0.3 s to compile, 1 ms from disk, a few
//! microseconds from memory; loops at least as fast as Rust's. With `--source` it prints the C of the matrix product
//! instead.

use std::hint::black_box;
use std::time::{Duration, Instant};

use maniple_kernel::element::ElementType::F64;
use maniple_kernel::execution::{Compiler, Kernels, Scoped, Serial, Team, View};
use maniple_kernel::loops::*;

fn vector(name: &str, access: Access) -> Buffer {
    Buffer::new(name, F64, 1, access)
}

/// `y(i) += x(i)`.
fn add() -> Kernel {
    let (x, y, i) = (vector("x", Access::Read), vector("y", Access::Update), Variable::index("i"));
    let body = Statement::store(&y, [i.value()], x.load([i.value()])).reduce(Reduction::Sum);
    Kernel {
        name: "add".into(),
        body: Statement::for_each(&i, y.low(0), y.high(0), body).with_kind(LoopKind::Vector),
        parameters: vec![Parameter::Buffer(x), Parameter::Buffer(y)],
    }
}

/// `a = x(i) * y(i)`, by threads if `threads`.
fn inner_product(threads: bool) -> Kernel {
    let (x, y, i) = (vector("x", Access::Read), vector("y", Access::Read), Variable::index("i"));
    let (a, o) = (Buffer::new("a", F64, 0, Access::Update), Variable::index("o"));
    let body = Statement::store(&a, [], x.load([i.value()]) * y.load([i.value()])).reduce(Reduction::Sum);
    let each = |low: Expression, high: Expression| {
        Statement::for_each(&i, low, high, body.clone()).with_kind(LoopKind::Vector)
    };
    let body = if threads {
        let size = || x.high(0).ceiling_divide(8);
        let inner = each(o.value() * size(), (o.value() * size() + size()).minimum(x.high(0)));
        Statement::for_each(&o, 0, 8, inner).with_kind(LoopKind::Threads)
    } else {
        each(x.low(0), x.high(0))
    };
    Kernel {
        name: "inner_product".into(),
        body,
        parameters: vec![Parameter::Buffer(x), Parameter::Buffer(y), Parameter::Buffer(a)],
    }
}

/// `A(i,j) += B(i,k) * C(k,j)` in the order i, k, j, tiled.
fn product() -> Kernel {
    let matrix = |name, access| Buffer::new(name, F64, 2, access);
    let [a, b, c] = [matrix("A", Access::Update), matrix("B", Access::Read), matrix("C", Access::Read)];
    let [io, ko, i, k, j] = ["io", "ko", "i", "k", "j"].map(Variable::index);
    let multiply = b.load([i.value(), k.value()]) * c.load([k.value(), j.value()]);
    let body = Statement::store(&a, [i.value(), j.value()], multiply).reduce(Reduction::Sum);
    let body = Statement::for_each(&j, a.low(1), a.high(1), body).with_kind(LoopKind::Vector);
    let tile = |outer: &Variable, high: Expression| (outer.value() * 64, (outer.value() * 64 + 64).minimum(high));
    let (low, high) = tile(&ko, b.high(1));
    let body = Statement::for_each(&k, low, high, body).with_unroll(4);
    let (low, high) = tile(&io, a.high(0));
    let body = Statement::for_each(&i, low, high, body);
    let body = Statement::for_each(&ko, 0, b.high(1).ceiling_divide(64), body);
    let body = Statement::for_each(&io, 0, a.high(0).ceiling_divide(64), body).with_kind(LoopKind::Threads);
    Kernel { name: "product".into(), body, parameters: [a, b, c].map(Parameter::Buffer).into() }
}

fn median(mut run: impl FnMut()) -> Duration {
    run();
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[4]
}

fn once<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (run(), start.elapsed())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().any(|argument| argument == "--source") {
        println!("{}", print_c(&check(&product())?, Strides::AsExpected));
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let open = || Kernels::new(Compiler::find(), Some(folder.path().join("kernels")));
    for (name, kernel) in [("add", add()), ("inner product", inner_product(true)), ("matrix product", product())] {
        let kernels = open();
        let cold = once(|| kernels.get(&kernel)).1;
        let again = open();
        let disk = once(|| again.get(&kernel)).1;
        let memory = median(|| drop(black_box(again.get(&kernel))));
        println!("{name}: compiled in {cold:.1?}, found on disk in {disk:.1?}, in memory in {memory:.1?}");
    }
    let kernels = open();
    for size in [4096_usize, 1 << 24] {
        let (x, mut y) = (vec![1.5_f64; size], vec![0.5_f64; size]);
        let repeats = (1 << 22) / size + 1;
        let speed = |bytes: usize, time: Duration| (bytes * size * repeats) as f64 / time.as_secs_f64() / 1e9;
        let extents = [size as i64];
        let executable = kernels.get(&add())?;
        let ours = median(|| {
            for _ in 0..repeats {
                let mut arguments = [
                    View::dense(&x, &extents).expect("fits").into(),
                    View::dense_mut(&mut y, &extents).expect("fits").into(),
                ];
                // SAFETY: the loop stays within `y`, and `x` is as long.
                unsafe { executable.call(&mut arguments, &Serial) }.expect("runs");
            }
        });
        let rust = median(|| {
            for _ in 0..repeats {
                black_box(&mut y).iter_mut().zip(&x).for_each(|(y, x)| *y += x);
            }
        });
        println!("add of {size}: {:.1} GB/s, {:.2} of Rust", speed(24, ours), rust.as_secs_f64() / ours.as_secs_f64());
        for (how, threads, team) in [("", false, &Serial as &dyn Team), (" by 2 threads", true, &Scoped { threads: 2 })]
        {
            let executable = kernels.get(&inner_product(threads))?;
            let mut a = [0.0_f64];
            let ours = median(|| {
                for _ in 0..repeats {
                    let mut arguments = [
                        View::dense(&x, &extents).expect("fits").into(),
                        View::dense(&y, &extents).expect("fits").into(),
                        View::dense_mut(&mut a, &[]).expect("fits").into(),
                    ];
                    // SAFETY: the loop stays within `x`, and `y` is as long.
                    unsafe { executable.call(&mut arguments, team) }.expect("runs");
                }
            });
            println!("inner product of {size}{how}: {:.1} GB/s", speed(16, ours));
        }
    }
    let size = 512_usize;
    let (b, c, mut a) = (vec![1.5_f64; size * size], vec![0.5_f64; size * size], vec![0.0_f64; size * size]);
    let executable = kernels.get(&product())?;
    let extents = [size as i64; 2];
    let time = median(|| {
        let mut arguments = [
            View::dense_mut(&mut a, &extents).expect("fits").into(),
            View::dense(&b, &extents).expect("fits").into(),
            View::dense(&c, &extents).expect("fits").into(),
        ];
        // SAFETY: all three are of the same size.
        unsafe { executable.call(&mut arguments, &Serial) }.expect("runs");
    });
    println!("matrix product of {size}: {:.1} GFLOP/s", 2.0 * (size as f64).powi(3) / time.as_secs_f64() / 1e9);
    Ok(())
}
