//! A file as pieces of equal size, and its blocks assembled from pieces.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Cursor;

use maniple_files::tcs::load::{self, Block, Finder, Piece, Pieces, SortedEntries, Splits, search};
use maniple_files::tcs::{Counts, Level, TcsHeader, TcsLevelKind, Tensor, Width, check};
use proptest::prelude::*;

use super::{Case, cases, file, widths};

/// A file with its header.
fn open(case: &Case, width: Width) -> (Vec<u8>, TcsHeader) {
    let file = case.file(width);
    let header = TcsHeader::read(&file).unwrap();
    (file, header)
}

/// The places where pieces begin and the last one ends.
fn cuts(file: &Vec<u8>, header: &TcsHeader, pieces: u64) -> Vec<Vec<u64>> {
    let mut finder = Finder::new(file, header);
    (0..=pieces).map(|piece| finder.end_of_piece(piece, pieces).unwrap().positions).collect()
}

/// The entries of a piece, with the ranges of their coordinates.
fn entries(mut piece: Piece<'_, Vec<u8>>) -> Vec<(Vec<u64>, Vec<u64>, f64)> {
    let mut found = Vec::new();
    while let Some(entry) = SortedEntries::<f64>::next_sorted(&mut piece).unwrap() {
        found.push((entry.at.to_vec(), entry.ranges.to_vec(), entry.value));
    }
    found
}

/// Ranges for the levels of a case, some of them empty.
fn split(case: &Case, points: &[Vec<prop::sample::Index>]) -> Splits {
    let ranges: Vec<_> = case.levels.iter().map(|level| level.range.clone()).collect();
    ranges.iter().zip(points).enumerate().fold(Splits::none(&ranges), |splits, (level, (range, points))| {
        let mut points: Vec<u64> = points
            .iter()
            .map(|point| range.start + point.index((range.end - range.start + 1) as usize) as u64)
            .collect();
        points.sort_unstable();
        splits.at(level, &points).unwrap()
    })
}

fn points() -> impl Strategy<Value = Vec<Vec<prop::sample::Index>>> {
    proptest::collection::vec(proptest::collection::vec(any::<prop::sample::Index>(), 0..4), 4)
}

#[test]
fn places_of_elements_are_the_nodes_that_have_them() {
    proptest!(|(case in cases(1..5), width in widths())| {
        let ((file, header), tensor) = (open(&case, width), case.direct());
        let mut finder = Finder::new(&file, &header);
        for element in 0..tensor.values.len() as u64 {
            let positions = finder.positions(element).unwrap();
            prop_assert_eq!(positions.last(), Some(&element));
            for (level, position) in positions.iter().enumerate() {
                let above = level.checked_sub(1).map_or(0, |above| positions[above]);
                match case.levels[level].kind {
                    TcsLevelKind::Dense => prop_assert_eq!(position / case.levels[level].extent(), above),
                    TcsLevelKind::Sparse => {
                        let pos = &tensor.arrays[level].pos;
                        prop_assert!(pos[above as usize] as u64 <= *position && *position < pos[above as usize + 1] as u64);
                    }
                }
            }
        }
        prop_assert_eq!(finder.positions(tensor.values.len() as u64).unwrap(), header.nodes());
    });
}

#[test]
fn bytes_before_a_place_ascend_to_those_of_all_arrays_but_the_last_bounds() {
    proptest!(|(case in cases(1..5), width in widths())| {
        let (file, header) = open(&case, width);
        let mut finder = Finder::new(&file, &header);
        let bytes: Vec<u64> = (0..=finder.elements()).map(|element| {
            let positions = finder.positions(element).unwrap();
            finder.bytes_before(&positions)
        }).collect();
        prop_assert!(bytes.is_sorted());
        let arrays: u64 = header.parts().map(|part| header.section(part).length * header.size(part)).sum();
        let sparse = case.levels.iter().filter(|level| level.kind == TcsLevelKind::Sparse).count() as u64;
        prop_assert_eq!(*bytes.last().unwrap(), arrays - width.bytes() * sparse);
        prop_assert_eq!(finder.total_bytes(), *bytes.last().unwrap());
    });
}

