//! The exchange of values between nodes: ordinary launches of a few internal tasks.
//!
//! To the rest of the runtime `send` reads its data and `receive` overwrites it. So the analysis orders them like
//! everything else, mappers place them, and traces replay them; nothing else in the runtime knows that there are other
//! nodes.

use std::sync::{Arc, LazyLock};

use maniple_analysis::distribution::Rank;
use maniple_cluster::{Delivery, ParcelFuture, ParcelName};
use maniple_realm::net::Loan;
use maniple_realm::transfer::{FewValues, FillValue, InstanceField, Transfer, pack_into, unpack, unpack_and_apply};
use maniple_region::{FieldId, FieldMask, LogicalRegion, OperatorId};
use maniple_space::AnySpace;
use smallvec::{SmallVec, smallvec};

use super::node::JobNode;
use crate::results::Results;
use crate::support::error::{Error, Result};
use crate::task::arguments::Arguments;
use crate::task::{LeafCall, TaskDefinition, TaskOptions, Value};

/// The arguments of [`SEND`].
pub(super) struct Sending {
    pub(super) to: Arc<Addresses>,
    /// For which operation of the program.
    pub(super) operation: u64,
}

/// The addresses of the pieces in an exchange, in the order of colors: the node that each goes to, or comes from. They
/// are the same each time.
pub(super) struct Addresses {
    pub(super) node: Arc<JobNode>,
    /// Which of the exchanges of an operation it is.
    pub(super) exchange: u32,
    /// The other node, and the number of the parcel between the two.
    pub(super) parcels: Box<[(Rank, u32)]>,
    /// The bytes of each.
    pub(super) bytes: Box<[u64]>,
}

impl Addresses {
    /// The names of the parcels of an operation, each with the other node.
    pub(super) fn of(&self, operation: u64) -> impl ExactSizeIterator<Item = (Rank, ParcelName)> {
        let name = move |number| ParcelName { operation, exchange: self.exchange, number };
        self.parcels.iter().map(move |&(with, number)| (with, name(number)))
    }

    fn send(&self, operation: u64, piece: usize, delivery: Delivery) {
        if let Some((to, name)) = self.of(operation).nth(piece) {
            self.node.send_parcel(to, name, delivery);
        }
    }

    /// Memory for the values of a piece.
    fn lend(&self, piece: usize) -> Option<Loan> {
        let (&(to, _), &bytes) = self.parcels.get(piece).zip(self.bytes.get(piece))?;
        Some(self.node.lend(to, bytes as usize))
    }

    /// The same for values of a few bytes.
    fn send_short(&self, operation: u64, piece: usize, bytes: &[u8]) {
        if let Some((to, name)) = self.of(operation).nth(piece) {
            self.node.send_short_parcel(to, name, bytes);
        }
    }
}

/// Tells others of the pieces that they will not get.
fn tell_of_failure(arguments: &Arguments, results: &Results) {
    let (Some(Sending { to, operation }), Some(failure)) = (arguments.get(), results.error()) else { return };
    let fail = |piece, error| to.send(*operation, piece, Err(to.node.tell(error)));
    for piece in 0..to.parcels.len() {
        match results.value(piece) {
            Some(Err(error)) => fail(piece, error),
            // The launch as a whole failed.
            _ if results.first_error().is_none() => fail(piece, &failure),
            _ => {}
        }
    }
}

/// The arguments of [`RECEIVE`] and [`APPLY`].
pub(super) struct Receiving {
    pub(super) from: Arc<Addresses>,
    pub(super) parcels: Arc<ParcelFuture>,
    /// The first of the parcels that are for this launch.
    pub(super) first: usize,
    /// The operator, for contributions.
    pub(super) operator: Option<OperatorId>,
}

/// The arguments of [`IDENTITY`].
pub(super) struct Emptying(pub(super) OperatorId);

/// Sends pieces away.
pub(super) static SEND: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| {
    let definition = internal("send", send);
    Arc::new(definition.when_failed(tell_of_failure))
});

/// Overwrites pieces with what others have sent.
pub(super) static RECEIVE: LazyLock<Arc<TaskDefinition>> =
    LazyLock::new(|| Arc::new(internal(maniple_mapper::RECEIVE, receive)));

/// Applies the contributions that others have sent to pieces.
pub(super) static APPLY: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| Arc::new(internal("apply", receive)));

/// Makes values into contributions that change nothing.
pub(super) static IDENTITY: LazyLock<Arc<TaskDefinition>> = LazyLock::new(|| Arc::new(internal("identity", empty)));

