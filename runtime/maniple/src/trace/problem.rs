//! Why a stretch of launches was not replayed.

/// Why a recording is of no use, or a replay was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub(crate) enum Problem {
    #[error("it launched a task that launches tasks")]
    LaunchesTasks,
    #[error("instances were made; the next recording finds them")]
    InstancesMade,
    #[error("memory ran full")]
    MemoryFull,
    #[error("a task could not be mapped")]
    NotMapped,
    #[error("it uses values that a failed task was to make")]
    Spoilt,
    #[error("it uses data that belongs to the parent task's own regions")]
    Borrowed,
    #[error("the record was taken that says what its copies are")]
    RecordTaken,
}
