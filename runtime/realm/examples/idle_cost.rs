//! The cost of an idle realm: processor time used while nothing happens, first right after work, then with pending
//! operations.
//!
//! ```console
//! $ cargo run --release -p maniple-realm --example idle_cost
//! ```

use std::time::Duration;

use maniple_realm::{Realm, Spawn};

const PAUSE: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let realm = Realm::builder().build()?;
    realm.wait(realm.spawn(Spawn::ANYWHERE, || ()))?;
    report("idle", &realm);
    let gate = realm.user_event();
    let pending: Vec<_> = (0..1000).map(|_| realm.spawn(&gate.event(), || ())).collect();
    let waiting = realm.spawn_async(Spawn::ANYWHERE, realm.event_future(gate.event()));
    report("idle with 1001 operations pending", &realm);
    realm.trigger(gate);
    realm.wait(realm.merge(&pending))?;
    Ok(realm.wait(waiting)?)
}

fn report(what: &str, realm: &Realm) {
    let workers = realm.processors().len();
    let before = processor_ticks();
    std::thread::sleep(PAUSE);
    match before.zip(processor_ticks()) {
        Some((before, after)) => {
            println!("{what}: {} ticks of 10 ms in {} s, {workers} workers", after - before, PAUSE.as_secs());
        }
        None => println!("{what}: this system does not tell the processor time of a process"),
    }
}

/// The processor time that this process has used, in the kernel's ticks (Linux: fields 14 and 15 of its `stat`).
fn processor_ticks() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field, the command in parentheses, may contain blanks.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}
