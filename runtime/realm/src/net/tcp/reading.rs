//! How frames come: what one other node has written.
//!
//! Bytes are read into a buffer that is a little larger than what small frames need; it grows with what comes, not with
//! what a frame says that will come. The bytes of puts and gets are read straight into the memory that they are for,
//! once the buffer's share of them is there.
//!
//! One thread at a time reads: the *reader task* on the network's thread, when the system notifies it that something
//! has come; or an idle worker, which polls, since a notification that wakes it would take longer. Neither waits for
//! the other: see [`Turns`].
//!
//! ```text
//! idle --the task is notified, or a worker polls--> reading --nothing is left--> idle
//!                                                      |  the connection has ended
//!                                                      v
//!                                                    over, which is reported
//! ```

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Buf, BufMut, BytesMut};
use socket2::{SockRef, Socket};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::turn::Turns;
use crate::locks::Mutex;
use crate::machine::NodeId;
use crate::net::error::Loss;
use crate::net::frame::{Header, Violation};
use crate::net::transport::{BytesPlace, Receiver};

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

impl Ended {
    /// A process that dies closes its connections; with bytes on their way to it, they are reset.
    fn of(error: &io::Error) -> Self {
        Self::Lost(match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => Loss::Closed,
            _ => Loss::Broken(error.to_string()),
        })
    }
}

impl From<Violation> for Ended {
    fn from(violation: Violation) -> Self {
        Self::Lost(Loss::Violation(violation.to_string()))
    }
}

/// The reader of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The reader task, which has been told that there may be something.
    Task,
    /// A worker, which just looks.
    Worker,
}

/// How an attempt to read went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// Something had come.
    Read,
    /// Nothing had.
    Nothing,
    /// Another thread reads.
    Busy,
    /// Nothing is read from it any more.
    Over,
}

/// The incoming side of the connection with one other node.
pub(super) struct Incoming {
    from: NodeId,
    /// Set when something has come.
    pub(super) has_spoken: AtomicBool,
    turns: Turns,
    /// None before the endpoint starts, and after it has stopped. Only the reader whose turn it is comes here.
    reading: Mutex<Option<Reading>>,
    /// Nothing is to be read any more.
    is_over: AtomicBool,
}

impl Incoming {
    pub(super) fn new(from: NodeId) -> Self {
        let (has_spoken, is_over) = (AtomicBool::new(true), AtomicBool::new(false));
        Self { from, has_spoken, turns: Turns::default(), reading: Mutex::default(), is_over }
    }

    /// From now on what comes goes to `delivery`.
    pub(super) fn start(&self, delivery: Delivery) {
        *self.reading.lock() = Some(Reading { delivery, buffer: BytesMut::with_capacity(2 * ROOM), placing: None });
    }

    /// From now on nothing is read. A thread that is reading at this moment stops after that.
    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.drop_buffer();
    }

    fn drop_buffer(&self) {
        let reading = self.reading.try_lock().and_then(|mut reading| reading.take());
        drop(reading);
    }

    /// Reads once, and receives what has come. If the connection has ended, that is told. True if another has left it
    /// to this thread to read all there is.
    fn attempt(&self, stream: &TcpStream, by: By) -> (Attempt, bool) {
        let Some(turn) = self.turns.begin() else { return (Attempt::Busy, false) };
        let attempt = match &mut *self.reading.lock() {
            Some(reading) if !self.is_over.load(Ordering::SeqCst) => {
                reading.attempt(self, stream, by).unwrap_or_else(|ended| {
                    self.is_over.store(true, Ordering::SeqCst);
                    (reading.delivery.tell)(ended);
                    Attempt::Over
                })
            }
            _ => Attempt::Over,
        };
        let is_left = turn.end();
        if self.is_over.load(Ordering::SeqCst) {
            self.drop_buffer();
        }
        (attempt, is_left)
    }

    /// A worker looks whether something has come; whether it has.
    pub(super) fn look(&self, stream: &TcpStream) -> bool {
        let (first, mut is_left) = self.attempt(stream, By::Worker);
        while is_left {
            is_left = match self.attempt(stream, By::Worker) {
                (Attempt::Read, _) => true,
                (Attempt::Nothing | Attempt::Over, is_left) => is_left,
                (Attempt::Busy, _) => !self.turns.leave(),
            };
        }
        first == Attempt::Read
    }

    /// The reader task: reads whenever something has come, until the connection ends. `flush` sends what the handlers
    /// have written.
    pub(super) async fn read(&self, stream: &TcpStream, flush: impl Fn()) {
        // It is refused only when there is no driver any more.
        while stream.readable().await.is_ok() {
            loop {
                let (attempt, is_left) = self.attempt(stream, By::Task);
                // What the handlers have sent goes out together.
                flush();
                match attempt {
                    Attempt::Read => tokio::task::consume_budget().await,
                    Attempt::Nothing if is_left => {}
                    Attempt::Nothing => break,
                    Attempt::Busy if self.turns.leave() => {
                        // For tokio nothing is left: it tells us when more comes.
                        let _ = stream
                            .try_io(Interest::READABLE, || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into()));
                        break;
                    }
                    Attempt::Busy => {}
                    Attempt::Over => return,
                }
            }
        }
    }
}

