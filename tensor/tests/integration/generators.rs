//! Sparse tensors made from a seed.

use maniple_tensor::generate::Generator;
use maniple_tensor::storage::{Duplicates, EntryList, pack};

fn all<T: maniple_tensor::element::Element>(text: &str, dimensions: &[i64], seed: u64) -> EntryList<T> {
    text.parse::<Generator>().unwrap().rows(dimensions, 0..dimensions[0], seed).unwrap()
}

const KINDS: &[(&str, &[i64])] = &[
    ("uniform:0.3", &[20, 30]),
    ("uniform:1", &[4, 5]),
    ("uniform:0", &[4, 5]),
    ("uniform:0.1", &[7, 8, 9]),
    ("uniform:0.5", &[40]),
    ("zipf:300", &[50, 60]),
    ("zipf:200", &[30, 10, 20]),
    ("zipf:5000", &[20, 30]),
    ("band:5", &[12, 9]),
    ("band:4", &[9, 12]),
    ("poisson:5", &[25, 25]),
    ("poisson3:3", &[27, 27]),
    ("rmat:6", &[64, 64]),
    ("rmat:8,3", &[256, 256]),
    ("arrow", &[10, 8]),
    ("hypersparse:50", &[1 << 40, 1 << 40]),
    ("hypersparse:50", &[7, 1 << 40, 3]),
    ("uniform:0.00000000001", &[1 << 40, 3]),
    ("uniform:0.0001", &[1000, 30, 2]),
    ("zipf:100", &[1 << 40, 1 << 40]),
    ("zipf:30", &[1 << 20, 4]),
    ("zipf:30", &[1, 1, 4]),
    ("uniform:0.5", &[0, 5]),
    ("zipf:5", &[5, 0]),
];

#[test]
fn entries_ascend_and_are_there_once() {
    for (text, dimensions) in KINDS {
        let entries = all::<f64>(text, dimensions, 3);
        let coordinates: Vec<_> = entries.iter().map(|(at, _)| at).collect();
        assert!(coordinates.windows(2).all(|pair| pair[0] < pair[1]), "{text}");
        let format = format!("csf:{}", dimensions.len()).parse().unwrap();
        pack(&format, dimensions, 0.0, entries, Duplicates::Refuse).unwrap().tensor.check().unwrap();
    }
}

#[test]
fn parts_are_what_the_whole_has_there() {
    let mut random = fastrand::Rng::with_seed(1);
    for (text, dimensions) in KINDS {
        let generator: Generator = text.parse().unwrap();
        let whole = all::<i32>(text, dimensions, 9);
        for _ in 0..5 {
            let mut cuts: Vec<i64> = (0..3).map(|_| random.i64(0..=dimensions[0])).collect();
            cuts.extend([0, dimensions[0]]);
            cuts.sort_unstable();
            let parts = cuts.windows(2).map(|cut| generator.rows::<i32>(dimensions, cut[0]..cut[1], 9).unwrap());
            let entries: Vec<_> = parts.flat_map(|part| part.iter().collect::<Vec<_>>()).collect();
            assert_eq!(entries, whole.iter().collect::<Vec<_>>(), "{text} {cuts:?}");
        }
    }
}

#[test]
fn seeds_make_different_tensors() {
    for (text, dimensions) in [KINDS[0], KINDS[5], KINDS[8], KINDS[12], KINDS[14], KINDS[15], KINDS[17], KINDS[19]] {
        let of = |seed| all::<i64>(text, dimensions, seed).iter().collect::<Vec<_>>();
        assert!(of(1) == of(1) && of(1) != of(2), "{text}");
    }
}

#[test]
fn tensors_have_as_much_as_their_names_say() {
    let count = |text: &str, dimensions: &[i64]| all::<f64>(text, dimensions, 5).len() as i64;
    assert!((29_000..31_000).contains(&count("uniform:0.3", &[100, 1000])));
    assert!((850..1150).contains(&count("uniform:0.001", &[100_000, 10])));
    assert!((10..70).contains(&count("uniform:0.00000000001", &[1 << 40, 3])));
    assert_eq!(count("zipf:100", &[1 << 40, 1 << 40]), 100);
    assert_eq!([count("uniform:1", &[4, 5]), count("uniform:0", &[4, 5]), count("uniform:1", &[40])], [20, 0, 40]);
    assert_eq!(count("zipf:10000", &[1000, 2000]), 10_000);
    assert_eq!(
        [count("band:3", &[10, 10]), count("poisson:10", &[100, 100]), count("arrow", &[10, 10])],
        [28, 460, 28]
    );
    assert_eq!([count("hypersparse:1000", &[1 << 40, 1 << 40]), count("hypersparse:9", &[4, 1 << 40])], [1000, 4]);
    // Some edges are at the same place.
    assert!((12_000..=16_384).contains(&count("rmat:12,4", &[4096, 4096])));
}

#[test]
fn few_rows_of_a_power_law_are_long() {
    let mut lengths = vec![0; 1000];
    all::<f64>("zipf:10000", &[1000, 2000], 5).iter().for_each(|(at, _)| lengths[at[0] as usize] += 1);
    assert_ne!(lengths.iter().position(|length| length == lengths.iter().max().unwrap()), Some(0));
    lengths.sort_unstable();
    assert!(lengths[999] > 300 && lengths[500] < 12, "{} {}", lengths[999], lengths[500]);
}

#[test]
fn generators_are_read_as_they_are_written() {
    for text in [
        "uniform:0.3",
        "zipf:1000000",
        "band:64",
        "poisson:4000",
        "poisson3:100",
        "rmat:18",
        "rmat:10,4",
        "arrow",
        "hypersparse:5000000",
    ] {
        assert_eq!(text.parse::<Generator>().unwrap().to_string(), text);
    }
    assert_eq!("rmat:18,16".parse::<Generator>().unwrap().to_string(), "rmat:18");
    for text in [
        "",
        "uniform",
        "uniform:2",
        "uniform:nan",
        "zipf:-1",
        "band:x",
        "poisson:0",
        "rmat:41",
        "rmat:3,x",
        "arrow:1",
        "normal:3",
    ] {
        let error = text.parse::<Generator>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{text}` is no generator: expected uniform:DENSITY")), "{error}");
    }
}

#[test]
fn tensors_that_a_generator_does_not_make_are_refused() {
    let told = |text: &str, dimensions: &[i64]| {
        text.parse::<Generator>().unwrap().rows::<f64>(dimensions, 0..1, 0).unwrap_err().to_string()
    };
    let error = told("poisson:3", &[8, 9]);
    assert_eq!(error, "poisson:3 makes a matrix of extents [9, 9], and no tensor of extents [8, 9]");
    assert_eq!(told("band:3", &[8]), "band:3 makes matrices, and no tensor of extents [8]");
    assert!(told("uniform:0.5", &[]).contains("one dimension or more"));
    assert!(told("uniform:0.5", &[2, 1 << 40, 1 << 40]).contains("rows of up to 2^63 places"));
}
