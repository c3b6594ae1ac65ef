//! Messages between mappers, tunables that are alike on all nodes, and what mappers hear of tasks.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};

use maniple::machine::NodeId;
use maniple::mapper::{
    DefaultMapper, LONGEST_MESSAGE, MOST_UNHEARD, Mail, MailError, Mapper, MapperAddress, MappingContext, TaskInfo,
    TaskMapping, TaskProfile, Tunable, Validity,
};
use maniple::prelude::*;
use maniple::{Machine, ProcessorId};
use maniple_tests::nodes::{Connections, each_node};

#[task(leaf)]
fn square(#[point] at: Point<1>) -> i64 {
    at[0] * at[0]
}

#[task]
async fn squares(cx: &Context, count: i64) -> Result<i64> {
    cx.index_launch(0..count, square()).reduce(Sum).await
}

/// Messages that a mapper has heard, by their sender, errors that it got when it could not send, and profiles of tasks.
#[derive(Default)]
struct Heard {
    messages: BTreeMap<(u16, u32), Vec<Vec<u8>>>,
    refused: Vec<MailError>,
    profiles: Vec<(String, TaskProfile)>,
}

/// Tells every mapper of every node how many tasks it has mapped.
struct Gossip {
    inner: DefaultMapper,
    mapped: u8,
    heard: Arc<Mutex<Heard>>,
}

impl Mapper for Gossip {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mail = context.mail();
        for node in 0..mail.nodes() {
            for processor in 0..2 {
                let to = MapperAddress { node: NodeId(node as u16), processor: ProcessorId(processor) };
                mail.send(to, &[self.mapped]).unwrap();
            }
        }
        self.mapped += 1;
        TaskMapping { validity: Validity::Once, profile: true, ..self.inner.map_task(task, context) }
    }

    fn hear(&mut self, from: MapperAddress, message: &[u8], _: &dyn Mail) {
        let mut heard = self.heard.lock().unwrap();
        heard.messages.entry((from.node.0, from.processor.0)).or_default().push(message.to_vec());
    }

    fn permit_steal(&mut self, _: &str, _: NodeId) -> bool {
        false
    }

    fn task_profiled(&mut self, task: &str, profile: &TaskProfile) {
        self.heard.lock().unwrap().profiles.push((task.to_owned(), *profile));
    }
}

/// One that listens for each of two processors of a node, and what each has heard.
fn gossips(builder: maniple::RuntimeBuilder) -> (maniple::RuntimeBuilder, Vec<Arc<Mutex<Heard>>>) {
    let heard: Vec<Arc<Mutex<Heard>>> = (0..2).map(|_| Arc::default()).collect();
    let shared = heard.clone();
    let builder = builder.mapper_for(move |_, processor| {
        let heard = Arc::clone(&shared[processor.0 as usize]);
        Box::new(Gossip { inner: DefaultMapper::new(), mapped: 0, heard })
    });
    (builder, heard)
}

/// Waits until a mapper has heard so much.
fn wait_for(heard: &Mutex<Heard>, enough: impl Fn(&Heard) -> bool) {
    while !enough(&heard.lock().unwrap()) {
        std::thread::yield_now();
    }
}

#[test]
fn mappers_of_all_nodes_and_processors_hear_each_other_in_order() {
    const TASKS: i64 = 12;
    let connections = Connections::new(2);
    each_node(2, |node| {
        let builder = Runtime::builder().machine(Machine::uniform(2, 1 << 24)).workers(2);
        let (builder, heard) = gossips(builder);
        let runtime = builder.network(connections.node(node)).build().unwrap();
        runtime
            .run(async |cx| {
                let sum = cx.index_launch(0..TASKS, square()).reduce(Sum).await?;
                assert_eq!(sum, (0..TASKS).map(|at| at * at).sum::<i64>());
                // Each node maps half of them, all on behalf of the top-level task, which is on processor 0.
                let senders = [(0, 0), (1, 0)];
                let is_all = |heard: &Heard| {
                    senders
                        .iter()
                        .all(|sender| heard.messages.get(sender).is_some_and(|all| all.len() == TASKS as usize / 2))
                };
                heard.iter().for_each(|one| wait_for(one, is_all));
                // No node leaves before all have heard everything.
                cx.per_node(0).reduce(Sum).await
            })
            .unwrap();
        for one in &heard {
            for all in one.lock().unwrap().messages.values() {
                let expected: Vec<Vec<u8>> = (0..TASKS as u8 / 2).map(|number| vec![number]).collect();
                assert_eq!(*all, expected, "in the order in which they were sent");
            }
        }
    });
}

