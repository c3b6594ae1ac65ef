//! Data from outside, and sizes that are known afterwards: attached memory, attached files, outputs of tasks,
//! partitions by what fields say.
//!
//! Rivals are what a program would do by itself: nothing at all for attached memory, which is counted in bytes and
//! time; reading a file with one buffer, as `dd` does; threads that push rows into vectors; tasks that read the field
//! once.

use std::collections::VecDeque;
use std::fs::File as Plain;
use std::hint::black_box;
use std::io::{Read, Write};
use std::thread;
use std::time::Instant;

use maniple::prelude::*;
use maniple::{File, Machine};
use maniple_benches::{line, median, seconds};

const WORKERS: usize = 2;
const ROUNDS: usize = 7;
const GIGABYTE: usize = 1 << 30;

#[derive(Fields)]
struct Sample {
    value: u64,
}

#[derive(Fields)]
struct Row {
    key: u64,
    value: u64,
}

#[task(leaf)]
fn first(#[reads(value)] samples: Piece<Sample>) -> u64 {
    samples.points().next().map_or(0, |point| samples.value[point])
}

#[derive(Fields)]
struct Link {
    next: Ptr<Link>,
}

#[task(leaf)]
fn farthest(#[reads(next)] links: Piece<Link>) -> i64 {
    links.points().map(|point| links.next[point].point()[0]).max().unwrap_or(0)
}

#[task(leaf)]
fn connect(#[discards(next)] links: Piece<Link>) {
    links.points().for_each(|point| links.next[point] = Ptr::row(near(point[0] as u64) as i64));
}

#[task(leaf)]
fn rows(#[point] piece: Point<1>) -> Output<Row> {
    made(piece[0] as usize).collect()
}

const ROWS: u64 = 10_000_000;
const PIECES: usize = 16;

/// Another row of the same thousand.
fn near(row: u64) -> u64 {
    row / 1000 * 1000 + row % 1000 * 7 % 1000
}

/// The rows that a piece makes: of each four numbers three.
fn made(piece: usize) -> impl Iterator<Item = Row> {
    let each = ROWS / 3 * 4 / PIECES as u64;
    let numbers = piece as u64 * each..(piece as u64 + 1) * each;
    numbers.filter(|number| number % 4 != 0).map(|key| Row { key, value: near(key) })
}

fn main() -> Result<()> {
    println!("{:<48} {:>10} {:<8} wanted", "what", "median", "unit");
    let runtime = Runtime::builder().workers(WORKERS).build()?;
    attach(&runtime)?;
    read_file(&runtime)?;
    outputs(&runtime)?;
    partitions(&runtime)
}

/// A gigabyte goes in and comes back.
fn attach(runtime: &Runtime) -> Result<()> {
    let before = runtime.statistics().bytes_copied;
    let times = runtime.run(async |cx| {
        let samples = cx.region::<Sample>(GIGABYTE / 8)?;
        let (mut values, mut times) = (vec![1_u64; GIGABYTE / 8], Vec::new());
        for _ in 0..20 * ROUNDS {
            let started = Instant::now();
            let attached = cx.attach_vec(&samples, Sample::value, values)?;
            values = cx.detach(attached)?.await?;
            times.push(started.elapsed().as_secs_f64());
        }
        Ok(times)
    })?;
    line("a gigabyte attached and detached", median(times) * 1e6, "us", "at most 50");
    let copied = runtime.statistics().bytes_copied - before;
    line("bytes that were copied for that", copied as f64, "", "0");
    Ok(())
}

/// A file in the page cache, read into the memory of a region, and read with a buffer of 8 MiB.
fn read_file(runtime: &Runtime) -> Result<()> {
    let folder = tempfile::tempdir().map_err(Error::from_task)?;
    let path = folder.path().join("values");
    let mut file = Plain::create(&path).map_err(Error::from_task)?;
    let block = vec![7_u8; 8 << 20];
    for _ in 0..GIGABYTE / block.len() {
        file.write_all(&block).map_err(Error::from_task)?;
    }
    let (mut ours, mut buffered, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(runtime.run(async |cx| {
            let samples = cx.region::<Sample>(GIGABYTE / 8)?;
            let pieces = samples.partition(PIECES).equal()?;
            let started = Instant::now();
            let attached = cx.attach_file(&samples, Sample::value, File::raw(&path))?;
            cx.index_launch(PIECES, first(&pieces)).reduce(Sum).await?;
            let time = started.elapsed().as_secs_f64();
            cx.detach_file(attached)?.await?;
            Ok(time)
        })?);
        buffered.push(seconds(|| read_with(&path, 8 << 20)));
        whole.push(seconds(|| read_with(&path, GIGABYTE)));
    }
    let (ours, buffered, whole) = (median(ours), median(buffered), median(whole));
    line("a gigabyte read from an attached file", GIGABYTE as f64 / ours / 1e9, "GB/s", "");
    line("of the speed with one buffer of 8 MiB, as dd", buffered / ours, "times", "at least 0.9");
    line("of the speed of reading it into new memory", whole / ours, "times", "");
    stream_file(&path, buffered)
}

