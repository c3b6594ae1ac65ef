//! `.tcs` files of `maniple tensor`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use maniple_files::tcs::{TcsHeader, TcsLevelKind, Tensor, Width};

/// A folder for the files of one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tcs").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The exit code, and what is printed on standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.arg("tensor").args(arguments).env_remove("RUST_BACKTRACE").stdin(Stdio::null()).current_dir(folder);
    let output = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn told(folder: &Path, line: &str) -> String {
    let (code, out, error) = run(folder, &line.split(' ').collect::<Vec<_>>());
    assert_eq!((code, error.as_str()), (Some(0), ""), "{line}\n{out}");
    out
}

#[track_caller]
fn refused(folder: &Path, line: &str, code: i32, message: &str) {
    let (found, _, error) = run(folder, &line.split(' ').collect::<Vec<_>>());
    assert_eq!((found, error), (Some(code), format!("error: {message}\n")), "{line}");
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

/// A symmetric matrix, by columns.
const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate real symmetric\n4 4 5\n1 1 2\n3 1 -1\n2 2 2\n4 3 -1\n4 4 2\n";

#[test]
fn text_becomes_the_same_file_by_streaming_as_by_packing() {
    let folder = folder("stream");
    std::fs::write(folder.join("a.mtx"), SYMMETRIC).unwrap();
    std::fs::write(
        folder.join("i.mtx"),
        "%%MatrixMarket matrix coordinate integer general\n3 2 4\n3 1 5\n1 2 9007199254740993\n3 1 -7\n2 2 1\n",
    )
    .unwrap();
    std::fs::write(
        folder.join("c.mtx"),
        "%%MatrixMarket matrix coordinate complex hermitian\n3 3 2\n2 1 1.5 2\n3 3 1 0\n",
    )
    .unwrap();
    std::fs::write(folder.join("none.mtx"), "%%MatrixMarket matrix coordinate pattern general\n3 3 0\n").unwrap();
    std::fs::write(folder.join("p.mtx"), "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n3 1\n2 3\n")
        .unwrap();
    std::fs::write(folder.join("d.mtx"), "%%MatrixMarket matrix array real general\n2 2\n1\n0\n3\n4\n").unwrap();
    std::fs::write(folder.join("t.tns"), "2 1 2 1.5\n1 3 1 -2\n1 1 1 4\n2 1 2 0.5\n").unwrap();
    let formats = |name: &str| match name {
        "t" => &["{C,C,C}(0,1,2)", "{D,C,D}(2,0,1)", "{C,D,C}(1,2,0)", "{D,D,D}(0,1,2)"][..],
        _ => &["csr", "csc", "dcsr", "rows", "{C,D}(1,0)", "columns"],
    };
    for name in ["a.mtx", "i.mtx", "c.mtx", "none.mtx", "p.mtx", "d.mtx", "t.tns"] {
        // Not text, and so packed in memory.
        told(&folder, &format!("convert {name} packed.npz"));
        for format in formats(&name[..1]) {
            for width in [4, 8] {
                let streamed =
                    told(&folder, &format!("convert {name} streamed.tcs --format {format} --sort --width {width}"));
                let packed = told(&folder, &format!("convert packed.npz packed.tcs --format {format} --width {width}"));
                assert!(read(&folder, "streamed.tcs") == read(&folder, "packed.tcs"), "{name} as {format}");
                let first = |text: &str| text.lines().next().unwrap().split_once(": ").unwrap().1.to_owned();
                assert_eq!(first(&streamed), first(&packed));
            }
        }
    }
    let added = told(&folder, "convert i.mtx i.tcs --sort");
    assert_eq!(added, "i.tcs: 3 x 2 with 3 entries as {D,C}(0,1)\n1 entry was added to others at the same place\n");
    let tensor = Tensor::<i64>::read(&read(&folder, "i.tcs")).unwrap();
    assert_eq!(
        (tensor.values.as_slice(), tensor.arrays[1].pos.as_slice()),
        (&[9_007_199_254_740_993, 1, -2][..], &[0, 1, 2, 3][..])
    );
}

#[test]
fn tensors_go_to_levels_and_back() {
    let folder = folder("back");
    std::fs::write(folder.join("a.mtx"), SYMMETRIC).unwrap();
    told(&folder, "convert a.mtx first.mtx");
    let first = std::fs::read_to_string(folder.join("first.mtx")).unwrap();
    for format in ["csr", "csc", "dcsr", "dcsc", "rows", "columns", "{D,C<i64,i32>}", "{C<ranges>,D}(1,0)"] {
        for (from, to) in [("a.mtx --sort", "b.tcs"), ("first.npz", "b.tcs"), ("b.tcs", "c.tcs")] {
            told(&folder, "convert a.mtx first.npz");
            told(
                &folder,
                &format!(
                    "convert {} {to} --format {format}{}",
                    from.split(' ').next().unwrap(),
                    if from.ends_with("sort") { " --sort" } else { "" }
                ),
            );
            told(&folder, &format!("convert {to} last.mtx"));
            assert_eq!(std::fs::read_to_string(folder.join("last.mtx")).unwrap(), first, "{format} from {from}");
        }
    }
    told(&folder, "convert b.tcs short.tcs --width 4");
    let (before, short) =
        (TcsHeader::read(&read(&folder, "b.tcs")).unwrap(), TcsHeader::read(&read(&folder, "short.tcs")).unwrap());
    assert_eq!((before.width, short.width), (Width::Eight, Width::Four));
    assert_eq!(before.levels, short.levels);
    told(&folder, "convert short.tcs last.mtx");
    assert_eq!(std::fs::read_to_string(folder.join("last.mtx")).unwrap(), first);
}

#[test]
fn info_tells_how_a_tensor_is_stored() {
    let folder = folder("info");
    std::fs::write(folder.join("t.tns"), "1 1 2 1.5\n3 1 2 2.5\n3 4 1 1\n").unwrap();
    assert_eq!(
        told(&folder, "convert t.tns t.tcs --format {D,C,C} --width 4"),
        "t.tcs: 3 x 4 x 2 with 3 entries as {D,C,C}(0,1,2)\n"
    );
    assert_eq!(
        told(&folder, "info t.tcs"),
        "t.tcs
  order        3
  extents      3 x 4 x 2
  entries      3 of type f64
  density      12.5%
  dimension 0  2 entries at most, 1.00 on average; 1 of 3 have none
  dimension 1  2 entries at most, 0.75 on average; 2 of 4 have none
  dimension 2  2 entries at most, 1.50 on average; 0 of 2 have none
  formats      csf:3 (what is not there takes no room), coo (to build and to sort)
  stored       {D,C,C}(0,1,2), 4 bytes for each position and coordinate
"
    );
    // A block keeps the coordinates of the whole tensor.
    let mut block = Tensor::<f64>::read(&read(&folder, "t.tcs")).unwrap();
    for level in &mut block.levels {
        level.range = level.range.start + 5..level.range.end + 5;
        level.split = Some(maniple_files::tcs::Split { range: level.range.clone(), index: 1, count: 2 });
    }
    block.arrays.iter_mut().for_each(|arrays| arrays.idx.iter_mut().for_each(|at| *at += 5));
    let mut bytes = Vec::new();
    block.write(Width::Eight, &mut bytes).unwrap();
    std::fs::write(folder.join("block.tcs"), bytes).unwrap();
    let found = told(&folder, "info block.tcs");
    assert!(found.contains("extents      8 x 9 x 7\n"), "{found}");
    assert!(
        found.contains("8 bytes for each position and coordinate; range 1 of 2 of dimension 0: 5 to 8; "),
        "{found}"
    );
    told(&folder, "convert block.tcs block.tns");
    assert_eq!(std::fs::read_to_string(folder.join("block.tns")).unwrap(), "6 6 7 1.5\n8 6 7 2.5\n8 9 6 1.0\n");
}

#[test]
fn statements_read_and_write_levels_and_files_say_their_formats() {
    let folder = folder("statements");
    std::fs::write(folder.join("a.mtx"), SYMMETRIC).unwrap();
    std::fs::write(folder.join("i.mtx"), "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 3\n2 2 4\n")
        .unwrap();
    told(&folder, "convert a.mtx a.tcs --sort --format dcsr");
    told(&folder, "convert a.mtx rows.tcs --sort --format rows");
    let (code, out, error) = run(
        &folder,
        &["C(i,j) = A(i,k) * A(k,j)", "--input", "A=a.tcs", "--format", "C=dcsr", "--output", "c.tcs", "--verify"],
    );
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("A(4,4) as {C,C}(0,1)") || out.contains("as {C,C}(0,1) with 7 elements"), "{out}");
    let result = TcsHeader::read(&read(&folder, "c.tcs")).unwrap();
    assert_eq!(
        result.levels.iter().map(|level| level.kind).collect::<Vec<_>>(),
        [TcsLevelKind::Sparse, TcsLevelKind::Sparse]
    );
    told(&folder, "convert c.tcs c.mtx");
    run(
        &folder,
        &[
            "C(i,j) = A(i,k) * A(k,j)",
            "--input",
            "A=a.mtx",
            "--format",
            "A=csr",
            "--format",
            "C=csr",
            "--output",
            "d.mtx",
        ],
    );
    assert_eq!(
        std::fs::read_to_string(folder.join("c.mtx")).unwrap(),
        std::fs::read_to_string(folder.join("d.mtx")).unwrap()
    );
    // What --format says counts; dense levels are levels too.
    let (code, out, error) =
        run(&folder, &["y(i) = A(i,j) * x(j)", "--input", "A=a.tcs", "--format", "A=csc", "--output", "y.tcs"]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("{D,C}(1,0)"), "{out}");
    assert_eq!(TcsHeader::read(&read(&folder, "y.tcs")).unwrap().levels[0].kind, TcsLevelKind::Dense);
    let (code, out, error) = run(&folder, &["y(i) = A(i,j) * x(j)", "--input", "A=rows.tcs", "--verify"]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    // Integers are read as they are asked for.
    told(&folder, "convert i.mtx i.tcs");
    let (code, out, error) = run(&folder, &["y(i) = A(i,j) * x(j)", "--input", "A=i.tcs", "--type", "i64", "--verify"]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    let (code, out, error) = run(&folder, &["y(i) = A(i,j) * x(j)", "--input", "A=i.tcs", "--verify"]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    // A block is a tensor whose other elements are zero.
    let mut block = Tensor::<f64>::read(&read(&folder, "a.tcs")).unwrap();
    block.levels[0].range = 2..4;
    block.arrays[0] = maniple_files::tcs::Arrays { pos: vec![0, 2], idx: block.arrays[0].idx[2..].to_vec() };
    let first = block.arrays[1].pos[2];
    block.arrays[1].pos = block.arrays[1].pos[2..].iter().map(|bound| bound - first).collect();
    block.arrays[1].idx.drain(..first as usize);
    block.values.drain(..first as usize);
    let mut bytes = Vec::new();
    block.write(Width::Eight, &mut bytes).unwrap();
    std::fs::write(folder.join("block.tcs"), bytes).unwrap();
    let (code, out, error) = run(
        &folder,
        &["B(i,j) = A(i,j)", "--input", "A=block.tcs", "--format", "B=dcsr", "--output", "block.mtx", "--verify"],
    );
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    let lower = "%%MatrixMarket matrix coordinate real general\n4 4 4\n3 1 -1.0\n3 4 -1.0\n4 3 -1.0\n4 4 2.0\n";
    assert_eq!(std::fs::read_to_string(folder.join("block.mtx")).unwrap(), lower);
    // A result with other levels gets compressed ones.
    let (code, out, error) =
        run(&folder, &["B(i,j) = A(i,j)", "--input", "A=a.tcs", "--format", "B=coo", "--output", "coo.tcs"]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    told(&folder, "convert coo.tcs coo.mtx");
    told(&folder, "convert a.tcs a2.mtx");
    assert_eq!(
        std::fs::read_to_string(folder.join("coo.mtx")).unwrap(),
        std::fs::read_to_string(folder.join("a2.mtx")).unwrap()
    );
}

#[test]
fn what_cannot_be_converted_says_why_and_leaves_nothing() {
    let folder = folder("refused");
    std::fs::write(folder.join("a.mtx"), SYMMETRIC).unwrap();
    std::fs::write(folder.join("t.tns"), "1 1 1 5\n1 2 1 6\n1 1 2 7\n").unwrap();
    let sorted = "and lines must be sorted by coordinate 0, then coordinate 1: sort them first, or say --sort";
    let half = "a.mtx:4: the matrix is symmetric, and the file has one half of it: the entries of the other half, such as (1, 3), are not in the order of rows; say --sort, which sorts both halves";
    refused(&folder, "convert a.mtx a.tcs", 1, half);
    let unsorted = "%%MatrixMarket matrix coordinate real general\n3 3 2\n3 1 5\n1 2 6\n";
    std::fs::write(folder.join("u.mtx"), unsorted).unwrap();
    refused(&folder, "convert u.mtx u.tcs", 1, &format!("u.mtx:4: entry (1, 2) comes after (3, 1), {sorted}"));
    refused(
        &folder,
        "convert t.tns t.tcs",
        1,
        "t.tns:3: entry (1, 1, 2) comes after (1, 2, 1), and lines must be sorted by coordinate 0, then coordinate 1, then coordinate 2: sort them first, or say --sort",
    );
    refused(
        &folder,
        "convert t.tns t.tcs --format csr",
        2,
        "--format {D,C}(0,1) is for 2 dimensions, and t.tns has 3: take csf:3 or coo:3",
    );
    refused(
        &folder,
        "convert t.tns t.tcs --format coo:3",
        2,
        "--format {C~u,S~u,S}(0,1,2): .tcs files have dense and compressed levels alone, each of a dimension; take csr, dcsr or csf:3",
    );
    refused(&folder, "convert a.mtx b.mtx --width 4", 2, "--width is for .tcs files, and b.mtx is none");
    let (code, _, error) = run(&folder, &["convert", "a.mtx", "a.tcs", "--width", "2"]);
    assert!(code == Some(2) && error.contains("it must be 4 or 8"), "{error}");
    // Coordinates that four bytes do not hold, and more rows than a disk.
    std::fs::write(
        folder.join("far.mtx"),
        format!("%%MatrixMarket matrix coordinate real general\n{0} {0} 1\n{0} 1 1.5\n", 1_u64 << 40),
    )
    .unwrap();
    refused(
        &folder,
        "convert far.mtx far.tcs --format dcsr --width 4",
        1,
        "far.mtx: coordinates of level 0 up to 1099511627776 do not fit 4 bytes",
    );
    let (code, _, error) = run(&folder, &["convert", "far.mtx", "far.tcs"]);
    assert!(code == Some(1) && error.starts_with("error: cannot write `far.tcs`: it would have 8796093022"), "{error}");
    assert!(error.contains("levels C take less than D"), "{error}");
    told(&folder, "convert far.mtx far.tcs --format dcsr");
    told(&folder, "convert far.tcs again.mtx");
    let file = read(&folder, "far.tcs");
    assert_eq!(file.len(), 80 + 240 + 8 * (2 + 1 + 2 + 1 + 1));
    // Bad files, in one line each.
    let mut flipped = file.clone();
    flipped[330] ^= 4;
    let cases: [(&str, Vec<u8>, &str); 6] = [
        ("empty.tcs", Vec::new(), "this is no .tcs file: it is empty"),
        ("text.tcs", b"1 1 1\n".to_vec(), "this is no .tcs file: it starts with '1 1 1'"),
        ("cut.tcs", file[..file.len() - 1].to_vec(), "arrays of the lengths that the header says end at byte 376"),
        ("head.tcs", file[..100].to_vec(), "the header has 320 bytes, and the file has 100"),
        ("flipped.tcs", flipped, "pos of level 0 is damaged"),
        ("gzip.tcs", b"\x1f\x8b\x08\0\0\0".to_vec(), "the file is packed with gzip"),
    ];
    for (name, bytes, message) in cases {
        std::fs::write(folder.join(name), bytes).unwrap();
        for line in
            [format!("info {name}"), format!("convert {name} out.mtx"), format!("y(i)=A(i,j)*x(j) --input A={name}")]
        {
            let (code, out, error) = run(&folder, &line.split(' ').collect::<Vec<_>>());
            assert_eq!((code, out.as_str(), error.lines().count()), (Some(1), "", 1), "{line}: {error}");
            assert!(error.starts_with(&format!("error: {name}: {message}")), "{line}: {error}");
        }
    }
    assert!(!folder.join("a.tcs").exists() && !folder.join("t.tcs").exists() && !folder.join("out.mtx").exists());
    let others = std::fs::read_dir(&folder)
        .unwrap()
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with(".tmp"));
    assert_eq!(others.count(), 0);
}

#[test]
fn blocks_of_different_ranges_are_refused_where_all_is_stored() {
    let folder = folder("ranges");
    let write = |name: &str, range: std::ops::Range<u64>| {
        let values = vec![2.0_f64; (range.end - range.start) as usize];
        let mut level = maniple_files::tcs::Level::new(TcsLevelKind::Dense, 0, 4);
        level.range = range;
        let arrays = vec![maniple_files::tcs::Arrays { pos: Vec::new(), idx: Vec::new() }];
        let mut bytes = Vec::new();
        Tensor { levels: vec![level], arrays, values }.write(Width::Eight, &mut bytes).unwrap();
        std::fs::write(folder.join(name), bytes).unwrap();
    };
    write("whole.tcs", 0..4);
    write("low.tcs", 2..4);
    write("also.tcs", 2..4);
    let sum = |others: &str| {
        let sum = ["a(i) = B(i) + C(i)", "--input", "B=low.tcs", "--input", &format!("C={others}"), "-o", "a.mtx"];
        run(&folder, &sum)
    };
    let (code, _, error) = sum("whole.tcs");
    assert_eq!(code, Some(2), "{error}");
    let expected =
        "the file of C stores all coordinates of i from 0 on, and that of B from 2 on: take blocks of one range";
    assert!(error.contains(expected), "{error}");
    assert!(!folder.join("a.mtx").exists());
    let (code, _, error) = sum("also.tcs");
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let text = std::fs::read_to_string(folder.join("a.mtx")).unwrap();
    assert!(text.lines().skip(1).collect::<String>().contains('4'), "{text}");
}

/// The most memory of its own that a process has while it runs, in bytes, as the system tells when it is asked again
/// and again.
#[cfg(target_os = "linux")]
fn most_memory(mut command: Command) -> u64 {
    let mut child = command.stdout(Stdio::null()).spawn().expect("the program starts");
    let (status, mut most) = (format!("/proc/{}/status", child.id()), 0);
    while child.try_wait().expect("a child can be waited for").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let own = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = own.and_then(|own| own.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
        most = most.max(kilobytes.unwrap_or(0) << 10);
        std::thread::yield_now();
    }
    assert!(child.wait().expect("a child can be waited for").success());
    most
}

#[cfg(target_os = "linux")]
#[test]
fn sorted_text_is_converted_in_memory_that_does_not_grow_with_it() {
    let folder = folder("memory-of-text");
    let rows = [20_000, 200_000];
    let most = rows.map(|rows| {
        let (name, to) = (format!("{rows}.mtx"), format!("{rows}.tcs"));
        let mut text = format!("%%MatrixMarket matrix coordinate real general\n{rows} 1000 {}\n", 8 * rows);
        for row in 1..=rows {
            (0..8).for_each(|entry| text.push_str(&format!("{row} {} 1.5\n", entry * 123 + row % 123 + 1)));
        }
        std::fs::write(folder.join(&name), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
        command.args(["tensor", "convert", &name, &to, "--format", "ds"]).current_dir(&folder);
        most_memory(command)
    });
    // As entries in memory it is 38 MB.
    let [few, many] = most;
    assert!(many <= few + (8 << 20) && many <= 64 << 20, "{many} bytes for ten times the text, {few} before");
}
