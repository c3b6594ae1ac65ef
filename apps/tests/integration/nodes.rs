//! The simulations as several processes: the same answers as one, and an end that all of them hear of.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

const MANIPLE: &str = env!("CARGO_BIN_EXE_maniple");

/// Runs `maniple run` as so many processes.
fn run(nodes: usize, arguments: &[&str]) -> Output {
    let mut command = Command::new(MANIPLE);
    if nodes > 1 {
        command.args(["launch", "-n", &nodes.to_string(), "--no-prefix", "--", MANIPLE]);
    }
    command.arg("run").args(arguments).output().unwrap()
}

/// The lines of a report that do not tell of time.
fn timeless(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let tells_time = |line: &&str| ["time", "/s", "Elapsed"].iter().any(|word| line.contains(word));
    text.lines().filter(|line| !tells_time(line)).map(str::to_owned).collect()
}

/// The same report, printed once, from one process, two and four.
fn agree(arguments: &[&str]) {
    let expected = timeless(&run(1, arguments));
    assert!(expected.len() > 3, "{expected:?}");
    for nodes in [2, 4] {
        assert_eq!(timeless(&run(nodes, arguments)), expected, "{arguments:?} on {nodes} nodes");
    }
}

#[test]
fn a_circuit_is_the_same_on_one_process_two_and_four() {
    // What it differs from the reference by depends on the order in which charges are added, which is another on other
    // nodes.
    for nodes in [1, 2, 4] {
        let report =
            timeless(&run(nodes, &["circuit", "--pieces", "8", "--steps", "10", "--nodes-per-piece", "50"])).join("\n");
        assert!(report.contains("tasks run               240"), "{report}");
        assert!(report.contains("(at most 1e-9 is right)"), "{report}");
    }
}

#[test]
fn a_circuit_is_dealt_to_processes_as_a_mapping_file_says() {
    let blocks = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/circuit-nodes.toml");
    let circuit = ["circuit", "--pieces", "8", "--steps", "10", "--nodes-per-piece", "50", "--mapping"];
    for nodes in [1, 2] {
        let output = run(nodes, &[&circuit[..], &[blocks]].concat());
        let report = timeless(&output).join("\n");
        assert!(report.contains("tasks run               240"), "{report}");
        assert!(report.contains("(at most 1e-9 is right)"), "{report}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
    // All on one node, which another job would not do.
    let one = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("all_on_one.toml");
    std::fs::write(&one, "[[task]]\nsharding = 1\n").unwrap();
    let report = timeless(&run(2, &[&circuit[..], &[one.to_str().unwrap()]].concat())).join("\n");
    assert!(report.contains("(at most 1e-9 is right)"), "{report}");
}

#[test]
fn nodes_whose_mapping_files_deal_otherwise_are_told() {
    let file = |node: usize, text: &str| {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("deals.{node}.toml"));
        std::fs::write(path, text).unwrap();
    };
    file(0, "[[task]]\nsharding = 'blocks'\n");
    file(1, "[[task]]\nsharding = 'cycles'\n");
    let files = concat!(env!("CARGO_TARGET_TMPDIR"), "/deals");
    let output = run_differing(2, &format!("run circuit --pieces 8 --mapping {files}.$MANIPLE_RANK.toml"));
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("in blocks") && told.contains("in cycles"), "{told}");
}

/// That they find the loop takes coherence to come back to the states that it has been in.
#[test]
fn the_steps_of_a_circuit_are_replayed_on_two_processes_as_on_one() {
    for nodes in [1, 2] {
        let arguments = ["circuit", "--pieces", "4", "--steps", "60", "--nodes-per-piece", "50", "--check"];
        let output = run(nodes, &arguments);
        assert!(output.status.success());
        let report = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let checks: Vec<&str> = report.lines().filter(|line| line.contains("of them replayed")).collect();
        assert_eq!(checks.len(), nodes, "{report}");
        for check in checks {
            let numbers = check.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).collect::<Vec<_>>();
            assert!(2 * numbers[1] > numbers[0], "most of its operations: {check}");
        }
    }
}

