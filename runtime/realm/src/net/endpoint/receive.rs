//! The handling of frames that arrive at a node.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::Bytes;

use super::Endpoint;
use super::handlers::Incoming;
use super::peer::{Arrived, Peer};
use super::quiescence::Counts;
use crate::fault::catch;
use crate::machine::NodeId;
use crate::net::error::Loss;
use crate::net::frame::{Header, Violation};
use crate::net::message::HandlerId;
use crate::net::transport::{BytesPlace, Receiver};

/// The endpoint as its transport sees it: a weak handle, so that the endpoint ends when its users let go of it.
pub(super) struct Reception(pub(super) Weak<Endpoint>);

/// Once the endpoint is gone, nothing is wrong with what arrives; it is dropped.
impl Receiver for Reception {
    fn place(&self, from: NodeId, header: &Header, length: usize) -> Result<BytesPlace, Violation> {
        self.0.upgrade().map_or(Ok(BytesPlace::Nowhere), |endpoint| endpoint.place(from, header, length))
    }

    fn placed(&self, from: NodeId, header: &Header, length: usize) {
        if let Some(endpoint) = self.0.upgrade() {
            endpoint.placed(from, header, length);
        }
    }

    fn receive(&self, from: NodeId, header: &Header, head: &[u8], body: Bytes) -> Result<(), Violation> {
        self.0.upgrade().map_or(Ok(()), |endpoint| endpoint.receive(from, header, head, body))
    }

    fn lost(&self, node: NodeId, loss: Loss) {
        if let Some(endpoint) = self.0.upgrade() {
            endpoint.lose(node, loss);
        }
    }
}

impl Endpoint {
    fn receive(self: &Arc<Self>, from: NodeId, header: &Header, head: &[u8], body: Bytes) -> Result<(), Violation> {
        let peer = self.peer(from).ok_or(Violation::OutOfPlace("a frame from a node that does not exist"))?;
        match *header {
            Header::Message { handler, ask, .. } => {
                let max = self.options.max_message;
                let is_complete = peer.arrivals.lock().begin(header, head, &body, max, &self.buffers)?;
                if is_complete { self.handle(from, peer, handler, head, body, ask) } else { Ok(()) }
            }
            Header::Part => {
                let arrived = peer.arrivals.lock().go_on(&body)?;
                let Some(Arrived { handler, head, payload, ask }) = arrived else { return Ok(()) };
                self.handle(from, peer, handler, &head, payload, ask)
            }
            Header::Credit { bytes } => {
                let waiting = peer.credit(self.options.window, bytes)?;
                waiting.into_iter().for_each(|call| call(Ok(())));
                Ok(())
            }
            Header::PutEnd { transfer, notify } => self.end_put(from, peer, transfer, notify, head),
            Header::Ended { transfer, outcome } => self.transfer_ended(from, transfer, outcome),
            Header::GetAsk { transfer, segment, offset, length } => {
                self.answer_get(from, transfer, segment, offset, length);
                Ok(())
            }
            Header::Barrier { generation, round } => self.barrier_round(from, generation, round),
            Header::Probe { wave } => self.advance_quiescence(|quiescence, step| quiescence.probe(from, wave, step)),
            Header::Report { wave, sent, handled, activations } => {
                let counts = Counts { sent, handled, activations };
                self.advance_quiescence(|quiescence, _| quiescence.report(from, wave, counts))
            }
            Header::Quiet { wave } => self.advance_quiescence(|quiescence, step| quiescence.quiet(from, wave, step)),
            Header::PutChunk { .. } | Header::GetChunk { .. } => {
                Err(Violation::OutOfPlace("a chunk that was not placed"))
            }
            // This node has no memory to share, or is not to share it; the other one cannot know that.
            Header::Offer => {
                self.send_header(from, Header::Decline);
                Ok(())
            }
            Header::Heartbeat
            | Header::Goodbye
            | Header::Abort
            | Header::Switch
            | Header::Decline
            | Header::Bell
            | Header::Lent { .. } => Err(Violation::OutOfPlace("a frame for transports only")),
        }
    }

    /// Runs the handler of a message, then counts it, then gives credit if it is asked for.
    fn handle(
        self: &Arc<Self>,
        from: NodeId,
        peer: &Peer,
        handler: HandlerId,
        head: &[u8],
        payload: Bytes,
        ask: bool,
    ) -> Result<(), Violation> {
        self.run_handler(from, handler, head, payload)?;
        self.counters.handled.fetch_add(1, Ordering::SeqCst);
        if self.nodes() == 1 && self.is_watching.load(Ordering::SeqCst) {
            self.settle();
        }
        if ask {
            let bytes = std::mem::take(&mut peer.arrivals.lock().owed);
            if bytes > 0 {
                self.send_header(from, Header::Credit { bytes });
            }
        }
        Ok(())
    }

    pub(super) fn run_handler(
        self: &Arc<Self>,
        from: NodeId,
        handler: HandlerId,
        header: &[u8],
        payload: Bytes,
    ) -> Result<(), Violation> {
        let handle = self.handlers.find(handler).ok_or(Violation::NoHandler(handler))?;
        let mut incoming = Incoming { endpoint: self, from, header, payload };
        if let Err(fault) = catch(|| handle(&mut incoming)) {
            let loss = Loss::HandlerPanicked { handler, from, panic: fault.to_string() };
            let reason = loss.to_string();
            self.fail(Some(loss), reason);
        }
        Ok(())
    }
}
