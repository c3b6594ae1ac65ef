//! The environment of each node: its place in the job.

use super::*;

fn value<'a>(run: &'a Run, rank: usize, name: &str) -> &'a str {
    let lines = run.of(rank);
    lines
        .iter()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
        .unwrap_or_else(|| panic!("{name}: {run:?}"))
}

#[test]
fn each_node_is_told_its_own_rank_and_the_same_place_and_secret() {
    let run = script(&["-n", "3"], "env");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    for rank in 0..3 {
        assert_eq!(value(&run, rank, "MANIPLE_RANK"), rank.to_string());
        assert_eq!(value(&run, rank, "MANIPLE_NODES"), "3");
        for name in ["MANIPLE_RENDEZVOUS", "MANIPLE_SECRET", "MANIPLE_LISTEN"] {
            assert_eq!(value(&run, rank, name), value(&run, 0, name));
        }
    }
}

#[test]
fn each_launch_has_a_secret_and_a_place_of_its_own() {
    let [first, second] = [(); 2].map(|()| script(&["-n", "1"], "env"));
    for name in ["MANIPLE_SECRET", "MANIPLE_RENDEZVOUS"] {
        assert_ne!(value(&first, 0, name), value(&second, 0, name));
    }
}

/// One of the nodes below, if the environment says so.
#[test]
fn node() {
    if std::env::var_os("MANIPLE_LAUNCH_TEST").is_some() {
        let place = Place::find().unwrap();
        let transport = place.connect().unwrap().unwrap();
        println!("\n{} of {} has met the others", transport.rank(), transport.nodes());
    }
}

#[test]
fn a_program_that_uses_the_library_meets_the_others() {
    let this = std::env::current_exe().unwrap();
    let program = [this.to_str().unwrap(), "launch::place::node", "--exact", "--nocapture"];
    let mut command = maniple_launch(&["-n", "3"], &program);
    let run = finish(command.env("MANIPLE_LAUNCH_TEST", "1").spawn().unwrap());
    assert_eq!(run.code, Some(0), "{run:?}");
    for rank in 0..3 {
        let words = format!("node {rank} of 3 has met the others");
        assert!(run.of(rank).contains(&words.as_str()), "{run:?}");
    }
}

/// Also if the launcher is told that it has cores of its own, as on a node of another job.
#[cfg(target_os = "linux")]
#[test]
fn each_node_is_told_whether_it_has_cores_of_its_own() {
    let bound = |options: &[&str], around: &str| {
        let mut command = maniple_launch(options, &["sh", "-c", "echo $MANIPLE_BOUND"]);
        let run = finish(command.env("MANIPLE_BOUND", around).spawn().unwrap());
        assert_eq!((run.code, run.of(0)), (Some(0), run.of(1)), "{run:?}");
        run.of(0)[0].to_owned()
    };
    let cores = rustix::thread::sched_getaffinity(None).unwrap();
    let has_enough = cores.count() >= 2;
    for around in ["0", "1"] {
        assert_eq!(bound(&["-n", "2", "--no-bind"], around), "0");
        assert_eq!(bound(&["-n", "2", "--bind"], around), u8::from(has_enough).to_string());
    }
}

#[test]
fn where_nodes_met_is_tidied_up() {
    let run = script(&["-n", "2"], "echo MANIPLE_RENDEZVOUS=$MANIPLE_RENDEZVOUS; touch $MANIPLE_RENDEZVOUS");
    let file = Path::new(value(&run, 0, "MANIPLE_RENDEZVOUS"));
    assert!(!file.exists() && !file.parent().unwrap().exists(), "{}", file.display());
}

#[test]
fn the_first_node_hears_what_the_launcher_hears_and_the_others_nothing() {
    let file = folder("input").join("input");
    fs::write(&file, "words\n").unwrap();
    let mut command = maniple_launch(&["-n", "2"], &["sh", "-c", "cat; echo end"]);
    let run = finish(command.stdin(File::open(file).unwrap()).spawn().unwrap());
    assert_eq!((run.of(0), run.of(1)), (vec!["words", "end"], vec!["end"]));
}
