//! Blocks of a tensor, stored as one file.

use std::io::Cursor;

use maniple_files::tcs::load::{self, Finder, Piece, Splits};
use maniple_files::tcs::store::{Merge, equal_cuts, sampled_cuts};
use maniple_files::tcs::{Split, TcsHeader, TcsLevelKind, Width};
use proptest::prelude::*;

use super::{Case, cases};

/// The files of the blocks of a tensor.
fn blocks(case: &Case, splits: &Splits) -> Vec<Vec<u8>> {
    let file = |block: Vec<u64>| {
        let mut own = case.clone();
        for (number, (level, &index)) in own.levels.iter_mut().zip(&block).enumerate() {
            level.range = splits.range(number, index);
            level.split = Some(Split { range: level.range.clone(), index, count: splits.count(number) });
        }
        let levels = own.levels.clone();
        own.entries.retain(|at, _| levels.iter().all(|level| level.range.contains(&at[level.mode])));
        let mut bytes = Vec::new();
        own.direct().write(Width::Eight, &mut bytes).unwrap();
        bytes
    };
    splits.blocks().map(file).collect()
}

/// Stores blocks in pieces between these cuts, and gives the file, and how many entries each piece has.
fn stored(case: &Case, blocks: &[Vec<u8>], cuts: &[Vec<u64>]) -> (Vec<u8>, Vec<u64>) {
    let headers: Vec<TcsHeader> = blocks.iter().map(|block| TcsHeader::read(block).unwrap()).collect();
    let ranges: Vec<_> = case.levels.iter().map(|level| level.range.clone()).collect();
    let splits = Splits::none(&ranges);
    // For each block, the places where pieces begin and the last one ends.
    let places: Vec<Vec<Vec<u64>>> = blocks
        .iter()
        .zip(&headers)
        .map(|(block, header)| {
            let mut finder = Finder::new(block, header);
            let inner: Vec<u64> = cuts.iter().map(|cut| finder.first_from(cut).unwrap()).collect();
            let elements = [0].into_iter().chain(inner).chain([finder.elements()]).collect::<Vec<_>>();
            assert!(elements.is_sorted(), "cuts follow each other");
            elements.into_iter().map(|element| finder.positions(element).unwrap()).collect()
        })
        .collect();
    let piece = |number: usize| {
        let sources =
            blocks.iter().zip(&headers).zip(&places).map(|((block, header), places)| {
                Piece::new(block, header, &places[number]..&places[number + 1], &splits)
            });
        Merge::<_, f64>::new(sources.collect(), case.levels.len())
    };
    let pieces = cuts.len() + 1;
    let counted: Vec<_> = (0..pieces).map(|number| load::count(piece(number), &case.levels).unwrap()).collect();
    let whole =
        TcsHeader::new(maniple_files::ElementType::F64, Width::Eight, case.levels.clone(), &vec![0; case.levels.len()])
            .unwrap();
    let plans = load::merge_all(&whole, &counted).unwrap();
    let written: Vec<Vec<u8>> =
        (0..pieces).flat_map(|number| load::write(piece(number), number, &plans).unwrap().into_values()).collect();
    let mut file = Cursor::new(Vec::new());
    load::assemble::<f64, _>(&plans.values().next().unwrap().header, &written, &mut file).unwrap();
    let count = |counts: &std::collections::BTreeMap<_, maniple_files::tcs::Counts>| {
        counts.values().map(|counts| *counts.nodes.last().unwrap()).sum()
    };
    (file.into_inner(), counted.iter().map(count).collect())
}

fn splits(case: &Case, counts: &[u64]) -> Splits {
    let ranges: Vec<_> = case.levels.iter().map(|level| level.range.clone()).collect();
    counts
        .iter()
        .take(ranges.len())
        .enumerate()
        .fold(Splits::none(&ranges), |splits, (level, count)| splits.into_equal(level, *count))
}

#[test]
fn blocks_are_stored_as_the_tensor_is_converted_wherever_pieces_are_cut() {
    proptest!(ProptestConfig::with_cases(500), |(case in cases(1..5), counts in proptest::collection::vec(1..4_u64, 4), pieces in 1..9_u64, is_sampled in any::<bool>())| {
        let mut case = case;
        if case.levels.last().unwrap().kind == TcsLevelKind::Dense {
            case.entries.retain(|_, value| *value != 0.0);
        }
        let blocks = blocks(&case, &splits(&case, &counts));
        let ranges: Vec<_> = case.levels.iter().map(|level| level.range.clone()).collect();
        let cuts = match is_sampled {
            true => sampled_cuts(case.sorted().into_iter().map(|(at, _)| at).step_by(3).collect(), pieces),
            false => equal_cuts(&ranges, pieces),
        };
        let (file, entries) = stored(&case, &blocks, &cuts);
        let mut expected = Vec::new();
        case.direct().write(Width::Eight, &mut expected).unwrap();
        prop_assert_eq!(file, expected);
        // Each entry is in one piece.
        prop_assert_eq!(entries.iter().sum::<u64>(), case.entries.len() as u64);
    });
}

#[test]
fn equal_cuts_are_the_mixed_radix_digits_of_equal_shares() {
    proptest!(|(ranges in proptest::collection::vec((0..9_u64, 1..30_u64), 1..5), pieces in 1..20_u64)| {
        let ranges: Vec<_> = ranges.into_iter().map(|(start, extent)| start..start + extent).collect();
        let total: u64 = ranges.iter().map(|range| range.end - range.start).product();
        let cuts = equal_cuts(&ranges, pieces);
        prop_assert_eq!(cuts.len() as u64, pieces - 1);
        prop_assert!(cuts.is_sorted());
        for (piece, cut) in cuts.iter().enumerate() {
            let place = ranges.iter().zip(cut).fold(0, |place, (range, at)| place * (range.end - range.start) + at - range.start);
            prop_assert_eq!(place, total * (piece as u64 + 1) / pieces);
        }
    });
    // More places than 128 bits count.
    let cuts = equal_cuts(&vec![0..1 << 62; 8], 4);
    assert_eq!(cuts[1], [1 << 61, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn sampled_cuts_make_pieces_equal_where_coordinates_are_not() {
    // Most entries are in few rows.
    let levels = vec![
        maniple_files::tcs::Level::new(TcsLevelKind::Sparse, 0, 128),
        maniple_files::tcs::Level::new(TcsLevelKind::Sparse, 1, 2048),
    ];
    let entries = (1..100_u64).flat_map(|row| (0..2000 / row).map(move |column| (vec![row, column], 1.0))).collect();
    let case = Case { levels, entries };
    let blocks = blocks(&case, &splits(&case, &[3, 2]));
    let share = |cuts: &[Vec<u64>]| {
        let (_, entries) = stored(&case, &blocks, cuts);
        *entries.iter().max().unwrap() as f64 / (case.entries.len() as f64 / entries.len() as f64)
    };
    let ranges: Vec<_> = case.levels.iter().map(|level| level.range.clone()).collect();
    let samples = case.sorted().into_iter().map(|(at, _)| at).step_by(5).collect();
    assert!(share(&equal_cuts(&ranges, 8)) > 5.0);
    let sampled = share(&sampled_cuts(samples, 8));
    assert!(sampled < 1.05, "{sampled}");
}

#[test]
fn without_samples_all_is_one_piece() {
    assert!(sampled_cuts(Vec::new(), 5).is_empty());
}
