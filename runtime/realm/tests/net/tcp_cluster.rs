//! Nodes that talk over TCP, all in this process.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use maniple_realm::machine::NodeId;
use maniple_realm::net::tcp::{BuildId, Meeting, Secret, Settings, Tcp as Transport};
use maniple_realm::net::{Endpoint, Options};

use crate::cluster::{Cluster, MakeHandlers};

/// Nodes of this machine, which send messages by memory that they share if `SHARED`. If node 0 is `APART`, it seems to
/// be of another machine.
pub struct Tcp<const SHARED: bool, const APART: bool = false> {
    endpoints: Vec<Arc<Endpoint>>,
}

/// Sets a flag when it is dropped, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A file for a job to meet, which does not exist yet.
pub fn meeting_file() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("maniple-net-{}-{number}", std::process::id()))
}

/// Settings of a node that is patient: nothing is to fail because a machine is slow.
pub fn settings(rank: u16, nodes: usize, meeting: Meeting, secret: &Secret) -> Settings {
    Settings {
        rank: NodeId(rank),
        nodes,
        meeting,
        listen: Ipv4Addr::LOCALHOST.into(),
        secret: secret.clone(),
        build: BuildId::new("test"),
        join_timeout: Duration::from_secs(600),
        heartbeat: Duration::from_millis(50),
        silence: Duration::from_secs(600),
        shared_memory: false,
    }
}

impl<const SHARED: bool, const APART: bool> Cluster for Tcp<SHARED, APART> {
    fn each(rule: impl Fn(&mut dyn FnMut(usize, Options, MakeHandlers<'_>) -> Self)) {
        rule(&mut |nodes, options, handlers| {
            let (file, secret) = (meeting_file(), Secret::random().unwrap());
            let settings = |rank| settings(rank, nodes, Meeting::File(file.clone()), &secret);
            // Nodes that connect to another address than their own take it for that of another machine.
            let address = |rank| Ipv4Addr::new(127, 0, 0, if APART && rank == 0 { 2 } else { 1 });
            let listen = |rank| address(rank).into();
            let join = |rank| {
                Transport::join(Settings { shared_memory: SHARED, listen: listen(rank), ..settings(rank) }).unwrap()
            };
            let join = &join;
            let transports: Vec<_> = thread::scope(|scope| {
                let joining: Vec<_> = (0..nodes as u16).map(|rank| scope.spawn(move || join(rank))).collect();
                joining.into_iter().map(|joining| joining.join().unwrap()).collect()
            });
            let _ = std::fs::remove_file(file);
            for transport in transports.iter().skip(1) {
                assert_eq!(transport.is_near(NodeId(0)), !APART);
            }
            let start = |transport: Arc<dyn maniple_realm::net::Transport>| {
                let handlers = handlers(transport.rank());
                Endpoint::start(transport, handlers, options.clone())
            };
            Self { endpoints: transports.into_iter().map(start).collect() }
        });
    }

    fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }

    fn until(&self, mut condition: impl FnMut() -> bool) {
        let polled: Vec<_> = self.endpoints.iter().filter_map(|endpoint| endpoint.polled()).collect();
        let has_others = self.endpoints.iter().any(|endpoint| endpoint.nodes() > 1);
        assert_eq!(polled.is_empty(), !has_others);
        let (polled, is_over) = (&polled, &AtomicBool::new(false));
        // Now one thread looks, now none does, now two do.
        let look = move |random: &mut fastrand::Rng| {
            for polled in polled {
                match random.u8(..8) {
                    0 => polled.begin(),
                    1 => _ = polled.end(),
                    2..5 => _ = polled.poll(),
                    _ => {}
                }
            }
            thread::yield_now();
        };
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(polled.len() as u64);
                while has_others && !is_over.load(Ordering::Relaxed) {
                    look(&mut random);
                }
            });
            let _over = Over(is_over);
            let mut random = fastrand::Rng::with_seed(1);
            while !condition() {
                look(&mut random);
            }
        });
    }

    /// A process that is really killed is in `processes.rs`.
    fn kill(&mut self, node: NodeId) {
        self.drop_endpoint(node);
    }

    fn drop_endpoint(&mut self, node: NodeId) {
        self.endpoints.retain(|endpoint| endpoint.rank() != node);
    }
}
