//! Players take turns, and their speeds are laid side by side.

use std::path::PathBuf;

use super::turns::Player;
use crate::error::{Error, Result};
use crate::median;
use crate::table::{Table, figure};
use crate::targets::findings::{Bound, Row};
use crate::toolbox::Toolbox;

/// How large things are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The sizes that are measured.
    Full,
    /// Small sizes that take no time, for tests.
    Small,
}

/// The programs that take part: the rivals, and this project's program.
#[derive(Debug)]
pub struct Stage {
    /// The rivals.
    pub toolbox: Toolbox,
    /// The program of this package that computes statements in turns.
    pub ours: PathBuf,
    /// How large things are.
    pub scale: Scale,
}

impl Stage {
    /// The one size or the other.
    #[must_use]
    pub fn size(&self, full: u64, small: u64) -> u64 {
        match self.scale {
            Scale::Full => full,
            Scale::Small => small,
        }
    }
}

/// A contest: its subject, and its contestants.
pub struct Contest {
    /// How it is asked for.
    pub name: &'static str,
    /// The subject of the contest, in a few words.
    pub title: &'static str,
    /// The unit of the speed.
    pub unit: &'static str,
    /// All that can be on this machine.
    pub contestants: fn(&Stage) -> Vec<Contestant>,
}

/// The goal of a turn.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// How much is done in a turn, in thousand millions of what is counted.
    pub amount: f64,
    /// The answer that the contestant must find.
    pub answer: u64,
}

/// Starts a program.
type Start = dyn Fn() -> Result<Player>;

/// A program that takes part in a contest.
pub struct Contestant {
    /// How it appears in tables.
    pub name: String,
    /// The goal of each of its turns.
    pub goal: Goal,
    /// Of this project's: the least share of the fastest rival's speed.
    pub must: Option<f64>,
    /// Whether this project's are compared with it.
    pub is_rival: bool,
    start: Box<Start>,
}

impl Contestant {
    /// A program whose turns have a goal.
    pub fn new(name: impl Into<String>, goal: Goal, start: impl Fn() -> Result<Player> + 'static) -> Self {
        Self { name: name.into(), goal, must: None, is_rival: true, start: Box::new(start) }
    }

    /// One of this project's, of which at least this share of the fastest rival's speed is asked.
    #[must_use]
    pub fn must(self, share: f64) -> Self {
        Self { must: Some(share), is_rival: false, ..self }
    }

    /// One of this project's, of which nothing is asked.
    #[must_use]
    pub fn beside(self) -> Self {
        Self { is_rival: false, ..self }
    }

    /// Starts it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self) -> Result<Player> {
        (self.start)()
    }

    /// Lets it have a turn, and gives its speed.
    ///
    /// # Errors
    /// The program's, and [`Error::Answer`] if it finds something else than it must.
    pub fn turn(&self, player: &mut Player) -> Result<f64> {
        let outcome = player.turn()?;
        match outcome.answer == self.goal.answer {
            true => Ok(self.goal.amount / outcome.seconds),
            false => Err(Error::Answer { expected: self.goal.answer, found: outcome.answer }),
        }
    }
}

/// The results of a contest.
#[derive(Debug)]
pub struct Report {
    /// Speeds, side by side.
    pub table: Table,
    /// The shares of the fastest rival's speed that this project's contestants reach, beside those that they must
    /// reach.
    pub rows: Vec<Row>,
}

impl Contest {
    /// Lets each contestant have so many turns.
    #[must_use]
    pub fn measure(&self, stage: &Stage, rounds: usize) -> Report {
        let contestants = (self.contestants)(stage);
        let mut players: Vec<Result<(Player, Vec<f64>)>> =
            contestants.iter().map(|contestant| Ok((contestant.start()?, Vec::new()))).collect();
        for _ in 0..rounds {
            for (contestant, slot) in contestants.iter().zip(&mut players) {
                let Ok((player, speeds)) = slot else { continue };
                match contestant.turn(player) {
                    Ok(speed) => speeds.push(speed),
                    Err(error) => *slot = Err(error),
                }
            }
        }
        let speeds: Vec<Result<Vec<f64>>> = players.into_iter().map(|slot| slot.map(|(_, speeds)| speeds)).collect();
        self.report(&contestants, &speeds)
    }

