//! Runs of programs that may hang.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use maniple::Runtime;

use crate::execute::{Counts, Tally};
use crate::program::Program;
use crate::trial::{Outcome, Trial};

impl Trial {
    /// Runs a program on a thread of its own, and waits as long as statements and tasks keep beginning. If none has for
    /// so long, or a little longer, then the run counts as hanging and is left behind with its threads.
    ///
    /// A process may be stopped for any length of time, and then goes on. So it looks many times: all the time
    /// that the process was stopped is one look.
    ///
    /// Nothing else can tell a hang: there is no event for what never happens. The patience says how long a machine may
    /// take over one task, not over a program, so it can be ample without a hang going unnoticed.
    #[must_use]
    pub fn watch(&self, program: Program, patience: Duration) -> Outcome {
        let tally = Arc::<Tally>::default();
        let (sender, receiver) = mpsc::channel();
        let (trial, watched) = (self.clone(), Arc::clone(&tally));
        std::thread::spawn(move || {
            // The receiver is gone if this took too long.
            let _ = sender.send(trial.run_program(program, watched));
        });
        let (mut last, mut looks) = (Counts::default(), 0);
        while looks < LOOKS {
            match receiver.recv_timeout(patience / LOOKS) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => return Outcome::deviation("the executor panicked".to_owned()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let counts = tally.read();
            looks = if counts == last { looks + 1 } else { 0 };
            last = counts;
        }
        let what = format!("hangs: no statement and no task has begun for {patience:?}");
        Outcome { counts: last, ..Outcome::deviation(what) }
    }
}

/// How often to look for progress before a run counts as hanging.
const LOOKS: u32 = 20;

/// Keeps panics that are part of the programs from being printed; others are still. The thread of a test prints its
/// own: an assertion that fails may quote what a planned panic has said.
pub fn silence_planned_panics() {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        // The first runtime of the process sets a hook of its own. Were another thread to do so at this moment, one of
        // the two would be lost.
        let first = Runtime::builder().workers(1).alone().build();
        drop(first.expect("a runtime of one worker can be started"));
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.to_string();
            let planned = text.contains("on purpose") || text.contains("a mapper's whim");
            if !planned || thread::current().name().is_some_and(|name| name.contains("::")) {
                print(info);
            }
        }));
    });
}
