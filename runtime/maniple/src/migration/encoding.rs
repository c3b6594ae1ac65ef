//! The parts of migration's messages.

use bytes::Bytes;
pub(super) use maniple_cluster::{decode, encode};
use serde::{Deserialize, Serialize};

use super::remote::Network;
use super::result::TaskResult;

/// The payload of `MigrationMessage::Steal`.
#[derive(Serialize, Deserialize)]
pub(super) enum Steal {
    Request,
    Refusal,
}

/// The header of packets and results.
#[derive(Serialize, Deserialize)]
pub(super) struct PacketHeader {
    /// The sender's number for the packet, which the results have too.
    pub(super) number: u64,
    /// So many bytes at the end of the payload are a `TaskPacket` or results; those before them are values.
    pub(super) encoded: usize,
}

/// A [`TaskResult`] in a message, with the number of bytes of its values.
#[derive(Serialize, Deserialize)]
enum Encoded {
    Ended(Vec<u8>, usize),
    Failed(Vec<u8>),
    Refused(String),
}

/// The bytes of results, and the values of all of them.
pub(super) fn encode_results(results: Vec<TaskResult>, network: &dyn Network) -> (Vec<u8>, Vec<u8>) {
    let mut all = Vec::new();
    let one = |result| match result {
        TaskResult::Ended { value, values } => {
            let bytes = values.len();
            match all.is_empty() {
                // Most often one task has all of them, and they need not be copied.
                true => all = values.into(),
                false => all.extend_from_slice(&values),
            }
            Encoded::Ended(value, bytes)
        }
        TaskResult::Failed(error) => Encoded::Failed(network.encode_error(&error)),
        TaskResult::Refused(why) => Encoded::Refused(why),
    };
    let results: Vec<Encoded> = results.into_iter().map(one).collect();
    (encode(&results), all)
}

/// The results that were encoded. None if they make no sense.
pub(super) fn decode_results(bytes: &[u8], mut values: Bytes, network: &dyn Network) -> Option<Vec<TaskResult>> {
    let one = |result| match result {
        Encoded::Ended(value, bytes) => {
            (bytes <= values.len()).then(|| TaskResult::Ended { value, values: values.split_to(bytes) })
        }
        Encoded::Failed(error) => Some(TaskResult::Failed(network.decode_error(&error)?)),
        Encoded::Refused(why) => Some(TaskResult::Refused(why)),
    };
    let results = decode::<Vec<Encoded>>(bytes)?.into_iter().map(one).collect::<Option<_>>()?;
    values.is_empty().then_some(results)
}
