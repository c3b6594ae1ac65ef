//! Every option of every subcommand, as the command line itself lists them, with a value that none can take: it is
//! refused, and nothing is computed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Arg;

/// A command line that works, and takes the options of a subcommand.
struct Line {
    /// The subcommand.
    path: &'static str,
    /// The further arguments that it needs.
    needs: &'static [&'static str],
}

/// The command lines. Options that `maniple run metg` refuses are refused before any value is looked at.
const LINES: &[Line] = &[
    Line { path: "run circuit", needs: &["--pieces", "2", "--steps", "2", "--nodes-per-piece", "5"] },
    Line { path: "run cg", needs: &["--poisson", "5"] },
    Line { path: "run stencil", needs: &["--size", "20", "--steps", "2"] },
    Line { path: "run recursion", needs: &["fibonacci"] },
    Line { path: "run cp", needs: &["--size", "4,4,4"] },
    Line { path: "run tucker", needs: &["--size", "4,4,4", "--ranks", "2,2,2"] },
    Line { path: "run pagerank", needs: &["--generate", "band:3"] },
    Line { path: "run bfs", needs: &["--generate", "band:3"] },
    Line { path: "run triangles", needs: &["--generate", "band:3"] },
    Line { path: "run taskbench", needs: &["-steps", "2"] },
    Line { path: "run metg", needs: &["--budget", "0.01", "--repetitions", "1"] },
    // What is computed fails, so that a refusal that comes later would not be seen.
    Line { path: "tensor", needs: &["q(i) = a(i) / (a(i) - a(i))", "--type", "i32", "--size", "i=3"] },
    Line { path: "tensor info", needs: &["A.mtx"] },
    Line { path: "tensor convert", needs: &["A.mtx", "B.npz"] },
    Line { path: "prof", needs: &["A.mprof"] },
    Line { path: "info", needs: &[] },
    Line { path: "launch", needs: &["-n", "1", "true"] },
];

/// Options that take any text, or a name that only the statement tells to be wrong, later: such as `--ssh`, whose
/// command another machine would have to run.
const ANY_TEXT: &[&str] = &["launch --ssh"];

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("every_option");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("file"), "").unwrap();
    std::fs::write(folder.join("A.mtx"), "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n").unwrap();
    folder
}

/// The exit code, and what is printed on standard output and standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(arguments).env_remove("RUST_BACKTRACE").env("RUST_LOG", "").stdin(Stdio::null());
    let output = command.current_dir(folder()).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The subcommands that do something, with the words that name them.
fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
    if command.get_subcommands().next().is_none() || path == "tensor" {
        found.push((path.to_owned(), command.clone()));
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        leaves(inner, format!("{path} {}", inner.get_name()).trim(), found);
    }
}

/// Values that an option refuses, one for each reason: `file` is no folder, so that no file can be read or written
/// there. An option that wants an ending of a name belongs in this list.
fn wrong(option: &str) -> &'static [&'static str] {
    match option {
        "--output" => &["file/x.npy", "file/x.mtx", "file/x.tns", "q=file/x.npz"],
        "--draw" | "--graph" => &["file/x.svg"],
        "--input" => &["file/x", "a=file/x.npy", "a=file/x.mtx", "a=file/x.tcs"],
        "--matrix" | "--tensor" => &["file/x.mtx", "file/x.tns"],
        _ => &["file/x"],
    }
}

#[test]
fn every_option_refuses_what_it_cannot_take_before_anything_is_computed() {
    let (mut all, mut count) = (Vec::new(), 0);
    leaves(&maniple_apps::cli::command(), "", &mut all);
    // A profile for `prof`.
    let (code, _, error) = run(&["run", "stencil", "--size", "20", "--steps", "1", "--profile", "A.mprof"]);
    assert_eq!(code, Some(0), "{error}");
    for (path, command) in &all {
        let line = LINES.iter().find(|line| line.path == path);
        let line = line.unwrap_or_else(|| panic!("`maniple {path}` is not in the list above"));
        let options = command.get_arguments().filter(|option| option.get_long().is_some());
        for option in options.filter(|option| option.get_action().takes_values()) {
            count += 1;
            refuses(line, option);
        }
    }
    assert!(count > 100, "{count} options");
    // What could have been written was not.
    let left: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| ["A.mtx", "A.mprof", "file"].iter().any(|known| name == known)), "{left:?}");
}

