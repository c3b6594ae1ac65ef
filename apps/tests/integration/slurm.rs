//! The simulations under Slurm: a cluster of this machine alone, which the test starts, with daemons that end with it.
//!
//! If Slurm is not there or does not run, as it may not for a user other than root, nothing is tested, and the output
//! says so.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

const MANIPLE: &str = env!("CARGO_BIN_EXE_maniple");

/// A cluster of one machine.
struct Cluster {
    folder: TempDir,
    /// Ended with the last one first, so that no daemon misses another.
    daemons: Vec<Child>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Cluster {
    /// Starts it. If it does not run: why.
    fn start() -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        // The daemons look whether others may change what is theirs.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).map_err(|error| error.to_string())?;
        let mut cluster = Self { folder, daemons: Vec::new() };
        cluster.start_munge()?;
        cluster.write("slurm.conf", &cluster.configuration())?;
        let configuration = cluster.path("slurm.conf").display().to_string();
        cluster.spawn("slurmctld", &["-D", "-i", "-f", &configuration])?;
        cluster.spawn("slurmd", &["-D", "-N", "localhost", "-f", &configuration])?;
        cluster.wait_until("no machine of the cluster has come up", |cluster| {
            let said = cluster.command("sinfo").args(["-h", "-o", "%T"]).output();
            said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim() == "idle")
        })?;
        Ok(cluster)
    }

    /// Starts munge, by which the daemons of Slurm authenticate each other.
    fn start_munge(&mut self) -> Result<(), String> {
        self.write("munge.key", &"a key of this test ".repeat(20))?;
        let key = self.path("munge.key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).map_err(|error| error.to_string())?;
        let places = [
            ("key-file", "munge.key"),
            ("socket", "munge.socket"),
            ("pid-file", "munged.pid"),
            ("log-file", "munged.log"),
            ("seed-file", "munged.seed"),
        ];
        let places = places.map(|(option, file)| format!("--{option}={}", self.path(file).display()));
        let options: Vec<&str> = ["--foreground", "--force"].into_iter().chain(places.iter().map(|s| &s[..])).collect();
        self.spawn("munged", &options)?;
        self.wait_until("munged gives no socket", |cluster| cluster.path("munge.socket").exists())
    }

    fn configuration(&self) -> String {
        let folder = self.folder.path().display();
        let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        format!(
            "ClusterName=test\nSlurmctldHost=localhost\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={folder}/munge.socket\n\
             StateSaveLocation={folder}\nSlurmdSpoolDir={folder}\n\
             SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.pid\n\
             SlurmctldPort={}\nSlurmdPort={}\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/linear\nMpiDefault=none\n\
             NodeName=localhost CPUs=1 State=UNKNOWN\nPartitionName=all Nodes=localhost Default=YES State=UP\n",
            port(),
            port()
        )
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        fs::write(self.path(file), text).map_err(|error| error.to_string())
    }

    /// Starts a daemon, whose output is kept in a file.
    fn spawn(&mut self, daemon: &str, options: &[&str]) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{daemon}: {error}");
        let log = fs::File::create(self.path(&format!("{daemon}.out"))).map_err(failed)?;
        let mut command = Command::new(daemon);
        command.args(options).stdin(Stdio::null()).stdout(log.try_clone().map_err(failed)?).stderr(log);
        self.daemons.push(command.spawn().map_err(failed)?);
        Ok(())
    }

    /// Waits for something that comes if no daemon ends before.
    fn wait_until(&mut self, problem: &str, has_come: impl Fn(&Self) -> bool) -> Result<(), String> {
        while !has_come(self) {
            if self.daemons.iter_mut().any(|daemon| !matches!(daemon.try_wait(), Ok(None))) {
                let said = |daemon: &str| fs::read_to_string(self.path(&format!("{daemon}.out"))).unwrap_or_default();
                return Err(format!("{problem}: {}", ["munged", "slurmctld", "slurmd"].map(said).concat()));
            }
            // Daemons do not tell when they are ready: they are asked again.
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// A command of Slurm's for this cluster.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("SLURM_CONF", self.path("slurm.conf"));
        command
    }

    /// Runs `maniple` as so many tasks.
    fn run(&self, tasks: usize, arguments: &[&str]) -> Output {
        self.run_command(&[&["-n", &tasks.to_string(), MANIPLE], arguments].concat())
    }

    /// Runs a step whose tasks meet by a file.
    fn run_command(&self, arguments: &[&str]) -> Output {
        let meeting = self.path("meeting");
        let _ = fs::remove_file(&meeting);
        let mut command = self.command("srun");
        command.arg("--overcommit").args(arguments);
        command.env("MANIPLE_RENDEZVOUS", meeting).env("MANIPLE_SECRET", "5e".repeat(32)).output().unwrap()
    }
}

/// The lines of a report that do not tell of time.
fn timeless(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let tells_time = |line: &&str| ["time", "/s", "Elapsed"].iter().any(|word| line.contains(word));
    text.lines().filter(|line| !tells_time(line)).map(str::to_owned).collect()
}

/// Runs the script of a batch job: what it prints.
fn batch(cluster: &Cluster, script: &str) -> String {
    let (file, output) = (cluster.path("job.sh"), cluster.path("job.out"));
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    let submitted = cluster.command("sbatch").args(["--wait", "-o"]).arg(&output).arg(file).output().unwrap();
    let said = fs::read_to_string(&output).unwrap_or_default();
    assert!(submitted.status.success(), "{} {said}", String::from_utf8_lossy(&submitted.stderr));
    said
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn programs_find_their_place_under_slurm_and_come_to_the_same_as_alone() {
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(why) => return eprintln!("\nNOT TESTED: Slurm does not run: {why}\n"),
    };
    let stencil = ["run", "stencil", "--size", "60", "--tiles", "4x2", "--steps", "7"];
    let expected = timeless(&Command::new(MANIPLE).args(stencil).output().unwrap());
    for tasks in [1, 2, 4] {
        assert_eq!(timeless(&cluster.run(tasks, &stencil)), expected, "{tasks} tasks");
    }
    let info = timeless(&cluster.run(2, &["info", "--workers", "1", "--memory", "1GiB"])).join("\n");
    assert!(info.starts_with("2 nodes, started by srun, talk over TCP"), "{info}");

    // As the book has it.
    let port = free_port();
    let said = batch(
        &cluster,
        &format!(
            "export MANIPLE_RENDEZVOUS=localhost:{port} MANIPLE_SECRET=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \\n')\n\
             {MANIPLE} info | head -1\nsrun --overcommit -n 2 {MANIPLE} info --workers 1 | head -1"
        ),
    );
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("processor") && lines[1].starts_with("2 nodes, started by srun"), "{said}");

    #[cfg(not(feature = "mpi"))]
    for arguments in [&stencil[..], &["info"]] {
        let mut command = cluster.command("srun");
        let output = command.args(["--overcommit", "-n", "2", MANIPLE]).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
        assert_eq!(said.matches("srun started this process as one of 2 nodes, which have no way").count(), 2, "{said}");
    }
}

#[test]
fn when_tasks_of_slurm_are_told_different_things_all_fail_and_so_does_the_step() {
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(why) => return eprintln!("\nNOT TESTED: Slurm does not run: {why}\n"),
    };
    let script = format!("exec {MANIPLE} run stencil --steps 1$SLURM_PROCID");
    // Slurm itself would end the others.
    let output = cluster.run_command(&["--kill-on-bad-exit=0", "-n", "3", "sh", "-c", &script]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]), "{said}");
    assert_eq!(said.matches("--steps is `10` on node 0, but `11` on node 1").count(), 3, "{said}");
}
