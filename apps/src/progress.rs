//! A bar that shows how far a simulation is.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use maniple::FutureMap;

/// A progress bar on standard error; none where that is no terminal.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar of so many steps.
    #[must_use]
    pub fn steps(total: usize) -> Self {
        Self::styled(ProgressBar::new(total as u64), "{bar:40} {pos}/{len} steps  {elapsed} (about {eta} to go)")
    }

    /// A line that shows where an iteration of unknown length is.
    #[must_use]
    pub fn iterations() -> Self {
        Self::styled(ProgressBar::new_spinner(), "{spinner} {pos} iterations  {elapsed}  {msg}")
    }

    fn styled(bar: ProgressBar, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self { bar }
    }

    /// Advances by one when an index launch has ended. Launching goes on meanwhile: this is where the work is, not the program.
    pub fn advance_after<T: Clone + Send + Sync + 'static>(&self, launch: &FutureMap<T>) {
        if !self.bar.is_hidden() {
            let bar = self.bar.clone();
            let _ = launch.fold((), |(), _| ()).map(move |()| bar.inc(1));
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
