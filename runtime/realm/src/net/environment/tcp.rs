//! The settings of nodes that meet over TCP, as the environment gives them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::{
    JOIN_TIMEOUT, LISTEN, Launcher, PlaceError, RANK, RENDEZVOUS, SECRET, SHARED_MEMORY, SILENCE, Variables,
    zero_or_one,
};
use crate::machine::NodeId;
use crate::net::tcp::{JoinError, Meeting, Secret, Settings};

/// How nodes meet over TCP.
#[derive(Clone, Debug)]
pub struct Rendezvous {
    /// The meeting place.
    pub meeting: Meeting,
    /// The address to listen on meanwhile.
    pub listen: IpAddr,
    /// The secret that proves that a process belongs to the job.
    pub secret: Secret,
    /// How long to wait until all have come, if not as long as usual.
    pub join_timeout: Option<Duration>,
    /// After how long without a sign of life a node is lost, if not after as long as usual.
    pub silence: Option<Duration>,
    /// Whether nodes of one machine send messages by memory that they share.
    pub shared_memory: bool,
}

impl Rendezvous {
    /// Nodes of this machine meet here.
    #[must_use]
    pub fn new(meeting: Meeting, secret: Secret) -> Self {
        let listen = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self { meeting, listen, secret, join_timeout: None, silence: None, shared_memory: true }
    }

    pub(super) fn find(variables: &Variables<'_>, launcher: Launcher) -> Result<Self, PlaceError> {
        let present = if launcher == Launcher::Maniple { RANK } else { RENDEZVOUS };
        let meeting = meeting(&variables.text(RENDEZVOUS, present)?)?;
        let secret = variables.text(SECRET, RENDEZVOUS)?;
        let expected = "64 hexadecimal digits";
        let secret = Secret::from_hex(secret.trim()).ok_or_else(|| {
            let found = format!("({} other characters)", secret.chars().count());
            PlaceError::BadValue { name: SECRET, expected, found }
        })?;
        let listen = variables.optional(LISTEN, "an address such as 0.0.0.0", |text| text.parse().ok())?;
        Ok(Self {
            meeting,
            listen: listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            secret,
            join_timeout: variables.seconds(JOIN_TIMEOUT)?,
            silence: variables.seconds(SILENCE)?,
            shared_memory: variables.optional(SHARED_MEMORY, "0 or 1", zero_or_one)?.unwrap_or(true),
        })
    }

    /// The variables that give a node this rendezvous, the secret left out: a launcher sets them, and [`RANK`],
    /// [`NODES`](super::NODES) and [`SECRET`].
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let meeting = match &self.meeting {
            Meeting::At(address) => address.clone(),
            Meeting::File(file) => file.display().to_string(),
        };
        let mut variables = vec![(RENDEZVOUS, meeting), (LISTEN, self.listen.to_string())];
        let seconds = |time: Duration| time.as_secs_f64().to_string();
        variables.extend(self.join_timeout.map(|time| (JOIN_TIMEOUT, seconds(time))));
        variables.extend(self.silence.map(|time| (SILENCE, seconds(time))));
        if !self.shared_memory {
            variables.push((SHARED_MEMORY, "0".to_owned()));
        }
        variables
    }

    /// The settings of a node that meets the others like this.
    ///
    /// # Errors
    ///
    /// If the file of the running program cannot be read, after which its build is named.
    pub fn settings(&self, rank: NodeId, nodes: usize) -> Result<Settings, JoinError> {
        let Self { meeting, listen, secret, join_timeout, silence, shared_memory } = self.clone();
        let settings = Settings::new(rank, nodes, meeting, secret);
        let mut settings =
            settings.map_err(JoinError::io("reading this program's file, after which its build is named"))?;
        settings.listen = listen;
        settings.shared_memory = shared_memory;
        settings.join_timeout = join_timeout.unwrap_or(settings.join_timeout);
        settings.silence = silence.unwrap_or(settings.silence);
        // Several signs of life must fit into the silence that is one too many.
        settings.heartbeat = settings.heartbeat.min(settings.silence / 8);
        Ok(settings)
    }
}

fn meeting(text: &str) -> Result<Meeting, PlaceError> {
    if text.contains('/') {
        return Ok(Meeting::File(PathBuf::from(text)));
    }
    let text = text.trim();
    let is_address = text.rsplit_once(':').is_some_and(|(host, port)| {
        // Without brackets there would be no telling where an address of IPv6 ends.
        let is_name = || !host.is_empty() && !host.contains([':', '[', ']']) && !host.contains(char::is_whitespace);
        port.parse::<u16>().is_ok_and(|port| port != 0) && (is_name() || text.parse::<SocketAddr>().is_ok())
    });
    if is_address {
        return Ok(Meeting::At(text.to_owned()));
    }
    let expected = "HOST:PORT, [IPV6]:PORT, or the path of a file with a `/` in it";
    Err(PlaceError::BadValue { name: RENDEZVOUS, expected, found: text.to_owned() })
}
