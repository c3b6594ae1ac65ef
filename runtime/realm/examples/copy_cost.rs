//! Prints what transfers cost against hand-written loops over the same bytes, as ratios: 1.00 is as fast, 2.00 takes
//! twice the time.
//!
//! ```text
//! cargo run --release -p maniple-realm --example copy_cost
//! ```

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maniple_realm::instance::{Instance, InstanceKind};
use maniple_realm::layout::{Arrangement, DimensionOrder, FieldId, FieldSpec, Layout, LayoutSpec};
use maniple_realm::machine::MemoryId;
use maniple_realm::memory::MemoryPool;
use maniple_realm::reduction::{RawReduction, Reduction};
use maniple_realm::transfer::{Dangling, FillValue, ReductionMode, Transfer};
use maniple_space::{AnyRect, AnySpace, IndexSpace, Rect};

const FIELD: FieldId = FieldId(0);
const SIDE: i64 = 2000;
const LINE: i64 = 4_000_000;

struct Sum;

impl Reduction for Sum {
    type Lhs = f64;
    type Rhs = f64;

    fn identity() -> f64 {
        0.0
    }

    fn apply(value: &mut f64, contribution: f64) {
        *value += contribution;
    }

    fn fold(into: &mut f64, contribution: f64) {
        *into += contribution;
    }
}

fn main() {
    println!("transfers of f64 against hand-written loops (time of ours / time of theirs)");
    rectangle_copy("copy, 2-D sub-rectangle", 1000);
    rectangle_copy("copy, 2-D sub-rectangle, rows of 16", 16);
    sparse_copy("copy, 1-D sparse, runs of 16", 16);
    sparse_copy("copy, 1-D sparse, runs of 256", 256);
    sparse_copy("copy, 1-D sparse, single points", 1);
    structs_to_arrays();
    transposition();
    fill();
    reduction();
    gather();
}

fn rectangle_copy(name: &str, columns: i64) {
    let bounds = Rect::<2>::from_shape([SIDE, SIDE]);
    let [from, to] = [(); 2].map(|()| instance(plain(bounds.into())));
    let inner = Rect::<2>::new([100, 200], [SIDE - 101, 199 + columns]);
    let transfer = Transfer::copy(inner.into(), (&from, FIELD), (&to, FIELD)).expect("both store it");
    let mut rows = (vec![1.0; (SIDE * SIDE) as usize], vec![0.0; (SIDE * SIDE) as usize]);
    report(name, &transfer, || {
        for row in 100..(SIDE - 100) as usize {
            let first = row * SIDE as usize + 200;
            rows.1[first..first + columns as usize].copy_from_slice(&rows.0[first..first + columns as usize]);
        }
        black_box(&mut rows);
    });
}

fn sparse_copy(name: &str, run: i64) {
    let [from, to] = [(); 2].map(|()| instance(plain(Rect::from(0..LINE).into())));
    let runs: Vec<(i64, i64)> =
        (0..LINE / (2 * run).max(3)).map(|index| index * (2 * run).max(3)).map(|lo| (lo, lo + run)).collect();
    let space = IndexSpace::<1>::from_rects(runs.iter().map(|&(lo, end)| Rect::from(lo..end)));
    let transfer = Transfer::copy(space.into(), (&from, FIELD), (&to, FIELD)).expect("both store it");
    let mut line = (vec![1.0; LINE as usize], vec![0.0; LINE as usize]);
    report(name, &transfer, || {
        for &(lo, end) in &runs {
            line.1[lo as usize..end as usize].copy_from_slice(&line.0[lo as usize..end as usize]);
        }
        black_box(&mut line);
    });
}

fn structs_to_arrays() {
    let bounds: AnyRect = Rect::from(0..LINE / 4).into();
    let fields = (0..4).map(|id| FieldSpec::of::<f64>(FieldId(id))).collect();
    let structs = LayoutSpec::new(bounds.into(), fields).arranged(Arrangement::ArrayOfStructs);
    let from = instance(structs.build().expect("a sound layout"));
    let to = instance(plain(bounds));
    let transfer = Transfer::copy(bounds.into(), (&from, FIELD), (&to, FIELD)).expect("both store it");
    let mut line = (vec![[1.0; 4]; (LINE / 4) as usize], vec![0.0; (LINE / 4) as usize]);
    report("copy, structs to arrays", &transfer, || {
        for (to, from) in line.1.iter_mut().zip(&line.0) {
            *to = from[0];
        }
        black_box(&mut line);
    });
}

