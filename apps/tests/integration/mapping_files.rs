//! Mapping files: the circuit's three, which are obeyed, and random ones, which change no result.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use maniple::machine::{Affinity, MemoryKind, NodeId};
use maniple::mapper::{DefaultMapper, LoggingMapper, MappingRules, RuleMapper, RulesInUse, Vocabulary};
use maniple::{Machine, ProcessorKind, Runtime};
use maniple_apps::circuit::{self, CircuitOptions};
use maniple_apps::stencil::{self, Extents};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings").join(name)
}

/// Two processors. Each sees a framebuffer of its own, and system and zero-copy memory with the other, system memory
/// best.
fn machine() -> Machine {
    let mut machine = Machine::builder();
    let processors = [(); 2].map(|()| machine.processor(ProcessorKind::Cpu));
    let affinity = |bandwidth_mb_s| Affinity { bandwidth_mb_s, latency_ns: 100 };
    let both = [(MemoryKind::System, 20), (MemoryKind::ZeroCopy, 5)];
    for (kind, bandwidth) in both {
        let memory = machine.memory(kind, 1 << 26);
        processors.iter().for_each(|&processor| _ = machine.sees(processor, memory, affinity(bandwidth)));
    }
    for processor in processors {
        let own = machine.memory(MemoryKind::Framebuffer, 1 << 26);
        machine.sees(processor, own, affinity(10));
    }
    machine.build().unwrap()
}

fn small() -> CircuitOptions {
    CircuitOptions { pieces: 4, nodes_per_piece: 20, wires_per_piece: 60, inside: 80, steps: 5, ..Default::default() }
}

/// Runs the circuit as rules say; gives what was decided, line by line. Every rule must have met something.
fn decisions(rules: &Arc<RulesInUse>) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let (sink, rules_of) = (Arc::clone(&lines), Arc::clone(rules));
    let builder = Runtime::builder().machine(machine()).workers(2).mapper_for(move |_, _| {
        let sink = Arc::clone(&sink);
        let mapper = RuleMapper::new(DefaultMapper::new(), &rules_of, NodeId(0));
        Box::new(LoggingMapper::with_sink(mapper, move |line| sink.lock().unwrap().push(line.to_owned())))
    });
    let runtime = builder.build().unwrap();
    circuit::run_on(&runtime, &small()).unwrap();
    drop(runtime);
    assert_eq!(rules.unused(), Vec::<String>::new());
    Arc::try_unwrap(lines).unwrap().into_inner().unwrap()
}

fn in_use(name: &str) -> Arc<RulesInUse> {
    RulesInUse::new(MappingRules::read(file(name)).unwrap())
}

/// The memories in which data of a kind is put first, by all decisions: their numbers.
fn memories(lines: &[String], of: &str) -> BTreeSet<String> {
    let parts = lines.iter().filter(|line| line.starts_with("map ")).flat_map(|line| line.split(&[':', ';'][..]));
    let parts = parts.filter(|part| part.contains(of)).filter_map(|part| part.split("-> memory ").nth(1));
    parts.map(|place| place.chars().take_while(char::is_ascii_digit).collect()).collect()
}

#[test]
fn on_cores_everything_is_in_their_memory() {
    let lines = decisions(&in_use("circuit-cpu.toml"));
    assert_eq!(memories(&lines, " Node region"), BTreeSet::from(["0".to_owned()]));
    assert!(lines.iter().any(|line| line.starts_with("map distribute_charge(") && line.contains(", priority 1")));
    assert!(!lines.iter().any(|line| line.starts_with("map update_voltages(") && line.contains(", priority")));
}

#[test]
fn as_graphics_processors_want_it_what_is_shared_is_where_all_see_it() {
    let lines = decisions(&in_use("circuit-zero-copy.toml"));
    let own = BTreeSet::from(["2".to_owned(), "3".to_owned()]);
    assert_eq!(memories(&lines, "partition `private`"), own);
    assert_eq!(memories(&lines, "partition `wires`"), own);
    for shared in ["partition `shared`", "partition `ghost`"] {
        assert_eq!(memories(&lines, shared), BTreeSet::from(["1".to_owned()]), "{shared}");
    }
}

#[test]
fn on_several_nodes_blocks_of_pieces_have_private_contributions_in_place() {
    let lines = decisions(&in_use("circuit-nodes.toml"));
    let private = |line: &&String| line.starts_with("map distribute_charge(");
    let parts = lines.iter().filter(private).flat_map(|line| line.split(';'));
    let of = |name: &str| parts.clone().filter(|part| part.contains(name)).collect::<Vec<_>>();
    assert!(of("`private`").len() > 3 && of("`private`").iter().all(|part| part.contains("in place")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("map calc_new_currents(") && line.contains(", priority 1")));
}

const NAMES: Vocabulary<'_> = Vocabulary {
    tasks: &[
        "make_piece",
        "calc_new_currents",
        "distribute_charge",
        "update_voltages",
        "count",
        "inline mapping",
        "apply",
    ],
    variants: &["make_piece", "update_voltages"],
    regions: &["Node", "Wire", "Cell"],
    partitions: &["wires", "private", "shared", "ghost"],
    fields: &["charge", "voltage", "current", "from", "input", "output"],
};

#[test]
fn no_mapping_file_changes_a_result() {
    for seed in 0..40 {
        let rules = MappingRules::random(seed, &NAMES);
        let started = || {
            let builder = Runtime::builder().machine(machine()).workers(2).window([2, 1024][seed as usize % 2]);
            builder.mapping_rules(rules.clone()).build().unwrap()
        };
        if let Err(error) = circuit::run_on(&started(), &small()) {
            panic!("seed {seed}: {error}\n{rules}");
        }
        let (size, tiles) = (Extents { rows: 8, columns: 8 }, Some(Extents { rows: 2, columns: 2 }));
        let options = stencil::StencilOptions { size, tiles, steps: 3, radius: 1, ..Default::default() };
        if let Err(error) = stencil::run_on(&started(), &options) {
            panic!("seed {seed}: {error}\n{rules}");
        }
    }
}
