//! Workers and jobs: queueing them, and running one after the other.

use super::{Local, OTHERS_EVERY, WorkerContext, Workers};
use crate::events::Event;
use crate::operation::job::Job;

/// So many jobs of its own a worker runs before it looks whether there is anything else.
const JOBS_IN_A_ROW: usize = 64;

impl Workers {
    /// Runs jobs of this worker's own on top of the caller until `is_done`. Not if this thread is no worker, while
    /// there is something else to do first, or with more than a quarter of the stack in use. Whether it is done.
    #[inline]
    pub(crate) fn help_with_own_jobs(&self, is_done: impl Fn() -> bool) -> bool {
        match self.local() {
            Some(local) => local.help_with_own_jobs(is_done),
            None => is_done(),
        }
    }
}

impl Local {
    /// Runs a job, and then those of this worker's own that are ready.
    #[inline]
    pub(super) fn run_jobs(&self, job: Job) {
        self.run_job(job);
        // A worker that helps has a condition to look at.
        if self.depth.get() == 0 {
            for _ in 1..JOBS_IN_A_ROW {
                let Some(job) = self.next_own_job() else { break };
                self.run_job(job);
                self.operations().take_turn();
            }
        }
        self.workers.after_run(self.index());
    }

    #[inline]
    fn help_with_own_jobs(&self, is_done: impl Fn() -> bool) -> bool {
        while !is_done() {
            if !self.has_stack_left() {
                return false;
            }
            let Some(job) = self.next_own_job() else { return false };
            self.nested.set(self.nested.get() + 1);
            // Not on to the body below, which would take it for its own panic.
            self.operations().unheard(|| format!("a job, as worker {} ran it,", self.index()), || self.run_job(job));
            self.nested.set(self.nested.get() - 1);
        }
        // The body may go on for long: what was kept to be run next is for others.
        self.queue.release_next();
        true
    }

    /// A job of this worker's own, unless there is something else to do first.
    #[inline]
    fn next_own_job(&self) -> Option<Job> {
        let (queues, worker) = (&self.operations().queues, self.index());
        if self.queue.next.get() != 0
            || queues.has_runtime_work_for(worker, &self.queue.deques)
            || self.operations().is_stopping()
        {
            return None;
        }
        if self.tick.get() >= OTHERS_EVERY {
            if queues.has_work_of_others(worker, &self.queue.deques) {
                return None;
            }
            self.tick.set(0);
        }
        let job = self.queue.next_job.take().or_else(|| self.queue.deques.pop_job())?;
        self.tick.set(self.tick.get() + 1);
        Some(job)
    }

    /// Whether helping may go on: jobs that are run on top of one another, each with the stack that its body needs,
    /// must leave most of it.
    #[inline]
    fn has_stack_left(&self) -> bool {
        let here = 0_u8;
        let (base, most) = &self.stack;
        base.get().abs_diff(&raw const here as usize) < *most
    }

    #[inline]
    fn run_job(&self, job: Job) {
        let context = WorkerContext { worker: &self.queue.worker, event: Event::NONE };
        match &self.operations().profiler {
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
        while let Some(job) = self.queue.deques.pop_job() {
            drop(job);
        }
    }
}
