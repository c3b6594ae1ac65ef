//! Lines written in parts by several threads: the same as one by one, whatever a thread or the file does.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple_files::{Complex, EntryLines, InTurn, Number, Parallel, tns, write_parts};
use proptest::prelude::*;

use crate::whole::{TEAMS, Threads};

/// The text of parts, by each team; it is the same for all.
fn text_of<T: Number>(parts: &[Vec<(Vec<i64>, T)>]) -> Vec<u8> {
    let add = |part: usize, lines: &mut EntryLines| parts[part].iter().for_each(|(at, value)| lines.add(at, *value));
    let texts = TEAMS.map(|team| {
        let mut text = Vec::new();
        write_parts(&mut text, parts.len(), team, add).unwrap();
        text
    });
    assert!(texts.iter().all(|text| *text == texts[0]));
    texts[0].clone()
}

fn one_by_one<T: Number>(parts: &[Vec<(Vec<i64>, T)>]) -> Vec<u8> {
    let mut text = Vec::new();
    for (at, value) in parts.iter().flatten() {
        let at: Vec<u64> = at.iter().map(|&at| at as u64).collect();
        tns::write_entry(&mut text, &at, *value).unwrap();
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_have_the_lines_of_their_entries(rank in 1_usize..5, entries in prop::collection::vec((prop::array::uniform4(0_i64..3), any::<f64>()), 0..200), length in 1_usize..40) {
        let large = |at: i64| if at == 2 { i64::MAX / 4 - 1 } else { at };
        let entries: Vec<_> = entries.iter().map(|(at, value)| (at[..rank].iter().map(|&at| large(at)).collect::<Vec<_>>(), *value)).collect();
        let parts: Vec<_> = entries.chunks(length).map(<[_]>::to_vec).collect();
        prop_assert_eq!(text_of(&parts), one_by_one(&parts));
    }
}

#[test]
fn parts_may_be_empty_and_numbers_of_any_type() {
    assert_eq!(text_of::<f64>(&[]), b"");
    assert_eq!(text_of::<i64>(&[vec![], vec![(vec![0, 1], -7)], vec![], vec![(vec![0, 2], 8)]]), b"1 2 -7\n1 3 8\n");
    assert_eq!(
        text_of(&[vec![(vec![4], Complex::new(0.5, -1.0)), (vec![4], Complex::new(2.0, 0.0))]]),
        b"5 0.5 -1.0\n5 2.0 0.0\n"
    );
    assert_eq!(text_of(&[vec![(vec![9, 9], true), (vec![10, 9], false)]]), b"10 10 1\n11 10 0\n");
}

/// Takes so many bytes, and has no room for more.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_file_that_is_full_ends_the_work_of_all_threads() {
    for team in TEAMS {
        for room in [0, 3, 999, 5_000] {
            let error = write_parts(&mut Full(room), 1_000, team, |part, lines| lines.add(&[part as i64], 1.5));
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
    }
}

#[test]
fn a_panic_in_one_thread_ends_the_work_of_all() {
    for team in TEAMS {
        let write = || {
            write_parts(&mut Vec::new(), 1_000, team, |part, lines| {
                assert_ne!(part, 3);
                lines.add(&[part as i64], 1.5);
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(write)).is_err());
    }
}

/// Runs nothing.
struct Idle;

impl Parallel for Idle {
    fn parts(&self) -> usize {
        2
    }

    fn run(&self, _: usize, _: &(dyn Fn(usize) + Sync)) {}
}

#[test]
fn the_calling_thread_does_what_no_other_does() {
    for team in [&Idle as &dyn Parallel, &InTurn] {
        let mut text = Vec::new();
        write_parts(&mut text, 3, team, |part, lines| lines.add(&[part as i64], 1)).unwrap();
        assert_eq!(text, b"1 1\n2 1\n3 1\n");
    }
}

/// Counts the parts that are made before the first is written.
struct First<'a> {
    made: &'a AtomicUsize,
    before: Option<usize>,
}

impl Write for First<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.before.get_or_insert_with(|| self.made.load(Ordering::SeqCst));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn threads_wait_for_a_part_that_takes_long() {
    for threads in [2, 3, 7] {
        let most = 4 * threads;
        let made = AtomicUsize::new(0);
        let mut into = First { made: &made, before: None };
        write_parts(&mut into, 1_000, &Threads(threads), |part, lines| {
            // The first one takes until others have made all that they may.
            while part == 0 && made.load(Ordering::SeqCst) < most - 1 {
                std::thread::yield_now();
            }
            lines.add(&[part as i64], 1.5);
            made.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
        assert_eq!(into.before, Some(most));
    }
}
