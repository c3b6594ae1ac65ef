//! `.tcs` files, loaded and stored by tasks.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use maniple::{Context, Runtime};
use maniple_files::tcs::Width;
use maniple_tensor::distributed::{DistributedError, TcsFile, Tensor, TensorMapper};
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::TensorVariable;
use rustix::fs::{Advice, fadvise};

use super::{Stage, matrix};
use crate::error::{Error, Result};
use crate::median;
use crate::targets::findings::Bound::{AtLeast, AtMost};
use crate::targets::findings::Row;

/// Loads a `.tcs` file, with its pages in memory and without them, and on two nodes.
///
/// # Errors
/// If a program fails.
pub fn load(stage: &Stage) -> Result<Vec<Row>> {
    let path = made(stage)?;
    let bytes = size(&path)? as f64;
    let runtime = runtime(stage.cores())?;
    let round = |is_cold: bool| -> Result<(f64, f64)> {
        let prepare = || if is_cold { forget(&path) } else { Ok(()) };
        prepare()?;
        let ours = loaded(&runtime, &path)?;
        prepare()?;
        Ok((ours, cat(&path)?))
    };
    round(false)?;
    let cached = rounds(stage, || round(false))?;
    let cold = rounds(stage, || round(true))?;
    let ratio = |times: &[(f64, f64)]| median(times.iter().map(|(ours, theirs)| theirs / ours).collect());
    let speed = |times: &[(f64, f64)]| bytes / 1e9 / median(times.iter().map(|(ours, _)| *ours).collect());
    let (most, share) = (peak(stage, &path)?, bytes / 2.0);
    Ok(vec![
        Row::new("a .tcs file in the page cache, loaded by tasks", speed(&cached), "GB/s").must(AtLeast(2.0)),
        Row::new("  of the speed of cat", ratio(&cached), "times"),
        Row::new("a .tcs file on the disk, loaded by tasks", speed(&cold), "GB/s"),
        Row::new("  of the speed of cat", ratio(&cold), "times").must(AtLeast(0.8)),
        Row::new("  data in memory of each of two nodes, at most", most / share, "of its half")
            .must(AtMost(1.3 + 64.0 * 1024.0 * 1024.0 / share)),
    ])
}

/// Stores a tensor in a `.tcs` file, and writes as many bytes by one thread.
///
/// # Errors
/// If a program fails.
pub fn store(stage: &Stage) -> Result<Vec<Row>> {
    let (path, into) = (made(stage)?, stage.folder.join("stored.tcs"));
    let bytes = size(&path)?;
    let runtime = runtime(stage.cores())?;
    let times = runtime.run(async |cx| {
        let stored = async || {
            let (tensor, _) = load_on(cx, &path).await?;
            let mut times = Vec::new();
            for round in 0..=stage.rounds {
                let started = Instant::now();
                tensor.store(cx, &into, Width::Eight).await?;
                let ours = started.elapsed().as_secs_f64();
                let _ = fs::remove_file(&into);
                let plain = written(&into, bytes).map_err(maniple::Error::from_task)?;
                if round > 0 {
                    times.push((ours, plain));
                }
            }
            tensor.destroy(cx)?;
            Ok::<_, DistributedError>(times)
        };
        stored().await.map_err(maniple::Error::from)
    })?;
    let ours = median(times.iter().map(|(ours, _)| *ours).collect());
    let ratio = median(times.iter().map(|(ours, plain)| plain / ours).collect());
    Ok(vec![
        Row::new("a .tcs file, stored by tasks", bytes as f64 / 1e9 / ours, "GB/s"),
        Row::new("  of the speed of one thread that writes as many bytes", ratio, "times").must(AtLeast(0.7)),
    ])
}

