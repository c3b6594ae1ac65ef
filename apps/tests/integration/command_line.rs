//! The program as its users run it: what it prints, and the exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run of the program gave.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn maniple(arguments: &str) -> Run {
    maniple_with_log(arguments, "")
}

/// With this in the variable `RUST_LOG`.
fn maniple_with_log(arguments: &str, log: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(arguments.split_whitespace()).env_remove("RUST_BACKTRACE").env("RUST_LOG", log).stdin(Stdio::null());
    let output = command.output().expect("the program can be started");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs what must succeed and gives what it printed, which is nothing on standard error.
#[track_caller]
fn prints(arguments: &str) -> String {
    let run = maniple(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "maniple {arguments}\n{}", run.stdout);
    run.stdout
}

/// Runs what must fail: with this exit code, and one message that starts like this.
#[track_caller]
fn fails(arguments: &str, code: i32, message: &str) {
    let run = maniple(arguments);
    assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "maniple {arguments}\n{}", run.stderr);
    let found = run.stderr.strip_prefix("error: ").unwrap_or_else(|| panic!("no error message: {}", run.stderr));
    assert!(found.starts_with(message), "maniple {arguments}\nexpected: {message}\nfound:    {found}");
    assert_eq!(run.stderr.matches("error:").count(), 1, "one message: {}", run.stderr);
    assert!(!run.stderr.contains("backtrace") && !run.stderr.contains("panicked"), "{}", run.stderr);
}

/// The value of a line of a report.
#[track_caller]
fn value<'a>(report: &'a str, name: &str) -> &'a str {
    let line = report.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line '{name}' in\n{report}")).trim()
}

/// A file with this text, for one test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a temporary file can be written");
    path
}

const SMALL_CIRCUIT: &str = "run circuit --pieces 4 --nodes-per-piece 20 --wires-per-piece 60 --steps 20";

mod circuit {
    use super::*;

    #[test]
    fn the_report_says_what_was_done() {
        let report = prints(SMALL_CIRCUIT);
        assert!(report.starts_with("circuit\n"), "{report}");
        assert_eq!((value(&report, "pieces"), value(&report, "steps")), ("4", "20"));
        assert_eq!(value(&report, "tasks run"), "240", "three launches a step");
        for name in ["time", "tasks/s", "largest relative error"] {
            assert!(!value(&report, name).is_empty());
        }
    }

    #[test]
    fn every_mapper_and_number_of_workers_gives_the_right_result() {
        for mapper in ["default", "piecewise", "random", "random:7"] {
            for workers in 1..=3 {
                prints(&format!("{SMALL_CIRCUIT} --inside 50 --mapper {mapper} --workers {workers} --window 5"));
            }
        }
    }

    #[test]
    fn the_logging_mapper_tells_its_decisions_on_standard_error() {
        let run = maniple(&format!("{SMALL_CIRCUIT} --mapper log"));
        assert_eq!(run.code, Some(0));
        assert!(run.stderr.lines().all(|line| line.starts_with("mapper: ")), "{}", run.stderr);
        assert!(run.stderr.contains("distribute_charge"));
    }

    #[test]
    fn a_step_cannot_be_marked_as_a_trace_where_nothing_is_traced() {
        for simulation in ["circuit", "cg", "stencil"] {
            let message = "the argument '--trace' cannot be used with '--no-tracing'";
            fails(&format!("run {simulation} --trace --no-tracing"), 2, message);
        }
    }

    #[test]
    fn without_verification_there_is_no_error_to_print() {
        assert!(!prints(&format!("{SMALL_CIRCUIT} --no-verify")).contains("error"));
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        fails("run circuit --pieces 0", 2, "invalid value '0' for '--pieces <N>': it must be at least 1");
        fails(
            "run circuit --steps -3",
            2,
            "invalid value '-3' for '--steps <N>': it must be a whole number of at least 1",
        );
        fails("run circuit --nodes-per-piece many", 2, "invalid value 'many' for '--nodes-per-piece <N>': it must be");
        fails("run circuit --inside 101", 2, "invalid value '101' for '--inside <PERCENT>': it must be");
        fails(
            "run circuit --pieces 99999999999",
            2,
            "invalid value '99999999999' for '--pieces <N>': it must be at most",
        );
        fails("run circuit --pieces 1000000 --nodes-per-piece 1000000", 2, "1000000 pieces of 1000000 nodes");
    }

    #[test]
    fn memory_that_runs_out_is_an_error_that_says_how_much_there_was() {
        for mapper in ["default", "piecewise", "random"] {
            fails(&format!("{SMALL_CIRCUIT} --memory 2KiB --mapper {mapper}"), 1, "cannot place `make_piece` at point");
        }
    }
}

mod cg {
    use super::*;

