//! Threads that wait for files: see [`IoThreads`].

use std::sync::{Arc, Mutex, mpsc};

use maniple_realm::io::IoThreads;

#[test]
fn a_few_files_that_do_not_answer_hold_up_no_others() {
    let (threads, (answer, never)) = (IoThreads::default(), mpsc::channel::<()>());
    let never = Arc::new(Mutex::new(never));
    for _ in 0..8 {
        let never = Arc::clone(&never);
        threads.run(move || assert!(never.lock().unwrap().recv().is_err()));
    }
    let (done, ended) = mpsc::channel();
    threads.run(move || done.send(()).unwrap());
    ended.recv().unwrap();
    drop(answer);
    threads.wait_until_idle();
}
