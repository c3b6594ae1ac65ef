//! The rooms from which the files import.

pub(crate) mod sync;
