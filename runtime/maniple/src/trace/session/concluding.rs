//! How a session ends what it is doing, and what is known afterwards.

use std::sync::Arc;

use maniple_realm::After;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::super::catch_up::first_run;
use super::super::replay::{Happened, Wake as _};
use super::super::replaying::Replaying;
use super::super::strict::{Described, differences};
use super::super::template::Template;
use super::super::trace::TraceId;
use super::super::why::Why;
use super::{Ended, Phase, Session};
use crate::launch::recording::Recording;
use crate::launch::recording::recording::RecordingStep;

impl Session {
    /// A run that was replayed so far is analysed from here on.
    fn give_up(&self, Replaying { replay, at, .. }: &Replaying, why: &Why<'_>) {
        let template = &replay.template;
        let next = match template.steps[*at] {
            RecordingStep::Launch(stage) => Described::of_site(&template.stages[stage].site),
            RecordingStep::Fill(fill) => Described::of_fill(&template.fills[fill].site),
        };
        let (expected, found) = match why {
            Why::Other(found) => differences(&next, &Described::of_site(found)),
            Why::OtherFill(found) => differences(&next, &Described::of_fill(found)),
            other => (next.shown(), other.to_string()),
        };
        let (id, launch, launches) = (self.trace.lock().id, *at, template.steps.len());
        match id {
            TraceId::Named(_) => tracing::info!(
                trace = %id,
                launch,
                launches,
                expected,
                found,
                "a run is replayed no further than to the launch that differs (counted from 0): launch the same in each run, or give what \
                 differs a trace of its own"
            ),
            TraceId::Found(_) => tracing::debug!(
                trace = %id,
                launch,
                launches,
                expected,
                found,
                "a run is replayed no further than to the launch that differs (counted from 0): the repetition that was found has ended"
            ),
        }
        self.context.core.store.counters.replays_given_up.add(1);
    }

    /// Nothing more is issued in this phase: waits for its end.
    pub(super) fn settle(&mut self, why: &Why<'_>) {
        let realm = self.context.core.realm().clone();
        let wake = self.waker();
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Replaying(replaying) => {
                if replaying.at > 0 {
                    self.give_up(&replaying, why);
                }
                let Replaying { replay, runs, run, stage, .. } = &replaying;
                let (replay, runs, run, stage) = (Arc::clone(replay), Arc::clone(runs), *run, *stage);
                self.phase = Phase::Waiting(Some(Ended::Replaying(replaying)));
                replay.settle(&runs, run, stage);
            }
            analysed => {
                let recording = match analysed {
                    Phase::Recording(recording, _) => Some(recording),
                    _ => None,
                };
                let inner = std::mem::take(&mut self.inner);
                let ends: SmallVec<[_; 8]> = inner.unended().map(|operation| operation.completion.event()).collect();
                self.phase = Phase::Waiting(Some(Ended::Analysed(ends.clone(), recording)));
                realm.when(After::follows(&ends), move |_| wake.wake(Happened::End));
            }
        }
    }

    /// Makes a template of what was recorded.
    pub(super) fn conclude_recording(&mut self, recording: &Recording) {
        let core = &self.context.core;
        let compiled = Template::compile(recording.take(), core);
        core.store.recordings.end();
        match compiled {
            Ok(template) => {
                core.store.counters.recordings.add(1);
                self.trace.lock().add(template);
            }
            Err(problem) => self.trace.lock().failed(problem),
        }
    }

    /// Brings the data's state up to date with what was replayed, and allows copies to be given up again.
    pub(super) fn conclude_replay(&mut self, replaying: &Replaying) {
        self.catch_up(replaying);
        replaying.replay.template.release();
    }

    fn catch_up(&mut self, Replaying { replay, runs, run, at, .. }: &Replaying) {
        let template = &replay.template;
        let numbers = replay.record_end().map(|(launched, numbers)| {
            self.record.iter_mut().for_each(|record| record.replay_ended(launched.clone()));
            numbers
        });
        // What the fills of the latest whole run are on record, and those of the run that was cut short.
        let [whole, rest] = match &numbers {
            Some([whole, rest]) => [Some(&whole[..]), Some(&rest[..])],
            None => [None, None],
        };
        self.context.set_window(usize::MAX);
        let (sequence, steps) = (self.next_sequence, template.steps.len());
        self.next_sequence += steps as u64;
        if !replay.has_failed() {
            let none = FxHashMap::default();
            // One that left all as it was has left other numbers on record.
            let has_changed = !template.is_idempotent && *at == 0 || numbers.is_some() && !template.fills.is_empty();
            if has_changed && *run > 0 {
                template.catch_up(&self.context, run - 1, steps, sequence, &none, whole);
            }
            if *at > 0 {
                template.catch_up(&self.context, *run, *at, sequence, &none, rest);
            }
            return;
        }
        let faults = runs.faults().into_iter().collect();
        let last = if *at > 0 { *run + 1 } else { *run };
        let first = first_run(&faults).min(last);
        for turn in first..last {
            let (steps, numbers) = if turn == *run { (*at, rest) } else { (steps, whole) };
            template.catch_up(&self.context, turn, steps, sequence, &faults, numbers);
        }
    }
}
