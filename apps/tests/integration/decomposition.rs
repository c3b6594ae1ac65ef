//! `maniple run cp` and `maniple run tucker` as their users run them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn run(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(arguments.split_whitespace()).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    command.output().expect("the program can be started")
}

/// The report of a run on so many nodes, which must succeed.
#[track_caller]
fn report(nodes: usize, arguments: &str) -> String {
    let launch = format!("launch -n {nodes} --no-prefix -- {} run {arguments}", env!("CARGO_BIN_EXE_maniple"));
    let run = run(&if nodes == 1 { format!("run {arguments}") } else { launch });
    assert_eq!((run.status.code(), String::from_utf8_lossy(&run.stderr).as_ref()), (Some(0), ""), "{arguments}");
    String::from_utf8(run.stdout).expect("the program prints text")
}

#[track_caller]
fn value<'a>(report: &'a str, name: &str) -> &'a str {
    let line = report.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line '{name}' in\n{report}")).trim()
}

#[track_caller]
fn refuses(arguments: &str, code: i32, message: &str) {
    let run = run(arguments);
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!((run.status.code(), run.stdout.as_slice()), (Some(code), &b""[..]), "{arguments}\n{told}");
    assert!(told.starts_with(&format!("error: {message}")), "{arguments}\n{told}");
}

const CP: &str = "cp --size 20,24,18 --rank 3";
const TUCKER: &str = "tucker --size 20,24,18 --ranks 3,4,2";

#[test]
fn a_tensor_of_low_rank_is_found_again() {
    for seed in 1..4 {
        for (program, rank) in [(CP, "3"), (TUCKER, "3 x 4 x 2")] {
            let report = report(1, &format!("{program} --seed {seed}"));
            assert_eq!((value(&report, "tensor"), value(&report, "rank")), ("20 x 24 x 18", rank));
            assert_eq!(value(&report, "fit"), "1.000000", "{report}");
            let error = value(&report, "relative error").split(' ').next().and_then(|word| word.parse::<f64>().ok());
            assert!(error.is_some_and(|error| error < 1e-5), "{report}");
        }
    }
}

#[test]
fn several_nodes_go_the_same_way() {
    for program in [CP, TUCKER] {
        let [one, two, four] = [1, 2, 4].map(|nodes| report(nodes, program));
        for line in ["tensor", "rank", "iterations", "fit"] {
            for several in [&two, &four] {
                assert_eq!(value(&one, line), value(several, line), "{program}");
            }
        }
    }
}

#[test]
fn extents_and_ranks_may_be_one() {
    report(1, "cp --size 1,1,1 --rank 1");
    report(1, "cp --size 5,1,3 --rank 1");
    report(1, "tucker --size 4,1,3 --ranks 1,1,1");
}

#[test]
fn a_tensor_that_is_not_found_in_time_is_no_success() {
    let message = "no convergence: after 1 iterations the relative error is ";
    refuses("run cp --size 20,24,18 --rank 6 --iterations 1", 1, message);
}

/// A library that multiplies small matrices as it should, and does this to products whose sides are all at least 64.
fn wrong_library(folder: &Path, name: &str, wrong: &str) -> Option<PathBuf> {
    let gemm = |letter: &str, of: &str, scalars: &str| {
        format!(
            "void cblas_{letter}gemm(int order, int ta, int tb, int m, int n, int k, {scalars} alpha, const {of} *a, int lda, \
             const {of} *b, int ldb, {scalars} beta, {of} *c, int ldc) {{\n\
             {of} one = ONE(alpha), old = ONE(beta);\n\
             if (order == 102) {{ const {of} *x = a; a = b; b = x; int t = lda; lda = ldb; ldb = t; t = m; m = n; n = t; t = ta; ta = tb; tb = t; }}\n\
             for (int i = 0; i < m; ++i) for (int j = 0; j < n; ++j) {{\n\
             {of} sum = 0;\n\
             for (int l = 0; l < k; ++l) sum += (ta == 111 ? a[i * lda + l] : a[l * lda + i]) * (tb == 111 ? b[l * ldb + j] : b[j * ldb + l]);\n\
             if (m >= 64 && n >= 64 && k >= 64) sum = {wrong};\n\
             c[i * ldc + j] = one * sum + (old == 0 ? 0 : old * c[i * ldc + j]);\n}}\n}}\n"
        )
    };
    let real = "#define ONE(x) (x)\n".to_owned() + &gemm("s", "float", "float") + &gemm("d", "double", "double");
    let complex = "#undef ONE\n#define ONE(x) (*(const float _Complex *)(x))\n".to_owned()
        + &gemm("c", "float _Complex", "const void *")
        + "#undef ONE\n#define ONE(x) (*(const double _Complex *)(x))\n"
        + &gemm("z", "double _Complex", "const void *");
    let (source, library) = (folder.join(format!("{name}.c")), folder.join(format!("lib{name}.so")));
    std::fs::write(&source, real + &complex).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    match compiler.status() {
        Ok(status) => {
            assert!(status.success());
            Some(library)
        }
        Err(error) => {
            eprintln!("no C compiler, no library that multiplies wrong: {error}");
            None
        }
    }
}

