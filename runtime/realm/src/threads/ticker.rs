//! A thread that does something every so often.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Parker, Thread};

/// The stack of the thread, in bytes.
const STACK: usize = 256 << 10;

/// Calls a function every so often on a thread of its own. In a [simulation](crate::simulation) the time is over when
/// no other thread can go on.
///
/// A ticker that is dropped calls no more; a caller that needs the thread to have ended [stops](Self::stop) it.
pub struct Ticker {
    state: Arc<TickerState>,
    thread: Option<Thread>,
}

#[derive(Default)]
struct TickerState {
    is_stopped: AtomicBool,
    parker: Parker,
}

impl Ticker {
    /// Starts a ticker, with the name of its thread.
    ///
    /// # Errors
    /// The system's, if it has no thread for it.
    pub fn start(name: &str, every: Duration, mut tick: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let state = Arc::new(TickerState::default());
        let own = Arc::clone(&state);
        let thread = Thread::start(name.to_owned(), STACK, move || {
            while !own.parker.park_for(every) && !own.is_stopped.load(Ordering::SeqCst) {
                tick();
            }
        })?;
        Ok(Self { state, thread: Some(thread) })
    }

    /// Waits until the thread has ended. Not for the function itself, which would wait for its own end.
    pub fn stop(mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }

    fn end(&self) {
        self.state.is_stopped.store(true, Ordering::SeqCst);
        self.state.parker.unpark();
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_ticker_ticks_until_it_is_stopped() {
        let (sender, ticks) = channel();
        let ticker = Ticker::start("ticker", Duration::from_millis(1), move || sender.send(()).unwrap()).unwrap();
        (0..3).for_each(|_| ticks.recv().unwrap());
        ticker.stop();
        // Ends, as the function is gone, and with it the sender.
        ticks.iter().for_each(drop);
    }

    #[test]
    fn a_ticker_that_is_stopped_does_not_wait_for_the_next_tick() {
        let count = Arc::new(AtomicU32::new(0));
        let ticks = Arc::clone(&count);
        let tick = move || _ = ticks.fetch_add(1, Ordering::SeqCst);
        Ticker::start("ticker", Duration::from_secs(1 << 20), tick).unwrap().stop();
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
}
