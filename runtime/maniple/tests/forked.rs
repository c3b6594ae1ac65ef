//! Tests of a copy of the process, made by `fork`: it is told that it cannot use the runtime. Alone in its process, as
//! the copy has the locks of all threads.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // in a test, a panic is the report

use maniple::Error;
use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task]
fn double(number: i64) -> i64 {
    2 * number
}

/// The number of the first check that fails in the copy, with which it exits; 0 if none does.
fn in_the_copy(
    runtime: Runtime,
    session: maniple::Session,
    (future, cells): (&maniple::Future<i64>, &Region<Cell>),
) -> i32 {
    let is_told = |outcome: Result<i64>| matches!(outcome, Err(Error::Forked));
    let told = [
        is_told(runtime.run(async |_| Ok(0))),
        is_told(runtime.begin().map(|_| 0)),
        is_told(session.wait(future.clone())),
        is_told(session.launch(double(2)).wait()),
        // A result that was there before is there.
        future.wait().is_ok_and(|value| value == 2),
        is_told(session.tunable("pieces", 4)),
        is_told(session.region::<Cell>(4).map(|_| 0)),
        is_told(session.region_like::<Cell, _, 1>(cells).map(|_| 0)),
        is_told(session.destroy_region(cells).map(|()| 0)),
        is_told(session.index_partition(cells.logical().space(), 1, &[cells.space().clone().into()]).map(|_| 0)),
        is_told(session.finish().map(|()| 0)),
        matches!(runtime.breakdown(), Some(Error::Forked)),
    ];
    // Does not wait for threads that are not there.
    drop(runtime);
    told.iter().position(|told| !told).map_or(0, |place| place as i32 + 1)
}

#[test]
fn a_copy_of_the_process_is_told_that_it_cannot_use_the_runtime() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let session = runtime.begin().unwrap();
    let (future, cells) = (session.launch(double(1)), session.region::<Cell>(4).unwrap());
    assert_eq!(session.wait(future.clone()).unwrap(), 2);
    // SAFETY: no other thread of this process holds a lock that the copy needs: workers have nothing to do, and the
    // test's own thread is this one. The copy ends by `_exit`.
    let copy = unsafe { libc::fork() };
    if copy == 0 {
        let code = in_the_copy(runtime, session, (&future, &cells));
        // SAFETY: ends the process, and does nothing else.
        unsafe { libc::_exit(code) };
    }
    assert!(copy > 0, "the system makes a copy");
    let mut status = 0;
    // SAFETY: the process is a child of this one, and the number is ours.
    assert_eq!(unsafe { libc::waitpid(copy, &raw mut status, 0) }, copy);
    assert!(libc::WIFEXITED(status), "status {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "the first that the copy was not told, by its place from 1");
    // Here all goes on.
    assert_eq!(session.wait(session.launch(double(4))).unwrap(), 8);
    session.finish().unwrap();
}