fn refuses(line: &Line, option: &Arg) {
    let name = format!("--{}", option.get_long().unwrap());
    if ANY_TEXT.contains(&&*format!("{} {name}", line.path)) {
        return;
    }
    for value in wrong(&name) {
        let words = line.path.split(' ');
        // What the line needs must not be said twice.
        let mut needs = line.needs.to_vec();
        if let Some(at) = needs.iter().position(|word| *word == name) {
            needs.drain(at..at + 2);
        }
        let arguments: Vec<&str> = match line.path {
            "launch" => words.chain([&*name, value]).chain(needs.iter().copied()).collect(),
            _ => words.chain(needs.iter().copied()).chain([&*name, value]).collect(),
        };
        let (code, out, error) = run(&arguments);
        assert!(code.is_some_and(|code| code == 1 || code == 2), "{arguments:?}: {code:?}\n{out}\n{error}");
        assert_eq!(out, "", "{arguments:?} is refused after it has run");
        assert!(error.starts_with("error: ") && error.matches("error:").count() == 1, "{arguments:?}: {error}");
        assert!(!error.contains("integer by zero") && !error.contains("panicked"), "{arguments:?}: {error}");
        assert!(!error.contains("must end"), "{arguments:?}: give it a name with an ending in `wrong`: {error}");
        // The option is named, or its value.
        assert!(error.contains(&name) || error.contains("file"), "{arguments:?}: {error}");
    }
}

/// Options about tasks are refused where there are none, and options about a computation where nothing is computed.
#[test]
fn options_that_would_not_be_obeyed_are_refused() {
    let product = ["tensor", "y(i) = A(i,j) * x(j)", "--generate", "A=uniform:0.5", "--size", "i=5,j=5"];
    let sparse = [&product[..], &["-f", "A=csr"]].concat();
    let dense = ["tensor", "y(i) = A(i,j) * x(j)", "--size", "i=5,j=5", "--explain"];
    let plain = ["tensor", "y(i) = x(i)", "--size", "i=5", "--schedule", "unroll(i, 2)"];
    for (line, options, told) in [
        (&sparse[..], &["--check"][..], "--check is about tasks"),
        (&sparse, &["--graph", "g.svg"], "--graph is about tasks"),
        (&sparse, &["--profile", "p.mprof"], "--profile is about tasks"),
        (&sparse, &["--mapping", "none.toml"], "--mapping is about tasks"),
        (&sparse, &["--mapper", "random"], "--mapper is about tasks"),
        (&sparse, &["--blas", "none"], "--blas: loops over sparse tensors multiply by themselves"),
        (&plain, &["--algorithm", "none"], "--schedule says how all statements run: leave --algorithm out"),
        (&plain, &["--grid", "2"], "--schedule says how all statements run: leave --grid out"),
        (&dense, &["--check"], "--check is about what is computed"),
        (&dense, &["--verify"], "--verify is about what is computed"),
        (&dense, &["--profile", "p.mprof"], "--profile is about what is computed"),
        (&dense, &["--output", "y.npy"], "--output is about what is computed"),
    ] {
        let arguments = [line, options].concat();
        let (code, out, error) = run(&arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {error}");
        assert!(error.starts_with(&format!("error: {told}")), "{arguments:?}: {error}");
    }
    for (options, told) in [
        (["--type", "A=f32,A=f64"], "--type says twice what A is"),
        (["--generate", "A=band:2"], "--generate says twice what A is"),
        (["--generate", "B=band:2"], "--generate B: the tensors that are given are A, x"),
        (["--input", "A=A.mtx"], "--input and --generate both say what A is"),
    ] {
        let arguments = [&sparse[..], &options].concat();
        let (code, out, error) = run(&arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {error}");
        assert!(error.starts_with(&format!("error: {told}")), "{arguments:?}: {error}");
    }
    // Where there are tasks, it is obeyed.
    let (code, out, error) = run(&[&sparse[..], &["--grid", "2", "--check"]].concat());
    assert!(code == Some(0) && error.starts_with("check: "), "{out}{error}");
}