/// Tries all that is refused, and answers what it hears for as long as it may.
struct Wrong {
    inner: DefaultMapper,
    heard: Arc<Mutex<Heard>>,
}

impl Mapper for Wrong {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let (mail, here) = (context.mail(), context.mail().here());
        let wrong = [
            (MapperAddress { node: NodeId(9), ..here }, 1),
            (MapperAddress { processor: ProcessorId(9), ..here }, 1),
            (here, LONGEST_MESSAGE + 1),
        ];
        for (to, length) in wrong {
            let refused = mail.send(to, &vec![0; length]).unwrap_err();
            self.heard.lock().unwrap().refused.push(refused);
        }
        mail.send(here, &vec![1; LONGEST_MESSAGE]).unwrap();
        mail.send(here, &[]).unwrap();
        TaskMapping { profile: true, ..self.inner.map_task(task, context) }
    }

    fn hear(&mut self, from: MapperAddress, message: &[u8], mail: &dyn Mail) {
        assert_eq!(from, mail.here());
        assert!(!message.is_empty(), "a mapper that panics at a message without a byte");
        let mut heard = self.heard.lock().unwrap();
        heard.messages.entry((0, 0)).or_default().push(message[..1].to_vec());
        heard.refused.extend(mail.send(from, &message[..1]).err());
    }
}

#[test]
fn wrong_messages_are_refused_and_answers_come_to_an_end() {
    let heard = Arc::<Mutex<Heard>>::default();
    let shared = Arc::clone(&heard);
    let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
    let mapper = move |_: &Machine, _| {
        Box::new(Wrong { inner: DefaultMapper::new(), heard: Arc::clone(&shared) }) as Box<dyn Mapper>
    };
    let runtime = builder.mapper_for(mapper).build().unwrap();
    let sum = runtime.run(async |cx| cx.index_launch(0..1, square()).reduce(Sum).await).unwrap();
    assert_eq!(sum, 0);
    wait_for(&heard, |heard| heard.refused.contains(&MailError::TooManyAnswers));
    let heard = heard.lock().unwrap();
    assert_eq!(
        heard.refused,
        [
            MailError::NoSuchNode { node: NodeId(9), nodes: 1 },
            MailError::NoSuchProcessor { processor: ProcessorId(9), processors: 1 },
            MailError::TooLong { bytes: LONGEST_MESSAGE + 1 },
            MailError::TooManyAnswers,
        ]
    );
    // The first, and all answers; that at which it panicked is none.
    assert_eq!(heard.messages[&(0, 0)].len(), 1 + usize::from(maniple::mapper::MOST_ANSWERS) - 1);
}

#[test]
fn a_task_that_asks_for_it_is_profiled_with_all_that_it_launches() {
    let (builder, heard) = gossips(Runtime::builder().machine(Machine::uniform(2, 1 << 24)).workers(2));
    let runtime = builder.build().unwrap();
    assert_eq!(runtime.run(async |cx| cx.index_launch(1..4, square()).reduce(Sum).await).unwrap(), 14);
    let region_free = runtime.run(async |cx| cx.launch(squares(4)).await).unwrap();
    assert_eq!(region_free, 14);
    let profiles: Vec<(String, TaskProfile)> =
        heard.iter().flat_map(|one| one.lock().unwrap().profiles.clone()).collect();
    let mut points: Vec<i64> =
        profiles.iter().filter(|(name, _)| name == "square").map(|(_, profile)| profile.point[0]).collect();
    points.sort_unstable();
    assert_eq!(points, [0, 1, 1, 2, 2, 3, 3]);
    for (name, profile) in &profiles {
        assert!(profile.started <= profile.ended && profile.ended <= profile.finished, "{name}: {profile:?}");
        assert!(name != "square" || profile.ended == profile.finished);
    }
    let parent = profiles.iter().find(|(name, _)| name == "squares").map(|(_, profile)| *profile);
    let parent = parent.expect("tasks that launch are told of too");
    let children = profiles.iter().filter(|(_, child)| child.started >= parent.started).count();
    assert!(children >= 4, "its children began after it");
}

