//! `maniple run pagerank`, `bfs` and `triangles`.

use std::process::{Command, Stdio};

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.arg("run").args(arguments).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    let output = command.current_dir(env!("CARGO_TARGET_TMPDIR")).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn finds(arguments: &[&str], what: &[&str]) {
    let (code, out, error) = run(arguments);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{arguments:?}\n{out}");
    for what in what {
        assert!(out.contains(what), "{arguments:?}: {what} is not in\n{out}");
    }
}

fn write(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the folder can be written");
    path.display().to_string()
}

/// A path 1 -> 2 -> 3 -> 4, an edge 1 -> 3, and vertex 5 without edges.
fn small(name: &str) -> String {
    write(name, "%%MatrixMarket matrix coordinate pattern general\n5 5 4\n1 2\n2 3\n3 4\n1 3\n")
}

#[test]
fn small_graphs_have_what_can_be_counted_by_hand() {
    let graph = small("graph-small.mtx");
    finds(&["bfs", "--matrix", &graph], &["5 vertices, 4 edges", "4 vertices", "2 edges away"]);
    finds(&["bfs", "--matrix", &graph, "--from", "5"], &["1 vertex", "0 edges away"]);
    finds(&["triangles", "--matrix", &graph], &["1 triangle"]);
    finds(&["pagerank", "--matrix", &graph], &["of vertex 4"]);
}

#[test]
fn graphs_that_are_made_are_checked_by_other_methods() {
    for graph in ["rmat:9", "poisson:20", "uniform:0.002"] {
        finds(&["pagerank", "--generate", graph, "--workers", "2"], &["highest rank"]);
        finds(&["bfs", "--generate", graph, "--workers", "2"], &["reached"]);
        finds(&["triangles", "--generate", graph, "--workers", "2"], &["triangle"]);
    }
}

/// The lines of a report but for the time.
fn timeless(report: &str) -> Vec<&str> {
    report.lines().filter(|line| !line.trim_start().starts_with("time")).collect()
}

#[cfg(unix)]
#[test]
fn what_is_found_is_the_same_on_one_process_and_on_two_and_four() {
    let graph = small("graph-nodes.mtx");
    for (number, arguments) in [
        &["pagerank", "--generate", "rmat:7"][..],
        &["bfs", "--generate", "rmat:7", "--from", "3"],
        &["bfs", "--generate", "poisson:8"],
        &["triangles", "--generate", "rmat:7"],
        &["pagerank", "--matrix", &graph],
        &["bfs", "--matrix", &graph],
        &["triangles", "--matrix", &graph],
    ]
    .into_iter()
    .enumerate()
    {
        let (code, alone, error) = run(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {error}");
        assert!(timeless(&alone).len() >= 3, "{alone}");
        for nodes in [2, 4] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
            command.args([
                "launch",
                "--no-prefix",
                "-n",
                &nodes.to_string(),
                "--",
                env!("CARGO_BIN_EXE_maniple"),
                "run",
            ]);
            command.args(arguments).args(["--workers", "1"]).stdin(Stdio::null());
            let output = command.current_dir(env!("CARGO_TARGET_TMPDIR")).output().unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(output.status.success(), "{number} on {nodes}: {}", text(&output.stderr));
            assert_eq!(timeless(&text(&output.stdout)), timeless(&alone), "{arguments:?} on {nodes} processes");
        }
    }
}

#[test]
fn graphs_come_from_all_files_that_tensors_do() {
    // The edges of the small graph, two of them twice, with numbers that add up to nothing.
    let twice = "%%MatrixMarket matrix coordinate integer general\n5 5 6\n1 2 3\n2 3 1\n3 4 7\n1 3 1\n1 2 -3\n3 4 2\n";
    let twice = write("graph-twice.mtx", twice);
    let complex = "%%MatrixMarket matrix coordinate complex general\n5 5 4\n1 2 0 1\n2 3 1 0\n3 4 1 1\n1 3 2 0\n";
    let complex = write("graph-complex.mtx", complex);
    let lines = write("graph-lines.tns", "1 2 1\n2 3 1\n3 4 1\n1 3 1\n5 5 1\n");
    let dense = "%%MatrixMarket matrix array real general\n5 5\n0\n0\n0\n0\n0\n1\n0\n0\n0\n0\n1\n1\n0\n0\n0\n0\n0\n1\n0\n0\n0\n0\n0\n0\n0\n";
    let dense = write("graph-dense.mtx", dense);
    let sorted = "%%MatrixMarket matrix coordinate pattern general\n5 5 4\n1 2\n1 3\n2 3\n3 4\n";
    let sorted = write("graph-sorted.mtx", sorted);
    let levels = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("graph-levels.tcs").display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    let converted = command.args(["tensor", "convert", &sorted, &levels, "--format", "ds"]).output().unwrap();
    assert!(converted.status.success(), "{}", String::from_utf8_lossy(&converted.stderr));
    for file in [&twice, &complex, &lines, &dense, &levels] {
        finds(&["bfs", "--matrix", file], &["5 vertices", "4 vertices", "2 edges away"]);
        finds(&["triangles", "--matrix", file], &["1 triangle\n"]);
    }
}

#[test]
fn what_is_no_graph_is_refused() {
    let wide = write("graph-wide.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 3\n");
    let graph = small("graph-refused.mtx");
    for (arguments, code, what) in [
        (&["triangles", "--matrix", &wide][..], 2, "a graph is a square matrix, and this one is 2 x 3"),
        (&["bfs", "--matrix", &graph, "--from", "6"], 2, "the graph has the vertices 1 to 5"),
        (&["bfs", "--matrix", &graph, "--from", "0"], 2, "the graph has the vertices 1 to 5"),
        (&["pagerank", "--matrix", "no-such-file.mtx"], 1, "no-such-file.mtx"),
        (&["pagerank", "--damping", "1.5"], 2, "it must be a number between 0 and 1"),
        (&["pagerank", "--matrix", &graph, "--iterations", "1"], 1, "ranks still change"),
        (&["triangles", "--generate", "ring"], 2, "no generator"),
        (&["bfs", "--generate", "rmat:40"], 2, "has too many edges for 1 node"),
    ] {
        let (found, out, error) = run(arguments);
        assert_eq!(found, Some(code), "{arguments:?}\n{out}{error}");
        assert!(error.contains(what), "{arguments:?}: {what} is not in\n{error}");
    }
}
