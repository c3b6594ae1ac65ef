//! Faults: why an event was poisoned, and how a panic becomes one.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};
use std::sync::{Arc, Once};

/// Why something failed. Shared as `Arc<Fault>` by everything that the failure reaches.
#[derive(Debug)]
pub struct Fault {
    error: Box<dyn Error + Send + Sync>,
}

impl Fault {
    /// A fault with this reason: an error, or a message.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into() }
    }

    /// The reason.
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.error
    }

    /// The reason, if it is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }

    /// The panic that caused the fault, if one did.
    pub fn panic(&self) -> Option<&Panic> {
        self.downcast_ref()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, formatter)
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// A body panicked.
#[derive(Clone, Debug)]
pub struct Panic {
    /// The message of the panic.
    pub message: String,
    /// The place of the panic, as `file:line:column`.
    pub location: Option<String>,
    /// The call stack, when `RUST_BACKTRACE` asks for one.
    pub backtrace: Option<String>,
}

/// Writes the message and the location. The call stack is no part of a message: only the alternate form (`{:#}`) has
/// it, for logs.
impl fmt::Display for Panic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "panicked: {}", self.message)?;
        if let Some(location) = &self.location {
            write!(formatter, " (at {location})")?;
        }
        if formatter.alternate()
            && let Some(backtrace) = &self.backtrace
        {
            write!(formatter, "\n{backtrace}")?;
        }
        Ok(())
    }
}

impl Error for Panic {}

/// The realm was shut down before the operation could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the realm was shut down before this operation could run: keep a `Realm` until what it started has finished")]
pub struct Abandoned;

/// Stands for the fault of an event that was poisoned long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this failed, and too much has failed since for the reason to be kept: ask for the status of an event soon after it \
     has triggered, and keep the fault"
)]
pub struct Forgotten;

thread_local! {
    /// How many bodies are being run on this thread.
    static CATCHING: Cell<u32> = const { Cell::new(0) };
    /// The panic that is unwinding, as the hook has noted it.
    static NOTED: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// Sets how many bodies are being run on this thread, and gives what it was: see [`crate::simulation`].
pub(crate) fn exchange_catching(bodies: u32) -> u32 {
    CATCHING.replace(bodies)
}

/// With this a body is unwound that asks for something that can't be had, for a reason: there is nothing to return.
/// Nearly always the machine has broken down.
#[derive(Debug, thiserror::Error)]
#[error("something that was asked for can't be had: {0}")]
pub struct Unavailable(pub String);

/// Unwinds a body that asks for something that can't be had, without a word on the terminal.
pub fn unwind_unavailable(reason: String) -> ! {
    resume_unwind(Box::new(Unavailable(reason)))
}

/// Runs `body`; a panic becomes a fault. In a process that has made a realm it prints nothing.
#[inline]
pub fn catch<R>(body: impl FnOnce() -> R) -> Result<R, Arc<Fault>> {
    catch_panic(body).map_err(|caught| Arc::new(Fault::new(caught.into_panic())))
}

/// Runs `body`, as [`catch`] does; a panic is caught to go on elsewhere.
#[inline]
pub(crate) fn catch_panic<R>(body: impl FnOnce() -> R) -> Result<R, Caught> {
    CATCHING.set(CATCHING.get() + 1);
    // The closure's captures are not looked at again after a panic: unwind safety is the body's own affair.
    let result = catch_unwind(AssertUnwindSafe(body)).map_err(|payload| Caught { payload, noted: NOTED.take() });
    CATCHING.set(CATCHING.get() - 1);
    result
}

/// A panic that was caught, with what its thread noted of it.
pub(crate) struct Caught {
    payload: Box<dyn Any + Send>,
    noted: Option<Panic>,
}

impl Caught {
    fn into_panic(self) -> Panic {
        let message = message_of(&*self.payload);
        discard(self.payload);
        match self.noted {
            // A panic that the body caught itself may have left an older note behind.
            Some(panic) if panic.message == message => panic,
            _ => Panic { message, location: None, backtrace: None },
        }
    }

    /// Panics with it, on this thread: the code that catches that learns where it began.
    pub(crate) fn resume(self) -> ! {
        NOTED.set(self.noted);
        resume_unwind(self.payload)
    }

    /// Lets go of it.
    pub(crate) fn discard(self) {
        discard(self.payload);
    }
}

/// Drops a panic's payload. One whose destructor panics must not bring the worker down; if what that throws panics in
/// turn, it leaks.
fn discard(payload: Box<dyn Any + Send>) {
    let drop_one = |payload| catch_unwind(AssertUnwindSafe(|| drop(payload)));
    if let Err(last) = drop_one(payload).or_else(drop_one) {
        std::mem::forget(last);
    }
}

/// The message of a panic, from its payload.
#[must_use]
pub fn message_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else if let Some(unavailable) = payload.downcast_ref::<Unavailable>() {
        unavailable.to_string()
    } else {
        "a value that is no text".to_owned()
    }
}

/// Puts a hook before the process's panic hook that, inside a body only, notes message and place instead of printing.
pub(crate) fn install_panic_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if CATCHING.try_with(Cell::get).unwrap_or(0) > 0 {
                note(info);
            } else {
                previous(info);
            }
        }));
    });
}

fn note(info: &PanicHookInfo<'_>) {
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    let panic =
        Panic { message: message_of(info.payload()), location: info.location().map(ToString::to_string), backtrace };
    NOTED.set(Some(panic));
}
