//! A sparse matrix in a file, written without any of it in memory.

use std::fs::File;
use std::path::Path;

use maniple_files::ElementType;
use maniple_files::tcs::store::{Writer, write_numbers};
use maniple_files::tcs::{Level, Summed, TcsHeader, TcsLevelKind, TcsPart, Width};

use crate::error::{Error, Result};

/// So many entries each row has.
const ENTRIES: u64 = 8;

/// The bytes of a row in a `.tcs` file: where it begins, and a column and an element for each entry.
const ROW: u64 = 8 + 16 * ENTRIES;

/// The rows of a matrix whose `.tcs` file has about so many bytes.
#[must_use]
pub fn rows(bytes: u64) -> u64 {
    (bytes / ROW).max(ENTRIES)
}

/// A number that looks like chance.
fn chance(of: u64) -> u64 {
    let mixed = (of ^ (of >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 20
}

/// The column of an entry, by its number: those of a row ascend.
fn column(entry: u64, rows: u64) -> u64 {
    let part = rows / ENTRIES;
    entry % ENTRIES * part + chance(entry) % part
}

/// Writes a square matrix by rows to a `.tcs` file of about so many bytes, and waits until it is on the disk.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, bytes: u64) -> Result<()> {
    let rows = rows(bytes);
    let levels = vec![Level::new(TcsLevelKind::Dense, 0, rows), Level::new(TcsLevelKind::Sparse, 1, rows)];
    let header = TcsHeader::new(ElementType::F64, Width::Eight, levels, &[rows, rows * ENTRIES]);
    let mut header = header.map_err(|problem| Error::tensor(std::io::Error::other(problem.to_string())))?;
    let mut written = || -> std::io::Result<()> {
        let file = File::create(path)?;
        let pos = (0..=rows).map(|row| row * ENTRIES);
        let columns = (0..rows * ENTRIES).map(|entry| column(entry, rows));
        let mut values = Writer::new(&file, &header, TcsPart::Values, 0);
        (0..rows * ENTRIES).try_for_each(|entry| values.values(&[(entry % 7) as f64 + 0.25]))?;
        let sums = [
            (TcsPart::Pos(1), write_numbers(&file, &header, TcsPart::Pos(1), 0, pos)?),
            (TcsPart::Idx(1), write_numbers(&file, &header, TcsPart::Idx(1), 0, columns)?),
            (TcsPart::Values, values.finish()?),
        ];
        sums.into_iter().for_each(|(part, sum)| header.set_checksum(part, Summed::join([sum])));
        std::os::unix::fs::FileExt::write_all_at(&file, &header.to_bytes(), 0)?;
        file.sync_all()
    };
    written().map_err(|error| Error::file(path, error))
}