/// Reads if there is something: a task asks tokio first, and tells it if there is nothing, to be told when there is.
fn read_from(
    stream: &TcpStream,
    by: By,
    read: impl FnOnce(&Socket) -> io::Result<usize>,
) -> Result<Option<usize>, Ended> {
    let result = match by {
        By::Task => stream.try_io(Interest::READABLE, || read(&SockRef::from(stream))),
        By::Worker => read(&SockRef::from(stream)),
    };
    match result {
        Ok(0) => Err(Ended::Lost(Loss::Closed)),
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Some(0)),
        Err(error) => Err(Ended::of(&error)),
    }
}

/// The destination of what is read.
pub(super) struct Delivery {
    pub(super) receiver: Arc<dyn Receiver>,
    /// Set when messages are not received any more.
    pub(super) is_closing: Arc<AtomicBool>,
    /// Called when the connection ends.
    pub(super) tell: Box<dyn Fn(Ended) + Send>,
}

/// How far what comes from a node has been read.
struct Reading {
    delivery: Delivery,
    buffer: BytesMut,
    /// A frame of which a part is still to come, to where it belongs.
    placing: Option<Placing>,
}

struct Placing {
    header: Header,
    place: BytesPlace,
    length: usize,
    done: usize,
}

impl Reading {
    fn attempt(&mut self, incoming: &Incoming, stream: &TcpStream, by: By) -> Result<Attempt, Ended> {
        let read = match &mut self.placing {
            Some(placing) => placing.read(stream, by, &mut self.buffer)?,
            None => self.read(stream, by)?,
        };
        if read.is_none() {
            return Ok(Attempt::Nothing);
        }
        incoming.has_spoken.store(true, Ordering::Relaxed);
        if let Some(placing) = self.placing.take_if(|placing| placing.done == placing.length) {
            self.delivery.receiver.placed(incoming.from, &placing.header, placing.length);
        }
        self.frames(incoming.from)?;
        Ok(Attempt::Read)
    }

    fn read(&mut self, stream: &TcpStream, by: By) -> Result<Option<usize>, Ended> {
        if self.buffer.capacity() - self.buffer.len() < ROOM / 4 {
            self.buffer.reserve(ROOM);
        }
        let room = self.buffer.spare_capacity_mut();
        let read = read_from(stream, by, |socket| socket.recv(room))?;
        // SAFETY: so many bytes of the room behind the others were written.
        unsafe { self.buffer.advance_mut(read.unwrap_or(0)) };
        Ok(read)
    }

    /// Receives all frames that are in the buffer; a placed one also if a part of it is still to come.
    fn frames(&mut self, from: NodeId) -> Result<(), Ended> {
        while self.placing.is_none()
            && let Some(decoded) = Header::decode(&self.buffer)?
        {
            let (header, head, body) = (decoded.header, decoded.head, decoded.body);
            if header.is_placed() {
                if self.buffer.len() < body.start {
                    return Ok(());
                }
                self.buffer.advance(body.start);
                self.place(from, header, body.len())?;
                continue;
            }
            if self.buffer.len() < body.end {
                return Ok(());
            }
            let frame = self.buffer.split_to(body.end).freeze();
            match header {
                Header::Heartbeat => {}
                Header::Goodbye => return Err(Ended::Goodbye),
                Header::Abort => {
                    let words = String::from_utf8_lossy(&frame[body]).into_owned();
                    return Err(Ended::Lost(Loss::Aborted(words)));
                }
                _ if self.delivery.is_closing.load(Ordering::Relaxed) => {}
                _ => self.delivery.receiver.receive(from, &header, &frame[head], frame.slice(body))?,
            }
        }
        Ok(())
    }

    /// Puts bytes where they belong: those that are there, and later those that are still to come.
    fn place(&mut self, from: NodeId, header: Header, length: usize) -> Result<(), Ended> {
        let place = self.delivery.receiver.place(from, &header, length)?;
        let ready = length.min(self.buffer.len());
        if let BytesPlace::Memory(span) = &place
            && let Some(part) = span.part(0..ready)
        {
            part.write(|bytes| bytes.copy_from_slice(&self.buffer[..ready]));
        }
        self.buffer.advance(ready);
        if ready == length {
            self.delivery.receiver.placed(from, &header, length);
        } else {
            self.placing = Some(Placing { header, place, length, done: ready });
        }
        Ok(())
    }
}

impl Placing {
    /// Reads some of what is still to come. The buffer is empty, and room for what goes nowhere.
    fn read(&mut self, stream: &TcpStream, by: By, buffer: &mut BytesMut) -> Result<Option<usize>, Ended> {
        let left = self.length - self.done;
        let read = match &self.place {
            BytesPlace::Memory(span) => match span.part(self.done..self.length) {
                // The segment is ours for each attempt to read, not while we wait.
                Some(part) => read_from(stream, by, |mut socket| part.write(|bytes| socket.read(bytes)))?,
                None => return Err(Ended::of(&io::ErrorKind::InvalidData.into())),
            },
            BytesPlace::Nowhere => {
                buffer.resize(left.min(ROOM), 0);
                let read = read_from(stream, by, |mut socket| socket.read(buffer));
                buffer.clear();
                read?
            }
        };
        self.done += read.unwrap_or(0);
        Ok(read)
    }
}