/// Runs `maniple` with a line of arguments in which the shell puts the number of the node.
fn run_differing(nodes: usize, arguments: &str) -> Output {
    let script = format!("exec {MANIPLE} {arguments}");
    let launch = ["launch", "-n", &nodes.to_string(), "--no-prefix", "--", "sh", "-c", &script];
    Command::new(MANIPLE).args(launch).output().unwrap()
}

#[test]
fn processes_that_are_told_different_things_say_what_instead_of_making_a_mixture() {
    for (arguments, told) in [
        ("run circuit --seed 7$MANIPLE_RANK", "--seed is `70` on node 0, but `71` on node 1"),
        ("run cp --size 12,12,12 --rank 2 --seed $MANIPLE_RANK", "--seed is `0` on node 0, but `1` on node 1"),
        (
            "run taskbench -steps 2 -iter $((16+16*MANIPLE_RANK))",
            "flags is `-steps 2 -iter 16` on node 0, but `-steps 2 -iter 32` on node 1",
        ),
        (
            "run metg --type no_comm --reps 1 --budget 0.00$MANIPLE_RANK",
            "--budget is `0.000` on node 0, but `0.001` on node 1",
        ),
        (
            "run $(if [ $MANIPLE_RANK = 0 ]; then echo stencil; else echo cg; fi)",
            "the program is `run stencil` on node 0, but `run cg` on node 1",
        ),
        ("tensor 'a = B(i) * C(i)' --size i=1$MANIPLE_RANK", "--size is `i=10` on node 0, but `i=11` on node 1"),
    ] {
        let output = run_differing(2, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{arguments}: {said}");
        let problem = format!("error: the nodes of the job were given different options: {told}; give all");
        assert_eq!(said.matches(&problem).count(), 2, "{arguments}: {said}");
    }
}

#[test]
fn what_is_about_a_process_alone_may_differ() {
    let own = "--workers $((MANIPLE_RANK+1)) --window $((100+MANIPLE_RANK)) --memory $((1+MANIPLE_RANK))GiB";
    let output = run_differing(2, &format!("run stencil --size 60 --steps 3 {own}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn defaults_that_follow_from_workers_count_those_of_all_machines_however_unequal_they_are() {
    let product = "'A(i,j) = B(i,k) * C(k,j)' --size i=40,j=40,k=40";
    for (arguments, shown) in [
        ("run stencil --size 60 --steps 3 --check", "tiles                   3 x 1"),
        ("run cg --poisson 20", "pieces             3\n"),
        ("run cp --size 12,12,12 --rank 2", ""),
        ("run tucker --size 12,12,12 --ranks 2,2,2", ""),
        ("run metg --type no_comm --width 2 --reps 1 --budget 0", "width 2, 3 cores"),
        (&format!("tensor {product} --algorithm summa --repeat 1"), "1x3"),
        (&format!("tensor {product} --algorithm summa --explain"), "1x3"),
    ] {
        let output = run_differing(2, &format!("{arguments} --workers $((MANIPLE_RANK+1))"));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {told}");
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(report.contains(shown), "{arguments}: {report}");
    }
}

#[test]
fn processes_of_which_one_shares_no_memory_talk_all_the_same() {
    let arguments = "stencil --size 60 --tiles 6x1 --steps 7";
    let expected = timeless(&run(1, &arguments.split(' ').collect::<Vec<_>>()));
    for without in 0..3 {
        let script = format!(
            "if [ $MANIPLE_RANK = {without} ]; then export MANIPLE_SHARED_MEMORY=0; fi; exec {MANIPLE} run {arguments}"
        );
        let launch = ["launch", "-n", "3", "--no-prefix", "--", "sh", "-c", &script];
        assert_eq!(timeless(&Command::new(MANIPLE).args(launch).output().unwrap()), expected);
    }
}

/// Memory that processes share is a file to the system: of 256 KiB, which is too long for the first limit, and what
/// they lend besides. Blocks have 512 bytes, or 1,024.
#[test]
fn processes_whose_files_may_not_be_long_talk_all_the_same() {
    let arguments = "stencil --size 400 --tiles 4x1 --steps 7";
    let expected = timeless(&run(1, &arguments.split(' ').collect::<Vec<_>>()));
    for blocks in [200, 700, 20_000] {
        let script = format!("ulimit -f {blocks}; exec {MANIPLE} run {arguments}");
        let launch = ["launch", "-n", "2", "--no-prefix", "--", "sh", "-c", &script];
        assert_eq!(timeless(&Command::new(MANIPLE).args(launch).output().unwrap()), expected, "{blocks} blocks");
    }
}

/// Batch systems limit it, and allocators reserve it by the gigabyte.
#[cfg(target_os = "linux")]
#[test]
fn processes_run_in_an_address_space_that_is_not_much_larger_than_what_they_reserve() {
    let arguments = "stencil --size 60 --tiles 4x1 --steps 7";
    let expected = timeless(&run(1, &arguments.split(' ').collect::<Vec<_>>()));
    for kilobytes in [1_000_000, 1_400_000, 1_800_000, 2_200_000] {
        let script = format!("ulimit -v {kilobytes}; exec {MANIPLE} run {arguments}");
        let launch = ["launch", "-n", "2", "--no-prefix", "--", "sh", "-c", &script];
        let output = Command::new(MANIPLE).args(launch).output().unwrap();
        assert_eq!(timeless(&output), expected, "{kilobytes} KiB");
    }
}

#[test]
fn a_stencil_is_the_same_on_one_process_two_and_four() {
    agree(&["stencil", "--size", "60", "--tiles", "4x2", "--steps", "7"]);
    agree(&["stencil", "--size", "60", "--tiles", "3x1", "--steps", "7", "--trace"]);
}

#[test]
fn task_bench_checks_its_inputs_on_several_processes() {
    for pattern in ["stencil_1d", "fft", "nearest", "all_to_all", "random_nearest", "tree"] {
        let width = ["-width", "8", "-steps", "30", "-type", pattern, "-kernel", "compute_bound", "-iter", "4"];
        agree(&[&["taskbench"][..], &width].concat());
    }
}

#[test]
fn conjugate_gradients_converge_on_several_processes() {
    for nodes in [1, 2, 4] {
        let report = timeless(&run(nodes, &["cg", "--poisson", "30", "--pieces", "8"])).join("\n");
        assert!(report.contains("iterations"), "{report}");
    }
}

#[test]
fn trees_of_tasks_are_the_same_on_one_process_two_and_four() {
    for arguments in [["fibonacci", "--size", "22"], ["queens", "--size", "9"], ["quadrature", "--size", "8"]] {
        let arguments = [&["recursion"][..], &arguments].concat();
        let mut lines = [1, 2, 4].map(|nodes| timeless(&run(nodes, &arguments)));
        for lines in &mut lines {
            // The last bits of an integral depend on nothing but its own tasks.
            lines.retain(|line| !line.contains("by each node"));
            for line in lines {
                *line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            }
        }
        assert!(lines[0].len() >= 3 && lines[1..].iter().all(|others| *others == lines[0]), "{lines:?}");
    }
}

#[test]
fn a_process_that_is_killed_ends_the_others_which_name_it() {
    // Long enough for any machine; it ends when a node does.
    let mut launcher = Command::new(MANIPLE);
    launcher.args(["launch", "-n", "3", "--", "sh", "-c"]);
    launcher.arg(format!("echo $$; exec {MANIPLE} run stencil --size 300 --steps 100000000 --no-progress"));
    let mut job = launcher.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(job.stdout.take().unwrap()).lines();
    let victim = lines.find_map(|line| line.unwrap().strip_prefix("[1] ").map(str::to_owned)).unwrap();
    assert!(Command::new("kill").args(["-s", "KILL", &victim]).status().unwrap().success());
    let mut told = String::new();
    job.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    let status = job.wait().unwrap();
    assert!(!status.success());
    assert!(told.contains("node 1"), "{told}");
}

#[test]
fn every_process_writes_a_profile_of_its_own() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("profiles-of-nodes");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("run.mprof");
    let output = run(2, &["stencil", "--size", "40", "--steps", "3", "--profile", file.to_str().unwrap()]);
    assert!(output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told.matches(&format!("maniple prof {}.node*`", file.display())).count(), 1, "{told}");
    for node in 0..2 {
        let own = format!("{}.node{node}", file.display());
        let shown = Command::new(MANIPLE).args(["prof", &own, "-o", "/dev/null"]).output().unwrap();
        assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    }
    assert!(!file.exists());
}

#[test]
fn profiles_may_be_named_after_processes() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("profiles-of-processes");
    for nodes in [1, 2] {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("p-%p.mprof");
        let output = run(nodes, &["stencil", "--size", "40", "--steps", "3", "--profile", file.to_str().unwrap()]);
        let told = String::from_utf8(output.stderr).unwrap();
        let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let processes: Vec<u32> = names
            .map(|name| {
                let name = name.strip_prefix("p-").unwrap();
                name.split_once(".mprof").unwrap().0.parse().unwrap()
            })
            .collect();
        assert_eq!(processes.len(), nodes);
        let shown = if nodes == 1 { format!("p-{}.mprof`", processes[0]) } else { "p-*.mprof.node*`".to_owned() };
        assert!(told.contains(&shown), "{told}");
    }
}

#[test]
fn every_process_draws_a_graph_of_its_own_part() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("graphs-of-nodes");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("run.dot");
    let arguments =
        ["stencil", "--size", "40", "--tiles", "2x1", "--steps", "2", "--check", "--graph", file.to_str().unwrap()];
    let output = run(2, &arguments);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("check: ").count(), 2, "{told}");
    for node in 0..2 {
        let graph = std::fs::read_to_string(folder.join(format!("run.node{node}.dot"))).unwrap();
        assert!(graph.contains("send") && graph.contains("receive"), "{graph}");
    }
    assert!(!file.exists());
}