    #[test]
    fn the_default_system_is_a_poisson_problem() {
        let report = prints("run cg --poisson 40");
        assert_eq!(value(&report, "matrix"), "Poisson 40 x 40 (1600 rows, 7840 entries)");
        let residual = value(&report, "relative residual").split(' ').next().and_then(|word| word.parse::<f64>().ok());
        assert!(residual.is_some_and(|residual| residual <= 1e-8), "{report}");
        assert!(value(&report, "iterations").parse::<u32>().is_ok_and(|iterations| iterations > 10));
    }

    #[test]
    fn neither_pieces_nor_mapper_nor_workers_keep_it_from_converging() {
        for pieces in [1, 3, 8] {
            for mapper in ["default", "piecewise", "random:3"] {
                prints(&format!("run cg --poisson 12 --pieces {pieces} --mapper {mapper} --workers 3"));
            }
        }
    }

    #[test]
    fn the_real_matrices_are_solved() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
        for name in ["bcsstk13", "1138_bus", "LFAT5", "ani4"] {
            let matrix = data.join(name).with_extension("mtx");
            if !matrix.exists() {
                eprintln!("NOT TESTED: {} is not there", matrix.display());
                continue;
            }
            prints(&format!("run cg --matrix {} --pieces 3 --tolerance 1e-8", matrix.display()));
        }
    }

    #[test]
    fn real_matrices_that_cannot_be_solved_are_refused_with_file_line_and_reason() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
        let refused = [
            ("lp_afiro", ":65: the matrix is 27 by 51; only a square one can be solved\n"),
            ("west0067", ":15: the matrix is not symmetric: entry (5, 1) is -0.2788416, but (1, 5) is 0\n"),
            ("karate", ": row 1 has the diagonal entry 0, but those of a positive definite matrix are positive\n"),
            ("jagmesh7", ": the matrix is not positive definite: "),
        ];
        for (name, reason) in refused {
            let matrix = data.join(name).with_extension("mtx");
            if !matrix.exists() {
                eprintln!("NOT TESTED: {} is not there", matrix.display());
                continue;
            }
            fails(&format!("run cg --matrix {}", matrix.display()), 1, &format!("{}{reason}", matrix.display()));
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        fails("run cg --matrix no/such.mtx", 1, "no/such.mtx: cannot be read: No such file");
        let folder = env!("CARGO_TARGET_TMPDIR");
        fails(&format!("run cg --matrix {folder}"), 1, &format!("{folder}: cannot be read: "));
    }

    #[test]
    fn malformed_and_truncated_files_are_refused_with_name_line_and_reason() {
        let refused = [
            ("", ":1: the file is empty\n"),
            (
                "hello\n",
                ":1: the first line of a Matrix Market file is '%%MatrixMarket matrix FORMAT FIELD SYMMETRY', not 'hello'\n",
            ),
            ("\u{feff}%%MatrixMarket matrix coordinate real general\n", ":1: the file starts with a byte order mark"),
            (
                "%%MatrixMarket matrix coordinate real general\r1 1 1\r1 1 1\r",
                ":1: lines end with a carriage return alone",
            ),
            ("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 \0\n", ":3: '\\0' is not a number\n"),
            (
                "%%MatrixMarket matrix coordinate real general\n99999999999999999999 1 1\n",
                ":2: '99999999999999999999' is too large a number for 'ROWS COLUMNS ENTRIES'\n",
            ),
            (
                "%%MatrixMarket matrix coordinate real general\n1 1 9000000000000000000\n1 1 1\n",
                ":3: the file ends after 1 of 9000000000000000000 entries\n",
            ),
            (
                "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 1\n",
                ":4: the file ends after 2 of 3 entries\n",
            ),
            (
                "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 one 1\n2 2 4\n",
                ":4: the column 'one' is not",
            ),
            (
                "%%MatrixMarket matrix coordinate real symmetric\n0 0 0\n",
                ":2: expected at least 1 row and 1 column, found 0 and 0\n",
            ),
            ("%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 1 0\n", ":1: the entries are complex"),
            ("%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 0\n", ":1: the matrix is skew-symmetric"),
        ];
        for (number, (text, reason)) in refused.iter().enumerate() {
            let matrix = file(&format!("refused-{number}.mtx"), text);
            fails(&format!("run cg --matrix {}", matrix.display()), 1, &format!("{}{reason}", matrix.display()));
        }
    }

    #[test]
    fn a_packed_file_is_told_from_a_wrong_one() {
        let packed = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packed.mtx.gz");
        std::fs::write(&packed, b"\x1f\x8b\x08\x00").expect("a temporary file can be written");
        let name = packed.display();
        fails(
            &format!("run cg --matrix {name}"),
            1,
            &format!("{name}:1: the file is packed with gzip; unpack it first"),
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        fails("run cg --matrix /dev/zero", 1, "/dev/zero:1: the first line of a Matrix Market file is ");
        let text = format!("%%MatrixMarket matrix coordinate real general\n1 1 1\n{}", "1".repeat(1 << 17));
        let name = file("endless.mtx", &text).display().to_string();
        fails(&format!("run cg --matrix {name}"), 1, &format!("{name}:3: the line that starts with '1111111111"));
    }

    #[test]
    fn more_pieces_than_rows_are_refused() {
        let name = file("one.mtx", "%%MatrixMarket matrix array real general\n1 1\n2\n").display().to_string();
        fails(
            &format!("run cg --matrix {name} --pieces 2"),
            2,
            &format!("2 pieces are more than the 1 row of {name}\n"),
        );
    }

    #[test]
    fn a_small_matrix_of_any_form_is_solved() {
        let forms = [
            "%%MatrixMarket matrix array integer general\n2 2\n2\n1\n1\n2\n",
            "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 2\n",
        ];
        for (number, text) in forms.iter().enumerate() {
            let matrix = file(&format!("solved-{number}.mtx"), text);
            prints(&format!("run cg --matrix {}", matrix.display()));
        }
    }

    #[test]
    fn an_indefinite_matrix_and_too_few_iterations_are_failures() {
        let matrix = file("indefinite.mtx", "%%MatrixMarket matrix array real symmetric\n2 2\n1\n-3\n1\n");
        let path = matrix.display();
        fails(
            &format!("run cg --matrix {path}"),
            1,
            &format!("{path}: the matrix is not positive definite: iteration 1"),
        );
        fails("run cg --poisson 30 --max-iterations 5", 1, "no convergence: the relative residual is ");
        let run = maniple("run cg --poisson 30 --max-iterations 5");
        assert!(run.stderr.ends_with("after 5 iterations on Poisson 30 x 30; allow more with --max-iterations\n"));
    }

    #[test]
    fn where_rounding_ends_the_progress_a_larger_tolerance_is_asked_for() {
        for tolerance in ["1e-15", "1e-17", "1e-300"] {
            let arguments = format!("run cg --poisson 30 --tolerance {tolerance}");
            fails(&arguments, 1, "no convergence: rounding keeps the relative residual at ");
            let run = maniple(&arguments);
            let advice = format!("ask for a larger --tolerance than {tolerance}\n");
            assert!(run.stderr.ends_with(&advice), "{}", run.stderr);
        }
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        fails("run cg --poisson 2 --pieces 5", 2, "5 pieces are more than the 4 rows of Poisson 2 x 2");
        fails("run cg --poisson 0", 2, "invalid value '0' for '--poisson <N>'");
        fails("run cg --poisson 99999", 2, "a square of 99999 x 99999 unknowns is too large");
        fails(
            "run cg --tolerance 2",
            2,
            "invalid value '2' for '--tolerance <T>': it must be a number between 0 and 1",
        );
        fails(
            "run cg --matrix a.mtx --poisson 3",
            2,
            "the argument '--matrix <FILE>' cannot be used with '--poisson <N>'",
        );
    }

    #[test]
    fn memory_that_runs_out_is_an_error_that_says_how_much_there_was() {
        fails("run cg --poisson 60000 --memory 1GiB", 1, "a Poisson problem on 60000 x 60000 unknowns takes ");
        // Each of 100 rows takes 64 bytes, each of 460 entries 16.
        let message =
            "a Poisson problem on 10 x 10 unknowns takes 13760 bytes, more than the 13758 bytes that data may take\n";
        fails("run cg --poisson 10 --memory 13758", 1, message);
        fails("run cg --poisson 10 --memory 14KiB --pieces 4 --mapper piecewise", 1, "cannot place `");
        let name = file("dense.mtx", "%%MatrixMarket matrix array real general\n1 1\n2\n").display().to_string();
        let message = format!("the matrix of {name} takes 80 B, more than the 64 B that data may take\n");
        fails(&format!("run cg --matrix {name} --memory 64"), 1, &message);
    }
}

