//! Messages between mappers: sent from any call of a mapper that can look things up, heard by the other mapper when it
//! has time.
//!
//! Each mapper object has an inbox. The thread that puts a message in has a worker call the mapper, which takes
//! messages out as long as there are any: so they are heard in their order, whichever worker it is, and one of which
//! the mapper panics keeps it from no other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use maniple_mapper::{LONGEST_MESSAGE, MOST_ANSWERS, MOST_UNHEARD, Mail, MailError, MapperAddress};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::{Class, Spawn};

use super::RuntimeCore;
use crate::mapping::Whom;
use crate::migration::Letter;

/// The bytes of messages between mappers that were sent and not heard.
pub(super) struct Unheard {
    /// The bytes that mappers of this node have sent and that were not heard, by the node that they are for.
    sent: Box<[AtomicUsize]>,
    /// The bytes that were heard here and of which their sender was not told, by the node of the sender.
    heard: Box<[AtomicUsize]>,
}

/// The bytes that a message counts besides its own.
const OF_MESSAGE: usize = 64;

/// The sender is told when so many bytes were heard.
const TOLD: usize = MOST_UNHEARD / 4;

impl Unheard {
    pub(super) fn new(nodes: usize) -> Self {
        let none = || (0..nodes).map(|_| AtomicUsize::new(0)).collect();
        Self { sent: none(), heard: none() }
    }

    /// Whether a message may be sent to a node; if not, how many bytes were not heard there.
    fn send(&self, to: NodeId, message: usize) -> Result<(), usize> {
        let fits = |unheard: usize| Some(unheard + message + OF_MESSAGE).filter(|all| *all <= MOST_UNHEARD);
        self.sent[usize::from(to.0)].fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map(drop)
    }

    /// Messages to a node were heard there.
    pub(super) fn were_heard(&self, by: NodeId, bytes: usize) {
        if let Some(sent) = self.sent.get(usize::from(by.0)) {
            let less = |unheard: usize| Some(unheard.saturating_sub(bytes));
            let _ = sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// A message of a node has been heard here. The bytes of which that is to be told now.
    fn hear(&self, from: NodeId, message: usize) -> Option<usize> {
        let heard = self.heard.get(usize::from(from.0))?;
        let all = heard.fetch_add(message + OF_MESSAGE, Ordering::Relaxed) + message + OF_MESSAGE;
        let told = all >= TOLD && heard.compare_exchange(all, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        told.then_some(all)
    }
}

/// The messages that a mapper has not heard.
#[derive(Default)]
pub(super) struct Inbox(Mutex<VecDeque<MailMessage>>);

struct MailMessage {
    from: MapperAddress,
    /// How many messages it is an answer to, one after the other.
    answers: u8,
    text: Bytes,
}

/// How a mapper sends messages.
pub(crate) struct Sender<'a> {
    core: &'a Arc<RuntimeCore>,
    whom: Whom,
    answers: u8,
}

impl Mail for Sender<'_> {
    fn here(&self) -> MapperAddress {
        MapperAddress { node: self.core.node(), processor: self.whom.processor }
    }

    fn nodes(&self) -> usize {
        self.core.migration().map_or(1, |migration| migration.nodes())
    }

    fn send(&self, to: MapperAddress, message: &[u8]) -> Result<(), MailError> {
        let (nodes, processors) = (self.nodes(), self.core.machine().processors().len());
        if usize::from(to.node.0) >= nodes {
            return Err(MailError::NoSuchNode { node: to.node, nodes });
        }
        let here = self.here();
        if to.node == here.node && to.processor.0 as usize >= processors {
            return Err(MailError::NoSuchProcessor { processor: to.processor, processors });
        }
        if message.len() > LONGEST_MESSAGE {
            return Err(MailError::TooLong { bytes: message.len() });
        }
        if self.answers >= MOST_ANSWERS {
            return Err(MailError::TooManyAnswers);
        }
        let letter =
            Letter { mapper: self.whom.mapper.0, from: here.processor.0, to: to.processor.0, answers: self.answers };
        let unheard = |unheard| MailError::TooManyUnheard { node: to.node, unheard };
        self.core.unheard.send(to.node, message.len()).map_err(unheard)?;
        match self.core.migration().filter(|_| to.node != here.node) {
            Some(migration) => migration.send_letter(to.node, &letter, message.to_vec()),
            None => self.core.deliver_letter(here.node, letter, Bytes::copy_from_slice(message)),
        }
        Ok(())
    }
}

impl RuntimeCore {
    /// How a mapper sends messages from a call that answers none.
    pub(crate) fn mail_of(self: &Arc<Self>, whom: impl Into<Whom>) -> Sender<'_> {
        Sender { core: self, whom: whom.into(), answers: 0 }
    }

