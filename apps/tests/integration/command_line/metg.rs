//! `maniple run metg`: what is measured, and its errors.

use super::*;

#[test]
fn the_last_line_says_what_was_found() {
    let report = prints("run metg --type no_comm --width 1 --cores 1 --reps 1 --budget 0 --verbose");
    let mut lines = report.lines().rev();
    let last = lines.next().unwrap_or_default();
    let number = last.strip_prefix("METG(50%) ").and_then(|rest| rest.strip_suffix(" us  (no_comm, width 1, 1 cores)"));
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
    fails("run metg --type star", 2, "invalid value 'star' for '--type <PATTERN>': there are the patterns trivial, ");
    fails("run metg -type star", 2, "invalid value 'star' for '--type <PATTERN>'");
    fails("run metg -radix=-1", 2, "invalid value '-1' for '--radix <N>': it must be a whole number of at least 0");
    fails("run metg --budget -1", 2, "invalid value '-1' for '--budget <SECONDS>'");
    let spread = "the pattern spread with width 2 and radix 3 has a period of at most 1, not 3: set it with --period";
    fails("run metg --type spread", 2, spread);
    let period = "the pattern fft has no period that could be set: drop --period";
    fails("run metg --type fft --period 2", 2, period);
    fails("run metg --width 2000000", 2, "invalid value '2000000' for '--width <N>': it must be at most 1048576");
}
