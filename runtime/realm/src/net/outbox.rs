//! The outbox for one other node, of a transport with one thread: frames still to be sent.
//!
//! Messages are encoded by the threads that send them, one behind the other, so that messages that gather while MPI is
//! busy travel together. Bytes of transfers wait in their segments until their turn has come.

use std::collections::VecDeque;
use std::mem;

use bytes::Bytes;

use super::frame::{Body, Callback, Frame, Header, Lane};
use super::transport::{Flush, Frames};
use crate::locks::Mutex;

/// When so much has gathered, it leaves.
const ENOUGH: usize = 16 << 10;

/// If it cannot leave yet, more gathers behind it until it is so much; what comes next travels for itself.
pub(super) const FULL: usize = 256 << 10;

#[derive(Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Encoded messages.
    batches: VecDeque<Vec<u8>>,
    bulk: VecDeque<Frame>,
    /// Callbacks for when the messages have left.
    sent: Vec<Callback<()>>,
    /// Whether what is there is to leave now.
    is_due: bool,
    /// Whether the thread knows that there is something.
    is_listed: bool,
    /// Whether nothing more is taken.
    is_closed: bool,
}

/// The steps that are left to the sender once its frames are in the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// The thread is to be told that there is something.
    pub(super) is_new: bool,
    /// It is to leave now.
    pub(super) is_due: bool,
}

impl Outbox {
    pub(super) fn send(&self, frames: Frames, flush: Flush) -> Sent {
        let mut queue = self.queue.lock();
        if queue.is_closed {
            drop(queue);
            // Without the lock: what a frame holds may send when it is dropped.
            drop(frames);
            return Sent { is_new: false, is_due: false };
        }
        for frame in frames {
            match frame.lane() {
                Lane::Bulk => queue.bulk.push_back(frame),
                Lane::Messages => queue.gather(frame),
            }
        }
        queue.is_due |=
            flush == Flush::Now || queue.batches.len() > 1 || queue.batches.iter().any(|it| it.len() >= ENOUGH);
        Sent { is_new: !mem::replace(&mut queue.is_listed, true), is_due: queue.is_due }
    }

    /// The last frame: what waits before it is dropped if it is not wanted, and what is sent later in any case.
    pub(super) fn close(&self, last: Frame, is_wanted: bool) -> Sent {
        let (sent, dropped) = {
            let mut queue = self.queue.lock();
            if queue.is_closed {
                return Sent { is_new: false, is_due: false };
            }
            let dropped = (!is_wanted)
                .then(|| (mem::take(&mut queue.batches), mem::take(&mut queue.bulk), mem::take(&mut queue.sent)));
            queue.gather(last);
            (queue.is_closed, queue.is_due) = (true, true);
            (Sent { is_new: !mem::replace(&mut queue.is_listed, true), is_due: true }, dropped)
        };
        drop(dropped);
        sent
    }

    /// Lets everything leave that is there.
    pub(super) fn flush(&self) {
        let mut queue = self.queue.lock();
        queue.is_due = !queue.is_empty();
    }

    /// The next bytes of a lane to be sent, if they are to leave. Calls the frames' `sent` callbacks.
    pub(super) fn take(&self, lane: Lane) -> Option<Vec<u8>> {
        let mut queue = self.queue.lock();
        if !queue.is_due {
            return None;
        }
        match lane {
            Lane::Messages => {
                let batch = queue.batches.pop_front()?;
                let sent = if queue.batches.is_empty() { mem::take(&mut queue.sent) } else { Vec::new() };
                queue.is_due = !queue.is_empty();
                drop(queue);
                sent.into_iter().for_each(|sent| sent(()));
                Some(batch)
            }
            Lane::Bulk => {
                let frame = queue.bulk.pop_front()?;
                queue.is_due = !queue.is_empty();
                drop(queue);
                let mut bytes = Vec::new();
                let sent = encode(frame, &mut bytes);
                sent.into_iter().for_each(|sent| sent(()));
                Some(bytes)
            }
        }
    }

    /// Forgets that the thread knows of it, if nothing is left; false if something is.
    pub(super) fn unlist(&self) -> bool {
        let mut queue = self.queue.lock();
        queue.is_listed = !queue.is_empty();
        !queue.is_listed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.lock().is_empty()
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.bulk.is_empty()
    }

