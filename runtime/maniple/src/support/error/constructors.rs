//! How errors are made, of what went wrong below.

use std::error::Error as StdError;
use std::sync::Arc;

use maniple_mapper::MappingFailure;
use maniple_realm::Breakdown;
use maniple_realm::fault::{Fault, Panic};
use maniple_realm::instance::PromiseBroken;
use maniple_realm::operation::task::Stranded;
use maniple_realm::transfer::TransferError;
use maniple_region::{FieldId, LogicalRegion, OperatorId, Provenance, Requirement};
use maniple_space::AnyPoint;

use super::Error;

impl Error {
    pub(crate) fn mapper(call: &'static str, problem: impl Into<String>) -> Self {
        Self::Mapper { call, problem: problem.into(), launched: None }
    }

    pub(crate) fn internal(error: impl StdError + Send + Sync + 'static) -> Self {
        Self::Internal(Arc::new(error))
    }

    pub(crate) fn launch(operation: &str, problem: impl Into<String>) -> Self {
        Self::Launch { operation: operation.to_owned(), problem: problem.into(), launched: None }
    }

    /// There is no room for a requirement at a point; `region` is the point's, unless the projection does not tell.
    pub(crate) fn no_room(
        operation: &str,
        point: Option<AnyPoint>,
        requirement: &Requirement,
        region: Option<&LogicalRegion>,
        failure: MappingFailure,
    ) -> Self {
        if let MappingFailure::SystemRefused { memory, bytes, .. } = failure {
            return Self::SystemRefused { operation: operation.to_owned(), point, memory, bytes, launched: None };
        }
        Self::OutOfMemory {
            operation: operation.to_owned(),
            point,
            fields: requirement.field_names(),
            region: region.map_or_else(|| requirement.target.to_string(), ToString::to_string),
            failure,
            launched: None,
        }
    }

    pub(crate) fn no_reduction(operator: OperatorId, region: &LogicalRegion, field: FieldId) -> Self {
        let (field, ty) = match region.fields().get(field) {
            Some(descriptor) => (descriptor.name, descriptor.ty.name),
            None => (format!("#{}", field.0), "unknown"),
        };
        Self::NoReduction { operator: operator.name(), field, ty }
    }

    /// Turns a task's own failure into the error that other tasks see.
    pub(crate) fn of_task(self, task: &str, point: Option<AnyPoint>, launched: Option<&Provenance>) -> Self {
        match self {
            Self::Application(source) => {
                let launched = launched.cloned().map(Box::new);
                Self::TaskFailed { task: task.to_owned(), point, source, launched }
            }
            // Of one of the runtime's own tasks.
            dangling @ Self::DanglingPointer { .. } => dangling.launched_at(launched),
            other => other,
        }
    }

    /// As [`of_fault`](Self::of_fault), of a task that was launched there. What came from another operation stays as it
    /// is.
    pub(crate) fn of_fault_in(
        fault: &Fault,
        task: &str,
        point: Option<AnyPoint>,
        launched: Option<&Provenance>,
    ) -> Self {
        let error = Self::of_fault(fault, task, point);
        if fault.downcast_ref::<Self>().is_some() { error } else { error.launched_at(launched) }
    }

    /// Why values were not moved.
    pub(crate) fn of_transfer(error: &TransferError) -> Self {
        match error.clone() {
            TransferError::OperatorPanicked { operator, message, location } => {
                Self::ReductionPanicked { operator, message, location }
            }
            other => Self::internal(other),
        }
    }

    /// The error behind a fault of the machine layer; a panic is attributed to the task.
    pub(crate) fn of_fault(fault: &Fault, task: &str, point: Option<AnyPoint>) -> Self {
        if let Some(error) = fault.downcast_ref::<Self>() {
            return error.clone();
        }
        if let Some(error) = fault.downcast_ref::<maniple_cluster::Error>() {
            return error.clone().into();
        }
        if fault.downcast_ref::<Stranded>().is_some() {
            return Self::Stranded { task: task.to_owned(), point, launched: None };
        }
        if let Some(error) = fault.downcast_ref::<TransferError>() {
            return Self::of_transfer(error);
        }
        if let Some(PromiseBroken { memory, refused }) = fault.downcast_ref() {
            let bytes = refused.bytes as u64;
            return Self::SystemRefused { operation: task.to_owned(), point, memory: *memory, bytes, launched: None };
        }
        if let Some(Breakdown { during, panic }) = fault.downcast_ref() {
            return Self::BrokenDown {
                during: during.clone(),
                message: panic.message.as_str().into(),
                location: panic.location.clone(),
                backtrace: panic.backtrace.as_deref().map(Arc::from),
            };
        }
        match fault.panic() {
            Some(Panic { message, location, backtrace }) => Self::Panicked {
                task: task.to_owned(),
                point,
                message: message.as_str().into(),
                location: location.clone(),
                backtrace: backtrace.as_deref().map(Arc::from),
                launched: None,
            },
            None => Self::Internal(Arc::from(Box::<dyn StdError + Send + Sync>::from(fault.error().to_string()))),
        }
    }
}

impl From<Error> for Arc<Fault> {
    fn from(error: Error) -> Self {
        Arc::new(Fault::new(error))
    }
}

#[cfg(test)]
mod tests {
    use maniple_realm::machine::MemoryId;
    use maniple_realm::memory::SystemRefused;

    use super::*;

    #[test]
    fn memory_that_was_promised_and_then_refused_by_the_system_is_no_internal_error() {
        let refused = SystemRefused { bytes: 4096, align: 64 };
        let fault = Fault::new(PromiseBroken { memory: MemoryId(2), refused });
        let error = Error::of_fault(&fault, "smooth", None);
        let is_named = matches!(&error, Error::SystemRefused { operation, memory: MemoryId(2), bytes: 4096, .. } if operation == "smooth");
        assert!(is_named, "{error}");
    }

    #[test]
    fn a_main_that_returns_an_error_shows_what_it_says() {
        let error = Error::NodeLost { node: 3, reason: "the connection was closed".to_owned() };
        assert_eq!(format!("{error:?}"), "node 3 is lost, and the job with it: the connection was closed");
        let panicked = Error::Panicked {
            task: "smooth".to_owned(),
            point: None,
            message: "no cells".into(),
            location: None,
            backtrace: Some("0: smooth".into()),
            launched: None,
        };
        assert_eq!(format!("{panicked:?}"), "task `smooth` panicked: no cells\n0: smooth");
    }
}
