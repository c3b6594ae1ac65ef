//! Conditions that a figure depends on besides the program: the machine, the compiler, the day.

use std::fs;
use std::hint::spin_loop;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, available_parallelism};

use crate::seconds;

/// Lines that tell it, as far as it can be found out.
#[must_use]
pub fn report() -> Vec<String> {
    let cores = available_parallelism().map_or_else(|_| "?".to_owned(), |cores| cores.to_string());
    let machine = format!("{}, {cores} cores, {}", processor(), kernel());
    let commit = said("git", &["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "--short", "HEAD"]);
    let commit = commit.map_or_else(String::new, |commit| format!(" at commit {commit}"));
    let lines = [
        ("date", said("date", &["-u", "+%F"])),
        ("machine", Some(machine)),
        ("distance", crossing().map(|time| format!("{:.0} ns for a cache line from one core to another", time * 1e9))),
        ("Maniple", Some(format!("{}{commit}, {}", env!("CARGO_PKG_VERSION"), compiler()))),
        ("rayon", locked_version("rayon").map(|version| format!("version {version}"))),
    ];
    lines.into_iter().filter_map(|(what, found)| Some(format!("{what:<9} {}", found?))).collect()
}

fn compiler() -> String {
    said("rustc", &["--version"]).unwrap_or_else(|| "an unknown compiler".to_owned())
}

/// The system and its version, without what a distribution adds.
fn kernel() -> String {
    let found = said("uname", &["-sr"]);
    let plain = found.as_deref().and_then(|found| found.split('-').next());
    plain.unwrap_or(std::env::consts::OS).to_owned()
}

fn processor() -> String {
    let found = fs::read_to_string("/proc/cpuinfo").ok().as_deref().and_then(model);
    found.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The processor's name in what Linux tells of it, or else its numbers.
fn model(cpuinfo: &str) -> Option<String> {
    let value = |key: &str| {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned()).next()
    };
    let numbers = || Some(format!(" (family {}, model {})", value("cpu family")?, value("model")?));
    value("model name").map(|name| name + &numbers().unwrap_or_default())
}

/// The version of a dependency that this program was built with.
fn locked_version(package: &str) -> Option<&'static str> {
    let lock = include_str!("../../Cargo.lock");
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    rest.split('"').next()
}

/// A number that a thread changes and another waits for, alone in its cache line and the next, which processors load
/// together.
#[derive(Default)]
#[repr(align(128))]
struct Flag(AtomicU64);

impl Flag {
    fn raise(&self, turn: u64) {
        self.0.store(turn, Ordering::Release);
    }

    fn wait_for(&self, turn: u64) {
        while self.0.load(Ordering::Acquire) != turn {
            spin_loop();
        }
    }
}

/// The seconds that a cache line takes from one core to another: no program that waits for a neighbour at each step
/// makes steps faster. None where there is but one core.
fn crossing() -> Option<f64> {
    const TURNS: u64 = 2000;
    if !available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        return None;
    }
    let round = || {
        let (there, back) = (Flag::default(), Flag::default());
        let answer = || {
            (1..=TURNS).for_each(|turn| {
                there.wait_for(turn);
                back.raise(turn);
            })
        };
        let ask = || {
            (1..=TURNS).for_each(|turn| {
                there.raise(turn);
                back.wait_for(turn);
            })
        };
        thread::scope(|scope| {
            scope.spawn(answer);
            seconds(ask) / (2 * TURNS) as f64
        })
    };
    // The least: another program that uses a core makes it longer, and none makes it shorter.
    Some((0..50).map(|_| round()).fold(f64::INFINITY, f64::min))
}

/// The first line that a command prints. None if it cannot be run or fails.
fn said(command: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(command).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.lines().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_told_by_name_and_numbers() {
        let cpuinfo = "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: Some Processor\n";
        assert_eq!(model(cpuinfo).as_deref(), Some("Some Processor (family 6, model 207)"));
        assert_eq!(model("model name : Other\n").as_deref(), Some("Other"));
        assert_eq!(model("Features : none"), None);
    }

    #[test]
    fn dependencies_have_the_versions_that_the_lock_file_says() {
        assert!(locked_version("rayon").is_some_and(|version| version.starts_with("1.")));
        assert_eq!(locked_version("no-such-package"), None);
    }
}
