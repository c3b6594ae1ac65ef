//! Layers above a job: their messages, and what they are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple_cluster::{JobBuilder, JobMessageKind, Layer, Outgoing, Received};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::net::loopback::Network;
use maniple_realm::{Event, Fault, Realm, UserEvent};

/// Asks other nodes to square numbers, and keeps the answers.
#[derive(Default)]
struct Squares {
    answers: Mutex<Vec<(usize, u64)>>,
    missing: AtomicUsize,
    all_there: Mutex<Option<(Realm, UserEvent)>>,
    closed: AtomicUsize,
}

const ASK: JobMessageKind = JobMessageKind::new(0);
const ANSWER: JobMessageKind = JobMessageKind::new(1);

impl Squares {
    fn join(self: &Arc<Self>, builder: JobBuilder) -> JobBuilder {
        let this = Arc::clone(self);
        let ask = |mut received: Received<'_, '_>| {
            let number: u64 = received.header()?;
            // The payload comes back as it is.
            let answer = Outgoing::new(ANSWER, received.take_payload()).with_header(&(number * number));
            received.messenger().send(received.from(), answer);
            Some(())
        };
        let answer = move |mut received: Received<'_, '_>| {
            let square = received.header()?;
            (received.take_payload() == "please").then_some(())?;
            this.answers.lock().push((received.from(), square));
            if this.missing.fetch_sub(1, Ordering::SeqCst) == 1 {
                let (realm, event) = this.all_there.lock().take()?;
                realm.trigger(event);
            }
            Some(())
        };
        builder.on(ASK, "question", ask).on(ANSWER, "answer", answer).layer(Arc::clone(self) as Arc<dyn Layer>)
    }

    fn expect(&self, answers: usize, realm: &Realm) -> Event {
        let event = realm.user_event();
        self.missing.store(answers, Ordering::SeqCst);
        *self.all_there.lock() = Some((realm.clone(), event));
        event.event()
    }
}

impl Layer for Squares {
    fn open(&self) -> usize {
        self.missing.load(Ordering::SeqCst)
    }

    fn close(&self, why: Option<&Arc<Fault>>) {
        assert!(why.is_none());
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn layers_answer_each_other_and_are_told_of_the_end() {
    let network = Network::new(3);
    let pump = network.pump();
    std::thread::scope(|scope| {
        for rank in 0..3 {
            let transport = network.node(NodeId(rank));
            scope.spawn(move || {
                let realm = Realm::builder().workers(1).build().unwrap();
                let squares = Arc::new(Squares::default());
                let job = squares.join(JobBuilder::new(transport, &realm)).join();
                let all_there = squares.expect(2, &realm);
                let others = (0..3).filter(|&other| other != job.rank());
                for to in others.clone() {
                    job.send(to, Outgoing::new(ASK, "please").with_header(&(to as u64 + 5)));
                }
                realm.wait(all_there).unwrap();
                let mut answers = std::mem::take(&mut *squares.answers.lock());
                answers.sort_unstable();
                assert_eq!(answers, others.map(|other| (other, (other as u64 + 5).pow(2))).collect::<Vec<_>>());
                assert_eq!(job.open_exchanges(), 0);
                job.leave();
                assert_eq!(squares.closed.load(Ordering::SeqCst), 1);
                assert!(job.is_closed());
            });
        }
    });
    drop(pump);
}
