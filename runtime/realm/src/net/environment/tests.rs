use super::*;

fn find(variables: &[(&str, &str)]) -> Result<Place, PlaceError> {
    Place::find_in(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

fn refusal(variables: &[(&str, &str)]) -> String {
    find(variables).unwrap_err().to_string()
}

#[test]
fn a_process_that_nobody_launched_is_the_whole_job() {
    let place = find(&[("HOME", "/root")]).unwrap();
    assert_eq!((place.rank, place.nodes, place.launcher), (NodeId(0), 1, Launcher::None));
    assert!(matches!(place.way, Way::Alone));
    assert!(place.connect().unwrap().is_none());
}

#[test]
fn the_only_node_needs_no_way_to_others() {
    for (rank, nodes) in [(RANK, NODES), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")] {
        assert!(matches!(find(&[(rank, "0"), (nodes, "1")]).unwrap().way, Way::Alone));
    }
}

/// In the script of a batch job: it has a rank and knows the tasks of the job, but is in no step of it.
#[test]
fn the_script_of_a_batch_job_is_no_node() {
    let place = find(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "7")]).unwrap();
    assert_eq!(place.launcher, Launcher::None);
}

#[test]
fn a_variable_that_is_missing_or_wrong_is_named() {
    assert!(refusal(&[(RANK, "1")]).contains("MANIPLE_RANK is set, but MANIPLE_NODES is not"));
    assert!(refusal(&[(NODES, "2")]).contains("MANIPLE_NODES is set, but MANIPLE_RANK is not"));
    assert!(refusal(&[(RANK, "one"), (NODES, "2")]).contains("MANIPLE_RANK is a number, not `one`"));
    assert!(refusal(&[(RANK, "2"), (NODES, "2")]).contains("MANIPLE_RANK=2, but MANIPLE_NODES=2: ranks count from 0"));
    assert!(refusal(&[(RANK, "0"), (NODES, "0")]).contains("1 to 65,536 nodes"));
    assert!(refusal(&[("PMI_RANK", "0"), ("PMI_SIZE", "65537")]).contains("PMI_SIZE=65537"));
}

#[test]
fn how_cores_are_shared_is_said_by_numbers_that_make_sense() {
    let with = |name, value| find(&[(RANK, "0"), (NODES, "1"), (name, value)]);
    for bad in ["", "0", "-1", "two", "1.5", "2(x3)"] {
        let text = with(NEIGHBOURS, bad).unwrap_err().to_string();
        assert!(text.contains(&format!("MANIPLE_NEIGHBOURS is a number of at least 1, not `{bad}`")), "{text}");
    }
    for bad in ["", "2", "yes", "true"] {
        let text = with(BOUND, bad).unwrap_err().to_string();
        assert!(text.contains(&format!("MANIPLE_BOUND is 0 or 1, not `{bad}`")), "{text}");
    }
    assert_eq!(with(NEIGHBOURS, " 3 ").unwrap().neighbours, 1, "there are no more than nodes");
    assert!(with(BOUND, "1").unwrap().is_bound && !with(BOUND, "0").unwrap().is_bound);
}

#[test]
fn slurm_tells_how_many_nodes_are_on_each_machine() {
    let on = |list, machine| {
        find(&[
            (RANK, "0"),
            (NODES, "9"),
            (RENDEZVOUS, "here:1"),
            (SECRET, &"ab".repeat(32)),
            ("SLURM_STEP_TASKS_PER_NODE", list),
            ("SLURM_NODEID", machine),
        ])
        .unwrap()
        .neighbours
    };
    assert_eq!(["0", "1", "2", "3", "4"].map(|machine| on("2(x3),1,4", machine)), [2, 2, 2, 1, 4]);
    assert_eq!(on("2", "0"), 2);
    for (list, machine) in
        [("2", "1"), ("2(x", "0"), ("2(x3", "0"), ("(x3)", "0"), ("0", "0"), ("-1", "0"), ("", "0"), ("2", "x")]
    {
        assert_eq!(on(list, machine), 1, "`{list}` of machine {machine} is not understood");
    }
}

#[cfg(not(feature = "mpi"))]
#[test]
fn nodes_without_a_way_to_each_other_are_not_mistaken_for_as_many_jobs() {
    let text = refusal(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")]);
    assert!(text.starts_with("Open MPI's mpirun started this process as one of 4 nodes"), "{text}");
    assert!(text.contains("feature `mpi`") && text.contains("MANIPLE_RENDEZVOUS"), "{text}");
    assert!(refusal(&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "4")]).starts_with("srun started"));
}

#[cfg(feature = "tcp")]
mod over_tcp {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;
    use crate::net::tcp::Meeting;

