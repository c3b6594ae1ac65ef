//! Every option of `maniple run` and `maniple tensor`, wrong on one node of three alone: the job ends with an error,
//! and that node's reason is told.
//!
//! The options are those of the command line itself. One that is new has to be entered in `wrong` below.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clap::Arg;

const MANIPLE: &str = env!("CARGO_BIN_EXE_maniple");

/// The node with the wrong option.
const ODD: usize = 1;

/// How an option can be wrong on one node.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    /// It must be the same on all nodes, and is another one there; nothing for a flag that only that node is given.
    Other(&'static str),
    /// It is about the node itself, and may be this there.
    Own(&'static str),
    /// It names a file or folder that each node has, and that node has not, or with something else in it.
    Input(&'static str),
    /// It names a file or folder to be made, where that node cannot make one.
    Output(&'static str),
}

use Wrong::{Input, Other, Output as Made, Own};

/// The options that a program is given on all nodes: names and values; values without a name come first.
type Given = &'static [(&'static str, &'static str)];

/// The options that a program needs to end soon.
fn usual(program: &str) -> Given {
    match program {
        "circuit" => &[("pieces", "2"), ("nodes-per-piece", "5"), ("wires-per-piece", "5"), ("steps", "2")],
        "cg" => &[("poisson", "8")],
        // Of so many tiles nodes get others if they are dealt in another way.
        "stencil" => &[("size", "20"), ("steps", "2"), ("tiles", "6x1")],
        "recursion" => &[("", "fibonacci"), ("size", "5")],
        "cp" => &[("size", "6,6,6"), ("rank", "2"), ("iterations", "2")],
        "tucker" => &[("size", "6,6,6"), ("ranks", "2,2,2"), ("iterations", "2")],
        "pagerank" | "bfs" | "triangles" => &[("generate", "poisson:4")],
        "taskbench" => &[("", "-steps 2 -width 2")],
        "metg" => &[("type", "no_comm"), ("width", "2"), ("repetitions", "1"), ("budget", "0")],
        "tensor" => &[("", "y(i) = A(i,j) * x(j)"), ("size", "i=4,j=4"), ("repeat", "1")],
        other => panic!("say what `{other}` is to be given"),
    }
}

/// How an option of a program is wrong, and which of the usual options it takes the place of.
fn wrong(program: &str, option: &str) -> (Wrong, &'static [&'static str]) {
    let wrong = match (program, option) {
        ("taskbench", "") => Other("-steps 3 -width 2"),
        ("recursion", "") => Other("queens"),
        ("tensor", "") => Other("z(i) = A(i,j) * x(j)"),
        ("tensor", "size") => Other("i=5,j=4"),
        ("stencil", "size") => Other("21"),
        ("recursion", "size") => Other("6"),
        (_, "size") => Other("6,6,7"),
        ("metg", "type") => Other("fft"),
        ("tensor", "type") => Other("f32"),
        ("cg" | "pagerank" | "bfs" | "triangles", "matrix") => return (Input("a.mtx"), &["poisson", "generate"]),
        (_, "tensor") => return (Input("t.tns"), &["size"]),
        (_, "load") => Input("state"),
        (_, "save") => Made("made"),
        ("tensor", "input") => Input("A=a.npy"),
        ("tensor", "output") => Made("y.npy"),
        ("tensor", "rates") => Input("rates.toml"),
        ("tensor", "draw") => Made("drawn.svg"),
        ("tensor", "fill") => Other("A=1"),
        ("tensor", "generate") => Other("A=uniform:0.5"),
        (_, "generate") => Other("poisson:5"),
        (_, "mapping") => Input("mapping.toml"),
        (_, "profile") => Made("run.mprof"),
        (_, "graph") => Made("run.dot"),
        (_, "seed") => Other("7"),
        (_, "workers") => Own("2"),
        (_, "memory") => Own("300MiB"),
        (_, "window") => Own("50"),
        (_, "mapper") => Own("piecewise"),
        (_, "no-tracing" | "no-automatic-tracing" | "no-progress" | "check") => Own(""),
        // They say more of --graph.
        (_, "graph-of") => Own("launches"),
        (_, "graph-all") => Own(""),
        (_, "blas") => Other("a-library-that-there-is-not"),
        (_, "pieces" | "steps" | "iterations" | "poisson" | "repeat" | "width") => Other("3"),
        (_, "nodes-per-piece" | "wires-per-piece") => Other("6"),
        (_, "inside" | "max-iterations") => Other("50"),
        (_, "tolerance" | "damping") => Other("0.5"),
        (_, "tiles") => Other("2x1"),
        (_, "rank" | "radius" | "grid" | "cores") => Other("1"),
        (_, "ranks") => Other("1,1,1"),
        (_, "from" | "radix" | "period" | "chunk" | "repetitions") => Other("2"),
        (_, "budget") => Other("0.001"),
        (_, "algorithm") => Other("none"),
        (_, "schedule") => Other("reorder(j, i)"),
        (_, "split") => Other("i=2"),
        (_, "order") => Other("i,j"),
        (_, "extend") => Other("j"),
        (_, "map") => Other("i"),
        (_, "place") => Other("A=xy -> x"),
        (_, "format") => Other("A=csr"),
        (_, "no-verify" | "verify" | "trace" | "verbose" | "serial-writes" | "explain") => Other(""),
        (program, option) => panic!("say how --{option} of `{program}` can be wrong on one node alone"),
    };
    (wrong, &[])
}

/// The name of an option, or nothing for what has its place alone.
fn name(option: &Arg) -> &str {
    option.get_long().unwrap_or_default()
}

/// A line for the shell.
fn line(program: &str, given: &[(&str, &str)]) -> String {
    let mut line = MANIPLE.to_owned();
    if program != "tensor" {
        line.push_str(" run");
    }
    write!(line, " {program}").unwrap();
    for (name, value) in given {
        match (*name, program) {
            ("", "taskbench") => write!(line, " {value}").unwrap(),
            ("", _) => write!(line, " '{value}'").unwrap(),
            (name, _) if value.is_empty() => write!(line, " --{name}").unwrap(),
            (name, _) => write!(line, " --{name} '{value}'").unwrap(),
        }
    }
    line
}

/// The folders of three nodes, each with all files that options name.
fn folders(name: &str) -> PathBuf {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("options-{name}"));
    let _ = fs::remove_dir_all(&all);
    for node in 0..3 {
        let own = all.join(node.to_string());
        fs::create_dir_all(&own).unwrap();
        for (file, bytes) in contents(name, false) {
            fs::write(own.join(file), bytes).unwrap();
        }
    }
    all
}

/// The names and contents of files: the usual ones, or the other ones of the odd node.
fn contents(program: &str, is_other: bool) -> Vec<(&'static str, Vec<u8>)> {
    let last = if is_other { 5 } else { 3 };
    let graph = matches!(program, "pagerank" | "bfs" | "triangles");
    let matrix = match graph {
        true => format!("%%MatrixMarket matrix coordinate real general\n3 3 3\n1 2 1\n2 3 1\n3 1 {last}\n"),
        false => format!("%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 4\n2 2 4\n3 3 {last}\n"),
    };
    let mut array = Vec::new();
    let elements: Vec<f64> = (0..16).map(|at| f64::from(at * last)).collect();
    maniple_files::npy::write_array(&mut array, &[4, 4], &elements).unwrap();
    let deals = if is_other { "cycles" } else { "blocks" };
    vec![
        ("a.mtx", matrix.into_bytes()),
        ("t.tns", format!("1 1 1 2\n2 3 1 4\n3 3 3 {last}\n").into_bytes()),
        ("a.npy", array),
        ("mapping.toml", format!("[[task]]\nsharding = '{deals}'\n").into_bytes()),
    ]
}

/// Runs a line on each node of three, in its folder, another one on the odd node.
fn launch(folders: &Path, usual: &str, odd: &str) -> Output {
    let script = format!(
        "cd {}/$MANIPLE_RANK; if [ $MANIPLE_RANK = {ODD} ]; then exec {odd}; fi; exec {usual}",
        folders.display()
    );
    let mut launch = Command::new(MANIPLE);
    launch.args(["launch", "-n", "3", "--", "sh", "-c", &script]).env_remove("RUST_BACKTRACE");
    launch.output().unwrap()
}

/// The job has ended with an error of the odd node, or about it.
#[track_caller]
fn is_told(output: &Output, words: &[&str], what: &str) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{what}: {}\n{told}", String::from_utf8_lossy(&output.stdout));
    let errors: Vec<&str> = told.lines().filter(|line| line.contains("error: ")).collect();
    assert!(!errors.is_empty() && words.iter().all(|word| told.contains(word)), "{what}: {words:?} in {told}");
}

