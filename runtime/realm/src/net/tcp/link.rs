//! How frames leave: the queue to one other node.
//!
//! One thread at a time *writes*: the one that finds no other writing, be it a sender or the network's thread. Others
//! append to the queue, and the writer takes what has gathered with its next write: under load, small messages travel
//! together without any thread waiting for more of them. A writer that finds the socket full, or only bulk left, leaves
//! the rest to the *writer task* on the network's thread: senders are never held up by a socket.
//!
//! ```text
//! idle --send--> writing by the sender --nothing left--> idle
//!                     |  socket full, or bulk left
//!                     v
//!               writing by the task --nothing left--> idle
//! ```

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::mem;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::locks::Mutex;
use bytes::Bytes;
use smallvec::SmallVec;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;

use crate::net::frame::{Body, Callback, Frame, Lane};
use crate::net::segment::Span;
use crate::net::transport::{Flush, Frames};

/// Bodies up to this are copied together with what is before and behind them; longer ones are written from where they
/// are.
const COPIED: usize = 4096;

/// When so much has gathered, it leaves.
const ENOUGH: usize = 16 << 10;

/// How much the writer task writes before others on its thread have their turn.
const TURN: usize = 4 << 20;

/// The way to one other node.
pub(super) struct Link {
    socket: OwnedWriteHalf,
    queue: Mutex<Queue>,
    /// Tells the writer task that it is to write.
    task: Notify,
    /// Whether something was written since the last heartbeat.
    has_written: AtomicBool,
    /// Whether it is in the list of those to be flushed.
    pub(super) is_dirty: AtomicBool,
}

#[derive(Default)]
struct Queue {
    /// Pieces that were taken to be written, while no thread writes at this moment.
    batch: VecDeque<Piece>,
    messages: VecDeque<Piece>,
    /// Bytes in `messages`.
    gathered: usize,
    bulk: VecDeque<Frame>,
    is_writing: bool,
    is_dead: bool,
}

enum Piece {
    /// Bytes of small frames, and how many of them are written.
    Copied(Vec<u8>, usize),
    Bytes(Bytes),
    Span(Span),
    Sent(Callback<()>),
}

impl Piece {
    /// The bytes that are left of it; `None` if its memory must be locked for that, and for a callback.
    fn slice(&self) -> Option<IoSlice<'_>> {
        match self {
            Self::Copied(bytes, start) => Some(IoSlice::new(&bytes[*start..])),
            Self::Bytes(bytes) => Some(IoSlice::new(bytes)),
            Self::Span(_) | Self::Sent(_) => None,
        }
    }
}

/// How a turn of writing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// Nothing is left.
    All,
    /// The socket is full.
    Full,
    /// There is more, but others should have their turn.
    Turn,
    /// There is only what the task is to write.
    ForTask,
    /// The connection is broken; why is found out by reading.
    Broken,
}

impl Link {
    pub(super) fn new(socket: OwnedWriteHalf) -> Self {
        Self {
            socket,
            queue: Mutex::default(),
            task: Notify::new(),
            has_written: AtomicBool::new(false),
            is_dirty: AtomicBool::new(false),
        }
    }

    /// The stream, by which frames come, too.
    pub(super) fn stream(&self) -> &TcpStream {
        self.socket.as_ref()
    }

    /// Queues frames, and writes them unless a thread is writing; gives whether something is left to be flushed.
    pub(super) fn send(&self, frames: Frames, flush: Flush) -> bool {
        let mut queue = self.queue.lock();
        if queue.is_dead {
            drop(queue);
            // Without the lock: what a frame holds may send when it is dropped.
            drop(frames);
            return false;
        }
        frames.into_iter().for_each(|frame| queue.push(frame));
        if queue.is_writing {
            return false;
        }
        if flush == Flush::Later && queue.gathered < ENOUGH {
            return true;
        }
        queue.is_writing = true;
        drop(queue);
        self.write_or_leave();
        false
    }

    /// Writes what has gathered.
    pub(super) fn flush(&self) {
        let mut queue = self.queue.lock();
        if !queue.is_writing && queue.has_work() {
            queue.is_writing = true;
            drop(queue);
            self.write_or_leave();
        }
    }

    fn write_or_leave(&self) {
        match self.write(false) {
            WriteOutcome::All | WriteOutcome::Broken => {}
            WriteOutcome::Full | WriteOutcome::Turn | WriteOutcome::ForTask => self.task.notify_one(),
        }
    }

    /// The writer task: writes whenever it is notified.
    pub(super) async fn write_when_notified(&self) {
        loop {
            self.task.notified().await;
            loop {
                match self.write(true) {
                    WriteOutcome::Full => {
                        if self.socket.writable().await.is_err() {
                            return;
                        }
                    }
                    WriteOutcome::Turn | WriteOutcome::ForTask => tokio::task::yield_now().await,
                    WriteOutcome::All => break,
                    WriteOutcome::Broken => return,
                }
            }
        }
    }

