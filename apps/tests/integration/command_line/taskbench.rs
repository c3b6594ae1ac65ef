//! `maniple run taskbench`: the options, the report and the errors of Task Bench.

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
    let flags =
        "-type spread -width 6 -radix 2 -period 3 -steps 2 -kernel load_imbalance -iter 10 -imbalance 0.5 -output 40";
    let report = prints(&format!("run taskbench {flags} -and -type dom -steps 3 -width 2 -vv -nodes 2"));
    // What Task Bench itself prints for these flags.
    let expected = include_str!("taskbench_report.txt");
    assert_eq!(timeless(&report), timeless(expected), "{report}");
    let names =
        |report: &str| report.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect::<Vec<_>>();
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
    let report = prints("run taskbench -steps 5 -and -type fft -width 3 -steps 2 -and -type tree -steps 9 -width 8");
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
        assert!(maniple(&run).stderr.contains("\nhint: give data more memory with --memory, or take a smaller graph"));
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