    fn report(&self, contestants: &[Contestant], speeds: &[Result<Vec<f64>>]) -> Report {
        let both = || contestants.iter().zip(speeds);
        let middle = |speeds: &Vec<f64>| median(speeds.clone());
        let rivals = both().filter(|(contestant, _)| contestant.is_rival);
        let rivals = rivals.filter_map(|(_, speeds)| speeds.as_ref().ok());
        let best = rivals.max_by(|a, b| middle(a).total_cmp(&middle(b)));
        // Of turns that follow each other: the machine's own speed changes from minute to minute.
        let share = |speeds: &Vec<f64>| {
            best.map_or(f64::NAN, |best| median(speeds.iter().zip(best).map(|(speed, best)| speed / best).collect()))
        };
        let mut table = Table::new(self.title, &["", self.unit, "least", "most", "of the best rival"]);
        let mut rows = Vec::new();
        for (contestant, speeds) in both() {
            let cells = match speeds {
                Ok(speeds) => {
                    let median = middle(speeds);
                    let (least, most) = (
                        speeds.iter().copied().fold(f64::NAN, f64::min),
                        speeds.iter().copied().fold(f64::NAN, f64::max),
                    );
                    [median, least, most, share(speeds)].map(figure).to_vec()
                }
                Err(error) => vec![format!("failed: {error}")],
            };
            table.row([contestant.name.clone()].into_iter().chain(cells));
            if let Some(must) = contestant.must {
                let share = speeds.as_ref().map_or(f64::NAN, share);
                let what = format!("{}: {}", self.name, contestant.name);
                rows.push(Row::new(what, share, "of the best rival").must(Bound::AtLeast(must)));
            }
        }
        Report { table, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contestant(name: &str) -> Contestant {
        Contestant::new(name, Goal { amount: 1.0, answer: 0 }, || Err(Error::NotBuilt("a test".to_owned())))
    }

    #[test]
    fn ours_is_compared_with_the_fastest_rival() {
        let contest = Contest { name: "test", title: "A test", unit: "GB/s", contestants: |_| Vec::new() };
        let contestants = [
            contestant("ours").must(0.9),
            contestant("slow"),
            contestant("fast"),
            contestant("none"),
            contestant("also ours").beside(),
        ];
        let failed = Err(Error::NotBuilt("a test".to_owned()));
        let speeds = [Ok(vec![3.0, 1.0, 2.0]), Ok(vec![1.0; 3]), Ok(vec![4.0; 3]), failed, Ok(vec![9.0; 3])];
        let report = contest.report(&contestants, &speeds);
        let [row] = &report.rows[..] else { panic!("one of them is ours") };
        assert_eq!((row.what.as_str(), row.figure, row.verdict()), ("test: ours", 0.5, "no"));
        let table = report.table.to_string();
        assert!(table.contains("failed: it could not be built: a test"), "{table}");
        let ours = table.lines().find(|line| line.starts_with("| ours")).expect("it has a line");
        let cells: Vec<&str> = ours.split('|').map(str::trim).collect();
        assert_eq!(cells, ["", "ours", "2.00", "1.00", "3.00", "0.500", ""]);
    }

    #[test]
    fn without_rivals_nothing_is_claimed() {
        let contest = Contest { name: "test", title: "A test", unit: "GB/s", contestants: |_| Vec::new() };
        let report = contest.report(&[contestant("ours").must(0.9)], &[Ok(vec![1.0])]);
        assert!(report.rows[0].figure.is_nan());
    }
}
