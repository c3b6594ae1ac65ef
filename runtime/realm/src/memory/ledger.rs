//! The book-keeping of one memory: what is used, what was promised, what is to come.
//!
//! An allocation that does not fit now may be *deferred*: promised against releases that were announced before it and
//! will happen, whenever that is. The ledger keeps one rule, which makes every promise good:
//!
//! > For each deferred allocation, the bytes used now, less the announced releases **before** it, plus the deferred
//! > allocations up to and including it, fit in the capacity.
//!
//! Only the releases before it count, because a later one may itself be waiting, through any chain of events, for this
//! very allocation: counting on it would be a deadlock. Under the rule, once the releases before an allocation have
//! happened, the allocations before it can be granted in order, and then itself; so by induction every promise is kept,
//! in whatever order the releases come. Nothing is granted out of turn, at once or from the middle of the queue, unless
//! the rule still holds afterwards. An allocation that would break the rule is refused at once: no allocation waits for
//! what cannot come.
//!
//! Realm keeps three allocators for the same purpose (`mem_impl.cc`: current, future, release). There, addresses are
//! handed out, so fragments matter; here the system gives addresses, and counting bytes is enough, and exact.

use std::collections::BTreeMap;

/// Names an announced release or a deferred allocation: its place in the order of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// The ledger's answer to an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The bytes are used from now on.
    Granted,
    /// The bytes will be granted under this ticket.
    Deferred(Ticket),
    /// The bytes cannot come.
    Refused,
}

#[derive(Clone, Copy, Debug)]
enum LedgerEntry {
    Release(u64),
    Allocation(u64),
}

/// Counts the bytes of one memory. See the module's text for its rule.
#[derive(Clone, Debug)]
pub struct Ledger {
    capacity: u64,
    used: u64,
    /// Bytes of others that lie in the memory: there for a request that is made now, and not there for the requests
    /// that were promised some.
    charged: u64,
    peak: u64,
    /// Announced releases and deferred allocations in the order of requests.
    entries: BTreeMap<u64, LedgerEntry>,
    /// The bytes of the announced releases among the entries.
    releasing: u64,
    /// The bytes of the deferred allocations among the entries.
    deferred: u64,
    next: u64,
}

impl Ledger {
    /// A memory of `capacity` bytes, none of them used.
    pub fn new(capacity: u64) -> Self {
        let (used, charged, peak, releasing, deferred, next) = (0, 0, 0, 0, 0, 0);
        Self { capacity, used, charged, peak, entries: BTreeMap::new(), releasing, deferred, next }
    }

    /// The bytes that there are.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The bytes that granted allocations hold, and those that are charged.
    pub fn used(&self) -> u64 {
        self.used + self.charged
    }

    /// Counts bytes that are in the memory already, allocated by others: they may be more than there is room for.
    /// Promises that were made rest on the capacity without them, so that the holder of the charged bytes may wait for
    /// a request that was promised bytes.
    pub fn charge(&mut self, bytes: u64) {
        self.charged += bytes;
        self.peak = self.peak.max(self.used());
    }

    /// Bytes that were charged are gone.
    pub fn discharge(&mut self, bytes: u64) {
        self.charged = self.charged.checked_sub(bytes).expect("no more bytes go than were charged");
    }

    /// The capacity for what is allocated from now on.
    fn room(&self) -> u64 {
        self.capacity.saturating_sub(self.charged)
    }

    /// The most bytes used at once, since the peak was last reset.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Forgets what was used before.
    pub fn reset_peak(&mut self) {
        self.peak = self.used();
    }

    /// The bytes of announced releases that have not happened.
    pub fn releasing(&self) -> u64 {
        self.releasing
    }

    /// The bytes of deferred allocations that were not granted yet.
    pub fn deferred(&self) -> u64 {
        self.deferred
    }

    /// Asks for bytes: at once if that breaks no promise, else deferred if they are sure to come.
    ///
    /// Constant time unless allocations are deferred; then linear in the announced releases and deferred allocations.
    pub fn allocate(&mut self, bytes: u64) -> Decision {
        if self.has_room(bytes) {
            self.take(bytes);
            return Decision::Granted;
        }
        let in_the_end = (self.used + self.deferred).saturating_sub(self.releasing);
        if !fits(in_the_end, bytes, self.room()) {
            return Decision::Refused;
        }
        self.deferred += bytes;
        Decision::Deferred(self.enter(LedgerEntry::Allocation(bytes)))
    }

