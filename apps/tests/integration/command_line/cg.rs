//! `maniple run cg`: its report, its input and its errors.

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
        ("%%MatrixMarket matrix coordinate real general\r1 1 1\r1 1 1\r", ":1: lines end with a carriage return alone"),
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
        ("%%MatrixMarket matrix coordinate real symmetric\n0 0 0\n", ":2: the matrix has no rows\n"),
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
    fails(&format!("run cg --matrix {name}"), 1, &format!("{name}:1: the file is packed with gzip; unpack it first"));
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
    fails(&format!("run cg --matrix {name} --pieces 2"), 2, &format!("2 pieces are more than the 1 row of {name}\n"));
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
    fails(&format!("run cg --matrix {path}"), 1, &format!("{path}: the matrix is not positive definite: iteration 1"));
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
    fails("run cg --tolerance 2", 2, "invalid value '2' for '--tolerance <T>': it must be a number between 0 and 1");
    fails("run cg --matrix a.mtx --poisson 3", 2, "the argument '--matrix <FILE>' cannot be used with '--poisson <N>'");
}

#[test]
fn memory_that_runs_out_is_an_error_that_says_how_much_there_was() {
    fails("run cg --poisson 60000 --memory 1GiB", 1, "a Poisson problem on 60000 x 60000 unknowns takes ");
    // Each of 100 rows takes 52 bytes, each of 460 entries 12, and the end of the last row 4.
    let message =
        "a Poisson problem on 10 x 10 unknowns takes 10724 bytes, more than the 10722 bytes that data may take\n";
    fails("run cg --poisson 10 --memory 10722", 1, message);
    fails("run cg --poisson 10 --memory 11KiB --pieces 4 --mapper piecewise", 1, "cannot place `");
    let name = file("dense.mtx", "%%MatrixMarket matrix array real general\n1 1\n2\n").display().to_string();
    let message = format!("the matrix of {name} takes 68 B, more than the 64 B that data may take\n");
    fails(&format!("run cg --matrix {name} --memory 64"), 1, &message);
}
