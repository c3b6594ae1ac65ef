//! One clock for the recordings of several processes: the clock of the machines, with the corrections that
//! [`clocks`](super::clocks) find for it.

use maniple::profile::Recording;

use super::clocks::{Correction, Exchanged, corrections};
use super::messages::{End, ProfiledMessage, node_of};
use super::summary::time;

/// How the times of a recording are told by the clock that all of them have in common.
#[derive(Clone, Copy)]
pub struct Timeline {
    /// How much later than the first it began, by the clocks of the machines.
    late: u64,
    correction: Correction,
    /// The shift of all times, in nanoseconds, so that none is before the beginning.
    moved: f64,
}

impl Timeline {
    /// A time of the recording by the common clock.
    #[must_use]
    pub fn at(&self, time: u64) -> u64 {
        let by_machine = time.saturating_add(self.late);
        let added = self.correction.at(by_machine as f64) + self.moved;
        by_machine.saturating_add_signed(added.round() as i64)
    }
}

/// Returns the timelines of recordings that sent each other these messages, and notes on them for the reader.
#[must_use]
pub fn timelines(recordings: &[Recording], messages: &[ProfiledMessage]) -> (Vec<Timeline>, Vec<String>) {
    let began = recordings.iter().map(|recording| recording.header.began).min().unwrap_or_default();
    let late: Vec<u64> = recordings.iter().map(|recording| recording.header.began - began).collect();
    let shown = |end: &End| (end.recording, end.time.saturating_add(late[end.recording]) as f64);
    let exchanged: Vec<Exchanged> = (messages.iter())
        .map(|ProfiledMessage { sent, received }| Exchanged { sent: shown(sent), received: shown(received) })
        .collect();
    let corrections = corrections(recordings.len(), &exchanged);
    let begins = late.iter().zip(&corrections).map(|(&late, correction)| late as f64 + correction.at(late as f64));
    let moved = -begins.fold(0.0, f64::min);
    let timelines = late.iter().zip(&corrections);
    let timelines = timelines.map(|(&late, &correction)| Timeline { late, correction, moved }).collect();
    let mut notes = moved_clocks(recordings, &corrections);
    let early = exchanged.iter().map(|message| -message.took(&corrections)).filter(|&early| early >= 1.0);
    let (count, worst) = early.fold((0, 0.0), |(count, worst), early| (count + 1, f64::max(worst, early)));
    if count > 0 {
        let (messages, worst) = (messages.len(), time(worst as u64));
        notes.push(format!(
            "{count} of {messages} messages seem to have come before they were sent, by up to {worst}: no steady clocks could show such times; \
             they count as sent when they came"
        ));
    }
    (timelines, notes)
}

/// Clocks are said to be wrong if they are by more than this, in nanoseconds.
const WORTH_TELLING: f64 = 100_000.0;

/// Which clocks were wrong by how much.
fn moved_clocks(recordings: &[Recording], corrections: &[Correction]) -> Vec<String> {
    let moved = recordings.iter().zip(corrections).filter(|(_, found)| found.offset.abs() >= WORTH_TELLING);
    let moved = moved.map(|(recording, found)| {
        let (by, node) = (time(found.offset.abs() as u64), node_of(recording));
        let how = if found.offset > 0.0 { "forward" } else { "back" };
        format!("the clock of node {node} was put {how} by {by}, so that messages come after they were sent")
    });
    moved.collect()
}