fn internal(name: &str, body: fn(&LeafCall<'_>) -> Result<()>) -> TaskDefinition {
    let run = move |call: &LeafCall<'_>| {
        body(call)?;
        Ok(Value::new(()))
    };
    TaskDefinition::new(name).leaf(TaskOptions::default(), run).internal()
}

fn send(call: &LeafCall<'_>) -> Result<()> {
    let Sending { to, operation } = call.arguments()?;
    let piece = number(call);
    if let Some(few) = call.few(0) {
        let mut bytes: SmallVec<[u8; 64]> = smallvec![0; few.iter().map(FewValues::bytes).sum()];
        let mut rest = &mut bytes[..];
        for values in few {
            let place = rest.split_off_mut(..values.bytes()).unwrap_or_default();
            // SAFETY: as below.
            unsafe { values.pack(place) }.map_err(|error| Error::of_transfer(&error))?;
        }
        to.send_short(*operation, piece, &bytes);
        return Ok(());
    }
    let Some(mut loan) = to.lend(piece) else { return Ok(()) };
    let mut rest = loan.bytes_mut();
    each_field(call, |space, place| {
        // SAFETY: the task reads the field at these points, so nothing else writes it meanwhile. Instances are
        // initialised when they are made.
        unsafe { pack_into(space, place, &mut rest) }.map_err(|error| Error::of_transfer(&error))
    })?;
    debug_assert!(rest.is_empty(), "all of the memory is filled");
    to.send(*operation, piece, Ok(loan.freeze()));
    Ok(())
}

fn receive(call: &LeafCall<'_>) -> Result<()> {
    let Receiving { from, parcels, first, operator } = call.arguments()?;
    let delivery = parcels.take(first + number(call), from.node.realm());
    let delivery = delivery.ok_or_else(|| Error::launch(call.task(), "it began before its parcel was there"))?;
    let delivery = delivery.map_err(|failure| from.node.hear(failure))?;
    let mut bytes: &[u8] = &delivery;
    if let (Some(few), None) = (call.few(0), operator) {
        for values in few {
            let values_of_field = bytes.split_off(..values.bytes()).unwrap_or_default();
            // SAFETY: as below.
            unsafe { values.unpack(values_of_field) }.map_err(|error| Error::of_transfer(&error))?;
        }
        return Ok(());
    }
    each_field(call, |space, place| {
        // SAFETY: the task writes the field at these points, so nothing else touches it. The bytes were packed from the
        // same field of the same region, by the same program: they are valid values; in the case of an operator, of its
        // type on the field, which is that of its contributions (`contributes_values`).
        let unpacked = unsafe {
            match operator {
                None => unpack(space, &mut bytes, place),
                Some(operator) => {
                    let operator = reduction(call, *operator, place.field)?;
                    unpack_and_apply(space, &mut bytes, place, operator)
                }
            }
        };
        unpacked.map_err(|error| Error::of_transfer(&error))
    })
}

fn empty(call: &LeafCall<'_>) -> Result<()> {
    let Emptying(operator) = call.arguments()?;
    each_field(call, |space, place| {
        let identity = FillValue::identity_of(reduction(call, *operator, place.field)?).map_err(Error::internal)?;
        let fill = Transfer::fill(space.clone(), place, identity).map_err(|error| Error::of_transfer(&error))?;
        // SAFETY: the task writes the field at these points, so nothing else touches it. The identity is a value of the
        // field's type: as above.
        unsafe { fill.execute() }.map_err(|error| Error::of_transfer(&error))
    })
}

/// The number of the call's piece.
fn number(call: &LeafCall<'_>) -> usize {
    call.domain().linear(call.point()) as usize
}

fn each_field(call: &LeafCall<'_>, mut visit: impl FnMut(&AnySpace, InstanceField) -> Result<()>) -> Result<()> {
    let (region, fields) = (call.region(0)?, call.fields(0)?);
    fields.iter().try_for_each(|field| visit(region.space().space(), call.storage_of(0, field)?))
}

fn reduction(
    call: &LeafCall<'_>,
    operator: OperatorId,
    field: FieldId,
) -> Result<&'static maniple_realm::reduction::RawReduction> {
    let region = call.region(0)?;
    let known = operator.reduction_on(region.fields().type_of(field)?);
    known.ok_or_else(|| Error::no_reduction(operator, region, field))
}

/// Whether contributions to fields can be kept in places for values, as they are on their way to another node.
pub(super) fn contributes_values(region: &LogicalRegion, fields: &FieldMask, operator: OperatorId) -> bool {
    fields.iter().all(|field| {
        let known = region.fields().type_of(field).ok().and_then(|ty| operator.reduction_on(ty));
        known.is_some_and(maniple_realm::reduction::RawReduction::applies_as_it_folds)
    })
}
