//! The queues that ready operations wait in, and the order in which a worker looks at them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use crate::locks::{Mutex, RwLock};
use crossbeam_deque::{Injector, Steal, Stealer as JobStealer, Worker as JobDeque};
use crossbeam_utils::CachePadded;

use super::deque::{Deque, Stealer};
use super::{Class, GroupId, Rank};

/// An exact priority queue: highest rank first, then first come, first served.
pub(crate) struct RankedQueue {
    /// The rank of the first item, so that looking costs a load.
    top: AtomicI64,
    items: Mutex<RankedItems>,
}

/// A line for each rank. Few ranks are in use at a time, so a few empty lines are kept rather than made anew.
#[derive(Default)]
struct RankedItems {
    lines: BTreeMap<Rank, VecDeque<u32>>,
}

const EMPTY_LINES: usize = 16;

impl RankedItems {
    fn push(&mut self, rank: Rank, index: u32) {
        self.lines.entry(rank).or_default().push_back(index);
    }

    fn pop(&mut self) -> Option<u32> {
        let (&rank, line) = self.lines.iter_mut().rfind(|(_, line)| !line.is_empty())?;
        let index = line.pop_front();
        if line.is_empty() && self.lines.len() > EMPTY_LINES {
            self.lines.remove(&rank);
        }
        index
    }

    fn top(&self) -> Rank {
        self.lines.iter().rfind(|(_, line)| !line.is_empty()).map_or(Rank::NOTHING, |(&rank, _)| rank)
    }
}

impl RankedQueue {
    fn new() -> Self {
        Self { top: AtomicI64::new(Rank::NOTHING.0), items: Mutex::default() }
    }

    fn push(&self, rank: Rank, index: u32) {
        let mut items = self.items.lock();
        items.push(rank, index);
        self.publish_top(&items);
    }

    /// The rank of the first item.
    fn top(&self) -> Rank {
        Rank(self.top.load(Ordering::Relaxed))
    }

    fn is_empty(&self) -> bool {
        self.top() == Rank::NOTHING
    }

    fn pop(&self) -> Option<u32> {
        let mut items = self.items.lock();
        let index = items.pop()?;
        self.publish_top(&items);
        Some(index)
    }

    fn publish_top(&self, items: &RankedItems) {
        self.top.store(items.top().0, Ordering::Relaxed);
    }
}

/// A queue that any thread may put something in: first in, first out. Taking takes no lock.
struct SharedQueue {
    /// Apart from what every worker reads that looks for something to do.
    back: CachePadded<Mutex<Deque>>,
    front: Stealer,
}

impl SharedQueue {
    fn new() -> Self {
        let back = Deque::new();
        Self { front: back.stealer(), back: CachePadded::new(Mutex::new(back)) }
    }

    fn push(&self, index: u32) {
        self.back.lock().push(index);
    }

    fn is_empty(&self) -> bool {
        self.front.is_empty()
    }
}

/// The part of a worker's queues that the others see. Arrays are indexed by [`Class`].
struct WorkerQueues<J> {
    deques: [Stealer; 2],
    /// Operations that others hand to this worker, and that any worker may steal.
    inboxes: [SharedQueue; 2],
    /// Operations that only this worker may run: of priority 0 here, of other priorities in `pinned_by_rank`.
    pinned: [SharedQueue; 2],
    pinned_by_rank: RankedQueue,
    jobs: JobStealer<J>,
}

/// Something that waits: an operation, by the index of its slot, or a job.
pub(crate) enum Queued<J> {
    Operation(u32),
    Job(J),
}

/// The worker that looks for something to do.
pub(crate) struct Taker<'a, J, P> {
    pub(crate) worker: usize,
    pub(crate) own: &'a OwnDeques<J>,
    /// Begins to fetch an operation, to be run soon.
    pub(crate) prefetch: P,
}

/// A processor group: one queue that its members serve.
pub(crate) struct Group {
    members: Box<[usize]>,
    queue: RankedQueue,
}

/// All queues of a realm.
pub(crate) struct Queues<J> {
    /// Operations that threads which are no workers queued for any worker.
    shared: [SharedQueue; 2],
    /// The same of jobs.
    shared_jobs: Injector<J>,
    workers: Box<[CachePadded<WorkerQueues<J>>]>,
    /// Operations that any worker may run, of priorities other than 0.
    ranked: RankedQueue,
    groups: RwLock<Vec<Arc<Group>>>,
    /// Whether there is any group to look at.
    any_groups: AtomicBool,
    /// Items in ranked queues, so that no worker looks at them while there are none.
    in_ranked: CachePadded<AtomicUsize>,
}