#[test]
fn a_search_with_a_guess_finds_what_bisection_finds_in_as_many_questions_as_its_error_has_bits() {
    proptest!(ProptestConfig::with_cases(2000), |(most in 0..100_000_u64, wanted in any::<prop::sample::Index>(), error in -2000..2000_i64)| {
        let wanted = wanted.index(most as usize + 1) as u64;
        let guess = wanted.saturating_add_signed(error);
        let (found, asked) = search(most, guess, |number| Ok::<_, Infallible>(number >= wanted)).unwrap();
        prop_assert_eq!(found, wanted);
        let error = guess.min(most).abs_diff(wanted);
        prop_assert!(asked <= 2 * (error + 1).ilog2() + 4, "{} for an error of {}", asked, error);
    });
}

#[test]
fn the_first_entry_from_a_place_on_is_the_least_that_is_not_before_it() {
    proptest!(|(case in cases(1..5), wanted in proptest::collection::vec(0..8_u64, 4))| {
        let (file, header) = open(&case, Width::Eight);
        let wanted = &wanted[..case.levels.len()];
        let ranges: Vec<_> = case.levels.iter().map(|level| level.range.clone()).collect();
        let splits = Splits::none(&ranges);
        let places = cuts(&file, &header, 1);
        let all = entries(Piece::new(&file, &header, &places[0]..&places[1], &splits));
        let expected = all.iter().filter(|(at, ..)| &at[..] < wanted).count() as u64;
        prop_assert_eq!(Finder::new(&file, &header).first_from(wanted).unwrap(), expected);
    });
}

#[test]
fn cuts_are_the_first_places_with_enough_bytes_before_them() {
    proptest!(|(case in cases(1..5), pieces in 1..9_u64)| {
        let (file, header) = open(&case, Width::Eight);
        let mut finder = Finder::new(&file, &header);
        let mut bytes = |element: u64| {
            let positions = finder.positions(element).unwrap();
            finder.bytes_before(&positions)
        };
        let all: Vec<u64> = (0..=header.nodes().last().copied().unwrap()).map(&mut bytes).collect();
        let total = *all.last().unwrap();
        let finder = Finder::new(&file, &header);
        let found: Vec<u64> = cuts(&file, &header, pieces).iter().map(|place| finder.bytes_before(place)).collect();
        for (piece, bytes) in found.iter().enumerate() {
            let target = total * piece as u64 / pieces;
            prop_assert_eq!(Some(bytes), all.iter().find(|bytes| **bytes >= target));
        }
        // Pieces differ from their share by no more than the bytes of one step.
        let steps = all.iter().scan(0, |before, &bytes| Some(bytes - std::mem::replace(before, bytes)));
        let step = steps.max().unwrap_or(0);
        for pair in found.windows(2) {
            prop_assert!((pair[1] - pair[0]).abs_diff(total / pieces) <= step + 1);
        }
        prop_assert_eq!(found.last(), Some(&total));
    });
}

/// A tensor most of whose entries are in few of its rows.
fn skewed(kinds: &[TcsLevelKind]) -> Case {
    let extents = [400, 8000, 3];
    let levels = kinds.iter().zip(extents).enumerate();
    let levels = levels.map(|(mode, (kind, extent))| Level::new(*kind, mode, extent)).collect();
    let rows = (0..400_u64).flat_map(|row| (0..8000 / (row + 1)).map(move |column| [row, column, column % 3]));
    Case { levels, entries: rows.map(|at| (at[..kinds.len()].to_vec(), 1.5)).collect() }
}