fn check(program: &str, option: &Arg) {
    let name = name(option);
    let (wrong, displaces) = wrong(program, name);
    let folders = folders(program);
    let with = |value: Option<&'static str>| {
        let kept = usual(program).iter().filter(|(known, _)| *known != name && !displaces.contains(known));
        let mut given: Vec<(&str, &str)> = kept.copied().collect();
        let at = if name.is_empty() { 0 } else { given.len() };
        value.into_iter().for_each(|value| given.insert(at, (name, value)));
        if name.starts_with("graph-") {
            given.push(("graph", "run.dot"));
        }
        if (program, name) == ("tensor", "mapping") {
            // So many pieces are dealt in another way.
            given.push(("split", "i=4"));
        }
        line(program, &given)
    };
    let plain = line(program, usual(program));
    match wrong {
        Other(value) => is_told(&launch(&folders, &plain, &with(Some(value))), &[], &format!("{program} --{name}")),
        Own(value) => {
            let output = launch(&folders, &plain, &with(Some(value)));
            assert!(output.status.success(), "{program} --{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Input(value) => {
            let file = value.rsplit('=').next().unwrap();
            let (own, line) = (folders.join(ODD.to_string()).join(file), with(Some(value)));
            if name == "load" {
                for node in 0..3 {
                    let stored = plain.clone() + " --save state";
                    let own = folders.join(node.to_string());
                    // Another one has come further.
                    let further = if node == ODD { format!(" && {stored} --load state") } else { String::new() };
                    let script = format!("cd {} && {stored}{further}", own.display());
                    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
                }
                is_told(
                    &launch(&folders, &line, &line),
                    &["not the same on node 1"],
                    &format!("{program} --{name} of others"),
                );
                fs::remove_dir_all(&own).unwrap();
                return is_told(&launch(&folders, &line, &line), &["`state`"], &format!("{program} --{name} of none"));
            }
            if name == "rates" {
                let rates = Command::new(MANIPLE).args(["info", "--rates"]).output().unwrap().stdout;
                (0..3).for_each(|node| fs::write(folders.join(node.to_string()).join(file), &rates).unwrap());
            } else if let Some((_, other)) = contents(program, true).into_iter().find(|(known, _)| *known == file) {
                fs::write(&own, other).unwrap();
                is_told(&launch(&folders, &line, &line), &["node 1"], &format!("{program} --{name} of others"));
            }
            fs::remove_file(&own).unwrap();
            is_told(&launch(&folders, &line, &line), &[file], &format!("{program} --{name} of none"));
        }
        Made(value) => {
            // A file is in the way of the folder, on that node alone.
            (0..3).filter(|node| *node != ODD).for_each(|node| {
                fs::create_dir(folders.join(node.to_string()).join("out")).unwrap();
            });
            fs::write(folders.join(ODD.to_string()).join("out"), "").unwrap();
            let path: &'static str = format!("out/{value}").leak();
            let line = with(Some(path));
            let output = launch(&folders, &line, &line);
            // The first node alone writes these.
            if !output.status.success() || !matches!(name, "output" | "draw") {
                is_told(&output, &["out"], &format!("{program} --{name}"));
            }
        }
    }
}