/// The worker's own ends of its deques.
pub(crate) struct OwnDeques<J> {
    deques: [Deque; 2],
    jobs: JobDeque<J>,
}

impl<J> OwnDeques<J> {
    pub(crate) fn new() -> Self {
        Self { deques: [Deque::new(), Deque::new()], jobs: JobDeque::new_lifo() }
    }

    #[inline]
    pub(crate) fn push_job(&self, job: J) {
        self.jobs.push(job);
    }

    #[inline]
    pub(crate) fn pop_job(&self) -> Option<J> {
        self.jobs.pop()
    }

    pub(crate) fn has_jobs(&self) -> bool {
        !self.jobs.is_empty()
    }

    pub(crate) fn push(&self, class: Class, index: u32) {
        self.deques[class as usize].push(index);
    }

    pub(crate) fn has_runtime_work(&self) -> bool {
        !self.deques[Class::Runtime as usize].is_empty()
    }

    fn stealers(&self) -> [Stealer; 2] {
        [self.deques[0].stealer(), self.deques[1].stealer()]
    }
}

impl<J> Queues<J> {
    pub(crate) fn new(own: &[OwnDeques<J>]) -> Self {
        let worker = |deques: &OwnDeques<J>| {
            CachePadded::new(WorkerQueues {
                deques: deques.stealers(),
                inboxes: [SharedQueue::new(), SharedQueue::new()],
                pinned: [SharedQueue::new(), SharedQueue::new()],
                pinned_by_rank: RankedQueue::new(),
                jobs: deques.jobs.stealer(),
            })
        };
        Self {
            shared: [SharedQueue::new(), SharedQueue::new()],
            shared_jobs: Injector::new(),
            workers: own.iter().map(worker).collect(),
            ranked: RankedQueue::new(),
            groups: RwLock::default(),
            any_groups: AtomicBool::new(false),
            in_ranked: CachePadded::new(AtomicUsize::new(0)),
        }
    }

    pub(crate) fn push_shared(&self, class: Class, index: u32) {
        self.shared[class as usize].push(index);
    }

    pub(crate) fn push_shared_job(&self, job: J) {
        self.shared_jobs.push(job);
    }

    pub(crate) fn push_inbox(&self, worker: usize, class: Class, index: u32) {
        self.workers[worker].inboxes[class as usize].push(index);
    }

    pub(crate) fn push_pinned(&self, worker: usize, class: Class, priority: i32, index: u32) {
        let queues = &self.workers[worker];
        if priority == 0 {
            queues.pinned[class as usize].push(index);
        } else {
            self.push_ranked(&queues.pinned_by_rank, Rank::new(class, priority), index);
        }
    }

    pub(crate) fn push_by_rank(&self, rank: Rank, index: u32) {
        self.push_ranked(&self.ranked, rank, index);
    }

    /// Queues for a group and gives its members.
    pub(crate) fn push_group(&self, group: usize, rank: Rank, index: u32) -> Arc<Group> {
        let group = Arc::clone(&self.groups.read()[group]);
        self.push_ranked(&group.queue, rank, index);
        group
    }

    fn push_ranked(&self, queue: &RankedQueue, rank: Rank, index: u32) {
        // Counted first: an item that is not yet there costs a look, an item not counted would be overlooked.
        self.in_ranked.fetch_add(1, Ordering::Relaxed);
        queue.push(rank, index);
    }

    pub(crate) fn add_group(&self, realm: u32, members: Box<[usize]>) -> GroupId {
        let mut groups = self.groups.write();
        groups.push(Arc::new(Group { members, queue: RankedQueue::new() }));
        // A thread that is handed the group's name, and queues by it, does so after this.
        self.any_groups.store(true, Ordering::Relaxed);
        GroupId { realm, number: groups.len() as u32 - 1 }
    }

    /// The number of a group, if it is this realm's.
    pub(crate) fn group_index(&self, realm: u32, group: GroupId) -> Option<usize> {
        (group.realm == realm).then_some(group.number as usize)
    }

    /// Takes what this worker should run next, from its own queues or from another's. `random` chooses the first
    /// victim.
    pub(crate) fn find(&self, taker: &Taker<'_, J, impl Fn(u32)>, others_turn: bool, random: u32) -> Option<Queued<J>> {
        self.find_here(taker, others_turn)
            .or_else(|| self.steal(taker, random).map(Queued::Operation))
            .or_else(|| self.steal_job(taker, random).map(Queued::Job))
            .or_else(|| self.take_ranked(taker.worker, Rank::NOTHING).map(Queued::Operation))
    }

