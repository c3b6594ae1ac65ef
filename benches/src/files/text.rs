//! Text and archives, beside SciPy and NumPy.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Instant;

use maniple_apps::tensor::convert::{self, ConvertOptions};
use maniple_files::npz::{Archive, ArrayValues, Compression, Sparse, Structure};
use maniple_tensor::element::ElementType;
use maniple_tensor::files::{FileError, TensorFile};
use maniple_tensor::storage::{DynamicTensor, SparseTensor};

use super::{Stage, matrix};
use crate::error::{Error, Result};
use crate::median;
use crate::targets::findings::Bound::AtLeast;
use crate::targets::findings::Row;
use crate::tensors::turns::Player;
use crate::toolbox::Rival;

/// Text has so much less than the `.tcs` file that is loaded.
const PART: u64 = 10;

/// Converts a `.tns` file to a `.tcs` file, in little memory.
///
/// # Errors
/// If that fails.
pub fn convert(stage: &Stage) -> Result<Vec<Row>> {
    let (from, to) = (text(stage, "tns")?, stage.folder.join("converted.tcs"));
    let options = ConvertOptions {
        from: TensorFile::of(&from).map_err(Error::tensor)?,
        to: TensorFile::of(&to).map_err(Error::tensor)?,
        extents: Vec::new(),
        format: None,
        width: None,
        sort: false,
    };
    let mut times = Vec::new();
    for round in 0..=stage.rounds {
        let started = Instant::now();
        convert::run(&options)?;
        if round > 0 {
            times.push(started.elapsed().as_secs_f64());
        }
        fs::remove_file(&to).map_err(|error| Error::file(&to, error))?;
    }
    let speed = size(&from)? / 1e6 / median(times);
    Ok(vec![Row::new("a .tns file, converted to .tcs", speed, "MB/s").must(AtLeast(150.0))])
}

/// Reads and writes a Matrix Market file.
///
/// # Errors
/// If that fails.
pub fn matrix_market(stage: &Stage) -> Result<Vec<Row>> {
    let (from, into) = (text(stage, "mtx")?, stage.folder.join("written.mtx"));
    let (file, to) = (TensorFile::of(&from).map_err(Error::tensor)?, TensorFile::of(&into).map_err(Error::tensor)?);
    let matrix = DynamicTensor::from(stored(stage)?);
    let read = in_turns(stage, Rival::SciPy, "read-mtx", &from, || read(&file).map_err(Error::tensor))?;
    let write = in_turns(stage, Rival::SciPy, "write-mtx", &from, || to.write(&matrix).map_err(Error::tensor))?;
    let bytes = size(&from)? / 1e6;
    let mut rows = vec![Row::new("a Matrix Market file, read", bytes / read.0, "MB/s")];
    rows.extend(read.1.map(|times| Row::new("  of the speed of SciPy", times, "times").must(AtLeast(1.0))));
    rows.push(Row::new("a Matrix Market file, written", bytes / write.0, "MB/s"));
    rows.extend(write.1.map(|times| Row::new("  of the speed of SciPy", times, "times").must(AtLeast(3.0))));
    Ok(rows)
}

fn read(file: &TensorFile) -> std::result::Result<(), FileError> {
    file.open(false)?.read(ElementType::F64).map(drop)
}

/// Reads a `.npz` file whose arrays are not compressed.
///
/// # Errors
/// If that fails.
pub fn archive(stage: &Stage) -> Result<Vec<Row>> {
    let path = stage.folder.join(format!("matrix-{}.npz", stage.bytes));
    if !path.exists() {
        write_archive(&path, &stored(stage)?)?;
    }
    let ours = || {
        let file = File::open(&path).map_err(|error| Error::file(&path, error))?;
        let read = Archive::new(BufReader::new(file)).and_then(|mut archive| Sparse::read(&mut archive));
        read.map(drop).map_err(Error::tensor)
    };
    let read = in_turns(stage, Rival::NumPy, "read-npz", &path, ours)?;
    let mut rows = vec![Row::new("a .npz file, read", size(&path)? / 1e9 / read.0, "GB/s")];
    rows.extend(read.1.map(|times| Row::new("  of the speed of NumPy", times, "times").must(AtLeast(1.0))));
    Ok(rows)
}

fn size(path: &Path) -> Result<f64> {
    fs::metadata(path).map(|data| data.len() as f64).map_err(|error| Error::file(path, error))
}

/// The matrix of text and archives.
fn stored(stage: &Stage) -> Result<SparseTensor<f64>> {
    let path = stage.folder.join(format!("matrix-{}.tcs", stage.bytes / PART));
    if !path.exists() {
        matrix::write(&path, stage.bytes / PART)?;
    }
    let found = TensorFile::of(&path).and_then(|file| file.open(false)?.stored(ElementType::F64));
    let found = found.map_err(Error::tensor)?;
    found
        .and_then(|found| found.downcast_ref().cloned())
        .ok_or_else(|| Error::tensor(std::io::Error::other(format!("{} has no f64", path.display()))))
}

/// The matrix as text, which is written once.
fn text(stage: &Stage, extension: &str) -> Result<PathBuf> {
    let path = stage.folder.join(format!("matrix-{}.{extension}", stage.bytes));
    if !path.exists() {
        let tensor = stored(stage)?.into();
        TensorFile::of(&path).and_then(|file| file.write(&tensor)).map_err(Error::tensor)?;
    }
    Ok(path)
}

fn write_archive(path: &Path, matrix: &SparseTensor<f64>) -> Result<()> {
    let numbers = |name: &str| {
        let array = matrix.levels()[1].component(name);
        let mut numbers = vec![0; array.len()];
        array.read(0, &mut numbers);
        numbers
    };
    let structure = Structure::Compressed { rows: vec![0], starts: numbers("pos"), columns: numbers("crd") };
    let shape = matrix.dimensions().iter().map(|extent| *extent as u64).collect();
    let sparse =
        Sparse::new(shape, structure, ArrayValues::F64(matrix.values().to_vec()), None).map_err(Error::tensor)?;
    let written = File::create(path).and_then(|file| sparse.write(BufWriter::new(file), Compression::None));
    written.map_err(|error| Error::file(path, error))
}

/// Does something in turns with a rival, if that is there: the median of the seconds, and of how many times as fast as
/// the rival it is.
fn in_turns<E: Into<Error>>(
    stage: &Stage,
    rival: Rival,
    what: &str,
    path: &Path,
    mut ours: impl FnMut() -> Result<(), E>,
) -> Result<(f64, Option<f64>)> {
    let into = stage.folder.join("rival.mtx");
    let arguments = [what.to_owned(), path.display().to_string(), into.display().to_string()];
    let mut player = match stage.toolbox.program(rival, "files.py") {
        Some(program) => Some(Player::start(program?.command(arguments))?),
        None => None,
    };
    ours().map_err(Into::into)?;
    let (mut seconds, mut times) = (Vec::new(), Vec::new());
    for _ in 0..stage.rounds {
        let started = Instant::now();
        ours().map_err(Into::into)?;
        let own = started.elapsed().as_secs_f64();
        seconds.push(own);
        if let Some(player) = &mut player {
            times.push(player.turn()?.seconds / own);
        }
    }
    Ok((median(seconds), (!times.is_empty()).then(|| median(times))))
}
