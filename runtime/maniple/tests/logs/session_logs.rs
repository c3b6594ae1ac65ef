//! The log of sessions that are dropped.

use crate::log;
use maniple::Error;
use maniple::prelude::*;
use tracing::Level;

#[task]
fn fail() -> Result<()> {
    Err(Error::application("as planned"))
}

#[task]
fn succeed() {}

#[test]
fn a_session_that_is_dropped_logs_the_failure_that_was_not_seen() {
    let lines = log::keep(Level::WARN);
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let session = runtime.begin().unwrap();
    session.launch(succeed());
    drop(session);
    assert_eq!(lines.take(), Vec::<String>::new());

    let session = runtime.begin().unwrap();
    session.launch(fail());
    drop(session);
    let told = lines.take();
    assert!(told.len() == 1 && told[0].contains("a session that was dropped, not finished, has failed"), "{told:?}");
    assert!(told[0].contains("as planned"), "{told:?}");

    let session = runtime.begin().unwrap();
    session.launch(fail());
    assert!(session.finish().is_err());
    assert_eq!(lines.take(), Vec::<String>::new(), "who is told needs no log");
}