mod stencil {
    use super::*;

    #[test]
    fn the_report_says_what_was_done() {
        let report = prints("run stencil --size 30x20 --tiles 3x2 --steps 10 --radius 3");
        assert_eq!((value(&report, "grid"), value(&report, "tiles")), ("30 x 20", "3 x 2"));
        assert!(value(&report, "largest relative error").starts_with("0 (at most 1e-8 "), "{report}");
    }

    #[test]
    fn every_radius_tiling_and_mapper_gives_the_right_result() {
        for radius in 1..=4 {
            for tiles in ["1", "5x1", "1x9", "9x9"] {
                for mapper in ["default", "piecewise", "random"] {
                    prints(&format!(
                        "run stencil --size 9x17 --steps 5 --radius {radius} --tiles {tiles} --mapper {mapper} --seed {radius}"
                    ));
                }
            }
        }
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        fails("run stencil --size 0", 2, "invalid value '0' for '--size <N|NxM>'");
        fails("run stencil --size 10x-1", 2, "invalid value '10x-1' for '--size <N|NxM>'");
        fails("run stencil --radius 5", 2, "invalid value '5' for '--radius <R>': it must be 1, 2, 3 or 4");
        fails("run stencil --size 4 --radius 2", 2, "a grid of 4 x 4 points has no room for a star of radius 2");
        fails("run stencil --size 10 --tiles 11x1", 2, "11 x 1 tiles are more than the grid has points: 10 x 10");
        fails("run stencil --size 9999999999", 2, "a grid of 9999999999 x 9999999999 points is too large");
        fails("run stencil --size 3000 --tiles 2000", 2, "2000 x 2000 tiles are too many");
    }