    const SOME_SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[track_caller]
    fn rendezvous(variables: &[(&str, &str)]) -> (Place, Rendezvous) {
        let place = find(variables).unwrap();
        match place.way.clone() {
            Way::Tcp(rendezvous) => (place, rendezvous),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_launcher_sets_is_what_a_node_finds() {
        let job = [(RANK, "2"), (NODES, "4"), (RENDEZVOUS, "head:4000"), (SECRET, SOME_SECRET), (LISTEN, "0.0.0.0")];
        let limits = [(JOIN_TIMEOUT, "7.5"), (SILENCE, "0.8")];
        let all: Vec<_> = job.into_iter().chain(limits).collect();
        let (place, found) = rendezvous(&all);
        assert_eq!((place.rank, place.nodes, place.launcher), (NodeId(2), 4, Launcher::Maniple));
        assert_eq!(found.meeting, Meeting::At("head:4000".to_owned()));
        let set = found.variables();
        let without_secret = all.iter().filter(|(name, _)| ![RANK, NODES, SECRET].contains(name));
        assert!(without_secret.eq(set.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>().iter()));
        let settings = found.settings(place.rank, place.nodes).unwrap();
        assert_eq!((settings.rank, settings.nodes), (NodeId(2), 4));
        assert_eq!(settings.listen, Ipv4Addr::UNSPECIFIED);
        assert_eq!(settings.secret.to_hex(), SOME_SECRET);
        assert_eq!(
            (settings.join_timeout, settings.silence),
            (Duration::from_millis(7500), Duration::from_millis(800))
        );
        assert_eq!(settings.heartbeat, Duration::from_millis(100));
    }

    #[test]
    fn a_rendezvous_is_an_address_with_a_port_or_with_a_slash_a_file() {
        let job = [(RANK, "0"), (NODES, "2"), (SECRET, SOME_SECRET)];
        let with = |text| job.into_iter().chain([(RENDEZVOUS, text)]).collect::<Vec<_>>();
        let (_, found) = rendezvous(&with("/tmp/job"));
        assert_eq!(found.meeting, Meeting::File("/tmp/job".into()));
        assert_eq!(found.listen, Ipv4Addr::LOCALHOST);
        for good in ["head:4000", "10.0.0.7:4000", "[::1]:4000", "[fd00::7]:4000"] {
            assert_eq!(rendezvous(&with(good)).1.meeting, Meeting::At(good.to_owned()));
        }
        for bad in [
            "job",
            ":4000",
            "head:",
            "head:0",
            "head:70000",
            "::1",
            "::1:4000",
            "[::1]",
            "[::1]:0",
            "[head]:4000",
            "[]:4000",
            "two words:4000",
        ] {
            assert!(refusal(&with(bad)).contains("MANIPLE_RENDEZVOUS is HOST:PORT"), "{bad}");
        }
    }

    #[test]
    fn other_launchers_give_the_rank_and_our_variables_the_rendezvous() {
        for (rank, nodes) in
            [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")]
        {
            let (place, found) =
                rendezvous(&[(rank, "3"), (nodes, "5"), (RENDEZVOUS, "/shared/job"), (SECRET, SOME_SECRET)]);
            assert_eq!((place.rank, place.nodes), (NodeId(3), 5));
            assert_eq!(found.meeting, Meeting::File("/shared/job".into()));
        }
    }

    #[test]
    fn a_job_within_a_job_is_the_inner_one() {
        let outer = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "9"), ("PMI_RANK", "0"), ("PMI_SIZE", "9")];
        let inner = [(RANK, "1"), (NODES, "2"), (RENDEZVOUS, "/tmp/job"), (SECRET, SOME_SECRET)];
        let (place, _) = rendezvous(&outer.into_iter().chain(inner).collect::<Vec<_>>());
        assert_eq!((place.rank, place.nodes, place.launcher), (NodeId(1), 2, Launcher::Maniple));
    }

    #[test]
    fn a_secret_that_is_wrong_is_not_shown() {
        let job = [(RANK, "0"), (NODES, "2"), (RENDEZVOUS, "/tmp/job")];
        let text = refusal(&job.into_iter().chain([(SECRET, "mellon")]).collect::<Vec<_>>());
        assert!(text.contains("MANIPLE_SECRET is 64 hexadecimal digits") && !text.contains("mellon"), "{text}");
        assert!(refusal(&job).contains("MANIPLE_RENDEZVOUS is set, but MANIPLE_SECRET is not"));
    }

    #[test]
    fn a_limit_that_is_no_time_is_refused() {
        let job = [(RANK, "0"), (NODES, "2"), (RENDEZVOUS, "/tmp/job"), (SECRET, SOME_SECRET)];
        for bad in ["0", "-1", "soon", "inf"] {
            let text = refusal(&job.into_iter().chain([(SILENCE, bad)]).collect::<Vec<_>>());
            assert!(text.contains("MANIPLE_SILENCE is a number of seconds"), "{text}");
        }
    }
}