#[test]
fn no_piece_of_a_large_file_has_two_percent_more_bytes_than_the_mean() {
    let (dense, sparse) = (TcsLevelKind::Dense, TcsLevelKind::Sparse);
    for kinds in [&[dense, sparse][..], &[sparse, sparse], &[dense, sparse, sparse], &[sparse, sparse, sparse]] {
        for width in [Width::Four, Width::Eight] {
            let (file, header) = open(&skewed(kinds), width);
            for count in 1..=32_usize {
                let pieces = Pieces::new(&header, &cuts(&file, &header, count as u64)[1..]);
                let bytes: Vec<u64> = (0..count).map(|piece| pieces.bytes(&header, piece)).collect();
                let (most, all) = (*bytes.iter().max().unwrap(), bytes.iter().sum::<u64>());
                assert!(most * count as u64 * 100 <= all * 102, "{kinds:?} {width:?} in {count} pieces: {bytes:?}");
            }
        }
    }
}

#[test]
fn pieces_in_their_order_give_the_whole_tensor_once_from_any_place() {
    proptest!(|(case in cases(1..5), pieces in 1..9_u64, start in any::<prop::sample::Index>())| {
        let (file, header) = open(&case, Width::Eight);
        let ranges: Vec<_> = case.levels.iter().map(|level| level.range.clone()).collect();
        let splits = Splits::none(&ranges);
        let places = cuts(&file, &header, pieces);
        let whole = entries(Piece::new(&file, &header, &places[0]..&places[pieces as usize], &splits));
        prop_assert_eq!(whole.iter().map(|(.., value)| *value).collect::<Vec<_>>(), case.direct().values);
        // What is stored and not zero is what the tensor has.
        let stored = |entries: &[(Vec<u64>, f64)]| entries.iter().filter(|(_, value)| *value != 0.0).cloned().collect::<Vec<_>>();
        let found: Vec<_> = whole.iter().map(|(at, _, value)| (at.clone(), *value)).collect();
        prop_assert_eq!(stored(&found), stored(&case.sorted()));
        let joined: Vec<_> = places.windows(2).flat_map(|ends| entries(Piece::new(&file, &header, &ends[0]..&ends[1], &splits))).collect();
        prop_assert_eq!(&joined, &whole);
        let start = start.index(whole.len() + 1);
        let place = Finder::new(&file, &header).positions(start as u64).unwrap();
        prop_assert_eq!(&entries(Piece::new(&file, &header, &place..&places[pieces as usize], &splits)), &whole[start..]);
    });
}

#[test]
fn ranges_of_entries_are_those_that_have_their_coordinates() {
    proptest!(|(case in cases(1..5), points in points(), pieces in 1..4_u64)| {
        let ((file, header), splits) = (open(&case, Width::Eight), split(&case, &points));
        for ends in cuts(&file, &header, pieces).windows(2) {
            for (at, ranges, _) in entries(Piece::new(&file, &header, &ends[0]..&ends[1], &splits)) {
                for (level, (at, range)) in at.iter().zip(&ranges).enumerate() {
                    prop_assert!(splits.range(level, *range).contains(at));
                }
                prop_assert_eq!(&splits.of(&at), &ranges);
            }
        }
    });
}

/// The counts that each piece makes of each block.
fn counted(
    case: &Case,
    file: &Vec<u8>,
    header: &TcsHeader,
    splits: &Splits,
    pieces: u64,
) -> Vec<BTreeMap<Block, Counts>> {
    let count = |ends: &[Vec<u64>]| {
        load::count::<f64>(Piece::new(file, header, &ends[0]..&ends[1], splits), &case.levels).unwrap()
    };
    cuts(file, header, pieces).windows(2).map(count).collect()
}

#[test]
fn counts_of_pieces_merge_to_those_of_the_whole() {
    proptest!(|(case in cases(1..5), points in points(), pieces in 1..9_u64)| {
        let ((file, header), splits) = (open(&case, Width::Eight), split(&case, &points));
        let merge = |pieces| load::merge(&header, &splits, &counted(&case, &file, &header, &splits, pieces)).unwrap();
        let (one, several) = (merge(1), merge(pieces));
        prop_assert_eq!(one.len(), splits.blocks().count());
        for (block, plan) in &one {
            prop_assert_eq!(&plan.header, &several[block].header);
            prop_assert_eq!(&plan.counts, &several[block].counts);
        }
        // The least and greatest coordinates of all entries.
        let is_kept = |value: f64| value != 0.0 || case.levels.last().unwrap().kind == TcsLevelKind::Sparse;
        let kept: Vec<Vec<u64>> = case.sorted().into_iter().filter(|(_, value)| is_kept(*value)).map(|(at, _)| at).collect();
        for (level, range) in load::bounds(several.values()).into_iter().enumerate() {
            let all = || kept.iter().map(|at| at[level]);
            prop_assert_eq!((all().min(), all().max()), (Some(range.start), Some(range.end - 1)));
        }
        prop_assert_eq!(load::bounds(several.values()).is_empty(), kept.is_empty());
    });
}

