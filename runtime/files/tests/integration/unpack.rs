//! Archives that are unpacked: what is read of them is what is read of the archive before, and what is damaged is
//! refused.

use std::io::{self, Cursor, Seek, SeekFrom, Write};

use maniple_files::npz::{Archive, Array, ArrayValues, Compression, Sparse, Structure, unpack, write_arrays};
use maniple_files::{Complex, EntryArrays, ReadError};
use proptest::prelude::*;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::damaged;
use crate::entry_arrays::{in_parts, whole, with_values};
use crate::npz::{sparse, written};

fn unpacked(file: &[u8]) -> Result<Vec<u8>, ReadError> {
    let mut into = Cursor::new(Vec::new());
    unpack(Cursor::new(file), &mut into).map(|()| into.into_inner())
}

/// All arrays with their names, or what is wrong with the first that is damaged.
fn arrays(file: &[u8]) -> Result<Vec<(String, Array)>, ReadError> {
    let mut archive = Archive::new(Cursor::new(file))?;
    archive.names().into_iter().map(|name| archive.expect(&name).map(|array| (name, array))).collect()
}

fn is_compressed(file: &[u8]) -> bool {
    Archive::new(Cursor::new(file)).unwrap().is_compressed()
}

#[test]
fn parts_of_what_was_unpacked_have_what_the_whole_had() {
    proptest!(|(sparse in sparse(), parts in 1..6_u64)| {
        let file = written(&sparse, Compression::Deflate);
        prop_assert!(EntryArrays::npz(file.clone()).unwrap().is_none());
        let read = Sparse::read(&mut Archive::new(Cursor::new(&file)).unwrap()).unwrap();
        let arrays = EntryArrays::npz(unpacked(&file).unwrap()).unwrap().unwrap();
        prop_assert_eq!(arrays.shape(), read.shape());
        with_values!(read.values(), values: T => {
            prop_assert_eq!(in_parts::<T>(&arrays, parts).unwrap(), whole(&read, values));
        });
    });
}

#[test]
fn arrays_stay_as_they_are_and_in_their_order() {
    proptest!(|(sparse in sparse(), packs in any::<bool>())| {
        let file = written(&sparse, if packs { Compression::Deflate } else { Compression::None });
        prop_assert_eq!(is_compressed(&file), packs);
        let unpacked = unpacked(&file).unwrap();
        prop_assert!(!is_compressed(&unpacked));
        prop_assert_eq!(arrays(&unpacked).unwrap(), arrays(&file).unwrap());
    });
}

/// Longer than what is copied at once.
#[test]
fn long_arrays_stay_as_they_are() {
    let count = 100_000_i64;
    let columns: Vec<i64> = (0..count).map(|entry| entry * 7919 % 1000).collect();
    let values: Vec<f64> = (0..count).map(|entry| entry as f64 * 0.5).collect();
    let structure = Structure::Coordinates(vec![columns.clone(), columns]);
    let sparse = Sparse::new(vec![1000, 1000], structure, ArrayValues::F64(values.clone()), None).unwrap();
    let arrays = EntryArrays::npz(unpacked(&written(&sparse, Compression::Deflate)).unwrap()).unwrap().unwrap();
    assert!(in_parts::<f64>(&arrays, 7).unwrap() == whole(&sparse, &values));
}

/// An archive that is unpacked has the arrays that are read from the original, and an archive that is refused is
/// refused by the reader too.
#[test]
fn damaged_archives_are_refused_as_they_are_when_they_are_read() {
    let files = (sparse(), any::<bool>()).prop_flat_map(|(sparse, packs)| {
        damaged(written(&sparse, if packs { Compression::Deflate } else { Compression::None }))
    });
    proptest!(ProptestConfig::with_cases(2000), |(file in files)| {
        match (unpacked(&file), arrays(&file)) {
            (Ok(unpacked), read) => {
                let told = |error: ReadError| error.to_string();
                // A file whose name is damaged may be no array any more.
                let names: Vec<String> = Archive::new(Cursor::new(&unpacked)).unwrap().names();
                match read {
                    Ok(read) => prop_assert_eq!(arrays(&unpacked).map_err(told), Ok(read)),
                    Err(error) => for name in names {
                        let read = |file: &[u8]| Archive::new(Cursor::new(file)).unwrap().expect(&name).map_err(told);
                        prop_assert_eq!(read(&unpacked), read(&file), "{}", error);
                    },
                }
            }
            (Err(error), Ok(_)) => prop_assert!(false, "{error}"),
            (Err(error), Err(read)) => if read.to_string().contains("is damaged: Invalid checksum") {
                prop_assert_eq!(error.to_string(), read.to_string());
            },
        }
    });
}

fn archive(files: &[(&str, CompressionMethod, &[u8])]) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let mut zip = ZipWriter::new(&mut file);
    for (name, method, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default().compression_method(*method)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
    file.into_inner()
}

fn numbers(numbers: &[i64]) -> Vec<u8> {
    let mut file = Vec::new();
    maniple_files::npy::write_array(&mut file, &[numbers.len() as u64], numbers).unwrap();
    file
}

