//! Pieces with the arrays as they are in the file: read, checked and written apart, and the same as all at once.

use std::fs::File;

use maniple_files::ElementType;
use maniple_files::ReadError;
use maniple_files::tcs::load::{Finder, Pieces, Values, check_gaps, check_piece, read_numbers};
use maniple_files::tcs::store::{Target, Writer, write_numbers};
use maniple_files::tcs::{Arrays, Summed, TcsHeader, TcsPart, Tensor, Width};
use proptest::prelude::*;

use super::{cases, widths};

fn pieces_of(file: &[u8], header: &TcsHeader, count: u64) -> Result<Pieces, ReadError> {
    let mut finder = Finder::new(file, header);
    let ends = (1..=count).map(|piece| finder.end_of_piece(piece, count).map(|cut| cut.positions));
    Ok(Pieces::new(header, &ends.collect::<Result<Vec<_>, _>>()?))
}

/// Reads and checks piece by piece, each knowing no more than its own ranges.
fn read(file: &[u8], count: u64) -> Result<(TcsHeader, Pieces, Vec<Tensor<f64>>), ReadError> {
    let header = TcsHeader::read(file)?;
    check_gaps(file, &header)?;
    let pieces = pieces_of(file, &header, count)?;
    let (mut found, mut sums) = (Vec::new(), Vec::new());
    for piece in 0..pieces.count() {
        let mut own = Tensor {
            levels: header.levels.clone(),
            arrays: vec![Arrays::default(); header.levels.len()],
            values: Vec::new(),
        };
        let mut of_piece = Vec::new();
        for part in header.parts() {
            let range = pieces.range(part, piece);
            of_piece.push(match part {
                TcsPart::Values => {
                    own.values = vec![0.0; (range.end - range.start) as usize];
                    let (own, mut values) = (&mut own.values, Values::new(file, &header, range));
                    let middle = own.len() / 3;
                    values.read(&mut own[..middle])?;
                    values.read(&mut own[middle..])?;
                    values.finish()?
                }
                TcsPart::Pos(level) => read_numbers(file, &header, part, range, |number| {
                    own.arrays[level].pos.push(number as i64);
                })?,
                TcsPart::Idx(level) => read_numbers(file, &header, part, range, |number| {
                    own.arrays[level].idx.push(number as i64);
                })?,
            });
        }
        for (level, Arrays { pos, idx }) in own.arrays.iter().enumerate() {
            if header.levels[level].is_sparse() {
                let first = [TcsPart::Pos(level), TcsPart::Idx(level)].map(|part| pieces.range(part, piece).start);
                let number = |numbers: &[i64], place: u64| numbers[place as usize] as u64;
                let pos = |place: u64| number(pos, place - first[0]);
                check_piece(file, &header, &pieces, piece, level, pos, |place| number(idx, place - first[1]))?;
            }
        }
        sums.push(of_piece);
        found.push(own);
    }
    for (number, part) in header.parts().enumerate() {
        Summed::check(&header, part, sums.iter().map(|own| own[number]))?;
    }
    Ok((header, pieces, found))
}

/// The tensor that pieces have, one after the other.
fn joined(pieces: Vec<Tensor<f64>>) -> Tensor<f64> {
    let all = pieces.into_iter().reduce(|mut all, next| {
        for (own, more) in all.arrays.iter_mut().zip(next.arrays) {
            own.pos.extend(more.pos);
            own.idx.extend(more.idx);
        }
        all.values.extend(next.values);
        all
    });
    all.unwrap()
}

#[test]
fn pieces_are_the_arrays_of_the_whole_one_after_the_other() {
    proptest!(|(case in cases(1..5), width in widths(), count in 1..9_u64)| {
        let file = case.file(width);
        let (header, pieces, found) = read(&file, count).unwrap();
        prop_assert_eq!(joined(found), Tensor::<f64>::read(&file).unwrap());
        let bytes: u64 = (0..pieces.count()).map(|piece| pieces.bytes(&header, piece)).sum();
        prop_assert_eq!(bytes, header.parts().map(|part| header.section(part).length * header.size(part)).sum::<u64>());
    });
}

/// Makes all checksums of a file right.
fn seal(file: &mut [u8]) {
    let mut header = TcsHeader::read(&*file).unwrap();
    for part in header.parts().collect::<Vec<_>>() {
        let section = header.section(part);
        let bytes = section.offset..section.offset + section.length * header.size(part);
        header.set_checksum(part, crc32fast::hash(&file[bytes.start as usize..bytes.end as usize]));
    }
    let bytes = header.to_bytes();
    file[..bytes.len()].copy_from_slice(&bytes);
}

#[test]
fn what_is_wrong_with_a_file_is_found_in_pieces_if_and_only_if_it_is_found_in_the_whole() {
    let number = prop_oneof![0..8_u64, Just(u64::MAX), Just(1_u64 << 40)];
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), number), 1..3);
    proptest!(ProptestConfig::with_cases(2000), |(case in cases(1..4), count in 1..6_u64, changes in changes, is_sealed in any::<bool>())| {
        let mut file = case.file(Width::Eight);
        let start = TcsHeader::read(&file).unwrap().start() as usize;
        let words = (file.len() - start) / 8;
        for (place, number) in changes.into_iter().filter(|_| words > 0) {
            let place = start + 8 * place.index(words);
            file[place..place + 8].copy_from_slice(&number.to_le_bytes());
        }
        if is_sealed {
            seal(&mut file);
        }
        let (whole, pieces) = (Tensor::<f64>::read(&file), read(&file, count));
        prop_assert_eq!(whole.is_ok(), pieces.is_ok(), "{:?} {:?}", whole.err(), pieces.err());
    });
}

#[test]
fn parts_that_are_written_at_their_places_make_the_file_of_the_whole() {
    proptest!(ProptestConfig::with_cases(64), |(case in cases(1..5), width in widths(), count in 1..6_u64)| {
        let tensor = case.direct();
        let counts: Vec<u64> = tensor.arrays.iter().map(|arrays| arrays.idx.len() as u64).collect();
        let mut header = TcsHeader::new(ElementType::F64, width, tensor.levels.clone(), &counts).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(header.bytes()).unwrap();
        for part in header.parts().collect::<Vec<_>>() {
            let length = header.section(part).length;
            // From the last one to the first: the order does not matter.
            let mut sums: Vec<Summed> = (0..count).rev().map(|piece| {
                let range = (length * piece / count) as usize..(length * (piece + 1) / count) as usize;
                let start = range.start as u64;
                let numbers = |numbers: &[i64]| {
                    let numbers = numbers[range.clone()].iter().map(|number| *number as u64);
                    write_numbers(file.as_file(), &header, part, start, numbers)
                };
                match part {
                    TcsPart::Pos(level) => numbers(&tensor.arrays[level].pos),
                    TcsPart::Idx(level) => numbers(&tensor.arrays[level].idx),
                    TcsPart::Values => {
                        let mut writer = Writer::new(file.as_file(), &header, part, start);
                        tensor.values[range.clone()].chunks(3).try_for_each(|values| writer.values(values)).unwrap();
                        writer.finish()
                    }
                }.unwrap()
            }).collect();
            sums.reverse();
            header.set_checksum(part, Summed::join(sums));
        }
        let open: &File = file.as_file();
        open.write_at(0, &header.to_bytes()).unwrap();
        prop_assert_eq!(std::fs::read(file.path()).unwrap(), case.file(width));
    });
}