    fn node(&self) -> NodeId {
        self.migration().map_or(NodeId(0), |migration| migration.node())
    }

    /// Has a mapper of this node hear a message. One for a processor that there is not is logged.
    pub(crate) fn deliver_letter(self: &Arc<Self>, node: NodeId, letter: Letter, text: Bytes) {
        let from = MapperAddress { node, processor: maniple_realm::machine::ProcessorId(letter.from) };
        let Some(processor) = self.machine().processors().get(letter.to as usize).map(|processor| processor.id) else {
            let to = letter.to;
            tracing::warn!(target: "maniple::mapper", %from, "a message for processor {to} of this node, which it has not, is dropped");
            self.note_heard(node, text.len());
            return;
        };
        let whom = Whom { processor, mapper: crate::operation::lifecycle::MapperNumber(letter.mapper) };
        self.desk(whom).inbox.0.lock().push_back(MailMessage { from, answers: letter.answers, text });
        let (core, spawn) = (Arc::clone(self), Spawn { class: Class::Runtime, ..Spawn::ANYWHERE });
        self.spawn_own("a message between mappers", spawn, move || core.hear(whom));
    }

    /// Mappers of another node have heard so many bytes more.
    pub(crate) fn note_letters_heard(&self, by: NodeId, bytes: u64) {
        self.unheard.were_heard(by, usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// A message of so many bytes has left its inbox.
    fn note_heard(&self, from: NodeId, bytes: usize) {
        if from == self.node() {
            self.unheard.were_heard(from, bytes + OF_MESSAGE);
        } else if let (Some(told), Some(migration)) = (self.unheard.hear(from, bytes), self.migration()) {
            migration.say_heard(from, told as u64);
        }
    }

    /// Has a mapper hear its messages.
    fn hear(self: &Arc<Self>, whom: Whom) {
        let desk = self.desk(whom);
        desk.seat.try_call(&self.store, "hear", |mapper| {
            // Taken out one by one while nothing else calls the mapper, so in their order.
            while let Some(MailMessage { from, answers, text }) = desk.inbox.next() {
                self.note_heard(from.node, text.len());
                let mail = Sender { core: self, whom, answers: answers.saturating_add(1) };
                mapper.hear(from, &text, &mail);
            }
        });
    }
}

impl Inbox {
    fn next(&self) -> Option<MailMessage> {
        self.0.lock().pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_refused_until_some_were_heard() {
        let (here, there) = (Unheard::new(2), Unheard::new(2));
        let (own, other) = (NodeId(0), NodeId(1));
        let mut sent = 0;
        while here.send(other, LONGEST_MESSAGE).is_ok() {
            sent += 1;
        }
        assert_eq!(sent, MOST_UNHEARD / (LONGEST_MESSAGE + OF_MESSAGE));
        assert!(here.send(own, LONGEST_MESSAGE).is_ok(), "another node");
        for _ in 0..sent {
            if let Some(heard) = there.hear(own, LONGEST_MESSAGE) {
                here.were_heard(other, heard);
            }
        }
        // Of the last there may be no word yet.
        let again = (0..sent).take_while(|_| here.send(other, LONGEST_MESSAGE).is_ok()).count();
        assert!(again * 2 >= sent, "{again} of {sent}");
    }
}