const PACKED: CompressionMethod = CompressionMethod::Deflated;
const PLAIN: CompressionMethod = CompressionMethod::Stored;

#[test]
fn one_array_that_is_compressed_makes_an_archive_compressed() {
    let (a, b) = (numbers(&[1, 2]), numbers(&[3]));
    for (methods, expected) in [([PLAIN, PLAIN], false), ([PLAIN, PACKED], true), ([PACKED, PLAIN], true)] {
        let file = archive(&[("a.npy", methods[0], &a), ("b.npy", methods[1], &b)]);
        assert_eq!(is_compressed(&file), expected);
        assert_eq!(
            unpacked(&file).unwrap(),
            unpacked(&archive(&[("a.npy", PLAIN, &a), ("b.npy", PLAIN, &b)])).unwrap()
        );
    }
}

#[test]
fn files_that_are_no_arrays_are_left_out() {
    let file = archive(&[
        ("README", PACKED, b"text"),
        ("b.npy", PLAIN, &numbers(&[3])),
        ("folder/", PLAIN, b""),
        ("folder/a.npy", PLAIN, &numbers(&[4])),
        ("a.NPY", PACKED, b""),
    ]);
    assert!(!is_compressed(&file));
    let names: Vec<String> = arrays(&unpacked(&file).unwrap()).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["b", "folder/a"]);
    assert_eq!(arrays(&unpacked(&archive(&[])).unwrap()).unwrap(), []);
}

#[test]
fn what_is_no_archive_or_cut_off_is_refused() {
    let told = |file: &[u8]| unpacked(file).unwrap_err().to_string();
    for file in [&b""[..], b"\x93NUMPY", b"PK\x03\x04and then nothing"] {
        assert_eq!(told(file), Archive::new(Cursor::new(file)).unwrap_err().to_string());
    }
    let file = archive(&[("a.npy", PACKED, &numbers(&[1, 2, 3]))]);
    for length in 0..file.len() {
        assert!(unpacked(&file[..length]).is_err(), "{length}");
    }
}

#[test]
fn each_changed_byte_of_an_array_is_noticed_and_no_archive_is_written() {
    let bytes = numbers(&(0..100).map(|number| number * number % 71).collect::<Vec<_>>());
    for method in [PLAIN, PACKED] {
        let file = archive(&[("a.npy", PLAIN, &numbers(&[5])), ("b.npy", method, &bytes)]);
        let second = file.windows(5).position(|found| found == b"b.npy").unwrap() + 5;
        let end = file.windows(4).position(|found| found == b"PK\x01\x02").unwrap();
        for place in second..end {
            let mut file = file.clone();
            file[place] ^= 0x10;
            let mut into = Cursor::new(Vec::new());
            let error = match unpack(Cursor::new(&file), &mut into) {
                Err(error) => error.to_string(),
                // The last bits of what is packed may be of no account.
                Ok(()) if method == PACKED => continue,
                Ok(()) => panic!("{place}"),
            };
            assert!(error.starts_with("byte 0: array 'b' is damaged: "), "{error}");
            assert!(Archive::new(into).is_err());
        }
    }
}

/// Sizes in the directory of an archive, and before the file itself.
#[test]
fn sizes_that_archives_claim_take_no_memory() {
    let bytes = numbers(&[1, 2, 3]);
    for method in [PLAIN, PACKED] {
        let file = archive(&[("a.npy", method, &bytes)]);
        let directory = file.windows(4).position(|found| found == b"PK\x01\x02").unwrap();
        for sizes in [24..28, 20..24, 20..28] {
            let mut file = file.clone();
            for place in sizes.clone() {
                file[directory + place] = if place % 4 == 0 { 0xfe } else { 0xff };
            }
            let told = |error: ReadError| error.to_string();
            match unpacked(&file) {
                Ok(unpacked) => assert_eq!(arrays(&unpacked).map_err(told), arrays(&file).map_err(told)),
                Err(_) => assert!(arrays(&file).is_err(), "{method} {sizes:?}"),
            }
        }
    }
    // An array that says that it has more than there is.
    let mut bytes = maniple_files::npy::header_of("<i8", maniple_files::Order::Rows, &[1 << 60]).unwrap();
    bytes.extend([0; 8]);
    let file = archive(&[("a.npy", PACKED, &bytes)]);
    assert!(arrays(&unpacked(&file).unwrap()).is_err());
}

/// Has no room after so many bytes.
struct Full(Cursor<Vec<u8>>, u64);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.position() + bytes.len() as u64 > self.1 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Full {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn a_target_that_is_full_is_no_damage() {
    let array = Array::rows(vec![1000], ArrayValues::I64((0..1000).collect()));
    let mut file = Cursor::new(Vec::new());
    write_arrays(&mut file, Compression::Deflate, [("a", &array)]).unwrap();
    for room in [0, 100, 3000, 8200] {
        let mut full = Full(Cursor::new(Vec::new()), room);
        let error = unpack(file.clone(), &mut full).unwrap_err();
        assert!(matches!(&error, ReadError::Io(error) if error.kind() == io::ErrorKind::StorageFull), "{error}");
        assert!(Archive::new(full.0).is_err());
    }
}