    #[test]
    fn memory_that_runs_out_is_an_error_that_says_how_much_there_was() {
        for mapper in ["default", "piecewise", "random"] {
            fails(
                &format!("run stencil --size 1000 --memory 1MiB --mapper {mapper}"),
                1,
                "cannot place `make_slope` at point",
            );
        }
    }
}

mod records {
    use super::*;

    /// What `maniple` wrote into a file when told to, and what it said about that.
    fn drawn(arguments: &str, name: &str) -> (String, String) {
        let path = file(name, "");
        let run = maniple(&format!("{arguments} --graph {}", path.display()));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        (std::fs::read_to_string(path).expect("it was written"), run.stderr)
    }

    const TINY_CIRCUIT: &str = "run circuit --pieces 3 --nodes-per-piece 20 --wires-per-piece 60 --steps 2";

    #[test]
    fn every_simulation_is_proven_right_whatever_the_mapper() {
        for mapper in ["default", "piecewise", "random:5"] {
            for program in [TINY_CIRCUIT, "run cg --poisson 8 --pieces 3", "run stencil --size 20 --tiles 3 --steps 4"]
            {
                let run = maniple(&format!("{program} --mapper {mapper} --workers 2 --check"));
                assert_eq!(run.code, Some(0), "{}", run.stderr);
                let [operations, _, pairs, reads] = proof(&run.stderr);
                assert!([operations, pairs, reads].iter().all(|&number| number > 10), "{}", run.stderr);
            }
        }
    }

    /// Operations, how many of them were replayed, pairs and reads that a run was proven right of.
    fn proof(said: &str) -> [u64; 4] {
        let proof = said.strip_prefix("check: ").unwrap_or_else(|| panic!("no proof: {said}"));
        let numbers: Vec<u64> = proof.split(' ').filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().unwrap_or_else(|_| panic!("no proof: {said}"))
    }

    #[test]
    fn steps_that_are_replayed_are_proven_right_too() {
        for mapper in ["default", "piecewise"] {
            for program in
                ["circuit --pieces 3 --nodes-per-piece 9 --wires-per-piece 9", "cg --poisson 8", "stencil --size 20"]
            {
                let run = maniple(&format!("run {program} --mapper {mapper} --workers 2 --trace --check"));
                assert_eq!(run.code, Some(0), "{}", run.stderr);
                let [_, replayed, ..] = proof(&run.stderr);
                assert!(replayed > 0, "{program}: {}", run.stderr);
            }
        }
    }

    #[test]
    fn every_pattern_of_task_bench_is_proven_right() {
        for pattern in taskbench::PATTERNS {
            let run = maniple(&format!("run taskbench -type {pattern} -steps 80 -width 8 --workers 2 --check"));
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            let [operations, replayed, ..] = proof(&run.stderr);
            assert!(operations >= 1000 && replayed > 0, "{pattern}: {}", run.stderr);
        }
    }

    #[test]
    fn tasks_are_drawn_for_a_browser() {
        let (svg, said) = drawn(TINY_CIRCUIT, "tasks.svg");
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
        for step in 0..2 {
            for task in ["calc_new_currents", "distribute_charge", "update_voltages"] {
                assert_eq!(svg.matches(&format!(">{task}(2)</text>")).count(), 2, "{task} in step {step}");
            }
        }
        assert!(said.starts_with("graph: ") && said.ends_with("tasks.svg\n"), "{said}");
    }

    #[test]
    fn launches_are_drawn_for_graphviz_with_what_makes_them_wait() {
        let (dot, _) = drawn(&format!("{TINY_CIRCUIT} --graph-of launches"), "launches.dot");
        assert!(dot.starts_with("digraph \"launches\" {\n") && dot.ends_with("}\n"), "{dot}");
        assert_eq!(dot.matches("label=\"distribute_charge\\n3 points\"").count(), 2, "{dot}");
        assert!(dot.contains("[label=\"current of Wire region "), "{dot}");
    }