    fn gather(&mut self, frame: Frame) {
        if self.batches.back().is_none_or(|batch| batch.len() >= FULL) {
            self.batches.push_back(Vec::with_capacity(256));
        }
        if let Some(batch) = self.batches.back_mut() {
            self.sent.extend(encode(frame, batch));
        }
    }
}

/// Appends a frame's bytes; gives what to call then.
fn encode(frame: Frame, bytes: &mut Vec<u8>) -> Option<Callback<()>> {
    let Frame { header, head, body, sent } = frame;
    let encoded = header.encode(head.len(), body.len());
    bytes.reserve(encoded.as_slice().len() + head.len() + body.len());
    bytes.extend_from_slice(encoded.as_slice());
    bytes.extend_from_slice(&head);
    match body {
        Body::Bytes(body) => bytes.extend_from_slice(&body),
        Body::Span(span) => span.read(|body| bytes.extend_from_slice(body)),
    }
    sent
}

/// A frame of a header and perhaps words.
pub(super) fn word(header: Header, words: &str) -> Frame {
    Frame { body: Body::Bytes(Bytes::copy_from_slice(words.as_bytes())), ..Frame::new(header) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::segment::Segment;

    fn message(length: usize) -> Frames {
        let mut frames = Frames::new();
        frames.push(Frame { body: Body::Bytes(vec![1; length].into()), ..Frame::new(Header::Part) });
        frames
    }

    fn chunk(segment: &Segment) -> Frames {
        let mut frames = Frames::new();
        let header = Header::GetChunk { transfer: 1, offset: 0 };
        frames.push(Frame { body: Body::Span(segment.whole()), ..Frame::new(header) });
        frames
    }

    #[test]
    fn what_is_sent_later_waits_for_what_is_sent_now() {
        let outbox = Outbox::default();
        assert_eq!(outbox.send(message(10), Flush::Later), Sent { is_new: true, is_due: false });
        assert_eq!(outbox.take(Lane::Messages), None);
        assert_eq!(outbox.send(message(10), Flush::Now), Sent { is_new: false, is_due: true });
        assert_eq!(outbox.take(Lane::Messages).map(|bytes| bytes.len()), Some(2 * (12 + 10)));
        assert!(outbox.is_empty());
        outbox.send(message(10), Flush::Later);
        outbox.flush();
        assert!(outbox.take(Lane::Messages).is_some());
    }

    #[test]
    fn enough_is_not_waited_with() {
        let outbox = Outbox::default();
        assert!(outbox.send(message(ENOUGH), Flush::Later).is_due);
    }

    #[test]
    fn what_gathers_is_cut_where_it_is_full() {
        let outbox = Outbox::default();
        for _ in 0..5 {
            outbox.send(message(FULL / 2), Flush::Now);
        }
        let lengths: Vec<_> = std::iter::from_fn(|| outbox.take(Lane::Messages).map(|bytes| bytes.len())).collect();
        let one = FULL / 2 + 12;
        assert_eq!(lengths, [2 * one, 2 * one, one]);
    }

    #[test]
    fn it_is_unlisted_when_it_is_empty_and_listed_again_when_it_is_not() {
        let outbox = Outbox::default();
        outbox.send(message(1), Flush::Now);
        assert!(!outbox.unlist());
        outbox.take(Lane::Messages);
        assert!(outbox.unlist());
        assert!(outbox.send(message(1), Flush::Now).is_new);
    }

    #[test]
    fn bytes_of_transfers_are_read_when_their_turn_has_come() {
        let (outbox, segment) = (Outbox::default(), Segment::from_vec(vec![1; 10]));
        outbox.send(chunk(&segment), Flush::Now);
        segment.whole().write(|bytes| bytes.fill(2));
        assert!(outbox.take(Lane::Bulk).is_some_and(|bytes| bytes.ends_with(&[2; 10])));
    }

    #[test]
    fn after_the_last_frame_nothing_is_taken_and_before_it_only_what_is_wanted() {
        for is_wanted in [true, false] {
            let outbox = Outbox::default();
            outbox.send(message(10), Flush::Later);
            outbox.close(word(Header::Goodbye, ""), is_wanted);
            outbox.send(message(20), Flush::Now);
            let expected = if is_wanted { 12 + 10 + 12 } else { 12 };
            assert_eq!(outbox.take(Lane::Messages).map(|bytes| bytes.len()), Some(expected));
            assert!(outbox.is_empty());
        }
    }
}
