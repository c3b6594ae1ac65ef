//! Files that SciPy and PyData's `sparse` wrote, and files that they read. Python is `python3`, or what
//! `MANIPLE_PYTHON` names; without SciPy, the test says so and shows nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use maniple_files::matrix_market::{Field, MatrixEntry, Reader, Symmetry, write_coordinates};
use maniple_files::npz::{Archive, ArrayValues, Compression, Sparse};
use maniple_files::{Complex, Number};

type Entries = BTreeMap<Vec<u64>, Complex<f64>>;

fn python(arguments: &[&str]) -> Command {
    let python = std::env::var_os("MANIPLE_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(python);
    command.args(arguments);
    command
}

fn script(action: &str, folder: &Path) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/sparse_files.py");
    let ended = python(&[script, action]).arg(folder).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// The entries that are not zero, as the script writes them.
fn text(entries: &Entries) -> String {
    let mut text = String::new();
    for (at, value) in entries.iter().filter(|(_, value)| **value != Complex::new(0.0, 0.0)) {
        let coordinates: String = at.iter().map(|coordinate| format!("{coordinate} ")).collect();
        // A sum with zero is no negative zero.
        let bits = |part: f64| (part + 0.0).to_bits() as i64;
        writeln!(text, "{coordinates}{} {}", bits(value.re), bits(value.im)).unwrap();
    }
    text
}

fn values(values: &ArrayValues) -> Vec<Complex<f64>> {
    let real = |part: f64| Complex::new(part, 0.0);
    match values {
        ArrayValues::Bool(all) => all.iter().map(|&value| real(u8::from(value).into())).collect(),
        ArrayValues::U8(all) => all.iter().map(|&value| real(value.into())).collect(),
        ArrayValues::I8(all) => all.iter().map(|&value| real(value.into())).collect(),
        ArrayValues::U16(all) => all.iter().map(|&value| real(value.into())).collect(),
        ArrayValues::I16(all) => all.iter().map(|&value| real(value.into())).collect(),
        ArrayValues::U32(all) => all.iter().map(|&value| real(value.into())).collect(),
        ArrayValues::I32(all) => all.iter().map(|&value| real(value.into())).collect(),
        ArrayValues::U64(all) => all.iter().map(|&value| real(value as f64)).collect(),
        ArrayValues::I64(all) => all.iter().map(|&value| real(value as f64)).collect(),
        ArrayValues::F32(all) => all.iter().map(|&value| real(value.into())).collect(),
        ArrayValues::F64(all) => all.iter().map(|&value| real(value)).collect(),
        ArrayValues::C32(all) => all.iter().map(|value| Complex::new(value.re.into(), value.im.into())).collect(),
        ArrayValues::C64(all) => all.clone(),
        ArrayValues::Text(_) => Vec::new(),
    }
}

/// Reads a Matrix Market file, and writes it again.
fn market(from: &Path, to: &Path) -> Entries {
    fn copied<T: Number>(reader: Reader<BufReader<File>>, to: &Path, of: impl Fn(T) -> Complex<f64>) -> Entries {
        let header = *reader.header();
        let (mut all, mut listed) = (Entries::new(), Vec::new());
        let take = |entry: MatrixEntry<T>| {
            // Above the diagonal of a symmetric matrix is what follows from below.
            if header.symmetry == Symmetry::General || entry.row >= entry.column {
                listed.push(entry);
            }
            *all.entry(vec![entry.row, entry.column]).or_default() += of(entry.value);
            Ok(())
        };
        reader.for_each(take).unwrap();
        if header.symmetry == Symmetry::Skew {
            listed.retain(|entry| entry.row > entry.column);
        }
        let field = if header.field == Field::Pattern { Field::Pattern } else { Field::of(T::TYPE) };
        let mut file = File::create(to).unwrap();
        write_coordinates(&mut file, header.rows, header.columns, field, header.symmetry, &listed).unwrap();
        all
    }
    let reader = Reader::new(BufReader::new(File::open(from).unwrap())).unwrap();
    match reader.header().field {
        Field::Complex => copied::<Complex<f64>>(reader, to, |value| value),
        Field::Integer | Field::UnsignedInteger => copied::<i64>(reader, to, |value| Complex::new(value as f64, 0.0)),
        Field::Real | Field::Pattern => copied::<f64>(reader, to, |value| Complex::new(value, 0.0)),
    }
}

#[test]
fn files_of_scipy_are_read_and_scipy_reads_what_is_written() {
    let has_scipy = python(&["-c", "import numpy, scipy"]).output().is_ok_and(|ended| ended.status.success());
    if !has_scipy {
        eprintln!("no python3 with SciPy was found: nothing is compared with it (MANIPLE_PYTHON names another one)");
        return;
    }
    let (given, copied) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    script("write", given.path());
    let mut count = 0;
    for file in fs::read_dir(given.path()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let extension = path.extension().unwrap().to_str().unwrap();
        let copy = copied.path().join(&name);
        let entries = match extension {
            "txt" => continue,
            "mtx" => market(&path, &copy),
            _ => {
                let sparse = Sparse::read(&mut Archive::new(File::open(&path).unwrap()).unwrap()).unwrap();
                let compression = if name.contains("True") { Compression::Deflate } else { Compression::None };
                sparse.write(File::create(&copy).unwrap(), compression).unwrap();
                let (mut entries, values) = (Entries::new(), values(sparse.values()));
                sparse.for_each(|at, place| *entries.entry(at.to_vec()).or_default() += values[place]);
                entries
            }
        };
        let told = given.path().join(format!("{name}.txt"));
        assert_eq!(text(&entries), fs::read_to_string(&told).unwrap(), "{name}");
        fs::copy(&told, copied.path().join(format!("{name}.txt"))).unwrap();
        count += 1;
    }
    assert!(count > 90, "{count} files");
    script("check", copied.path());
}