    #[test]
    fn lines_that_others_imply_are_drawn_if_that_is_wanted() {
        let lines = |dot: &str| dot.matches(" -> ").count();
        let (some, all) =
            (drawn(TINY_CIRCUIT, "some.dot").0, drawn(&format!("{TINY_CIRCUIT} --graph-all"), "all.dot").0);
        assert!(lines(&all) > lines(&some));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let picture = "invalid value 'picture.png' for '--graph <FILE>': its name must end in .svg or .dot, which says what to write";
        fails("run circuit --graph picture.png", 2, picture);
        fails("run circuit --graph-of weather --graph a.svg", 2, "invalid value 'weather' for '--graph-of <WHAT>'");
        for option in ["--graph-of launches", "--graph-all"] {
            fails(
                &format!("run cg {option}"),
                2,
                "the following required arguments were not provided:\n  --graph <FILE>",
            );
        }
        fails("info --graph a.svg", 2, "unexpected argument '--graph' found");
        fails("run metg --check", 2, "--check, --graph and --profile are about a single run");
        fails("run metg --profile metg.mprof", 2, "--check, --graph and --profile are about a single run");
        let help = prints("run metg --help");
        ["--check", "--graph", "--profile"]
            .iter()
            .for_each(|option| assert!(!help.contains(option), "{option}: {help}"));
    }

    #[test]
    fn many_runs_have_no_profile() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
        let output = command.args(["run", "metg"]).env("MANIPLE_PROFILE", "metg.mprof").output();
        let output = output.expect("the program can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.starts_with("error: a profile is of a single run") && said.contains("unset MANIPLE_PROFILE"),
            "{said}"
        );
    }

    #[test]
    fn a_graph_for_which_there_is_no_place_is_refused_before_anything_runs() {
        let small = "run stencil --size 10 --steps 1";
        let no_folder =
            "invalid value 'no/such/folder.svg' for '--graph <FILE>': there is no directory `no/such`: make it first";
        fails(&format!("{small} --graph no/such/folder.svg"), 2, no_folder);
        fails(&format!("{small} --graph /"), 2, "invalid value '/' for '--graph <FILE>': it is a directory");
    }

    #[test]
    fn the_report_of_a_run_whose_graph_is_too_large_comes_all_the_same_and_its_proof_too() {
        let large = file("large.svg", "").display().to_string();
        let run = maniple(&format!("run stencil --size 100 --tiles 10 --steps 20 --check --graph {large}"));
        assert_eq!(run.code, Some(1));
        assert!(!value(&run.stdout, "time").is_empty(), "{}", run.stdout);
        let said: Vec<&str> = run.stderr.lines().collect();
        let problem = format!("error: cannot draw {large}: the graph has ");
        assert!(said[0].starts_with("check: ") && said[1].starts_with(&problem), "{}", run.stderr);
        assert!(said[1].contains(".dot"), "it says what to do: {}", run.stderr);
    }
}

mod taskbench {
    use super::*;

    pub const PATTERNS: [&str; 11] = [
        "trivial",
        "no_comm",
        "stencil_1d",
        "stencil_1d_periodic",
        "dom",
        "tree",
        "fft",
        "all_to_all",
        "nearest",
        "spread",
        "random_nearest",
    ];

    /// The lines that do not depend on how long it took.
    fn timeless(report: &str) -> Vec<&str> {
        let timed = ["Elapsed Time", "FLOP/s", "B/s", "  Local Bandwidth", "  Nonlocal Bandwidth"];
        report.lines().filter(|line| !timed.iter().any(|name| line.starts_with(name))).collect()
    }