    /// Whether bytes can be given at once without breaking a promise. Takes as long as [`allocate`](Self::allocate).
    pub fn has_room(&self, bytes: u64) -> bool {
        bytes == 0 || fits(self.used.max(self.highest_promise()), bytes, self.room())
    }

    /// Asks for bytes at once, and for none if that would break a promise: whether they are given.
    pub fn allocate_now(&mut self, bytes: u64) -> bool {
        let has_room = self.has_room(bytes);
        if has_room {
            self.take(bytes);
        }
        has_room
    }

    /// Gives back bytes that were granted and whose release was not announced; returns the deferred allocations that
    /// are granted thereby, in the order of their requests.
    ///
    /// # Panics
    ///
    /// If more is given back than is used.
    pub fn release(&mut self, bytes: u64) -> Vec<Ticket> {
        self.used = self.used.checked_sub(bytes).expect("no more bytes are released than were granted");
        self.grant_ready()
    }

    /// Announces that bytes which are granted now, or deferred already, will be released. Later allocations count on
    /// it; what is announced beyond those bytes is as if it were not.
    pub fn announce_release(&mut self, bytes: u64) -> Ticket {
        self.releasing += bytes;
        self.enter(LedgerEntry::Release(bytes))
    }

    /// An announced release happens; returns the deferred allocations that are granted thereby, in the order of their
    /// requests.
    ///
    /// # Panics
    ///
    /// If the ticket is not that of an announced release, or was used before.
    pub fn complete_release(&mut self, ticket: Ticket) -> Vec<Ticket> {
        match self.entries.remove(&ticket.0) {
            Some(LedgerEntry::Release(bytes)) => {
                self.releasing -= bytes;
                self.release(bytes)
            }
            other => panic!("{ticket:?} names no announced release, but {other:?}: each completes once"),
        }
    }

    /// An announced release will not happen as announced; nothing if it has happened. Promises that were made on it are
    /// kept when the bytes are released without an announcement.
    pub fn withdraw_release(&mut self, ticket: Ticket) {
        if let Some(LedgerEntry::Release(bytes)) = self.entries.get(&ticket.0).copied() {
            self.entries.remove(&ticket.0);
            self.releasing -= bytes;
        }
    }

    fn enter(&mut self, entry: LedgerEntry) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.entries.insert(ticket.0, entry);
        ticket
    }

    fn take(&mut self, bytes: u64) {
        self.used += bytes;
        self.peak = self.peak.max(self.used());
    }

    /// The highest level that the rule looks at: bytes granted out of turn come on top of it.
    fn highest_promise(&self) -> u64 {
        if self.deferred == 0 {
            return 0;
        }
        let (mut level, mut highest) = (self.used, 0);
        for entry in self.entries.values() {
            match *entry {
                LedgerEntry::Release(bytes) => level = level.saturating_sub(bytes),
                LedgerEntry::Allocation(bytes) => {
                    level += bytes;
                    highest = highest.max(level);
                }
            }
        }
        highest
    }

    /// Grants, in order, every deferred allocation that fits now and harms none before it.
    fn grant_ready(&mut self) -> Vec<Ticket> {
        if self.deferred == 0 {
            return Vec::new();
        }
        let mut granted = Vec::new();
        let (mut used, mut level, mut highest_before) = (self.used, self.used, 0);
        for (&number, entry) in &self.entries {
            match *entry {
                LedgerEntry::Release(bytes) => level = level.saturating_sub(bytes),
                LedgerEntry::Allocation(bytes) => {
                    level += bytes;
                    if fits(used.max(highest_before), bytes, self.capacity) {
                        used += bytes;
                        highest_before += bytes;
                        granted.push((Ticket(number), bytes));
                    } else {
                        highest_before = highest_before.max(level);
                    }
                }
            }
        }
        for &(ticket, bytes) in &granted {
            self.entries.remove(&ticket.0);
            self.deferred -= bytes;
            self.take(bytes);
        }
        granted.into_iter().map(|(ticket, _)| ticket).collect()
    }
}