/// The same file, piece by piece, of which two are in memory at a time: one is read while another is looked at.
fn stream_file(path: &std::path::Path, buffered: f64) -> Result<()> {
    const PIECE: usize = 8 << 20;
    let runtime = Runtime::builder().machine(Machine::uniform(WORKERS as u32, 4 * PIECE as u64)).build()?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(runtime.run(async |cx| {
            let samples = cx.region::<Sample>(GIGABYTE / 8)?;
            let pieces = samples.partition(GIGABYTE / PIECE).equal()?;
            let started = Instant::now();
            let mut reading = VecDeque::new();
            for piece in pieces.colors().rect().points() {
                let piece = pieces.piece(piece)?;
                let file = File::raw(path).within(samples.space().bounds());
                let attached = cx.attach_file(&piece, Sample::value, file)?;
                cx.launch(first(&piece));
                reading.push_back(cx.detach_file(attached)?);
                if reading.len() > 1 {
                    reading.pop_front().expect("two are read").await?;
                }
            }
            for read in reading {
                read.await?;
            }
            Ok(started.elapsed().as_secs_f64())
        })?);
    }
    line("of the speed of dd, in pieces through 32 MiB", buffered / median(times), "times", "at least 0.9");
    Ok(())
}

fn read_with(path: &std::path::Path, bytes: usize) {
    let mut file = Plain::open(path).expect("the file is there");
    let mut buffer = vec![0; bytes];
    while file.read(&mut buffer).expect("the file can be read") > 0 {
        black_box(&mut buffer);
    }
}

/// Rows that tasks return become a region; threads push as many into vectors.
fn outputs(runtime: &Runtime) -> Result<()> {
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(runtime.run(async |cx| {
            let started = Instant::now();
            let (found, _) = cx.collect(cx.index_launch(PIECES, rows())).await?;
            assert!(found.volume() >= ROWS - 16 * PIECES as u64);
            Ok(started.elapsed().as_secs_f64())
        })?);
        plain.push(seconds(|| {
            thread::scope(|scope| {
                for thread in 0..WORKERS {
                    scope.spawn(move || {
                        for piece in (thread..PIECES).step_by(WORKERS) {
                            let (mut keys, mut values) = (Vec::new(), Vec::new());
                            made(piece).for_each(|row| {
                                keys.push(row.key);
                                values.push(row.value);
                            });
                            black_box((keys, values));
                        }
                    });
                }
            });
        }));
    }
    let (ours, plain) = (median(ours), median(plain));
    line("ten million rows that tasks return", ROWS as f64 / ours / 1e6, "M/s", "");
    line("of the speed of threads that push into vectors", plain / ours, "times", "at least 0.8");
    Ok(())
}

/// Partitions by a field of 10^8 numbers of rows, and tasks that read it once.
fn partitions(runtime: &Runtime) -> Result<()> {
    const MANY: usize = 100_000_000;
    runtime.run(async |cx| {
        let links = cx.region::<Link>(MANY)?;
        let pieces = links.partition(PIECES).equal()?;
        cx.index_launch(PIECES, connect(&pieces));
        let (mut read, mut image, mut preimage) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..3 {
            let started = Instant::now();
            cx.index_launch(PIECES, farthest(&pieces)).reduce(Max).await?;
            read.push(started.elapsed().as_secs_f64());
            let started = Instant::now();
            let reached = cx.image(&links, &pieces, Link::next).await?;
            image.push(started.elapsed().as_secs_f64());
            let started = Instant::now();
            let reaching = cx.preimage(&links, Link::next, &pieces).await?;
            preimage.push(started.elapsed().as_secs_f64());
            black_box((reached, reaching));
        }
        let read = median(read);
        line("10^8 rows of 16 pieces, read once", read * 1e3, "ms", "");
        line("their image, of that time", median(image) / read, "times", "at most 3");
        line("their preimage, of that time", median(preimage) / read, "times", "at most 3");
        Ok(())
    })
}