fn transposition() {
    let bounds: AnyRect = Rect::<2>::from_shape([SIDE, SIDE]).into();
    let from = instance(plain(bounds));
    let columns = LayoutSpec::new(bounds.into(), vec![FieldSpec::of::<f64>(FIELD)]);
    let to = instance(columns.ordered(DimensionOrder::column_major(2)).build().expect("a sound layout"));
    let transfer = Transfer::copy(bounds.into(), (&from, FIELD), (&to, FIELD)).expect("both store it");
    let side = SIDE as usize;
    let mut square = (vec![1.0; side * side], vec![0.0; side * side]);
    report("copy, rows to columns (theirs in tiles)", &transfer, || {
        for tile_row in (0..side).step_by(32) {
            for tile_column in (0..side).step_by(32) {
                for row in tile_row..(tile_row + 32).min(side) {
                    for column in tile_column..(tile_column + 32).min(side) {
                        square.1[column * side + row] = square.0[row * side + column];
                    }
                }
            }
        }
        black_box(&mut square);
    });
}

fn fill() {
    let to = instance(plain(Rect::from(0..LINE).into()));
    let space = AnySpace::from(Rect::from(0..LINE));
    let transfer = Transfer::fill(space, (&to, FIELD), FillValue::of(1.5)).expect("it stores it");
    let mut line = vec![0.0; LINE as usize];
    report("fill", &transfer, || black_box(&mut line).fill(1.5));
}

fn reduction() {
    let [from, to] = [(); 2].map(|()| instance(plain(Rect::from(0..LINE).into())));
    let (space, sum) = (AnySpace::from(Rect::from(0..LINE)), RawReduction::of::<Sum>());
    let transfer = Transfer::reduce(space, (&from, FIELD), (&to, FIELD), sum, ReductionMode::Apply);
    let mut line = (vec![1.0; LINE as usize], vec![0.0; LINE as usize]);
    report("reduction", &transfer.expect("both store it"), || {
        for (to, from) in line.1.iter_mut().zip(&line.0) {
            *to += from;
        }
        black_box(&mut line);
    });
}

fn gather() {
    let space = AnySpace::from(Rect::from(0..LINE));
    let pointers: Vec<i64> =
        (0..LINE).map(|index| index.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64).rem_euclid(LINE)).collect();
    let [from, to] = [(); 2].map(|()| instance(plain(Rect::from(0..LINE).into())));
    let pool = MemoryPool::new(MemoryId(0), 0);
    let attached = Instance::attach_vec(&pool, plain(Rect::from(0..LINE).into()), pointers.clone()).expect("it fits");
    let sides = ((&attached, FIELD), (&from, FIELD), (&to, FIELD));
    let transfer = Transfer::gather(space.clone(), sides.0, sides.1, sides.2, space, Dangling::Fail);
    let mut line = (vec![1.0; LINE as usize], vec![0.0; LINE as usize]);
    report("gather", &transfer.expect("all store it"), || {
        for (to, &pointer) in line.1.iter_mut().zip(&pointers) {
            *to = line.0[pointer as usize];
        }
        black_box(&mut line);
    });
}

fn plain(bounds: AnyRect) -> Layout {
    LayoutSpec::new(bounds.into(), vec![FieldSpec::of::<f64>(FIELD)]).build().expect("a sound layout")
}

/// An instance whose pages have all been touched.
fn instance(layout: Layout) -> Arc<Instance> {
    let pool = MemoryPool::new(MemoryId(0), u64::MAX);
    let bounds = layout.bounds();
    let (instance, _) = Instance::create(&pool, layout, InstanceKind::Normal, |_, _| ()).expect("there is room");
    let fill = Transfer::fill(bounds.into(), (&instance, FIELD), FillValue::of(1.0)).expect("it stores its bounds");
    // SAFETY: no other thread has the instance.
    unsafe { fill.execute() }.expect("its bytes are there");
    instance
}

/// Prints the ratio of the best times of several rounds, in which the two take turns.
fn report(name: &str, transfer: &Transfer, mut theirs: impl FnMut()) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..15 {
        // SAFETY: this thread alone uses the instances, which hold floats.
        best.0 = best.0.min(time(|| unsafe { transfer.execute() }.expect("nothing dangles")));
        best.1 = best.1.min(time(&mut theirs));
    }
    let gigabytes = transfer.bytes() as f64 / best.0.as_nanos() as f64;
    let ratio = best.0.as_secs_f64() / best.1.as_secs_f64();
    println!("{name:42} {ratio:5.2}   ({gigabytes:.1} GB/s written)");
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
