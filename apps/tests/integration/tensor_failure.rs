//! A node that dies while a tensor is read from a file, while a statement is computed, and while a result is written:
//! the others say which one, all end, and no half of a file has its name.
//!
//! The nodes are this test program itself, which `maniple launch` starts with the name of a part to play.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple::prelude::*;
use maniple_files::tcs::{Arrays, Level, Source, TcsLevelKind, Tensor as Stored, Width};
use maniple_tensor::distributed::{Computation, DistributedError, TcsFile, Tensor, TensorMapper};
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse;

/// Which part a node plays, and in which folder, if this process is one.
const PART: &str = "MANIPLE_TENSOR_FAILURE_TEST";
const FOLDER: &str = "MANIPLE_TENSOR_FAILURE_FOLDER";

/// The node that dies.
const VICTIM: usize = 1;

/// So many rows and columns has the matrix, and four elements in each row.
const EXTENT: usize = 100_000;

/// A file that ends the process when so many bytes were read of it.
struct Deadly {
    file: File,
    left: AtomicU64,
}

impl Source for Deadly {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let left = self.left.load(Ordering::Relaxed);
        if left < into.len() as u64 {
            std::process::abort();
        }
        self.left.store(left - into.len() as u64, Ordering::Relaxed);
        self.file.read_at(offset, into)
    }
}

/// One of the nodes below, if the environment says so.
#[test]
fn node() {
    let Ok(part) = std::env::var(PART) else { return };
    let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
    let runtime = Runtime::builder().workers(1).mapper(TensorMapper::new()).build().unwrap();
    let outcome = runtime.run(async |cx| Ok(play(cx, &part, &folder, runtime.node() == VICTIM).await?));
    drop(runtime);
    if let Err(error) = outcome {
        eprintln!("\nerror: {error}");
        std::process::exit(3);
    }
}

async fn play(cx: &Context, part: &str, folder: &Path, is_victim: bool) -> Result<(), DistributedError> {
    let extent = EXTENT as i64;
    let matrix = TensorVariable::new("B", ElementType::F64, [extent, extent]).stored("csr".parse().unwrap());
    let vector = |name| TensorVariable::new(name, ElementType::F64, [extent]);
    let (result, operand) = (vector("a"), vector("c"));
    let file = File::open(folder.join("b.tcs")).unwrap();
    let left = if part == "load" && is_victim { 1 << 20 } else { u64::MAX };
    let file = TcsFile::of("b.tcs", Deadly { file, left: AtomicU64::new(left) }).unwrap();
    let (matrix, _) = Tensor::load(cx, &matrix, &file).await?;
    let assignment = parse("a(i) = B(i,j) * c(j)", &[result.clone(), matrix.variable().clone(), operand.clone()]);
    let assignment = assignment.unwrap();
    let loops = sparse::Computation::new(&assignment).unwrap();
    let statement = loops.statement().distribute(["i"], ["io"], ["ii"], &[6]).unwrap();
    let plan = Arc::new(Plan::new(&statement).unwrap());
    let (result, operand) = (Tensor::new(cx, &result)?, Tensor::new(cx, &operand)?);
    operand.write_elements(cx, vec![1.0; EXTENT])?;
    let computation = Computation::new(cx, &plan, &[&result, &matrix, &operand]).await?;
    for repeat in 0.. {
        computation.launch(cx)?.await?;
        match part {
            "run" if is_victim && repeat == 3 => std::process::abort(),
            "run" => {}
            _ => break,
        }
    }
    if part == "store" && is_victim {
        // The system ends a process that writes files beyond this.
        let limit = rustix::process::Rlimit { current: Some(300_000), maximum: None };
        rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    }
    result.store(cx, &folder.join("a.tcs"), Width::Eight).await?;
    Ok(())
}

/// The folder with the matrix, and with what had the name of the result before.
fn folder(part: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tensor-failure-{part}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    let extent = EXTENT as u64;
    let pos = (0..=EXTENT as i64).map(|row| 4 * row).collect();
    let idx = (0..EXTENT as i64).flat_map(|row| (0..4).map(move |number| (row + number) % 1000 + 1000 * number));
    let tensor = Stored {
        levels: vec![Level::new(TcsLevelKind::Dense, 0, extent), Level::new(TcsLevelKind::Sparse, 1, extent)],
        arrays: vec![Arrays::default(), Arrays { pos, idx: idx.collect() }],
        values: vec![0.5; 4 * EXTENT],
    };
    tensor.write(Width::Eight, &mut File::create(path.join("b.tcs")).unwrap()).unwrap();
    fs::write(path.join("a.tcs"), "what was there before").unwrap();
    path
}

/// The exit code of a job of three nodes that play a part, and what they say.
fn played(part: &str, folder: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(["launch", "-n", "3", "--grace", "1", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["tensor_failure::node", "--exact", "--nocapture"]);
    command.env(PART, part).env(FOLDER, folder).env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_node_that_dies_in_a_load_a_run_or_a_store_is_named_and_no_half_of_a_file_stays() {
    for part in ["load", "run", "store"] {
        let folder = folder(part);
        let (code, told) = played(part, &folder);
        assert!(!matches!(code, None | Some(0)), "{part}: {code:?} {told}");
        for node in [0, 2] {
            let says = |line: &str| line.starts_with(&format!("[{node}] error: ")) && line.contains("node 1 is lost");
            assert!(told.lines().any(says), "{part}: {told}");
        }
        assert_eq!(files(&folder), ["a.tcs", "b.tcs"], "{part}: {told}");
        assert_eq!(fs::read(folder.join("a.tcs")).unwrap(), b"what was there before", "{part}");
    }
}

#[test]
fn a_job_in_which_all_live_writes_the_whole_file() {
    let folder = folder("all");
    let (code, told) = played("all", &folder);
    assert_eq!(code, Some(0), "{told}");
    let stored = Stored::<f64>::read(&fs::read(folder.join("a.tcs")).unwrap()).unwrap();
    assert_eq!(stored.values, vec![2.0; EXTENT]);
    assert_eq!(files(&folder), ["a.tcs", "b.tcs"]);
}