/// Answers by the number of its node, of what it is told.
#[derive(Clone)]
struct Adds(i64);

impl Mapper for Adds {
    fn tunable(&mut self, tunable: &Tunable<'_>, _: &Machine) -> Option<i64> {
        match tunable.name {
            "sum" => Some(self.0 + tunable.arguments.iter().sum::<i64>() + 1000 * tunable.nodes as i64),
            "panic" => panic!("no answer"),
            _ => None,
        }
    }
}

#[test]
fn a_shared_tunable_is_the_answer_of_node_0_on_all_nodes() {
    let connections = Connections::new(3);
    let answers = each_node(3, |node| {
        let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1).mapper(Adds(node as i64));
        let runtime = builder.network(connections.node(node)).build().unwrap();
        runtime
            .run(async |cx| {
                let shared = cx.shared_tunable("sum", &[20, 30], 1).await?;
                let unknown = cx.shared_tunable("unknown", &[], 5).await?;
                let panicked = cx.shared_tunable("panic", &[], 5).await.unwrap_err().to_string();
                Ok((shared, unknown, panicked))
            })
            .unwrap()
    });
    for (shared, unknown, panicked) in answers {
        assert_eq!((shared, unknown), (3050, 5));
        assert!(panicked.contains("of node 0") && panicked.contains("no answer"), "{panicked}");
    }
    // By itself a node asks its own mapper.
    let runtime = Runtime::builder().workers(1).mapper(Adds(7)).alone().build().unwrap();
    let (shared, own) = runtime
        .run(async |cx| Ok((cx.shared_tunable("sum", &[1], 1).await?, cx.tunable_with("sum", &[1], 1)?)))
        .unwrap();
    assert_eq!((shared, own), (1008, 1008));
}

/// Sends more to the mapper of processor 1 than that may leave unheard, which hears nothing until all was sent.
struct Flood {
    inner: DefaultMapper,
    outcomes: Arc<Mutex<Vec<Result<(), MailError>>>>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Mapper for Flood {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let is_first = self.outcomes.lock().unwrap().is_empty();
        if is_first {
            let (mail, message) = (context.mail(), vec![0; LONGEST_MESSAGE]);
            let to = MapperAddress { processor: ProcessorId(1), ..mail.here() };
            let sent: Vec<_> = (0..2 * MOST_UNHEARD / LONGEST_MESSAGE).map(|_| mail.send(to, &message)).collect();
            self.outcomes.lock().unwrap().extend(sent);
            *self.gate.0.lock().unwrap() = true;
            self.gate.1.notify_all();
        }
        self.inner.map_task(task, context)
    }

    fn hear(&mut self, _: MapperAddress, _: &[u8], _: &dyn Mail) {
        let mut is_open = self.gate.0.lock().unwrap();
        while !*is_open {
            is_open = self.gate.1.wait(is_open).unwrap();
        }
    }
}

#[test]
fn a_mapper_that_does_not_hear_is_sent_no_more_than_so_much() {
    let (outcomes, gate) = (Arc::default(), Arc::default());
    let (shared, shut) = (Arc::clone(&outcomes), Arc::clone(&gate));
    let builder = Runtime::builder().machine(Machine::uniform(2, 1 << 24)).workers(2).mapper_for(move |_, _| {
        let (outcomes, gate) = (Arc::clone(&shared), Arc::clone(&shut));
        Box::new(Flood { inner: DefaultMapper::new(), outcomes, gate })
    });
    builder.build().unwrap().run(async |cx| cx.launch(squares(1)).await).unwrap();
    let outcomes: Vec<Result<(), MailError>> = std::mem::take(&mut *outcomes.lock().unwrap());
    let sent = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!(sent < MOST_UNHEARD / LONGEST_MESSAGE + 1, "{sent}");
    let refused = outcomes.iter().find_map(|outcome| outcome.as_ref().err()).unwrap();
    assert!(matches!(refused, MailError::TooManyUnheard { node: NodeId(0), .. }), "{refused}");
}