    /// Writes until nothing is left or something is in the way. For the thread or task that `is_writing` is set for,
    /// which is cleared if nothing is left.
    fn write(&self, is_task: bool) -> WriteOutcome {
        let mut batch = VecDeque::new();
        let mut turn = TURN;
        loop {
            if batch.is_empty() {
                let mut queue = self.queue.lock();
                if queue.is_dead {
                    return WriteOutcome::Broken;
                }
                batch = queue.take(is_task);
                if batch.is_empty() {
                    if queue.bulk.is_empty() {
                        queue.is_writing = false;
                        return WriteOutcome::All;
                    }
                    return WriteOutcome::ForTask;
                }
            }
            match self.write_some(&mut batch) {
                Ok(bytes) => {
                    self.has_written.store(true, Ordering::Relaxed);
                    turn = turn.saturating_sub(bytes);
                    if turn == 0 {
                        self.queue.lock().batch = batch;
                        return WriteOutcome::Turn;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.queue.lock().batch = batch;
                    return WriteOutcome::Full;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.die();
                    return WriteOutcome::Broken;
                }
            }
        }
    }

    /// One write, and what it has written taken off.
    fn write_some(&self, batch: &mut VecDeque<Piece>) -> io::Result<usize> {
        let written = match batch.front() {
            Some(Piece::Span(span)) if !span.is_empty() => span.read(|bytes| self.socket.try_write(bytes))?,
            _ => {
                let slices: SmallVec<[IoSlice<'_>; 32]> = batch.iter().map_while(Piece::slice).take(32).collect();
                if slices.is_empty() { 0 } else { self.socket.try_write_vectored(&slices)? }
            }
        };
        let mut left = written;
        while let Some(piece) = batch.front_mut() {
            let is_done = match piece {
                Piece::Copied(bytes, start) => {
                    let taken = left.min(bytes.len() - *start);
                    *start += taken;
                    left -= taken;
                    *start == bytes.len()
                }
                Piece::Bytes(bytes) => {
                    let taken = left.min(bytes.len());
                    bytes::Buf::advance(bytes, taken);
                    left -= taken;
                    bytes.is_empty()
                }
                Piece::Span(span) => {
                    let taken = left.min(span.len());
                    left -= taken;
                    if let Some(rest) = span.part(taken..span.len()) {
                        *span = rest;
                    }
                    span.is_empty()
                }
                Piece::Sent(_) => true,
            };
            if !is_done {
                break;
            }
            if let Some(Piece::Sent(sent)) = batch.pop_front() {
                sent(());
            }
        }
        Ok(written)
    }

    /// Whether nothing is left to be written, nor ever will be.
    pub(super) fn is_done(&self) -> bool {
        let queue = self.queue.lock();
        queue.is_dead || (!queue.is_writing && !queue.has_work())
    }

    /// Whether something was written since the last question.
    pub(super) fn take_has_written(&self) -> bool {
        self.has_written.swap(false, Ordering::Relaxed)
    }

    /// Sends nothing any more, and tells the other side so.
    pub(super) fn die(&self) {
        // It may be closed already.
        let _ = SockRef::from(self.stream()).shutdown(Shutdown::Both);
        let dropped = {
            let mut queue = self.queue.lock();
            queue.is_dead = true;
            (mem::take(&mut queue.batch), mem::take(&mut queue.messages), mem::take(&mut queue.bulk))
        };
        drop(dropped);
    }
}

impl Queue {
    fn has_work(&self) -> bool {
        !(self.batch.is_empty() && self.messages.is_empty() && self.bulk.is_empty())
    }

    fn push(&mut self, frame: Frame) {
        match frame.lane() {
            Lane::Bulk => self.bulk.push_back(frame),
            Lane::Messages => {
                self.gathered += encode(frame, &mut self.messages);
            }
        }
    }

    /// Takes the pieces to be written next: messages before bulk, of which one frame.
    fn take(&mut self, is_task: bool) -> VecDeque<Piece> {
        if !self.batch.is_empty() {
            return mem::take(&mut self.batch);
        }
        if !self.messages.is_empty() {
            self.gathered = 0;
            return mem::take(&mut self.messages);
        }
        let mut pieces = VecDeque::new();
        if is_task && let Some(frame) = self.bulk.pop_front() {
            encode(frame, &mut pieces);
        }
        pieces
    }
}

/// Appends a frame's bytes; gives how many.
fn encode(frame: Frame, pieces: &mut VecDeque<Piece>) -> usize {
    let Frame { header, head, body, sent } = frame;
    let encoded = header.encode(head.len(), body.len());
    if !matches!(pieces.back(), Some(Piece::Copied(bytes, _)) if bytes.len() < ENOUGH) {
        pieces.push_back(Piece::Copied(Vec::with_capacity(256), 0));
    }
    let length = encoded.as_slice().len() + head.len() + body.len();
    if let Some(Piece::Copied(bytes, _)) = pieces.back_mut() {
        bytes.extend_from_slice(encoded.as_slice());
        bytes.extend_from_slice(&head);
        match &body {
            Body::Bytes(small) if small.len() <= COPIED => bytes.extend_from_slice(small),
            _ => {}
        }
    }
    match body {
        Body::Bytes(large) if large.len() > COPIED => pieces.push_back(Piece::Bytes(large)),
        Body::Span(span) => pieces.push_back(Piece::Span(span)),
        Body::Bytes(_) => {}
    }
    pieces.extend(sent.map(Piece::Sent));
    length
}
