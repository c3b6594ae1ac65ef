//! How frames come: what one other node has written.
//!
//! Bytes are read into a buffer that is a little larger than what small frames need; it grows with what comes, not with what a frame says that will
//! come. The bytes of puts and gets are read straight into the memory that they are for, once the buffer's share of them is there.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use super::driver::Shared;
use crate::machine::NodeId;
use crate::net::error::Loss;
use crate::net::frame::{Header, Violation};
use crate::net::transport::{Place, Receiver};

/// How much room there is for the next read.
const ROOM: usize = 64 << 10;

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The other node said that it would.
    Goodbye,
    /// Otherwise.
    Lost(Loss),
}

/// Reads what a node sends, until it ends.
pub(super) async fn read<R: AsyncRead + Unpin>(
    shared: &Shared,
    from: NodeId,
    socket: &mut R,
    receiver: &Arc<dyn Receiver>,
) -> Ended {
    let mut reading = Reading { shared, from, socket, receiver, buffer: BytesMut::with_capacity(2 * ROOM) };
    loop {
        let ended = match reading.frames().await {
            Ok(None) => None,
            Ok(Some(ended)) => Some(ended),
            Err(Trouble::Violation(violation)) => Some(Ended::Lost(Loss::Violation(violation.to_string()))),
            Err(Trouble::Io(error)) => Some(Ended::Lost(loss(&error))),
        };
        // What the handlers have sent goes out together.
        shared.flush();
        if let Some(ended) = ended {
            return ended;
        }
        match reading.more().await {
            Ok(0) => return Ended::Lost(Loss::Closed),
            Ok(_) => {}
            Err(error) => return Ended::Lost(loss(&error)),
        }
    }
}

/// A process that dies closes its connections; with bytes on their way to it, they are reset.
fn loss(error: &io::Error) -> Loss {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => Loss::Closed,
        _ => Loss::Broken(error.to_string()),
    }
}

enum Trouble {
    Violation(Violation),
    Io(io::Error),
}

struct Reading<'a, R> {
    shared: &'a Shared,
    from: NodeId,
    socket: &'a mut R,
    receiver: &'a Arc<dyn Receiver>,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Reading<'_, R> {
    async fn more(&mut self) -> io::Result<usize> {
        if self.buffer.capacity() - self.buffer.len() < ROOM / 4 {
            self.buffer.reserve(ROOM);
        }
        let length = self.socket.read_buf(&mut self.buffer).await?;
        self.shared.heard(self.from);
        Ok(length)
    }

    /// Receives all frames that are in the buffer; a placed one also if a part of it is still to come.
    async fn frames(&mut self) -> Result<Option<Ended>, Trouble> {
        while let Some(decoded) = Header::decode(&self.buffer).map_err(Trouble::Violation)? {
            let (header, head, body) = (decoded.header, decoded.head, decoded.body);
            if header.is_placed() {
                if self.buffer.len() < body.start {
                    return Ok(None);
                }
                self.buffer.advance(body.start);
                self.placed(&header, body.len()).await?;
                continue;
            }
            if self.buffer.len() < body.end {
                return Ok(None);
            }
            let frame = self.buffer.split_to(body.end).freeze();
            match header {
                Header::Heartbeat => {}
                Header::Goodbye => return Ok(Some(Ended::Goodbye)),
                Header::Abort => {
                    let words = String::from_utf8_lossy(&frame[body]).into_owned();
                    return Ok(Some(Ended::Lost(Loss::Aborted(words))));
                }
                _ if self.shared.is_closing.load(Ordering::Relaxed) => {}
                _ => {
                    let received = self.receiver.receive(self.from, &header, &frame[head], frame.slice(body));
                    received.map_err(Trouble::Violation)?;
                }
            }
        }
        Ok(None)
    }

    /// Reads bytes to where they belong.
    async fn placed(&mut self, header: &Header, length: usize) -> Result<(), Trouble> {
        let place = self.receiver.place(self.from, header, length).map_err(Trouble::Violation)?;
        let ready = length.min(self.buffer.len());
        if let Place::Memory(span) = &place
            && let Some(part) = span.part(0..ready)
        {
            part.write(|bytes| bytes.copy_from_slice(&self.buffer[..ready]));
        }
        self.buffer.advance(ready);
        let mut scratch = Vec::new();
        let mut done = ready;
        while done < length {
            let read = match &place {
                Place::Memory(span) => {
                    let part = span.part(done..length).ok_or_else(|| Trouble::Io(io::ErrorKind::InvalidData.into()))?;
                    // The segment is ours for each attempt to read, not while we wait.
                    poll_fn(|context| {
                        part.write(|bytes| {
                            let mut into = ReadBuf::new(bytes);
                            match Pin::new(&mut *self.socket).poll_read(context, &mut into) {
                                Poll::Ready(result) => Poll::Ready(result.map(|()| into.filled().len())),
                                Poll::Pending => Poll::Pending,
                            }
                        })
                    })
                    .await
                }
                Place::Nowhere => {
                    scratch.resize(ROOM.min(length - done), 0);
                    self.socket.read(&mut scratch).await
                }
            };
            match read.map_err(Trouble::Io)? {
                0 => return Err(Trouble::Io(io::ErrorKind::UnexpectedEof.into())),
                read => done += read,
            }
            self.shared.heard(self.from);
        }
        self.receiver.placed(self.from, header, length);
        Ok(())
    }
}