#[test]
fn blocks_assembled_from_pieces_are_those_that_are_converted_at_once() {
    proptest!(ProptestConfig::with_cases(1000), |(case in cases(1..5), points in points(), pieces in 1..9_u64, width in widths())| {
        let ((file_of_all, header), splits) = (open(&case, width), split(&case, &points));
        let plans = load::merge(&header, &splits, &counted(&case, &file_of_all, &header, &splits, pieces)).unwrap();
        let mut parts: BTreeMap<Block, Vec<Vec<u8>>> = plans.keys().map(|block| (block.clone(), Vec::new())).collect();
        for (number, ends) in cuts(&file_of_all, &header, pieces).windows(2).enumerate() {
            let piece = Piece::new(&file_of_all, &header, &ends[0]..&ends[1], &splits);
            for (block, bytes) in load::write::<f64>(piece, number, &plans).unwrap() {
                let header = TcsHeader::read(&bytes).unwrap();
                prop_assert!(header.is_piece);
                check(&bytes, &header).unwrap();
                parts.get_mut(&block).unwrap().push(bytes);
            }
        }
        let is_kept = |value: f64| value != 0.0 || case.levels.last().unwrap().kind == TcsLevelKind::Sparse;
        let mut total = 0;
        for (block, plan) in &plans {
            let mut assembled = Cursor::new(Vec::new());
            load::assemble::<f64, _>(&plan.header, &parts[block], &mut assembled).unwrap();
            let assembled = assembled.into_inner();
            // The same by the definition: entries of the block alone.
            let mut own = Case { levels: plan.header.levels.clone(), entries: case.entries.clone() };
            own.entries.retain(|at, value| own.levels.iter().all(|level| level.range.contains(&at[level.mode])) && is_kept(*value));
            total += own.entries.len();
            let mut expected = Vec::new();
            own.direct().write(width, &mut expected).unwrap();
            prop_assert_eq!(&assembled, &expected, "block {:?}", block);
            let levels: Vec<_> = Tensor::<f64>::read(&assembled).unwrap().levels;
            for (level, number) in levels.iter().zip(block) {
                let split = level.split.clone().unwrap();
                prop_assert_eq!((split.range, split.index), (level.range.clone(), *number));
            }
        }
        // Each entry is in one block.
        prop_assert_eq!(total, case.entries.values().filter(|value| is_kept(**value)).count());
    });
}

#[test]
fn pieces_in_the_wrong_order_or_of_another_file_are_not_assembled() {
    let level = |mode| maniple_files::tcs::Level::new(TcsLevelKind::Sparse, mode, 9);
    let case = Case { levels: vec![level(0), level(1)], entries: (0..9).map(|at| (vec![at, at], 1.0)).collect() };
    let (file_of_all, header) = open(&case, Width::Eight);
    let splits = Splits::none(&[0..9, 0..9]);
    let plans = load::merge(&header, &splits, &counted(&case, &file_of_all, &header, &splits, 3)).unwrap();
    let pieces: Vec<Vec<u8>> = cuts(&file_of_all, &header, 3)
        .windows(2)
        .enumerate()
        .flat_map(|(number, ends)| {
            load::write::<f64>(Piece::new(&file_of_all, &header, &ends[0]..&ends[1], &splits), number, &plans)
                .unwrap()
                .into_values()
        })
        .collect();
    let plan = plans.values().next().unwrap();
    let told = |pieces: &[&[u8]]| {
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        load::assemble::<f64, _>(&plan.header, &pieces, &mut Cursor::new(Vec::new())).map_err(|error| error.to_string())
    };
    let [one, two, three] = &pieces[..] else { panic!("three pieces") };
    assert_eq!(told(&[one, two, three]), Ok(()));
    let wrong = "byte 0: idx of level 0: the next piece is one of another file, or does not start at element 0";
    assert_eq!(told(&[two, one, three]).unwrap_err().replace("pos of", "idx of"), wrong);
    assert!(told(&[one, two]).unwrap_err().contains("the pieces have"));
    assert!(told(&[one, two, &file(&case.plan(Width::Eight), &case.listed())]).unwrap_err().contains("another file"));
    assert_eq!(
        Tensor::<f64>::read(one).unwrap_err().to_string(),
        "byte 24: the file is a piece of a tensor: join it with the others"
    );
}