    /// [`find`](Self::find) without stealing, and without what has a negative priority. `others_turn` puts what the
    /// worker was handed by others before its own tasks, and these before its jobs.
    pub(crate) fn find_here(&self, taker: &Taker<'_, J, impl Fn(u32)>, others_turn: bool) -> Option<Queued<J>> {
        if others_turn && let Some(found) = self.find_of_others(taker) {
            return Some(found);
        }
        self.take_ranked(taker.worker, Rank::RUNTIME)
            .or_else(|| self.take_of_class(taker, Class::Runtime))
            .or_else(|| self.take_ranked(taker.worker, Rank::TASK))
            .map(Queued::Operation)
            .or_else(|| taker.own.pop_job().map(Queued::Job))
            .or_else(|| self.take_of_class(taker, Class::Task).map(Queued::Operation))
            .or_else(|| take_jobs(&self.shared_jobs, &taker.own.jobs).map(Queued::Job))
    }

    /// Takes work that a worker which always has something of its own would not come to.
    fn find_of_others(&self, taker: &Taker<'_, J, impl Fn(u32)>) -> Option<Queued<J>> {
        self.take_handed(taker, Class::Task)
            .or_else(|| self.take_of_class(taker, Class::Task))
            .map(Queued::Operation)
            .or_else(|| take_jobs(&self.shared_jobs, &taker.own.jobs).map(Queued::Job))
    }

    /// Takes an operation of the runtime, from this worker's queues or from others', but for those that have a rank.
    pub(crate) fn find_runtime_work(&self, taker: &Taker<'_, J, impl Fn(u32)>, random: u32) -> Option<u32> {
        self.take_of_class(taker, Class::Runtime).or_else(|| self.steal_of_class(taker, Class::Runtime, random))
    }

    /// From a ranked queue that this worker serves, if the first item's rank is at least `least`.
    #[inline]
    fn take_ranked(&self, worker: usize, least: Rank) -> Option<u32> {
        if self.in_ranked.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.take_ranked_of(worker, least)
    }

    #[cold]
    fn take_ranked_of(&self, worker: usize, least: Rank) -> Option<u32> {
        let pinned = &self.workers[worker].pinned_by_rank;
        let best = if pinned.top() >= self.ranked.top() { pinned } else { &self.ranked };
        let index = if self.any_groups.load(Ordering::Relaxed) {
            let groups = self.groups.read();
            let served = groups.iter().filter(|group| group.members.contains(&worker)).map(|group| &group.queue);
            pop_at_least(served.chain([best]).max_by_key(|queue| queue.top())?, least)
        } else {
            pop_at_least(best, least)
        }?;
        self.in_ranked.fetch_sub(1, Ordering::Relaxed);
        Some(index)
    }

    #[inline]
    fn take_of_class(&self, taker: &Taker<'_, J, impl Fn(u32)>, class: Class) -> Option<u32> {
        let pinned = &self.workers[taker.worker].pinned[class as usize];
        let taken = pinned.front.take().or_else(|| taker.own.deques[class as usize].pop());
        taken.or_else(|| self.take_handed(taker, class))
    }

    /// From the worker's inbox or the shared queue.
    #[inline]
    fn take_handed(&self, taker: &Taker<'_, J, impl Fn(u32)>, class: Class) -> Option<u32> {
        let inbox = &self.workers[taker.worker].inboxes[class as usize];
        taker.take(&inbox.front, class).or_else(|| taker.take(&self.shared[class as usize].front, class))
    }

    fn steal(&self, taker: &Taker<'_, J, impl Fn(u32)>, random: u32) -> Option<u32> {
        let classes = [Class::Runtime, Class::Task];
        classes.into_iter().find_map(|class| self.steal_of_class(taker, class, random))
    }

    fn steal_of_class(&self, taker: &Taker<'_, J, impl Fn(u32)>, class: Class, random: u32) -> Option<u32> {
        self.others(taker.worker, random).find_map(|victim| {
            taker
                .take(&victim.deques[class as usize], class)
                .or_else(|| taker.take(&victim.inboxes[class as usize].front, class))
        })
    }

    fn steal_job(&self, taker: &Taker<'_, J, impl Fn(u32)>, random: u32) -> Option<J> {
        let mut victims = self.others(taker.worker, random);
        victims.find_map(|victim| retry(|| victim.jobs.steal_batch_and_pop(&taker.own.jobs)))
    }

