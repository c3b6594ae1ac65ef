//! A worker's place, and its holder: the worker's own thread, or a thread of the program's that would sleep otherwise.
//! The protocol is described in the crate's `README.md`.
//!
//! The file knows nothing of workers, so that loom can check it alone (`tests/loom`).

use std::time::Duration;

use crate::sync::{Arc, AtomicU32, Mutex, Ordering, Parker};

/// The seat of one worker. What belongs to the worker's thread alone is the *place*: it goes from hand to hand, and
/// only its holder may use it.
pub(crate) struct Seat<P> {
    state: Mutex<SeatState<P>>,
    /// Whether a guest waits for the place, as `state` says. The worker's own thread looks here, without the lock,
    /// after each thing that it has done.
    is_wanted: AtomicU32,
    /// The kind of the holder, likewise: one of the constants below.
    attendance: AtomicU32,
    /// The parker of the worker's own thread, for the time that others have the place.
    own_thread: Parker,
}

struct SeatState<P> {
    holder: Holder<P>,
    /// How often a guest has left that had done something.
    visits: u64,
    /// The worker's own thread waits for a guest to leave.
    is_told_of_leaving: bool,
}

/// The holder of the place.
enum Holder<P> {
    /// The worker's own thread. A guest may be waiting for it, here.
    Own(Option<Arc<Parker>>),
    /// No thread: the first that comes takes it.
    Vacant(P),
    /// A guest.
    Guest,
    /// No thread, and it is meant for the worker's own thread.
    Returned(P),
}

const OWN_THREAD: u32 = 0;
const VACANT: u32 = 1;
const GUEST: u32 = 2;

/// How long the worker's own thread sleeps before it looks whether a guest has gone for good, first and at most.
const NAPS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(4));

impl<P> Seat<P> {
    pub(crate) fn new() -> Self {
        let state = SeatState { holder: Holder::Own(None), visits: 0, is_told_of_leaving: false };
        Self {
            state: Mutex::new(state),
            is_wanted: AtomicU32::new(0),
            attendance: AtomicU32::new(OWN_THREAD),
            own_thread: Parker::default(),
        }
    }

    /// Whether a guest waits for the place. To be asked by the worker's own thread.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::SeqCst) != 0
    }

    /// Whether a guest has the place. One that has just taken it is seen by a thread that has made a fence since, or
    /// else sees what came before that.
    #[inline]
    pub(crate) fn has_guest(&self) -> bool {
        self.attendance.load(Ordering::SeqCst) == GUEST
    }

    /// Whether the place is vacant, more or less.
    #[inline]
    pub(crate) fn is_unattended(&self) -> bool {
        self.attendance.load(Ordering::SeqCst) == VACANT
    }

    /// Lets a guest in that waits for the place, and waits until it is given back, or it was not used for a while, or
    /// it is vacant and `is_needed`.
    pub(crate) fn lend(&self, place: P, is_needed: impl Fn() -> bool) -> P {
        let mut state = self.state.lock();
        let Holder::Own(guest) = &mut state.holder else { unreachable!("the worker's own thread has the place") };
        let Some(guest) = guest.take() else { return place };
        self.is_wanted.store(0, Ordering::SeqCst);
        state.holder = Holder::Vacant(place);
        self.attendance.store(VACANT, Ordering::SeqCst);
        drop(state);
        guest.unpark();
        self.await_return(is_needed)
    }

    fn await_return(&self, is_needed: impl Fn() -> bool) -> P {
        let (mut nap, mut visits_before) = (NAPS.0, None);
        loop {
            self.own_thread.park_for(nap);
            nap = NAPS.1.min(2 * nap);
            let mut state = self.state.lock();
            let is_quiet = visits_before.replace(state.visits) == Some(state.visits);
            match std::mem::replace(&mut state.holder, Holder::Own(None)) {
                Holder::Returned(place) => return place,
                // The guest that left it does something else. What waits in the worker's queues shall not.
                Holder::Vacant(place) if is_quiet || is_needed() => {
                    self.attendance.store(OWN_THREAD, Ordering::SeqCst);
                    return place;
                }
                held => state.holder = held,
            }
            if is_quiet {
                // A guest stays long, maybe as there is no work.
                state.is_told_of_leaving = true;
                drop(state);
                self.own_thread.park();
                nap = NAPS.0;
            }
        }
    }

    /// The worker's own thread looks at once whether it should have the place.
    pub(crate) fn call_back(&self) {
        self.own_thread.unpark();
    }

    /// A guest asks the worker's own thread for the place. If that has it, and no other guest has asked, it will unpark
    /// the guest when the place is [free](Self::take_free); the caller sees to it that it is awake.
    pub(crate) fn ask(&self, guest: &Arc<Parker>) -> bool {
        let mut state = self.state.lock();
        let Holder::Own(asking @ None) = &mut state.holder else { return false };
        *asking = Some(Arc::clone(guest));
        self.is_wanted.store(1, Ordering::SeqCst);
        true
    }

    /// A guest takes the place if it is vacant.
    pub(crate) fn take_free(&self) -> Option<P> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut state.holder, Holder::Guest) {
            Holder::Vacant(place) => {
                self.attendance.store(GUEST, Ordering::SeqCst);
                Some(place)
            }
            held => {
                state.holder = held;
                None
            }
        }
    }

    /// A guest that has asked wants the place no more. Maybe it was let in meanwhile.
    pub(crate) fn withdraw(&self) {
        let mut state = self.state.lock();
        if let Holder::Own(guest) = &mut state.holder {
            *guest = None;
            self.is_wanted.store(0, Ordering::SeqCst);
        } else {
            drop(state);
            self.give_back();
        }
    }

    /// A guest leaves, and may be back soon. If it has not done anything, it might as well not have been there.
    pub(crate) fn leave(&self, place: P, has_worked: bool) {
        let mut state = self.state.lock();
        state.holder = Holder::Vacant(place);
        state.visits += u64::from(has_worked);
        self.attendance.store(VACANT, Ordering::SeqCst);
        if std::mem::take(&mut state.is_told_of_leaving) {
            self.own_thread.unpark();
        }
    }

    /// No guest comes back: what a guest has left is for the worker's own thread.
    pub(crate) fn give_back(&self) {
        let mut state = self.state.lock();
        match std::mem::replace(&mut state.holder, Holder::Own(None)) {
            Holder::Vacant(place) => {
                state.holder = Holder::Returned(place);
                self.attendance.store(OWN_THREAD, Ordering::SeqCst);
                self.own_thread.unpark();
            }
            held => state.holder = held,
        }
    }
}
