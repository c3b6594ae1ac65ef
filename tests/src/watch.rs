//! Runs of programs that may hang.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Once};
use std::time::Duration;

use crate::execute::{Counts, Tally};
use crate::program::Program;
use crate::trial::{Outcome, Trial};

impl Trial {
    /// Runs a program on a thread of its own, and waits as long as statements and tasks keep beginning. If none has for so long, or up to
    /// twice as long, then the run counts as hanging and is left behind with its threads.
    ///
    /// Nothing else can tell a hang: there is no event for what never happens. The patience says how long a machine may take over one task, not
    /// over a program, so it can be ample without a hang going unnoticed.
    #[must_use]
    pub fn watch(&self, program: Program, patience: Duration) -> Outcome {
        let tally = Arc::<Tally>::default();
        let (sender, receiver) = mpsc::channel();
        let (trial, watched) = (self.clone(), Arc::clone(&tally));
        std::thread::spawn(move || {
            // Nobody listens any more if this took too long.
            let _ = sender.send(trial.run_program(program, watched));
        });
        let mut last = Counts::default();
        loop {
            match receiver.recv_timeout(patience) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => return Outcome::deviation("the executor panicked".to_owned()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let counts = tally.read();
            if counts == last {
                let what = format!("hangs: no statement and no task has begun for {patience:?}");
                return Outcome { counts, ..Outcome::deviation(what) };
            }
            last = counts;
        }
    }
}

/// Keeps panics that are part of the programs from being printed; others are still.
pub fn silence_planned_panics() {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.to_string();
            if !text.contains("on purpose") && !text.contains("a mapper's whim") {
                print(info);
            }
        }));
    });
}