#[test]
fn what_a_library_multiplies_wrong_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, wrong, told) in [
        ("double", "2 * sum", "verification failed: after "),
        ("nan", "0.0 / 0.0", "verification failed: after 1 iterations sums of products are not finite"),
    ] {
        let Some(library) = wrong_library(folder.path(), name, wrong) else { return };
        for program in
            ["cp --size 64,64,64 --rank 64 --iterations 2", "tucker --size 64,64,64 --ranks 64,64,64 --iterations 2"]
        {
            let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
            command.arg("run").args(program.split(' ')).env("MANIPLE_BLAS", &library).env_remove("RUST_BACKTRACE");
            let run = command.stdin(Stdio::null()).output().expect("the program can be started");
            let message = String::from_utf8_lossy(&run.stderr).into_owned();
            assert_eq!(
                run.status.code(),
                Some(1),
                "{name} {program}: {}{message}",
                String::from_utf8_lossy(&run.stdout)
            );
            assert!(message.contains(told) && message.contains("MANIPLE_BLAS=none"), "{name} {program}: {message}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let three = "it must be three numbers such as 100,100,100";
    refuses("run cp --size 10,10", 2, &format!("invalid value '10,10' for '--size <I,J,K>': {three}"));
    refuses("run cp --rank 0", 2, "invalid value '0' for '--rank <R>': it must be at least 1");
    refuses(
        "run tucker --tolerance 2",
        2,
        "invalid value '2' for '--tolerance <T>': it must be a number between 0 and 1",
    );
    refuses(
        "run tucker --size 4,4,4 --ranks 1,1,2",
        2,
        "--ranks: rank 3 is 2, but can be 1 at most: neither more than the tensor's extent, 4, nor than the product of the others, 1\n",
    );
}

/// Two outer products of vectors most of whose elements are zero, as a file.
fn sparse_of_rank_two() -> String {
    let vectors: [[&[(i64, f64)]; 3]; 2] = [
        [&[(1, 2.0), (7, -1.0)], &[(2, 1.0), (3, 3.0), (9, 0.5)], &[(4, 1.0), (5, -2.0)]],
        [&[(2, 1.0), (7, 1.5), (12, 1.0)], &[(1, 4.0), (9, 1.0)], &[(5, 1.0), (8, 3.0)]],
    ];
    let mut text = String::from("# two outer products\n");
    for [a, b, c] in vectors {
        for ((i, x), (j, y), (k, z)) in a
            .iter()
            .flat_map(|a| b.iter().flat_map(move |b| c.iter().map(move |c| (a, b, c))))
            .map(|(a, b, c)| (*a, *b, *c))
        {
            text += &format!("{i} {j} {k} {}\n", x * y * z);
        }
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("rank-two.tns");
    std::fs::write(&path, text).expect("the folder can be written");
    path.display().to_string()
}

#[test]
fn a_sparse_tensor_is_decomposed_by_its_entries() {
    let file = sparse_of_rank_two();
    for nodes in [1, 2, 4] {
        let report = report(nodes, &format!("cp --tensor {file} --rank 2 --workers 2"));
        assert_eq!((value(&report, "entries"), value(&report, "fit")), ("23", "1.000000"), "{report}");
    }
    let error: f64 = value(&report(1, &format!("cp --tensor {file} --rank 1")), "relative error").parse().unwrap();
    assert!(error > 0.1 && error < 1.0, "{error}");
    refuses("run cp --tensor no/such.tns", 1, "no/such.tns");
    for nodes in [1, 2, 4] {
        let report = report(nodes, &format!("tucker --tensor {file} --ranks 2,2,2 --workers 2"));
        assert_eq!((value(&report, "entries"), value(&report, "fit")), ("23", "1.000000"), "{report}");
    }
    let error: f64 =
        value(&report(1, &format!("tucker --tensor {file} --ranks 1,1,1")), "relative error").parse().unwrap();
    assert!(error > 0.1 && error < 1.0, "{error}");
    refuses(&format!("run tucker --tensor {file} --ranks 99,2,2"), 2, "--ranks: rank 1 is 99, but can be");
    refuses(&format!("run cp --tensor {file} --size 3,3,3"), 2, "the argument '--tensor <FILE>' cannot be used with");
}
