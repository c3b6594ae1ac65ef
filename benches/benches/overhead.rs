//! Costs of the runtime when tasks do nothing, or next to nothing.

use maniple_apps::circuit;
use maniple_apps::options::RuntimeOptions;
use maniple_benches::{line, median, seconds};
use maniple_realm::{After, Realm, Spawn};

const ROUNDS: usize = 7;

fn main() {
    println!("{:<48} {:>10} {:<8} wanted", "what", "median", "unit");
    let realm = Realm::builder().workers(2).build().expect("two workers can be started");
    let per =
        |count: usize, run: &mut dyn FnMut()| median((0..ROUNDS).map(|_| seconds(&mut *run)).collect()) / count as f64;

    const LINKS: usize = 1_000_000;
    let chain = per(LINKS, &mut || trigger_chain(&realm, LINKS));
    line("event triggered in a chain (and made)", chain * 1e6, "us", "at most 0.3");

    const TASKS: usize = 1_000_000;
    let outside = per(TASKS, &mut || spawn_empty(&realm, TASKS));
    line("empty tasks spawned from outside", 1e-6 / outside, "M/s", "at least 3");

    let circuit = |steps: usize| circuit::CircuitOptions {
        pieces: 16,
        nodes_per_piece: 8,
        wires_per_piece: 16,
        inside: 90,
        steps,
        no_verify: true,
        runtime: RuntimeOptions { workers: Some(2), no_tracing: true, ..circuit::CircuitOptions::default().runtime },
        ..circuit::CircuitOptions::default()
    };
    let cost = |steps: usize| {
        let report = circuit::run(&circuit(steps)).expect("the circuit runs");
        report.time.as_secs_f64() * 1e6 / report.tasks as f64
    };
    let point = median((0..ROUNDS).map(|_| cost(1000)).collect());
    line("point task of a circuit of 16 tiny pieces, untraced", point, "us", "at most 10 (Legion 25.06: 46)");
}

/// Makes a chain of events each of which triggers the next, and sets it off.
fn trigger_chain(realm: &Realm, links: usize) {
    let first = realm.user_event();
    let mut last = first.event();
    for _ in 0..links {
        let next = realm.user_event();
        realm.trigger_after(next, After::needs(&[last]));
        last = next.event();
    }
    realm.trigger(first);
    realm.wait(last).expect("nothing in the chain fails");
}

fn spawn_empty(realm: &Realm, tasks: usize) {
    let mut open = Vec::with_capacity(1024);
    for start in (0..tasks).step_by(1024) {
        open.clear();
        open.extend((start..tasks.min(start + 1024)).map(|_| realm.spawn(Spawn::ANYWHERE, || ())));
        realm.wait(realm.merge(&open)).expect("empty tasks do not fail");
    }
}
