//! Why a stretch of launches was not replayed.

/// Why a recording is of no use, or a replay was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub(crate) enum RecordingProblem {
    #[error("it launched no task")]
    NothingLaunched,
    #[error("it launched a task that launches tasks; make it a leaf, or have the mapper choose a variant that is one")]
    LaunchesTasks,
    #[error("the mapper has another node run one of its tasks; replays run on their own node, so have it pick none")]
    RunsElsewhere,
    #[error("instances were made; the next recording finds them")]
    InstancesMade,
    #[error("memory ran full; use smaller pieces, or give the memory more capacity")]
    MemoryFull,
    #[error("a task could not be mapped, or a new field had to be made zero")]
    NotMapped,
    #[error("it uses values that a failed task was to make")]
    Invalidated,
    #[error("it uses data of which the launching task has no instance of its own; launch from the task that has")]
    Borrowed,
    #[error("the record was taken that says what its copies are")]
    RecordTaken,
}
