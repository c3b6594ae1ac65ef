//! Messages between mappers that there are not.

use maniple_mapper::{Mail, MailError, MapperAddress};
use maniple_realm::machine::{NodeId, ProcessorId};

/// The mail of a mapper that is alone: all messages are for a node that there is not.
pub struct NoMail;

impl Mail for NoMail {
    fn here(&self) -> MapperAddress {
        MapperAddress { node: NodeId(0), processor: ProcessorId(0) }
    }

    fn nodes(&self) -> usize {
        1
    }

    fn send(&self, to: MapperAddress, _: &[u8]) -> Result<(), MailError> {
        Err(MailError::NoSuchNode { node: to.node, nodes: 1 })
    }
}
