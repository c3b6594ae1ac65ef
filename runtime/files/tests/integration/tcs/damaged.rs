//! Files that are none.

use maniple_files::ReadError;
use maniple_files::tcs::{MAGIC, TcsHeader, Tensor, Width, check};
use proptest::prelude::*;

use super::{Case, cases, widths};
use crate::damaged;

/// A file with compressed rows.
fn rows() -> Vec<u8> {
    let levels = [(maniple_files::tcs::TcsLevelKind::Dense, 3), (maniple_files::tcs::TcsLevelKind::Sparse, 4)];
    let level = |(mode, (kind, extent))| maniple_files::tcs::Level::new(kind, mode, extent);
    let entries = [(vec![0, 1], 1.5), (vec![0, 3], 2.5), (vec![2, 0], 3.5)].into_iter().collect();
    Case { levels: levels.into_iter().enumerate().map(level).collect(), entries }.file(Width::Eight)
}

/// The file with a number changed, and the checksums made right.
fn changed(place: usize, number: u64) -> Vec<u8> {
    let mut file = rows();
    file[place..place + 8].copy_from_slice(&number.to_le_bytes());
    seal(&mut file);
    file
}

/// Makes the checksums of the file of compressed rows right.
fn seal(file: &mut [u8]) {
    let sum = |bytes: &[u8]| crc32fast::hash(bytes).to_le_bytes();
    let (pos, idx, values) = (sum(&file[320..352]), sum(&file[352..376]), sum(&file[376..400]));
    file[72..76].copy_from_slice(&values);
    file[312..316].copy_from_slice(&pos);
    file[316..320].copy_from_slice(&idx);
    file[76..80].fill(0);
    let own = sum(&file[..320]);
    file[76..80].copy_from_slice(&own);
}

#[track_caller]
fn refused(file: &[u8], message: &str) {
    let error = Tensor::<f64>::read(file).unwrap_err().to_string();
    assert_eq!(error, message);
    let streamed = TcsHeader::read(file).and_then(|header| check(file, &header)).unwrap_err().to_string();
    assert_eq!(streamed, message);
}

#[test]
fn every_bit_that_is_flipped_is_found() {
    proptest!(|(case in cases(1..5), width in widths(), bit in any::<prop::sample::Index>())| {
        let mut file = case.file(width);
        let bit = bit.index(8 * file.len());
        file[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Tensor::<f64>::read(&file).is_err());
        prop_assert!(TcsHeader::read(&file).and_then(|header| check(&file, &header)).is_err());
    });
}

#[test]
fn damaged_files_are_refused_or_whole() {
    proptest!(|(file in cases(1..4).prop_flat_map(|case| damaged(case.file(Width::Eight))))| {
        _ = Tensor::<f64>::read(&file);
        _ = TcsHeader::read(&file).map(|header| check(&file, &header));
    });
}

#[test]
fn headers_with_any_number_anywhere_are_refused_or_those_of_a_tensor() {
    let interesting =
        prop_oneof![0..9_u64, any::<u64>(), (0..64_u32).prop_map(|bit| 1 << bit), Just(u64::MAX), 300..420_u64];
    proptest!(ProptestConfig::with_cases(2000), |(places in proptest::collection::vec((1..50_usize, interesting), 1..4))| {
        let mut file = rows();
        for (place, number) in places {
            file[8 * place..8 * place + 8].copy_from_slice(&number.to_le_bytes());
        }
        seal(&mut file);
        if let Ok(tensor) = Tensor::<f64>::read(&file) {
            let mut again = Vec::new();
            tensor.write(Width::Eight, &mut again).unwrap();
            prop_assert_eq!(again, file);
        }
    });
}

#[test]
fn files_that_are_cut_are_refused_wherever_that_is() {
    let file = rows();
    for length in 0..file.len() {
        let error = Tensor::<f64>::read(&file[..length]).unwrap_err();
        assert!(matches!(error, ReadError::Byte { byte, .. } if byte <= length as u64), "{length}: {error}");
    }
    refused(&[], "byte 0: this is no .tcs file: it is empty");
    refused(&file[..6], "byte 6: the header has 80 bytes, and the file has 6");
    refused(&file[..100], "byte 100: the header has 320 bytes, and the file has 100");
    refused(
        &file[..399],
        "byte 399: arrays of the lengths that the header says end at byte 400, and the file has 399 bytes (and says 400)",
    );
    refused(
        &[&file[..], &[0]].concat(),
        "byte 400: arrays of the lengths that the header says end at byte 400, and the file has 401 bytes (and says 400)",
    );
}