/// The options of a program: its own, and with `common` those of the runtime, which all programs share.
fn check_all(program: &str, common: bool) {
    let mut command = maniple_apps::cli::command();
    command.build();
    let found = match program {
        "tensor" => command.find_subcommand(program),
        _ => command.find_subcommand("run").and_then(|run| run.find_subcommand(program)),
    };
    let is_runtime = |option: &Arg| option.get_help_heading().is_some();
    for option in found.unwrap().get_arguments() {
        let is_about_us = matches!(option.get_id().as_str(), "help" | "version");
        if !is_about_us && !option.is_hide_set() && (common || !is_runtime(option)) {
            check(program, option);
        }
    }
}

#[test]
fn every_program_is_tried() {
    let mut command = maniple_apps::cli::command();
    command.build();
    let programs =
        command.find_subcommand("run").unwrap().get_subcommands().map(|program| program.get_name().to_owned());
    let known = [
        "circuit",
        "cg",
        "stencil",
        "recursion",
        "cp",
        "tucker",
        "pagerank",
        "bfs",
        "triangles",
        "taskbench",
        "metg",
        "help",
    ];
    programs.for_each(|program| assert!(known.contains(&&program[..]), "add a test of `{program}`"));
}

macro_rules! programs {
    ($($test:ident: $program:literal, $common:literal;)*) => {
        $(#[test]
        fn $test() {
            check_all($program, $common);
        })*
    };
}

programs! {
    options_of_circuit_that_are_wrong_on_one_node_end_the_job: "circuit", false;
    options_of_cg_that_are_wrong_on_one_node_end_the_job: "cg", false;
    options_of_stencil_and_of_runtimes_that_are_wrong_on_one_node_end_the_job: "stencil", true;
    options_of_recursion_that_are_wrong_on_one_node_end_the_job: "recursion", false;
    options_of_cp_that_are_wrong_on_one_node_end_the_job: "cp", false;
    options_of_tucker_that_are_wrong_on_one_node_end_the_job: "tucker", false;
    options_of_pagerank_that_are_wrong_on_one_node_end_the_job: "pagerank", false;
    options_of_bfs_that_are_wrong_on_one_node_end_the_job: "bfs", false;
    options_of_triangles_that_are_wrong_on_one_node_end_the_job: "triangles", false;
    options_of_taskbench_that_are_wrong_on_one_node_end_the_job: "taskbench", false;
    options_of_metg_that_are_wrong_on_one_node_end_the_job: "metg", false;
    options_of_tensor_that_are_wrong_on_one_node_end_the_job: "tensor", true;
}
