//! Sending: messages leave at once or wait, in order, until the network has room for them.

use std::collections::VecDeque;
use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::net::{Endpoint, Message, NetError, SendError};
use maniple_realm::{Fault, Realm};
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::message::{JobMessageKind, Outgoing, Urgency};
use crate::names::{ParcelHeader, Rank};
use crate::profile::MessageProfile;

/// See the [module](self).
pub(crate) struct Outbox {
    realm: Realm,
    /// Longer payloads are sent in fragments of so many bytes.
    longest: usize,
    profile: Option<Arc<MessageProfile>>,
    /// Messages for which there was no room, by receiver.
    waiting: Mutex<FxHashMap<Rank, VecDeque<Message>>>,
}

impl Outbox {
    pub(crate) fn new(realm: Realm, longest: usize, profile: Option<Arc<MessageProfile>>) -> Arc<Self> {
        Arc::new(Self { realm, longest, profile, waiting: Mutex::default() })
    }

    /// How many messages wait for room.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().values().map(VecDeque::len).sum()
    }

    /// Sends a message, or queues it until there is room for it. What is too long for one message is sent in fragments,
    /// between which nothing else leaves for the node.
    pub(crate) fn send(self: &Arc<Self>, endpoint: &Arc<Endpoint>, to: Rank, outgoing: Outgoing) {
        let Outgoing { kind, header, mut payload, urgency } = outgoing;
        let mut waiting = self.waiting.lock();
        if let Some(profile) = &self.profile {
            profile.send(to);
        }
        let mut is_full = false;
        while payload.len() > self.longest {
            let fragment = Message::new(JobMessageKind::FRAGMENT.handler()).payload(payload.split_to(self.longest));
            is_full |= self.send_in_turn(endpoint, to, fragment, urgency, &mut waiting);
        }
        let message = Message::new(kind.handler()).header(&header).payload(payload);
        is_full |= self.send_in_turn(endpoint, to, message, urgency, &mut waiting);
        drop(waiting);
        if is_full {
            self.send_when_there_is_room(endpoint, to);
        }
    }

    /// Sends a parcel of a few bytes, if that can be done now, and nothing has to go before it.
    pub(crate) fn send_short(&self, endpoint: &Endpoint, to: Rank, header: &ParcelHeader, values: &[u8]) -> bool {
        let waiting = self.waiting.lock();
        // What a profile counts must be sent for sure.
        if self.profile.is_some() || waiting.get(&to).is_some_and(|queue| !queue.is_empty()) {
            return false;
        }
        endpoint.send_short(NodeId(to as u16), JobMessageKind::PARCEL.handler(), header, values) == Ok(true)
    }

    /// Sends a message, or queues it. Whether it is the first in the queue: then it is for the caller to ask for room.
    fn send_in_turn(
        &self,
        endpoint: &Endpoint,
        to: Rank,
        message: Message,
        urgency: Urgency,
        waiting: &mut FxHashMap<Rank, VecDeque<Message>>,
    ) -> bool {
        if let Some(queue) = waiting.get_mut(&to).filter(|queue| !queue.is_empty()) {
            queue.push_back(message);
            return false;
        }
        let Some(message) = self.try_to_send(endpoint, to, message, urgency) else { return false };
        waiting.entry(to).or_default().push_back(message);
        true
    }

    /// The message, if there is no room for it now.
    fn try_to_send(&self, endpoint: &Endpoint, to: Rank, message: Message, urgency: Urgency) -> Option<Message> {
        let node = NodeId(to as u16);
        let sent = match urgency {
            Urgency::Now => endpoint.send(node, message),
            Urgency::Whenever => endpoint.send_later(node, message),
        };
        match sent {
            Ok(()) => None,
            Err(SendError::Busy { message, .. }) => Some(message),
            // The endpoint reports the loss of a node to the job, perhaps only after this.
            Err(SendError::Net(NetError::Lost { loss, .. })) => {
                tracing::debug!(node = to, %loss, "a message to a lost node was dropped");
                None
            }
            Err(error) => {
                tracing::debug!(node = to, %error, "a message was not sent");
                if self.realm.breakdown().is_none() {
                    self.realm.give_up(Fault::new(Error::NotSent(Arc::new(error))));
                }
                None
            }
        }
    }

    fn send_when_there_is_room(self: &Arc<Self>, endpoint: &Arc<Endpoint>, to: Rank) {
        let (outbox, sender) = (Arc::clone(self), Arc::downgrade(endpoint));
        endpoint.when_room(NodeId(to as u16), move |_| {
            let Some(endpoint) = sender.upgrade() else { return };
            loop {
                let mut waiting = outbox.waiting.lock();
                let Some(message) = waiting.get_mut(&to).and_then(VecDeque::pop_front) else { return };
                if let Some(message) = outbox.try_to_send(&endpoint, to, message, Urgency::Now) {
                    waiting.entry(to).or_default().push_front(message);
                    drop(waiting);
                    return outbox.send_when_there_is_room(&endpoint, to);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use maniple_realm::net::loopback::Network;
    use maniple_realm::net::{Handlers, Options};

    use super::*;

    #[test]
    fn a_message_to_a_node_that_is_lost_does_not_end_the_job_before_its_loss_is_reported() {
        let network = Network::new(2);
        let start = |node| Endpoint::start(network.node(NodeId(node)), Handlers::new(), Options::default());
        let (here, there) = (start(0), start(1));
        there.abort("it has had enough");
        network.run();
        let realm = Realm::builder().workers(1).build().unwrap();
        Outbox::new(realm.visitor(), 1000, None).send(&here, 1, Outgoing::new(JobMessageKind::PARCEL, Bytes::new()));
        assert!(realm.breakdown().is_none());
        here.abort("the other one has gone");
        Outbox::new(realm.visitor(), 1000, None).send(&here, 1, Outgoing::new(JobMessageKind::PARCEL, Bytes::new()));
        assert!(realm.breakdown().is_some());
        realm.shut_down();
    }
}
