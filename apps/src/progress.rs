//! A bar that shows how far a simulation is.

use std::fmt::Write;
use std::time::Duration;

use console::Term;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use maniple::FutureMap;

use crate::options::{RuntimeOptions, place};

/// A progress bar on standard error; none where that is no terminal, a mapper writes there, or it is unwanted.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

/// The shape of a bar of steps, from wide to narrow: the columns that it takes with long numbers, and what it shows.
const STEPS: [(u16, &str); 4] = [
    (100, "{bar:40} {pos}/{len} steps  {elapsed}{to_go}"),
    (80, "{bar:20} {pos}/{len} steps  {elapsed}{to_go}"),
    (60, "{pos}/{len} steps  {elapsed}{to_go}"),
    (0, "{pos}/{len}"),
];

/// The same for a line without an end.
const ITERATIONS: [(u16, &str); 2] = [(60, "{spinner} {pos} iterations  {elapsed}  {msg}"), (0, "{spinner} {pos}")];

impl Progress {
    /// A bar of so many steps.
    #[must_use]
    pub fn steps(total: usize, options: &RuntimeOptions) -> Self {
        Self::styled(options, Some(total as u64), &STEPS)
    }

    /// A line that shows where an iteration of unknown length is.
    #[must_use]
    pub fn iterations(options: &RuntimeOptions) -> Self {
        Self::styled(options, None, &ITERATIONS)
    }

    fn styled(options: &RuntimeOptions, length: Option<u64>, templates: &[(u16, &str)]) -> Self {
        // Of a job's nodes none has the terminal to itself.
        if !options.shows_progress() || place().nodes > 1 {
            return Self { bar: ProgressBar::hidden() };
        }
        let bar = length.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        let (_, columns) = Term::stderr().size();
        bar.set_style(style(fitting(templates, columns)));
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self { bar }
    }

    /// Advances by one when an index launch has ended. Launching goes on meanwhile: this is where the work is, not the
    /// program.
    pub fn advance_after<T: Clone + Send + Sync + 'static>(&self, launch: &FutureMap<T>) {
        self.advance_by_after(1, launch);
    }

    /// Advances by so many steps when an index launch has ended, the last of them.
    pub fn advance_by_after<T: Clone + Send + Sync + 'static>(&self, steps: u64, launch: &FutureMap<T>) {
        if !self.bar.is_hidden() {
            let bar = self.bar.clone();
            let _ = launch.fold((), |(), _| ()).map(move |()| bar.inc(steps));
        }
    }

    /// Shows where the iteration is.
    pub fn set(&self, position: usize, message: impl FnOnce() -> String) {
        if !self.bar.is_hidden() {
            self.bar.set_position(position as u64);
            self.bar.set_message(message());
        }
    }
}

impl Drop for Progress {
    /// Takes the bar off the screen.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The first template that fits. One that does not would go on in the next line, where it is not taken away.
fn fitting<'a>(templates: &[(u16, &'a str)], columns: u16) -> &'a str {
    let fits = templates.iter().find(|(needed, _)| *needed <= columns);
    fits.map_or("{pos}", |(_, template)| template)
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("to_go", |state: &ProgressState, line: &mut dyn Write| {
        let _ = line.write_str(&to_go(state.pos(), state.eta()));
    })
}

/// How long it will take, once a step has shown how long one takes.
fn to_go(position: u64, estimate: Duration) -> String {
    match position {
        0 => String::new(),
        _ => format!(" (about {:#} to go)", HumanDuration(estimate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::MapperChoice;

    #[test]
    fn a_bar_is_no_wider_than_the_terminal() {
        for (columns, expected) in [(200, STEPS[0].1), (100, STEPS[0].1), (80, STEPS[1].1), (20, STEPS[3].1)] {
            assert_eq!(fitting(&STEPS, columns), expected, "{columns} columns");
        }
        assert_eq!(fitting(&ITERATIONS, 20), ITERATIONS[1].1);
        let widest = "10000000/10000000 steps  100000s (about 1000s to go)";
        for (bar, (columns, template)) in [41, 21, 0].into_iter().zip(STEPS) {
            assert!(bar + widest.len() < usize::from(columns), "{template}");
        }
    }

    #[test]
    fn every_shape_is_a_template() {
        for (_, template) in STEPS.iter().chain(&ITERATIONS) {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn nothing_is_said_of_the_time_to_go_before_the_first_step() {
        assert_eq!(to_go(0, Duration::ZERO), "");
        assert_eq!(to_go(3, Duration::from_secs(12)), " (about 12s to go)");
    }

    #[test]
    fn a_mapper_that_writes_to_standard_error_has_it_alone() {
        let options = RuntimeOptions { mapper: MapperChoice::Log, ..Default::default() };
        let bar = &Progress::steps(3, &options).bar;
        assert!(bar.is_hidden() && bar.length().is_none(), "it is made hidden, terminal or not");
    }

    #[test]
    fn progress_that_is_unwanted_is_not_shown() {
        let options = RuntimeOptions { no_progress: true, ..Default::default() };
        let bar = &Progress::steps(3, &options).bar;
        assert!(bar.is_hidden() && bar.length().is_none(), "it is made hidden, terminal or not");
    }
}