#[test]
fn other_files_are_told_apart() {
    refused(b"PK\x03\x04", "byte 0: the file is packed with zip; unpack it first");
    refused(b"1 1 1.5\n", "byte 0: this is no .tcs file: it starts with '1 1 1.5', not 'TCS1'");
    refused(b"TCS2\x04\x03\x02\x01", "byte 0: this is a .tcs file of version '2', and version 1 is read");
    refused(
        b"TCS1\x01\x02\x03\x04",
        "byte 0: the bytes of its numbers are in the order of big-endian machines, and the format has the other one",
    );
    assert_eq!(&rows()[..8], &MAGIC);
}

#[test]
fn what_a_header_says_follows_from_levels_and_lengths() {
    let same = changed(8, 2);
    Tensor::<f64>::read(&same).unwrap();
    refused(&changed(8, 9), "byte 8: a tensor has 1 to 8 levels, and this file says 9");
    refused(&changed(24, 4), "byte 24: the flags 0x4 have bits other than those of blocks (1) and pieces (2)");
    refused(&changed(32, 13), "byte 32: elements are of type 13, and types are numbered from 0 to 12");
    refused(&changed(40, 2), "byte 40: numbers of pos and idx have 2 bytes, and can have 4 or 8");
    refused(&changed(48, 320), "byte 48: expected 376, as follows from levels and lengths, found 320");
    refused(&changed(16, 300), "byte 16: expected 400, as follows from levels and lengths, found 300");
    refused(&changed(64, 1), "byte 64: expected 0, as follows from levels and lengths, found 1");
    refused(&changed(80, 7), "byte 80: level 0 is of kind 7, and can be dense (0) or sparse (1)");
    refused(
        &changed(88, 1),
        "byte 200: level 1 stores dimension 1, which is not one of 2, or the dimension of another level",
    );
    // Overlapping arrays.
    refused(&changed(200 + 48, 320), "byte 248: expected 352, as follows from levels and lengths, found 320");
    // Lengths of what is not there.
    refused(
        &changed(200 + 40, 1 << 60),
        "byte 240: expected 4, as follows from levels and lengths, found 1152921504606846976",
    );
    let promised = "arrays of the lengths that the header says end at byte";
    refused(&changed(200 + 56, 12), &format!("byte 400: {promised} 544, and the file has 400 bytes (and says 400)"));
    refused(
        &changed(200 + 56, 1 << 62),
        "byte 80: level 1 has 4611686018427387904 nodes: 3 nodes above, with 4 coordinates each, have 12 at most",
    );
    refused(
        &changed(80 + 24, 1 << 62),
        "byte 80: pos of level 1 has 4611686018427387905 elements, which no file holds",
    );
    refused(
        &changed(80 + 24, u64::MAX),
        "byte 80: level 0 has coordinates from 0 to 18446744073709551615, and they are from 0 to 2^62",
    );
    refused(
        &changed(80 + 16, u64::MAX),
        "byte 96: level 0 has 3 coordinates from 18446744073709551615 on, which is beyond 2^64",
    );
}

#[test]
fn arrays_are_checked() {
    refused(&changed(320, 1), "byte 320: pos of level 1 at 0: expected 0, found 1");
    refused(&changed(328, 4), "byte 328: pos of level 1 at 1: expected a number from 0 to 3, found 4");
    refused(&changed(336, 1), "byte 336: pos of level 1 at 2: expected a number from 2 to 3, found 1");
    refused(&changed(344, 2), "byte 344: pos of level 1 at 3: expected 3, the number of coordinates, found 2");
    refused(&changed(352, 4), "byte 352: idx of level 1 at 0: expected a coordinate from 0 and below 4, found 4");
    refused(
        &changed(352, u64::MAX),
        "byte 352: idx of level 1 at 0: expected a coordinate from 0 and below 4, found 18446744073709551615",
    );
    refused(
        &changed(360, 1),
        "byte 360: idx of level 1 at 1: expected a coordinate from 2, as coordinates below one parent ascend, and below 4, found 1",
    );
    let mut file = rows();
    file[399] ^= 1;
    assert!(
        Tensor::<f64>::read(&file).unwrap_err().to_string().starts_with("byte 376: val is damaged: its checksum is ")
    );
}
