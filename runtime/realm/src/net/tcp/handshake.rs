//! How two nodes get to trust each other, before anything else is said.
//!
//! ```text
//! both:  magic, protocol version | length, hello: nodes, rank, 32 fresh random bytes, listening address, build
//! both:  proof = HMAC-SHA256(secret, role, own hello, other's hello)
//! both:  length, words: none if all is well, else why the other is refused
//! ```
//!
//! The secret does not cross the wire. A recorded proof is worth nothing later, since the other's random bytes are in
//! it, and nothing in the other direction, since the role is. A peer that gives no valid proof learns only that. Builds
//! and ranks are compared afterwards, and both sides are told. What follows on the connection is not encrypted: on a
//! network where others can change what is sent, use a tunnel.
//!
//! Before the proof nothing is believed: hellos have a bounded length, and all of it must come within the time for
//! handshakes.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::error::JoinError;
use super::identity::{Secret, nonce};
use crate::machine::NodeId;
use crate::net::build::BuildId;
use crate::net::wire::cut;

/// The version of everything that nodes say to each other.
pub(super) const PROTOCOL: u16 = 1;

const MAGIC: &[u8; 8] = b"maniple\n";

/// The longest hello, and the longest words of a refusal.
pub(super) const LONGEST: usize = 1024;

/// The role of a node in a connection: it begins it, or accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Connects,
    Accepts,
}

impl Role {
    fn text(self) -> &'static [u8] {
        match self {
            Self::Connects => b"maniple: connects",
            Self::Accepts => b"maniple: accepts",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Connects => Self::Accepts,
            Self::Accepts => Self::Connects,
        }
    }
}

/// The description that a node gives of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) nodes: u32,
    pub(super) rank: NodeId,
    /// The address at which others can connect to it.
    pub(super) address: String,
    pub(super) build: BuildId,
}

impl Hello {
    fn encode(&self, nonce: &[u8; 32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.nodes.to_le_bytes());
        bytes.extend_from_slice(&self.rank.0.to_le_bytes());
        bytes.extend_from_slice(nonce);
        bytes.extend_from_slice(&(self.address.len() as u16).to_le_bytes());
        bytes.extend_from_slice(self.address.as_bytes());
        bytes.extend_from_slice(self.build.as_str().as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (nodes, rest) = bytes.split_first_chunk::<4>()?;
        let (rank, rest) = rest.split_first_chunk::<2>()?;
        let (_nonce, rest) = rest.split_first_chunk::<32>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (address, build) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        if build.len() > BuildId::LONGEST {
            return None;
        }
        Some(Self {
            nodes: u32::from_le_bytes(*nodes),
            rank: NodeId(u16::from_le_bytes(*rank)),
            address: std::str::from_utf8(address).ok()?.to_owned(),
            build: BuildId::new(std::str::from_utf8(build).ok()?),
        })
    }
}

/// Greets the other side of a connection. `accept` says whether a node that has given its proof is welcome.
pub(super) async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    peer: &str,
    role: Role,
    secret: &Secret,
    ours: &Hello,
    accept: impl FnOnce(&Hello) -> Result<(), JoinError>,
) -> Result<Hello, JoinError> {
    let broken = |error: std::io::Error| JoinError::NotANode { peer: peer.to_owned(), found: error.to_string() };
    let own = ours.encode(&nonce()?);
    let mut opening = Vec::with_capacity(12 + own.len());
    opening.extend_from_slice(MAGIC);
    opening.extend_from_slice(&PROTOCOL.to_le_bytes());
    opening.extend_from_slice(&(own.len() as u16).to_le_bytes());
    opening.extend_from_slice(&own);
    stream.write_all(&opening).await.map_err(broken)?;

    let mut start = [0; 10];
    stream.read_exact(&mut start).await.map_err(broken)?;
    if start[..8] != *MAGIC {
        // Whatever the peer is, it says nothing to the reader's terminal.
        let found = format!("it begins with \"{}\"", start[..8].escape_ascii());
        return Err(JoinError::NotANode { peer: peer.to_owned(), found });
    }
    let theirs = u16::from_le_bytes([start[8], start[9]]);
    if theirs != PROTOCOL {
        return Err(JoinError::DifferentProtocol { peer: peer.to_owned(), theirs, ours: PROTOCOL });
    }
    let other = read_text(stream, peer).await?;
    let hello = Hello::decode(&other);
    let hello =
        hello.ok_or_else(|| JoinError::NotANode { peer: peer.to_owned(), found: "its hello is garbled".to_owned() })?;

    stream.write_all(&secret.prove(&[role.text(), &own, &other])).await.map_err(broken)?;
    let mut proof = [0; 32];
    stream.read_exact(&mut proof).await.map_err(broken)?;
    if !secret.verify(&[role.other().text(), &other, &own], &proof) {
        return Err(JoinError::WrongSecret { peer: peer.to_owned() });
    }

    let verdict = check(ours, &hello).and_then(|()| accept(&hello));
    let words = verdict.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let words = cut(&words, LONGEST);
    let mut message = (words.len() as u16).to_le_bytes().to_vec();
    message.extend_from_slice(words.as_bytes());
    let said = stream.write_all(&message).await;
    verdict?;
    said.map_err(broken)?;
    let words = read_text(stream, peer).await?;
    if !words.is_empty() {
        let reason = String::from_utf8_lossy(&words).into_owned();
        return Err(JoinError::Refused { peer: format!("{} at {peer}", hello.rank), reason });
    }
    Ok(hello)
}

fn check(ours: &Hello, theirs: &Hello) -> Result<(), JoinError> {
    if ours.build != theirs.build {
        let (node, us) = (theirs.rank, ours.rank);
        return Err(JoinError::DifferentBuild { node, theirs: theirs.build.clone(), us, ours: ours.build.clone() });
    }
    if ours.nodes != theirs.nodes || u32::from(theirs.rank.0) >= ours.nodes {
        let (theirs, ours, node) = (theirs.nodes as usize, ours.nodes as usize, theirs.rank);
        return Err(JoinError::DifferentJob { node, theirs, ours });
    }
    Ok(())
}

/// A length and so many bytes, of which there may not be many.
pub(super) async fn read_text<S: AsyncRead + Unpin>(stream: &mut S, peer: &str) -> Result<Vec<u8>, JoinError> {
    let not_a_node = |found: String| JoinError::NotANode { peer: peer.to_owned(), found };
    let mut length = [0; 2];
    stream.read_exact(&mut length).await.map_err(|error| not_a_node(error.to_string()))?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > LONGEST {
        return Err(not_a_node(format!("it wants to say {length} bytes where {LONGEST} are the most")));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await.map_err(|error| not_a_node(error.to_string()))?;
    Ok(bytes)
}
