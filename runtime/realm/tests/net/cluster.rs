//! The nodes of a job, for tests: on any transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple_realm::machine::NodeId;
use maniple_realm::net::loopback::Network;
use maniple_realm::net::{Endpoint, Handlers, Message, NetError, Options, SendError};
use parking_lot::Mutex;

/// The handlers of each node.
pub type MakeHandlers<'a> = &'a dyn Fn(NodeId) -> Handlers;

/// Nodes of one job, in this process.
pub trait Cluster: Sized {
    /// Runs a rule on such clusters: with several seeds, if there are seeds.
    fn each(rule: impl Fn(&mut dyn FnMut(usize, Options, MakeHandlers<'_>) -> Self));

    /// The nodes.
    fn endpoints(&self) -> &[Arc<Endpoint>];

    /// Goes on until something is true.
    fn until(&self, condition: impl FnMut() -> bool);

    /// A node dies.
    fn kill(&mut self, node: NodeId);

    /// A node drops its endpoint without having shut it down.
    fn drop_endpoint(&mut self, node: NodeId);

    /// Waits for all calls of this.
    fn all(
        &self,
        each: impl Fn(&Arc<Endpoint>, Box<dyn FnOnce(Result<(), NetError>) + Send>),
    ) -> Vec<Result<(), NetError>> {
        let results = Arc::new(Mutex::new(Vec::new()));
        for endpoint in self.endpoints() {
            let results = Arc::clone(&results);
            each(endpoint, Box::new(move |result| results.lock().push(result)));
        }
        self.until(|| results.lock().len() == self.endpoints().len());
        results.lock().clone()
    }

    /// Sends as soon as there is room.
    fn send(&self, from: usize, to: NodeId, message: Message) {
        let endpoint = &self.endpoints()[from];
        let mut next = Some(message);
        while let Some(message) = next.take() {
            if let Err(SendError::Busy { message, .. }) = endpoint.send(to, message) {
                next = Some(message);
                let room = Counter::default();
                let told = room.clone();
                endpoint.when_room(to, move |_| told.add(1));
                self.until(|| room.get() > 0);
            }
        }
    }

    /// All leave in order.
    fn shutdown(self) {
        let results = self.all(|endpoint, call| endpoint.shutdown(call));
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
}

/// Runs a rule of the suite on each transport.
#[macro_export]
macro_rules! rules {
    ($($(#[$meta:meta])* fn $name:ident($make:ident: make) $body:block)*) => {
        mod rules {
            use super::*;
            $(
                $(#[$meta])*
                pub fn $name<C: $crate::cluster::Cluster>() {
                    C::each(|$make| $body);
                }
            )*
        }
        mod on_loopback {
            $(#[test] fn $name() { super::rules::$name::<$crate::cluster::Loopback>(); })*
        }
        #[cfg(feature = "tcp")]
        mod on_tcp {
            $(#[test] fn $name() { super::rules::$name::<$crate::tcp_cluster::Tcp<false>>(); })*
        }
        #[cfg(feature = "tcp")]
        mod on_tcp_with_shared_memory {
            $(#[test] fn $name() { super::rules::$name::<$crate::tcp_cluster::Tcp<true>>(); })*
        }
        // Where all of 127.0.0.0/8 is this machine.
        #[cfg(all(feature = "tcp", target_os = "linux"))]
        mod on_tcp_with_memory_shared_by_some {
            $(#[test] fn $name() { super::rules::$name::<$crate::tcp_cluster::Tcp<true, true>>(); })*
        }
        #[cfg(all(feature = "mpi", unix))]
        mod on_mpi {
            $(#[test] fn $name() { super::rules::$name::<$crate::mpi_cluster::Mpi>(); })*
        }
    };
}

/// Nodes on a stepped loopback network.
pub struct Loopback {
    pub network: Network,
    endpoints: Vec<Arc<Endpoint>>,
}

impl Loopback {
    pub fn start(network: Network, nodes: usize, options: &Options, handlers: MakeHandlers<'_>) -> Self {
        let start = |rank| {
            let node = NodeId(rank as u16);
            Endpoint::start(network.node(node), handlers(node), options.clone())
        };
        let endpoints = (0..nodes).map(start).collect();
        Self { network, endpoints }
    }
}

impl Cluster for Loopback {
    fn each(rule: impl Fn(&mut dyn FnMut(usize, Options, MakeHandlers<'_>) -> Self)) {
        for seed in 0..24 {
            let delay = [0, 3, 1000][seed as usize % 3];
            rule(&mut |nodes, options, handlers| {
                Self::start(Network::seeded(nodes, seed, delay), nodes, &options, handlers)
            });
        }
    }

    fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }

    fn until(&self, mut condition: impl FnMut() -> bool) {
        while !condition() {
            assert!(self.network.step(), "nothing is under way any more, and what was waited for has not happened");
        }
    }

    fn kill(&mut self, node: NodeId) {
        self.network.kill(node);
        self.endpoints.retain(|endpoint| endpoint.rank() != node);
    }

    fn drop_endpoint(&mut self, node: NodeId) {
        self.endpoints.retain(|endpoint| endpoint.rank() != node);
    }
}

/// A count that handlers share.
#[derive(Clone, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub fn add(&self, more: usize) {
        self.0.fetch_add(more, Ordering::SeqCst);
    }

    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A list that handlers share.
pub struct List<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> List<T> {
    pub fn push(&self, value: T) {
        self.0.lock().push(value);
    }

    pub fn get(&self) -> Vec<T> {
        self.0.lock().clone()
    }

    pub fn len(&self) -> usize {
        self.0.lock().len()
    }
}