    #[test]
    fn the_report_is_task_benchs_to_the_letter() {
        let flags = "-type spread -width 6 -radix 2 -period 3 -steps 2 -kernel load_imbalance -iter 10 -imbalance 0.5 -output 40";
        let report = prints(&format!("run taskbench {flags} -and -type dom -steps 3 -width 2 -vv -nodes 2"));
        // What Task Bench itself prints for these flags.
        let expected = include_str!("taskbench_report.txt");
        assert_eq!(timeless(&report), timeless(expected), "{report}");
        let names = |report: &str| {
            report.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(names(&report), names(expected), "no line more, none less");
    }

    #[test]
    fn rates_follow_from_the_time() {
        let report = prints("run taskbench -kernel compute_bound -iter 1000");
        let number = |name| {
            let text = value(&report, name).split(' ').next().unwrap_or_default();
            let (mantissa, exponent) = text.split_once('e').unwrap_or_else(|| panic!("{text} has an exponent"));
            assert_eq!((mantissa.len(), exponent.len()), (8, 3), "as C prints it: {text}");
            text.parse::<f64>().expect("it is a number")
        };
        assert_eq!(value(&report, "Total FLOPs"), "2049024");
        let (flops, time) = (number("FLOP/s"), number("Elapsed Time"));
        assert!((flops * time / 2_049_024.0 - 1.0).abs() < 1e-5, "{report}");
        assert_eq!(value(&report, "B/s"), "0.000000e+00");
    }

    #[test]
    fn every_pattern_runs_and_every_task_finds_its_inputs() {
        for pattern in PATTERNS {
            for (width, steps) in [(1, 3), (2, 9), (5, 12), (8, 7)] {
                let period = if ["spread", "random_nearest"].contains(&pattern) { "-period 2" } else { "" };
                let radix = if pattern == "spread" && width < 3 { "-radix 1 -period 1" } else { "" };
                let report = prints(&format!(
                    "run taskbench -type {pattern} -width {width} -steps {steps} {period} {radix} -output 40"
                ));
                assert_ne!(value(&report, "Total Tasks"), "0");
            }
        }
    }

    #[test]
    fn neither_mapper_nor_workers_nor_fields_nor_window_change_what_tasks_read() {
        for (pattern, number) in PATTERNS.into_iter().zip(1..) {
            for mapper in ["default", "piecewise", "random"] {
                let (workers, fields) = (1 + number % 3, 2 + number % 4);
                prints(&format!(
                    "run taskbench --mapper {mapper} -type {pattern} -width 7 -radix 2 --workers {workers} -fields {fields} --window 6 --seed {number}"
                ));
            }
        }
    }

    #[test]
    fn every_radix_runs() {
        for radix in 0..=6 {
            prints(&format!("run taskbench -type nearest -width 5 -radix {radix} -steps 6"));
            prints(&format!("run taskbench -type random_nearest -width 5 -radix {radix} -steps 6 -fraction 0.5"));
        }
    }

    #[test]
    fn every_kernel_runs() {
        for kernel in [
            "empty",
            "busy_wait",
            "compute_bound",
            "compute_bound2",
            "load_imbalance -imbalance 2",
            "memory_bound -scratch 4096",
            "memory_daxpy -scratch 4096 -sample 4",
            "compute_dgemm -scratch 4096",
        ] {
            for mapper in ["default", "random"] {
                prints(&format!("run taskbench -type no_comm -kernel {kernel} -iter 20 --mapper {mapper} -fields 3"));
            }
        }
    }

    #[test]
    fn several_graphs_run_side_by_side() {
        let report =
            prints("run taskbench -steps 5 -and -type fft -width 3 -steps 2 -and -type tree -steps 9 -width 8");
        assert_eq!(report.matches("Task Graph").count(), 3);
        assert_eq!(value(&report, "Total Tasks"), "81", "5 x 4, 2 x 3, and 1 + 2 + 4 + 6 x 8");
        for mapper in ["piecewise", "random"] {
            prints(&format!("run taskbench --mapper {mapper} -type dom -and -type dom -and -type stencil_1d -steps 9"));
        }
    }

    #[test]
    fn flags_and_options_may_be_mixed() {
        let report = prints("run taskbench -steps 5 --workers 1 -width 3 --mapper=piecewise -skip-graph-validation");
        assert_eq!(value(&report, "Total Tasks"), "15");
    }

    #[test]
    fn flags_that_are_not_known_are_ignored_with_a_warning() {
        let run = maniple("run taskbench -ll:cpu 4 -steps 2 stray");
        assert_eq!((run.code, value(&run.stdout, "Total Tasks")), (Some(0), "8"));
        assert_eq!(run.stderr, "warning: Task Bench has no `-ll:cpu 4 stray`: ignored; --help lists its flags\n");
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        fails("run taskbench -width 0", 2, "invalid value '0' for '-width': it must be at least 1");
        fails("run taskbench -steps", 2, "a value is required for '-steps' but none was supplied");
        fails("run taskbench -type star", 2, "invalid value 'star' for '-type': there are the patterns trivial, ");
        fails("run taskbench -kernel io_bound", 2, "invalid value 'io_bound' for '-kernel': Task Bench lists it, but");
        fails("run taskbench -kernel memory_bound", 2, "the kernel memory_bound needs memory to work in");
        fails("run taskbench -type spread", 2, "the pattern spread with width 4 and radix 3 has a period of at most 2");
        fails("run taskbench -type fft -period 3", 2, "the pattern fft has no period");
        fails("run taskbench --workers 0 -steps 3", 2, "invalid value '0' for '--workers <N>'");
    }

    #[test]
    fn memory_that_runs_out_is_an_error_that_says_how_much_there_was() {
        for mapper in ["default", "piecewise"] {
            let run = format!("run taskbench -width 64 -output 4096 --memory 64KiB --mapper {mapper}");
            fails(&run, 1, "cannot place `execute_point` at point");
            assert!(
                maniple(&run).stderr.contains("\nhint: give data more memory with --memory, or take a smaller graph")
            );
        }
    }

    #[test]
    fn every_example_of_the_help_runs() {
        let help = prints("run taskbench --help");
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_default();
        // What an example is for stands behind it, some way off.
        let examples = examples.lines().filter_map(|line| line.strip_prefix("  maniple ")?.split("   ").next());
        let codes: Vec<_> = examples.map(|example| (maniple(example).code, example)).collect();
        assert!(codes.len() > 4 && codes.iter().all(|(code, _)| *code == Some(0)), "{codes:?}");
    }

    #[test]
    fn help_names_every_flag_pattern_and_kernel() {
        for option in ["--help", "-h"] {
            let help = prints(&format!("run taskbench -steps 3 {option}"));
            let names = "-steps -width -type -radix -period -fraction -and -kernel -iter -output -scratch -sample -imbalance -v -vv \
                         -nodes -fields -field -skip-graph-validation busy_wait memory_daxpy load_imbalance";
            for name in names.split_whitespace().chain(PATTERNS) {
                assert!(help.contains(&format!("\n  {name} ")), "{name}: {help}");
            }
            assert!(help.lines().all(|line| line.len() <= 100), "{help}");
        }
    }
}

mod metg {
    use super::*;

