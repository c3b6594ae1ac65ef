//! Text to `.tcs` files and back, on one core, beside what that cannot be faster than, as ratios of one run:
//! `cargo run --release -p maniple-files --example tcs`.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

use maniple_files::tcs::load::{Finder, Piece, SortedEntries, Splits};
use maniple_files::tcs::{self, Duplicates, Extent, StoragePlan, TcsHeader, TcsLevelKind, Tensor, Width};
use maniple_files::{Entries, InTurn, tns};

/// The median of three times, in seconds.
fn median<R>(mut run: impl FnMut() -> Result<R, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut times = [0.0; 3];
    for time in &mut times {
        let start = Instant::now();
        drop(run()?);
        *time = start.elapsed().as_secs_f64();
    }
    times.sort_by(f64::total_cmp);
    Ok(times[1])
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: i64 = std::env::args().nth(1).map_or(Ok(4_000_000), |text| text.parse())?;
    let mixed = |entry: i64, factor: u64| ((entry as u64).wrapping_mul(factor) >> 20) as i64;
    let entries = Entries {
        coordinates: vec![
            (0..count).map(|entry| entry / 40).collect(),
            (0..count).map(|entry| entry % 40 * 1000 + mixed(entry, 0x9E37_79B9_7F4A_7C15) % 1000).collect(),
        ],
        values: (0..count)
            .map(|entry| (mixed(entry, 0xD6E8_FEB8_6659_FD93) % 1_000_000) as f64 / 1e4)
            .collect::<Vec<_>>(),
    };
    let folder = tempfile::tempdir()?;
    let (text, file) = (folder.path().join("matrix.tns"), folder.path().join("matrix.tcs"));
    tns::write_lines(&mut File::create(&text)?, &entries, &InTurn)?;
    let megabytes = std::fs::metadata(&text)?.len() as f64 / 1e6;
    let (kinds, order) = (vec![TcsLevelKind::Dense, TcsLevelKind::Sparse], vec![0, 1]);
    let plan = StoragePlan {
        kinds,
        order,
        extents: vec![Extent::FromZero; 2],
        width: Width::Eight,
        duplicates: Duplicates::Refuse,
    };
    let open = || -> Result<_, Box<dyn Error>> {
        Ok(tns::Reader::<_, f64>::new(BufReader::with_capacity(1 << 20, File::open(&text)?))?)
    };

    let parse = median(|| Ok(tns::read_entries::<f64>(&std::fs::read(&text)?, 1, None, &InTurn)?))?;
    let convert = median(|| {
        let survey = tcs::survey(open()?, &plan)?;
        Ok(tcs::write(&survey, open()?, &plan, &mut File::create(&file)?)?)
    })?;
    let sort = median(|| {
        let mut sorted = tcs::sort(open()?, &plan, tempfile::tempfile_in(folder.path())?, 32 << 20)?;
        let survey = tcs::survey(sorted.entries()?, &plan)?;
        Ok(tcs::write(&survey, sorted.entries()?, &plan, &mut File::create(&file)?)?)
    })?;
    println!(
        ".tns to .tcs          {:6.0} MB/s of text, {:4.2} times as long as to read the text once",
        megabytes / convert,
        convert / parse
    );
    println!(".tns to .tcs, sorted  {:6.0} MB/s of text, {:4.2} times as long", megabytes / sort, sort / parse);

    let megabytes = std::fs::metadata(&file)?.len() as f64 / 1e6;
    let bytes = median(|| Ok(std::fs::read(&file)?))?;
    let read = median(|| Ok(Tensor::<f64>::read(&File::open(&file)?)?))?;
    let source = std::fs::read(&file)?;
    let header = TcsHeader::read(&source)?;
    let splits = Splits::none(&[0..header.levels[0].range.end, 0..header.levels[1].range.end]).into_equal(1, 8);
    let mut finder = Finder::new(&source, &header);
    let ends = [finder.positions(0)?, finder.positions(finder.elements())?];
    let iterate = median(|| {
        let mut piece = Piece::new(&source, &header, &ends[0]..&ends[1], &splits);
        let mut found = 0;
        while SortedEntries::<f64>::next_sorted(&mut piece)?.is_some() {
            found += 1;
        }
        assert_eq!(found, count);
        Ok(())
    })?;
    println!(
        ".tcs read and checked {:6.0} MB/s, {:4.2} times as long as to read its bytes",
        megabytes / read,
        read / bytes
    );
    println!(".tcs by a piece       {:6.0} MB/s, {:4.2} times as long", megabytes / iterate, iterate / bytes);
    Ok(())
}