#[test]
fn pieces_of_damaged_arrays_end_without_panic_and_give_sorted_entries() {
    let places = proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![0..20_u64, any::<u64>()]), 1..4);
    proptest!(ProptestConfig::with_cases(1000), |(case in cases(1..5), places in places, wanted in proptest::collection::vec(0..8_u64, 4), pieces in 1..4_u64, beyond in 0..2_u64)| {
        let (mut file, header) = open(&case, Width::Eight);
        let start = header.start() as usize;
        prop_assume!(file.len() > start);
        for (place, number) in places {
            let place = start + 8 * place.index((file.len() - start) / 8);
            file[place..place + 8].copy_from_slice(&number.to_le_bytes());
        }
        // Ranges may not cover all coordinates either.
        let ranges: Vec<_> = case.levels.iter().map(|level| level.range.start + beyond..level.range.end).collect();
        let splits = Splits::none(&ranges);
        let mut finder = Finder::new(&file, &header);
        _ = finder.first_from(&wanted[..case.levels.len()]);
        let places: Result<Vec<_>, _> = (0..=pieces).map(|piece| finder.end_of_piece(piece, pieces)).collect();
        let Ok(places) = places else { return Ok(()) };
        for ends in places.windows(2) {
            let mut piece = Piece::new(&file, &header, &ends[0].positions..&ends[1].positions, &splits);
            let mut last = Vec::new();
            while let Ok(Some(entry)) = SortedEntries::<f64>::next_sorted(&mut piece) {
                prop_assert!(entry.at > &last[..]);
                last = entry.at.to_vec();
            }
            let piece = || Piece::new(&file, &header, &ends[0].positions..&ends[1].positions, &splits);
            let counts = load::count::<f64>(piece(), &case.levels);
            if let Some(plans) = counts.ok().and_then(|counts| load::merge(&header, &splits, &[counts]).ok()) {
                _ = load::write::<f64>(piece(), 0, &plans);
            }
        }
    });
}

#[test]
fn points_that_descend_or_are_outside_are_refused() {
    let splits = || Splits::none(&[0..10, 4..8]);
    assert_eq!(
        splits().at(0, &[5, 3]).unwrap_err().to_string(),
        "level 0 is split at [5, 3]: give numbers that do not descend, from 0 to 10"
    );
    assert!(splits().at(1, &[9]).is_err() && splits().at(1, &[3]).is_err());
    let some = splits().at(1, &[6, 6]).unwrap().into_equal(0, 4);
    let ranges = |level| (0..some.count(level)).map(|range| some.range(level, range)).collect::<Vec<_>>();
    assert_eq!((ranges(0), ranges(1)), (vec![0..2, 2..5, 5..7, 7..10], vec![4..6, 6..6, 6..8]));
    assert_eq!((some.blocks().count(), some.blocks().nth(4)), (12, Some(vec![1, 1])));
    // More ranges than coordinates.
    let many = splits().into_equal(1, 9);
    assert_eq!((0..9).map(|range| many.range(1, range)).map(|range| range.end - range.start).sum::<u64>(), 4);
    assert_eq!((4..8).map(|at| many.of(&[0, at])[1]).collect::<Vec<_>>(), [2, 4, 6, 8]);
}
