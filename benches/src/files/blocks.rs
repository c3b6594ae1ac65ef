//! Statements block by block: what more blocks cost, and what more workers gain.

use clap::Parser;
use maniple_apps::tensor::{self, Answer, TensorOptions};

use super::Stage;
use crate::error::{Error, Result};
use crate::median;
use crate::targets::findings::Bound::{AtLeast, AtMost};
use crate::targets::findings::Row;

/// Products whose sums are in so many blocks, one after the other, beside one block. Shinde found 37 and 150 times for
/// SpMV, 11 and 35 for TTM (*SuperTaco*, MIT 2019, figures 5-3 and 5-6).
///
/// # Errors
/// If a statement fails.
pub fn sums(stage: &Stage) -> Result<Vec<Row>> {
    let (rows, columns) = (stage.scaled(20_000), stage.scaled(2_000));
    let vector = [
        "a(i) = B(i,j) * c(j)".to_owned(),
        "--size".to_owned(),
        format!("i={rows},j={rows}"),
        "--generate".to_owned(),
        "B=uniform:0.01".to_owned(),
        "-f".to_owned(),
        "B:ds".to_owned(),
    ];
    let matrix = [
        "A(i,j,k) = B(i,j,l) * C(k,l)".to_owned(),
        "--size".to_owned(),
        format!("i={columns},j=200,k=32,l=500"),
        "--generate".to_owned(),
        "B=uniform:0.005".to_owned(),
        "-f".to_owned(),
        "B:sss".to_owned(),
    ];
    let mut rows = Vec::new();
    for (what, statement, summed, order) in
        [("SpMV", &vector, "j", "j,i"), ("TTM of a tensor of order 3", &matrix, "l", "l,i,j,k")]
    {
        let time = |blocks: u64| {
            let split = [format!("i={}", stage.cores()), format!("{summed}={blocks}")];
            let told = ["--split", &split[0], "--split", &split[1], "--order", order].map(str::to_owned);
            seconds(statement, &told, stage.cores())
        };
        let (mut ten, mut twenty) = (Vec::new(), Vec::new());
        for _ in 0..stage.rounds.div_ceil(2) {
            let one = time(1)?;
            ten.push(time(10)? / one);
            twenty.push(time(20)? / one);
        }
        rows.push(Row::new(format!("{what}, sums in 10 blocks"), median(ten), "times").must(AtMost(3.0)));
        rows.push(Row::new(format!("{what}, sums in 20 blocks"), median(twenty), "times").must(AtMost(6.0)));
    }
    Ok(rows)
}

/// A product in 8 blocks of rows, by two workers and by one.
///
/// # Errors
/// If the statement fails.
pub fn workers(stage: &Stage) -> Result<Vec<Row>> {
    let rows = stage.scaled(2_000_000);
    let statement = [
        "a(i) = B(i,j) * c(j)".to_owned(),
        "--size".to_owned(),
        format!("i={rows},j={rows}"),
        "--generate".to_owned(),
        format!("B=uniform:{}", 8.0 / rows as f64),
        "-f".to_owned(),
        "B:ds".to_owned(),
    ];
    let split = ["--split".to_owned(), "i=8".to_owned()];
    let mut times = Vec::new();
    for _ in 0..stage.rounds.div_ceil(2) {
        let one = seconds(&statement, &split, 1)?;
        times.push(one / seconds(&statement, &split, 2)?);
    }
    Ok(vec![Row::new("SpMV in 8 blocks, 2 workers beside 1", median(times), "times").must(AtLeast(1.7))])
}

/// Options of `maniple tensor`.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    options: TensorOptions,
}

/// The median of the seconds that a statement takes.
fn seconds(statement: &[String], how: &[String], workers: usize) -> Result<f64> {
    let common = ["--workers", &workers.to_string(), "--repeat", "7", "--no-progress"].map(str::to_owned);
    let words = statement.iter().chain(how).chain(&common);
    let line = Line::try_parse_from(words).map_err(Error::tensor)?;
    match tensor::run(&line.options)? {
        Answer::Report(report) => Ok(report.time.0.as_secs_f64()),
        other => Err(Error::tensor(std::io::Error::other(format!("no sparse statement: {other}")))),
    }
}