#[test]
fn information_shows_all_nodes_once() {
    let mut command = Command::new(MANIPLE);
    command.args(["launch", "-n", "3", "--no-prefix", "--", MANIPLE, "info", "--workers", "2", "--memory", "1GiB"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 6, "{shown}");
    assert_eq!(lines[0], "3 nodes, started by maniple launch, talk over TCP, and by shared memory within a machine");
    for (rank, line) in lines[3..].iter().enumerate() {
        assert!(line.starts_with(&format!("{rank} ")) && line.contains("2 cpu"), "{shown}");
    }
}

#[test]
fn a_state_that_several_processes_store_is_the_one_that_one_stores() {
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let grid = ["stencil", "--size", "40x30", "--tiles", "4x3", "--steps", "5"];
    let mut stored = Vec::new();
    for nodes in [1, 2, 4] {
        let folder = target.join(format!("state-of-{nodes}"));
        let _ = std::fs::remove_dir_all(&folder);
        let folder = folder.to_str().unwrap();
        // The second run goes on from the first, with other numbers of processes than have stored it.
        timeless(&run(nodes, &[&grid[..], &["--save", folder]].concat()));
        timeless(&run(5 - nodes, &[&grid[..], &["--load", folder, "--save", folder]].concat()));
        let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort_unstable();
        let file = |path: &std::path::PathBuf| (path.file_name().unwrap().to_owned(), std::fs::read(path).unwrap());
        stored.push(names.iter().map(file).collect::<Vec<_>>());
    }
    assert_eq!(stored[0].len(), 3);
    assert!(stored[1..].iter().all(|other| *other == stored[0]));
}
