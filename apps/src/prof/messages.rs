//! Messages between the processes of a job: one profile tells when a message left, and another one when it came.

use maniple::profile::{OperationId, Record, Recording};
use rustc_hash::FxHashMap;

/// An operation of one of several recordings, at a time of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The recording, by its place.
    pub recording: usize,
    /// The operation that has sent the message, or the one that was done when it had come.
    pub operation: OperationId,
    /// When.
    pub time: u64,
}

/// A message of which both processes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfiledMessage {
    /// The sender's end.
    pub sent: End,
    /// The receiver's end.
    pub received: End,
}

/// The node that recorded.
pub(super) fn node_of(recording: &Recording) -> u16 {
    recording.header.processors.first().map_or(0, |processor| processor.node)
}

/// From and to which node, and which of all messages of the two it was.
type Name = (u16, u16, u64);

/// The messages between processes that have recorded these, each of which says of which node of the job it is.
#[must_use]
pub fn messages(recordings: &[Recording]) -> Vec<ProfiledMessage> {
    let mut sent: FxHashMap<Name, End> = FxHashMap::default();
    for (end, node, record) in ends(recordings) {
        if let Record::Sent { to, number, .. } = record {
            sent.insert((node, to, number), end);
        }
    }
    let received = ends(recordings).filter_map(|(received, node, record)| match record {
        Record::Received { from, number, .. } => {
            Some(ProfiledMessage { sent: *sent.get(&(from, node, number))?, received })
        }
        _ => None,
    });
    received.collect()
}

/// Returns the ends of messages in all recordings, with the node that recorded each, and its record.
fn ends(recordings: &[Recording]) -> impl Iterator<Item = (End, u16, Record)> {
    let all = recordings.iter().enumerate().flat_map(|(number, recording)| {
        let threads = recording.threads.iter();
        threads.flat_map(move |thread| thread.records.iter().map(move |&record| (number, thread.node, record)))
    });
    all.filter_map(|(recording, node, record)| match record {
        Record::Sent { by: operation, time, .. } | Record::Received { message: operation, time, .. } => {
            Some((End { recording, operation, time }, node, record))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn what_was_sent_and_what_was_received_meet_by_their_numbers() {
        let (mut zero, mut one) = (Script::of_node(0), Script::of_node(1));
        zero.sent(7, 1, 0, 10);
        zero.sent(8, 1, 1, 20);
        zero.sent(9, 2, 0, 30);
        one.sent(7, 0, 0, 5);
        one.received(50, 0, 1, 25);
        one.received(51, 0, 0, 15);
        zero.received(60, 1, 0, 8);
        // No recording tells that this one was sent.
        zero.received(61, 1, 1, 9);
        let found: Vec<_> = messages(&[zero.0, one.0])
            .iter()
            .map(|ProfiledMessage { sent, received }| {
                [sent, received].map(|end| (end.recording, end.operation.0, end.time))
            })
            .collect();
        assert_eq!(found, [[(1, 7, 5), (0, 60, 8)], [(0, 8, 20), (1, 50, 25)], [(0, 7, 10), (1, 51, 15)]]);
    }
}
