//! Workers and jobs: queueing them, and running one after the other.

use std::sync::Arc;

use super::{Local, WorkerContext};
use crate::event::Event;
use crate::operation::job::Job;

/// So many jobs of its own a worker runs before it looks whether there is anything else.
const JOBS_IN_A_ROW: usize = 64;

impl Local {
    /// Queues a job with this worker; or keeps it to run it next.
    #[inline]
    pub(crate) fn queue_job(&self, job: Arc<dyn Job>) {
        let kept = self.next_job.take();
        if self.completing.get() && kept.is_none() {
            self.next_job.set(Some(job));
            return;
        }
        self.next_job.set(kept);
        self.deques.push_job(job);
        self.core().announce_queued();
    }

    /// Runs a job, and then those of this worker's own that are ready.
    #[inline]
    pub(super) fn run_jobs(&self, job: Arc<dyn Job>) {
        let core = self.core();
        self.run_job(job);
        // Who helps has a condition to look at.
        if self.depth.get() == 0 {
            for _ in 1..JOBS_IN_A_ROW {
                if self.next.get() != 0
                    || core.queues.has_runtime_work_for(self.index, &self.deques)
                    || core.is_stopping()
                {
                    break;
                }
                let Some(job) = self.next_job.take().or_else(|| self.deques.pop_job()) else { break };
                self.tick.set(self.tick.get() + 1);
                self.run_job(job);
            }
        }
        core.after_run(self.index);
    }

    #[inline]
    fn run_job(&self, job: Arc<dyn Job>) {
        let context = WorkerContext { local: self, event: Event::NONE };
        match &self.core().profiler {
            None => job.run(&context),
            Some(profiler) => {
                let (operation, tag) = job.recorded();
                let activity = profiler.activity(operation, tag);
                job.run(&context);
                activity.end();
            }
        }
    }

    /// The realm stops: jobs that were not run are dropped, here, where their destructors may still use the realm.
    pub(super) fn drop_jobs(&self) {
        while let Some(job) = self.deques.pop_job() {
            drop(job);
        }
    }
}