/// Loads a file on each node of a job, and prints the most bytes of data that this node has had.
///
/// # Errors
/// If that fails.
pub fn serve(path: &Path, workers: usize) -> Result<()> {
    let runtime = runtime(workers)?;
    loaded(&runtime, path)?;
    let most = runtime.memories().iter().map(|memory| memory.peak).sum::<u64>();
    println!("{most}");
    Ok(())
}

/// The most bytes of data that a node of two has while it loads a file.
fn peak(stage: &Stage, path: &Path) -> Result<f64> {
    let workers = (stage.cores() / 2).max(1).to_string();
    let mut command = Command::new(&stage.ours);
    command.args(["launch", "--no-prefix", "-n", "2", "--"]).arg(&stage.ours);
    let output = command.arg("load").arg(path).args(["--workers", &workers]).output();
    let failed = |found: String| Error::Program { program: format!("{command:?}"), found };
    let output = output.map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let peaks: Vec<f64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    match (output.status.success(), &peaks[..]) {
        (true, [one, other]) => Ok(one.max(*other)),
        _ => Err(failed(format!("{text}{}", String::from_utf8_lossy(&output.stderr)))),
    }
}

/// The file that is read, which is made once.
pub(super) fn made(stage: &Stage) -> Result<PathBuf> {
    let path = stage.folder.join(format!("matrix-{}.tcs", stage.bytes));
    if !path.exists() {
        let unfinished = path.with_extension("part");
        matrix::write(&unfinished, stage.bytes)?;
        fs::rename(&unfinished, &path).map_err(|error| Error::file(&path, error))?;
    }
    Ok(path)
}

fn size(path: &Path) -> Result<u64> {
    fs::metadata(path).map(|data| data.len()).map_err(|error| Error::file(path, error))
}

fn rounds(stage: &Stage, mut round: impl FnMut() -> Result<(f64, f64)>) -> Result<Vec<(f64, f64)>> {
    (0..stage.rounds).map(|_| round()).collect()
}

fn runtime(workers: usize) -> Result<Runtime> {
    Ok(Runtime::builder().workers(workers).mapper(TensorMapper::new()).build()?)
}

async fn load_on(cx: &Context, path: &Path) -> std::result::Result<(Tensor, f64), DistributedError> {
    let file = TcsFile::open(path).map_err(maniple::Error::from_task)?;
    let variable = TensorVariable::new("B", ElementType::F64, file.dimensions()).stored(file.format()?);
    let started = Instant::now();
    let (tensor, _) = Tensor::load(cx, &variable, &file).await?;
    Ok((tensor, started.elapsed().as_secs_f64()))
}

/// The seconds that a file takes to be loaded.
fn loaded(runtime: &Runtime, path: &Path) -> Result<f64> {
    let seconds = runtime.run(async |cx| {
        let (tensor, seconds) = load_on(cx, path).await?;
        tensor.destroy(cx)?;
        Ok(seconds)
    });
    Ok(seconds?)
}

/// The seconds that `cat` takes to read a file.
fn cat(path: &Path) -> Result<f64> {
    let started = Instant::now();
    let status = Command::new("cat").arg(path).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(started.elapsed().as_secs_f64()),
        found => Err(Error::Program { program: "cat".to_owned(), found: format!("{found:?}") }),
    }
}

/// Has the system give up the pages that it keeps of a file.
fn forget(path: &Path) -> Result<()> {
    let given_up = File::open(path).and_then(|file| {
        file.sync_all()?;
        Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
    });
    given_up.map_err(|error| Error::file(path, error))
}

/// The seconds that one thread takes to write so many bytes to the disk.
fn written(path: &Path, bytes: u64) -> std::io::Result<f64> {
    let block = vec![7_u8; 8 << 20];
    let started = Instant::now();
    let mut file = File::create(path)?;
    let mut left = bytes;
    while left > 0 {
        let count = left.min(block.len() as u64);
        file.write_all(&block[..count as usize])?;
        left -= count;
    }
    file.sync_all()?;
    let seconds = started.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(seconds)
}