    #[test]
    fn the_last_line_says_what_was_found() {
        let report = prints("run metg --type no_comm --width 1 --cores 1 --reps 1 --budget 0 --verbose");
        let mut lines = report.lines().rev();
        let last = lines.next().unwrap_or_default();
        let number =
            last.strip_prefix("METG(50%) ").and_then(|rest| rest.strip_suffix(" us  (no_comm, width 1, 1 cores)"));
        assert!(number.is_some_and(|number| number.parse::<f64>().is_ok_and(|found| found > 0.0)), "{report}");
        assert!(lines.clone().count() > 1 && lines.all(|line| line.starts_with("iter ")), "{report}");
    }

    #[test]
    fn flags_may_have_one_dash_as_task_bench_has_them() {
        let report = prints("run metg -type nearest -radix 0 -width=1 --cores 1 --reps 1 --budget 0");
        assert!(report.ends_with("(nearest, width 1, 1 cores)\n"), "{report}");
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        fails("run metg --width 0", 2, "invalid value '0' for '--width <N>': it must be at least 1");
        fails(
            "run metg --type star",
            2,
            "invalid value 'star' for '--type <PATTERN>': there are the patterns trivial, ",
        );
        fails("run metg -type star", 2, "invalid value 'star' for '--type <PATTERN>'");
        fails("run metg -radix=-1", 2, "invalid value '-1' for '--radix <N>': it must be a whole number of at least 0");
        fails("run metg --budget -1", 2, "invalid value '-1' for '--budget <SECONDS>'");
        let spread =
            "the pattern spread with width 2 and radix 3 has a period of at most 1, not 3: set it with --period";
        fails("run metg --type spread", 2, spread);
        let period = "the pattern fft has no period that could be set: drop --period";
        fails("run metg --type fft --period 2", 2, period);
        fails("run metg --width 2000000", 2, "invalid value '2000000' for '--width <N>': it must be at most 1048576");
    }
}

mod around {
    use super::*;

    #[test]
    fn the_log_says_why_replays_are_given_up_if_it_is_asked_for() {
        // The steps are replayed by twos or more, so that of one of these numbers some are left at the end.
        let circuit =
            |steps| format!("run circuit --pieces 2 --nodes-per-piece 8 --wires-per-piece 16 --steps {steps}");
        let logs = [30, 31].map(|steps| maniple_with_log(&circuit(steps), "maniple=debug"));
        assert!(logs.iter().all(|run| run.code == Some(0) && run.stdout.starts_with("circuit\n")));
        assert!(logs.iter().any(|run| run.stderr.contains("a run is replayed no further")), "{}", logs[1].stderr);
        let run = maniple_with_log(&circuit(1), "x=y=z");
        assert!(
            run.code == Some(0) && run.stderr.starts_with("warning: RUST_LOG=x=y=z is ignored: "),
            "{}",
            run.stderr
        );
    }

    #[test]
    fn the_machine_is_shown_as_the_options_make_it() {
        let tables = prints("info --workers 3 --memory 1GiB");
        let cpus = tables.lines().filter(|line| line.contains("  cpu  ")).count();
        assert_eq!(cpus, 3, "{tables}");
        assert!(tables.contains("system"), "{tables}");
    }

    #[test]
    fn whoever_runs_out_of_memory_is_told_which_options_help() {
        let runs = [
            (&*format!("{SMALL_CIRCUIT} --memory 2KiB"), "--pieces"),
            ("run cg --poisson 10 --memory 2KiB", "--poisson"),
            ("run cg --poisson 10 --memory 14KiB --pieces 4 --mapper piecewise", "--pieces"),
            ("run stencil --size 100 --memory 2KiB", "--size"),
        ];
        for (arguments, option) in runs {
            let run = maniple(arguments);
            let hint = run.stderr.lines().last().and_then(|line| line.strip_prefix("hint: "));
            let helps = hint.is_some_and(|hint| hint.contains("--memory") && hint.contains(option));
            assert!(helps && run.stderr.lines().count() == 2, "maniple {arguments}\n{}", run.stderr);
        }
        assert!(!maniple("run cg --poisson 30 --max-iterations 5").stderr.contains("hint"));
    }

