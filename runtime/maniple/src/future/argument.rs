//! Values passed to tasks: given now, or promised by futures.

use std::sync::Arc;

use maniple_space::AnyPoint;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::map::FutureMap;
use super::single::Future;
use crate::fork::ForkSource;
use crate::results::Input;
use crate::support::error::Result;
use crate::task::digest::PROMISED;

/// A by-value parameter of a task, as the launch knows it.
#[derive(Clone, Debug)]
pub enum Argument<T> {
    /// A value.
    Value(T),
    /// A value that is still being computed: the task waits for it, the launch does not.
    Future(Future<T>),
    /// For each point of an index launch, the value of the same point of an earlier one. It waits for that point alone,
    /// but in a replayed trace for all.
    PerPoint(FutureMap<T>),
}

impl<T: Clone + Send + Sync + 'static> Argument<T> {
    /// The value for a point, once it is there.
    ///
    /// # Errors
    /// The failure of the task that was to compute it; [`crate::Error::Launch`] for a point that the earlier launch did
    /// not have.
    pub fn get(&self, point: AnyPoint) -> Result<T> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Future(future) => future.value(),
            Self::PerPoint(map) => map.value(point),
        }
    }

    /// [`get`](Self::get), for the last caller that needs it.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    #[inline]
    pub fn take(self, point: AnyPoint) -> Result<T> {
        match self {
            Self::Value(value) => Ok(value),
            other => other.get(point),
        }
    }

    /// The source of the value, if it is not there by itself.
    pub(crate) fn source(&self) -> Option<ForkSource> {
        match self {
            Self::Value(_) => None,
            Self::Future(future) => Some(future.source().clone()),
            Self::PerPoint(map) => Some(ForkSource::Launch(Input::per_point(Arc::clone(map.results())))),
        }
    }
}

/// Values only: a future is known on its node alone, so its value goes, if that is there. Code that compares arguments
/// tells what is promised by its name.
impl<T: Serialize + Clone + Send + Sync + 'static> Serialize for Argument<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            promised => serializer.serialize_newtype_struct(PROMISED, &Promised(promised)),
        }
    }
}

/// An argument that is a future.
struct Promised<'a, T>(&'a Argument<T>);

impl<T: Serialize + Clone + Send + Sync + 'static> Serialize for Promised<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            Argument::Value(value) => value.serialize(serializer),
            Argument::Future(future) => match future.value() {
                Ok(value) => value.serialize(serializer),
                Err(error) => Err(serde::ser::Error::custom(error)),
            },
            Argument::PerPoint(_) => Err(serde::ser::Error::custom("which of its values is not known here")),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Argument<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::Value)
    }
}