    /// All workers but this, beginning with any.
    fn others(&self, worker: usize, random: u32) -> impl Iterator<Item = &WorkerQueues<J>> {
        let count = self.workers.len();
        let first = random as usize % count;
        (first..count).chain(0..first).filter(move |&other| other != worker).map(|other| &*self.workers[other])
    }

    /// How many jobs wait, more or less.
    pub(crate) fn jobs(&self) -> usize {
        self.shared_jobs.len() + self.workers.iter().map(|worker| worker.jobs.len()).sum::<usize>()
    }

    /// The oldest job that is for any worker, or of the worker that has most of them.
    pub(crate) fn steal_oldest_job(&self) -> Option<J> {
        let richest = || self.workers.iter().max_by_key(|worker| worker.jobs.len());
        retry(|| self.shared_jobs.steal())
            .or_else(|| retry(|| richest().map_or(Steal::Empty, |worker| worker.jobs.steal())))
    }

    /// Whether there is work of the runtime that this worker should do before anything else.
    #[inline]
    pub(crate) fn has_runtime_work_for(&self, worker: usize, own: &OwnDeques<J>) -> bool {
        const RUNTIME: usize = Class::Runtime as usize;
        let handed = &self.workers[worker];
        own.has_runtime_work()
            || !self.shared[RUNTIME].is_empty()
            || !handed.inboxes[RUNTIME].is_empty()
            || !handed.pinned[RUNTIME].is_empty()
    }

    /// Whether [`find_of_others`](Self::find_of_others) would find something, or there is something of a rank.
    pub(crate) fn has_work_of_others(&self, worker: usize, own: &OwnDeques<J>) -> bool {
        const TASK: usize = Class::Task as usize;
        !own.deques[TASK].is_empty()
            || !self.workers[worker].inboxes[TASK].is_empty()
            || !self.workers[worker].pinned[TASK].is_empty()
            || !self.shared[TASK].is_empty()
            || !self.shared_jobs.is_empty()
            || self.in_ranked.load(Ordering::Relaxed) > 0
    }

    /// Whether there is anything that this worker could run.
    pub(crate) fn has_work_for(&self, worker: usize) -> bool {
        self.has_work_for_anyone()
            || self.workers[worker].pinned.iter().any(|queue| !queue.is_empty())
            || (self.in_ranked.load(Ordering::Relaxed) > 0 && self.has_ranked_for(worker))
    }

    /// Whether there is anything that any worker may run.
    pub(crate) fn has_work_for_anyone(&self) -> bool {
        self.shared.iter().any(|queue| !queue.is_empty())
            || !self.shared_jobs.is_empty()
            || !self.ranked.is_empty()
            || self.workers.iter().any(|worker| {
                !worker.jobs.is_empty()
                    || worker.deques.iter().any(|deque| !deque.is_empty())
                    || worker.inboxes.iter().any(|inbox| !inbox.is_empty())
            })
    }

    fn has_ranked_for(&self, worker: usize) -> bool {
        let serves = |group: &Arc<Group>| group.members.contains(&worker) && !group.queue.is_empty();
        !self.workers[worker].pinned_by_rank.is_empty() || self.groups.read().iter().any(serves)
    }
}

impl Group {
    pub(crate) fn members(&self) -> &[usize] {
        &self.members
    }
}

fn pop_at_least(queue: &RankedQueue, least: Rank) -> Option<u32> {
    if queue.is_empty() || queue.top() < least { None } else { queue.pop() }
}

impl<J, P: Fn(u32)> Taker<'_, J, P> {
    /// Takes several items of a class: the oldest for now, and the others so that the oldest of them is next.
    #[inline]
    fn take(&self, queue: &Stealer, class: Class) -> Option<u32> {
        if queue.is_empty() { None } else { self.take_batch(queue, class) }
    }

    fn take_batch(&self, queue: &Stealer, class: Class) -> Option<u32> {
        let stolen = queue.steal()?;
        // Another thread wrote them last, and it is a long way from there: all at once it is hardly longer.
        stolen.items().iter().for_each(|&index| (self.prefetch)(index));
        let (&first, others) = stolen.items().split_first()?;
        self.own.deques[class as usize].push_all(others.iter().rev().copied());
        Some(first)
    }
}

fn take_jobs<J>(queue: &Injector<J>, deque: &JobDeque<J>) -> Option<J> {
    if queue.is_empty() { None } else { retry(|| queue.steal_batch_and_pop(deque)) }
}

fn retry<T>(mut steal: impl FnMut() -> Steal<T>) -> Option<T> {
    loop {
        match steal() {
            Steal::Success(taken) => return Some(taken),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}