    #[test]
    fn more_memory_than_there_is_gets_a_warning() {
        for command in ["run stencil --size 30 --steps 1", "info"] {
            let run = maniple(&format!("{command} --memory 9000TiB"));
            assert_eq!((run.code, run.stderr.lines().count()), (Some(0), 1), "{}", run.stderr);
            assert!(run.stderr.starts_with("warning: --memory 9000.0 TiB is more than the "), "{}", run.stderr);
        }
    }

    #[test]
    fn information_takes_only_options_that_can_change_it() {
        for option in ["--mapper log", "--window 3", "--seed 4"] {
            let name = option.split(' ').next().unwrap_or_default();
            fails(&format!("info {option}"), 2, &format!("unexpected argument '{name}' found"));
        }
    }

    const COMMANDS: [&str; 14] = [
        "",
        "run circuit",
        "run cg",
        "run stencil",
        "run recursion",
        "run recursion queens",
        "run cp",
        "run tucker",
        "run taskbench",
        "run metg",
        "tensor",
        "prof",
        "info",
        "launch",
    ];

    #[test]
    fn examples_fit_into_80_columns() {
        for command in COMMANDS {
            let help = prints(&format!("{command} --help"));
            let (_, examples) = help.split_once("Examples:\n").unwrap_or_default();
            for line in examples.lines().take_while(|line| !line.is_empty()) {
                assert!(line.len() <= 80 && line.starts_with("  "), "{} columns: {line}", line.len());
                assert!(line.starts_with("  maniple ") || line.starts_with("          "), "broken: {line}");
            }
        }
    }

    #[test]
    fn help_states_the_limits() {
        let states = |command: &str, limits: &[&str]| {
            let help = prints(&format!("{command} --help")).split_whitespace().collect::<Vec<_>>().join(" ");
            limits.iter().for_each(|limit| assert!(help.contains(limit), "{limit}: {help}"));
        };
        states("run circuit", &["at most 1024", "at most 1048576", "at most 4294967295", "powers of 1024"]);
        states(
            "run cg",
            &["at most 1024", "at most 1048576", "at most 4294967295 rows", "the values add up", "by luck"],
        );
        states("run stencil", &["at most 1024", "at most 1048576", "at most 281474976710656"]);
        states("", &["130 for Ctrl-C"]);
    }

    #[test]
    fn help_teaches_and_shows_examples() {
        for command in COMMANDS {
            let help = prints(&format!("{command} --help"));
            assert!(help.contains("Examples:\n  maniple "), "{help}");
            assert!(help.contains("Usage: maniple"), "{help}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        fails("run circuit --no-such-flag", 2, "unexpected argument '--no-such-flag' found");
        fails("run weather", 2, "unrecognized subcommand 'weather'");
        fails("run circuit --mapper magic", 2, "invalid value 'magic' for '--mapper <NAME>'");
        fails("run circuit --workers 0", 2, "invalid value '0' for '--workers <N>'");
        fails("run circuit --memory lots", 2, "invalid value 'lots' for '--memory <SIZE>'");
        fails("run circuit --memory -1", 2, "invalid value '-1' for '--memory <SIZE>'");
        fails("run circuit --window 0", 2, "invalid value '0' for '--window <N>'");
        fails("run circuit --workers 1025", 2, "invalid value '1025' for '--workers <N>': it must be at most 1024");
        fails("run circuit --seed x", 2, "invalid value 'x' for '--seed <N>': it must be a whole number of at least 0");
        fails(
            "run circuit --seed -1",
            2,
            "invalid value '-1' for '--seed <N>': it must be a whole number of at least 0",
        );
        let huge = "99999999999999999999";
        fails(
            &format!("run circuit --pieces {huge}"),
            2,
            &format!("invalid value '{huge}' for '--pieces <N>': it must be at most 1048576"),
        );
    }

    #[test]
    fn a_reader_that_goes_away_is_no_error() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
        let child = command.arg("info").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the program can be started");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the program ends");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    }
}

#[test]
fn a_program_that_needs_more_memory_than_the_system_lets_it_use_is_refused_and_does_not_abort() {
    for kilobytes in [400_000, 600_000, 800_000] {
        let run =
            format!("ulimit -v {kilobytes}; exec \"$0\" run circuit --pieces 5000 --steps 1 --workers 2 --no-verify");
        let output = Command::new("sh").args(["-c", &run, env!("CARGO_BIN_EXE_maniple")]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "with {kilobytes} kB: {told}");
        assert!(told.starts_with("error: ") && told.contains("memory"), "with {kilobytes} kB: {told}");
    }
}
