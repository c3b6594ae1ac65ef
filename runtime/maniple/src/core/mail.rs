//! Messages between mappers: sent from any call of a mapper that can look things up, heard by the other mapper when it has time.
//!
//! Each mapper object has an inbox. Who puts a message in has a worker call the mapper, which takes messages out as long as there are any: so they are heard in their order, whichever worker it is, and
//! one of which the mapper panics keeps it from no other.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use maniple_mapper::{LONGEST_MESSAGE, MOST_ANSWERS, Mail, MailError, MapperAddress};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::{Class, Spawn};

use super::RuntimeCore;
use crate::mapping::Whom;
use crate::migration::Letter;

/// The messages that a mapper has not heard.
#[derive(Default)]
pub(super) struct Inbox(Mutex<VecDeque<Message>>);

struct Message {
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
            return;
        };
        let whom = Whom::from((processor, crate::operation::MapperNumber(letter.mapper)));
        self.desk(whom).inbox.0.lock().push_back(Message { from, answers: letter.answers, text });
        let (core, spawn) = (Arc::clone(self), Spawn { class: Class::Runtime, ..Spawn::ANYWHERE });
        self.spawn_own("a message between mappers", spawn, move || core.hear(whom));
    }

    /// Has a mapper hear its messages.
    fn hear(self: &Arc<Self>, whom: Whom) {
        let desk = self.desk(whom);
        desk.seat.try_call(&self.store, "hear", |mapper| {
            // Taken out one by one while nothing else calls the mapper, so in their order.
            while let Some(Message { from, answers, text }) = desk.inbox.next() {
                let mail = Sender { core: self, whom, answers: answers.saturating_add(1) };
                mapper.hear(from, &text, &mail);
            }
        });
    }
}

impl Inbox {
    fn next(&self) -> Option<Message> {
        self.0.lock().pop_front()
    }
}
