//! Records of operations: what is drawn and listed of them.

use super::*;

/// Runs `maniple` with `--graph`; gives the graph that it wrote into a file, and its standard error.
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
        for program in [TINY_CIRCUIT, "run cg --poisson 8 --pieces 3", "run stencil --size 20 --tiles 3 --steps 4"] {
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
    let (some, all) = (drawn(TINY_CIRCUIT, "some.dot").0, drawn(&format!("{TINY_CIRCUIT} --graph-all"), "all.dot").0);
    assert!(lines(&all) > lines(&some));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let picture =
        "invalid value 'picture.png' for '--graph <FILE>': its name must end in .svg or .dot, which says what to write";
    fails("run circuit --graph picture.png", 2, picture);
    fails("run circuit --graph-of weather --graph a.svg", 2, "invalid value 'weather' for '--graph-of <WHAT>'");
    for option in ["--graph-of launches", "--graph-all"] {
        fails(&format!("run cg {option}"), 2, "the following required arguments were not provided:\n  --graph <FILE>");
    }
    fails("info --graph a.svg", 2, "unexpected argument '--graph' found");
    fails("run metg --check", 2, "--check, --graph and --profile are about a single run");
    fails("run metg --profile metg.mprof", 2, "--check, --graph and --profile are about a single run");
    let help = prints("run metg --help");
    ["--check", "--graph", "--profile"].iter().for_each(|option| assert!(!help.contains(option), "{option}: {help}"));
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