fn fits(level: u64, bytes: u64, capacity: u64) -> bool {
    level.checked_add(bytes).is_some_and(|total| total <= capacity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_granted_and_what_never_can_is_refused() {
        let mut ledger = Ledger::new(10);
        assert_eq!(ledger.allocate(7), Decision::Granted);
        assert_eq!(ledger.allocate(4), Decision::Refused);
        assert_eq!(ledger.allocate(u64::MAX), Decision::Refused);
        assert_eq!(ledger.allocate(3), Decision::Granted);
        assert_eq!((ledger.used(), ledger.peak()), (10, 10));
        assert_eq!(ledger.release(7), []);
        assert_eq!((ledger.used(), ledger.peak()), (3, 10));
        ledger.reset_peak();
        assert_eq!(ledger.peak(), 3);
    }

    #[test]
    fn what_is_charged_takes_room_from_what_comes_and_from_no_promise() {
        let mut ledger = Ledger::new(10);
        ledger.allocate(8);
        let release = ledger.announce_release(8);
        let Decision::Deferred(promised) = ledger.allocate(9) else { panic!("ten bytes are to come") };
        ledger.charge(7);
        assert_eq!((ledger.used(), ledger.peak()), (15, 15));
        assert_eq!(ledger.allocate(1), Decision::Refused);
        assert_eq!(ledger.complete_release(release), [promised]);
        assert_eq!(ledger.release(9), []);
        assert_eq!(ledger.allocate(4), Decision::Refused);
        assert_eq!(ledger.allocate(3), Decision::Granted);
        ledger.discharge(7);
        assert_eq!(ledger.allocate(7), Decision::Granted);
        assert_eq!(ledger.peak(), 16);
    }

    #[test]
    fn an_announced_release_is_promised_to_the_next_allocation_and_to_it_alone() {
        let mut ledger = Ledger::new(10);
        ledger.allocate(10);
        let release = ledger.announce_release(10);
        let Decision::Deferred(first) = ledger.allocate(6) else { panic!("ten bytes are to come") };
        assert_eq!(ledger.allocate(6), Decision::Refused);
        let Decision::Deferred(second) = ledger.allocate(4) else { panic!("four bytes are left") };
        assert_eq!(ledger.complete_release(release), [first, second]);
        assert_eq!((ledger.used(), ledger.deferred(), ledger.releasing()), (10, 0, 0));
    }

    #[test]
    fn an_allocation_does_not_overtake_when_a_promise_rests_on_the_bytes() {
        let mut ledger = Ledger::new(10);
        ledger.allocate(5);
        ledger.allocate(4);
        let first = ledger.announce_release(5);
        let Decision::Deferred(waiting) = ledger.allocate(6) else { panic!("six bytes are to come") };
        // This release may wait for the deferred allocation, so no other allocation may take the free byte on its
        // account.
        let second = ledger.announce_release(4);
        let Decision::Deferred(behind) = ledger.allocate(1) else { panic!("it fits in the end") };
        assert_eq!(ledger.complete_release(first), [waiting]);
        assert_eq!(ledger.complete_release(second), [behind]);
    }

    #[test]
    fn a_deferred_allocation_does_not_overtake_either() {
        let mut ledger = Ledger::new(10);
        ledger.allocate(10);
        let (first, second) = (ledger.announce_release(2), ledger.announce_release(4));
        let Decision::Deferred(waiting) = ledger.allocate(6) else { panic!("six bytes are to come") };
        let last = ledger.announce_release(4);
        let Decision::Deferred(behind) = ledger.allocate(2) else { panic!("it fits in the end") };
        // Two bytes are free now, but the first in the queue needs them with the four of the second release.
        assert_eq!(ledger.complete_release(first), []);
        assert_eq!(ledger.complete_release(second), [waiting]);
        assert_eq!(ledger.complete_release(last), [behind]);
    }

    #[test]
    fn an_allocation_overtakes_when_no_promise_rests_on_the_bytes() {
        let mut ledger = Ledger::new(10);
        ledger.allocate(8);
        let release = ledger.announce_release(8);
        let Decision::Deferred(waiting) = ledger.allocate(8) else { panic!("eight bytes are to come") };
        assert_eq!(ledger.allocate(2), Decision::Granted);
        assert_eq!(ledger.complete_release(release), [waiting]);
    }

    #[test]
    fn what_is_wanted_at_once_breaks_no_promise() {
        let mut ledger = Ledger::new(10);
        ledger.allocate(8);
        assert!(ledger.has_room(2) && !ledger.has_room(3));
        let release = ledger.announce_release(8);
        assert!(!ledger.allocate_now(3));
        let Decision::Deferred(waiting) = ledger.allocate(9) else { panic!("ten bytes are to come") };
        assert!(!ledger.allocate_now(2));
        assert!(ledger.allocate_now(1) && ledger.allocate_now(0));
        assert_eq!(ledger.complete_release(release), [waiting]);
        assert_eq!((ledger.used(), ledger.peak()), (10, 10));
    }

    #[test]
    fn nothing_is_deferred_for_no_bytes() {
        let mut ledger = Ledger::new(0);
        assert_eq!(ledger.allocate(0), Decision::Granted);
        assert_eq!(ledger.allocate(1), Decision::Refused);
    }

    #[derive(Clone, Debug)]
    enum Request {
        Allocate(u64),
        Announce(prop::sample::Index),
        Release(prop::sample::Index),
        Complete(prop::sample::Index),
    }

    fn requests() -> impl Strategy<Value = Vec<Request>> {
        let request = prop_oneof![
            (1..40u64).prop_map(Request::Allocate),
            any::<prop::sample::Index>().prop_map(Request::Announce),
            any::<prop::sample::Index>().prop_map(Request::Announce),
            any::<prop::sample::Index>().prop_map(Request::Release),
            any::<prop::sample::Index>().prop_map(Request::Complete),
        ];
        prop::collection::vec(request, 0..80)
    }

    /// Sizes of the allocations, the deferred among them, and the announced releases, as a program would know them.
    #[derive(Default)]
    struct Program {
        held: Vec<u64>,
        deferred: BTreeMap<Ticket, u64>,
        announced: BTreeMap<Ticket, u64>,
    }

    impl Program {
        fn granted(&mut self, tickets: Vec<Ticket>) {
            for ticket in tickets {
                let bytes = self.deferred.remove(&ticket).expect("only what is deferred is granted later");
                self.held.push(bytes);
            }
        }

        /// The announced releases that could happen if each waited for every allocation deferred before it: the worst
        /// program there is.
        fn possible(&self) -> Vec<Ticket> {
            let first = self.deferred.keys().next();
            self.announced.keys().copied().filter(|ticket| first.is_none_or(|first| ticket < first)).collect()
        }

        fn check(&self, ledger: &Ledger) {
            let used = self.held.iter().chain(self.announced.values()).sum::<u64>();
            assert_eq!(ledger.used(), used);
            assert!(used <= ledger.capacity());
            assert_eq!(ledger.deferred(), self.deferred.values().sum::<u64>());
            assert_eq!(ledger.releasing(), self.announced.values().sum::<u64>());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn every_promise_is_kept_in_whatever_order_releases_come(
            requests in requests(), order: Vec<prop::sample::Index>
        ) {
            let mut ledger = Ledger::new(100);
            let mut program = Program::default();
            for request in requests {
                match request {
                    Request::Allocate(bytes) => match ledger.allocate(bytes) {
                        Decision::Granted => program.held.push(bytes),
                        Decision::Deferred(ticket) => { program.deferred.insert(ticket, bytes); }
                        Decision::Refused => {
                            let held = program.held.iter().chain(program.deferred.values()).sum::<u64>();
                            prop_assert!(held + bytes > 100, "refused what would have fitted in the end");
                        }
                    },
                    Request::Announce(which) if !program.held.is_empty() => {
                        let bytes = program.held.swap_remove(which.index(program.held.len()));
                        program.announced.insert(ledger.announce_release(bytes), bytes);
                    }
                    Request::Release(which) if !program.held.is_empty() => {
                        let bytes = program.held.swap_remove(which.index(program.held.len()));
                        program.granted(ledger.release(bytes));
                    }
                    Request::Complete(which) if !program.possible().is_empty() => {
                        let possible = program.possible();
                        let ticket = possible[which.index(possible.len())];
                        program.announced.remove(&ticket);
                        program.granted(ledger.complete_release(ticket));
                    }
                    _ => {}
                }
                program.check(&ledger);
            }
            let mut order = order.into_iter();
            while !program.announced.is_empty() {
                let possible = program.possible();
                prop_assert!(!possible.is_empty(), "a promise rests on a release that waits for it");
                let which = order.next().map_or(0, |index| index.index(possible.len()));
                program.announced.remove(&possible[which]);
                program.granted(ledger.complete_release(possible[which]));
                program.check(&ledger);
            }
            prop_assert!(program.deferred.is_empty(), "a promise was not kept");
        }
    }
}
