//! The machine as the runtime sees it, or those of all nodes of a job.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use maniple::environment::{Place, Way};
use maniple::machine::Reachable;
use maniple::mapper::MappingRules;
use maniple::{Machine, Runtime};
use maniple_tensor::cost::Rates;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::options::{self, MEMORY_HELP, WORKERS_HELP, default_from_command_line, memory_size, worker_count};
use crate::rates;
use crate::report::{Columns, bytes};

/// The long description of `maniple info`, which its `--help` shows.
pub const ABOUT: &str = "\
Show the machine as the runtime and its mappers see it.

Processors run tasks; each sees some memories, best first by nominal bandwidth and latency. Memories hold the data of regions, up to their \
capacity: three quarters of what the system lets this process use, unless --memory says otherwise. A mapper chooses among these, and \
nothing that it chooses changes a result.

With --mapping it explains a mapping file: what each rule is about and what it decides, and what of it is in vain on this machine or in these \
programs.

Started as several nodes, by `maniple launch`, `mpirun` or `srun`, it shows once what each of them has.";

/// The examples that `maniple info --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple info                            this machine
  maniple info --workers 4 --memory 1GiB  what simulations then run on
  maniple info --mapping m.toml           what a mapping file decides, in words
  maniple info --rates > rates.toml       how fast this machine is, measured
  maniple launch -n 4 -- maniple info     what four nodes have";

/// Which machine to show: what [`RuntimeOptions`](options::RuntimeOptions) say of machines, and nothing else.
#[derive(Args, Clone, Debug)]
pub struct InfoOptions {
    /// Worker threads.
    #[arg(long, value_name = "N", value_parser = worker_count, allow_hyphen_values = true, help = WORKERS_HELP)]
    pub workers: Option<usize>,

    /// Bytes of system memory.
    #[arg(long, value_name = "SIZE", value_parser = memory_size, allow_hyphen_values = true, help = MEMORY_HELP)]
    pub memory: Option<u64>,

    /// Explain a mapping file instead
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,

    /// Measure how fast a processor computes and reads memory instead, and print it as a file that
    /// `maniple tensor --rates` takes
    #[arg(long, conflicts_with_all = ["mapping", "workers", "memory"])]
    pub rates: bool,
}

default_from_command_line!(InfoOptions);

/// The information that `maniple info` prints: tables, or a mapping file in words.
#[derive(Clone, Debug)]
pub enum InfoReport {
    /// One machine.
    Machine(Machine),
    /// The nodes of a job, in their order.
    Job {
        /// How many nodes there are, the launcher that started them, and the transport between them.
        how: String,
        /// The reports of the nodes.
        nodes: Vec<NodeReport>,
    },
    /// The measured rates of this machine.
    Rates(Rates),
    /// A mapping file.
    Mapping {
        /// The file.
        file: PathBuf,
        /// The rules of the file.
        rules: MappingRules,
        /// Problems: rules that have no effect on this machine or in these programs.
        problems: Vec<String>,
    },
}

/// The report of a node of a job on itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    host: String,
    process: u32,
    processors: Vec<String>,
    memories: Vec<(String, u64)>,
}

/// The machine that a simulation with these options would run on; those of all nodes, if there are several.
///
/// # Errors
/// If the nodes do not meet, or one of them is lost; if the mapping file has a mistake.
pub fn run(options: &InfoOptions) -> Result<InfoReport> {
    if options.rates {
        let measured = Rates::measured();
        return measured
            .map(InfoReport::Rates)
            .ok_or_else(|| Error::Usage("--rates: nothing could be measured".to_owned()));
    }
    let machine = options::machine(options.workers, options.memory);
    if let Some(file) = &options.mapping {
        return explain(file, &machine);
    }
    // A process that does not find its place is not alone: it is told why when the runtime starts.
    if Place::find().is_ok_and(|place| place.nodes == 1) {
        return Ok(InfoReport::Machine(machine));
    }
    let mine = NodeReport::new(&machine);
    let runtime = Runtime::builder().machine(machine).build()?;
    let nodes = runtime.run(async |cx| cx.per_node(mine).all().await)?;
    Ok(InfoReport::Job { how: how(&options::place()), nodes })
}

fn explain(file: &Path, machine: &Machine) -> Result<InfoReport> {
    let rules = MappingRules::read(file).map_err(|error| maniple::Error::MappingFile(Arc::new(error)))?;
    let mut problems = rules.lacks(machine, options::place().rank);
    problems.extend(rules.unknown_tasks(&maniple::task::declared()));
    Ok(InfoReport::Mapping { file: file.to_owned(), rules, problems })
}

fn how(place: &Place) -> String {
    let way = match &place.way {
        Way::Tcp(rendezvous) if rendezvous.shared_memory => "TCP, and by shared memory within a machine",
        Way::Tcp(_) => "TCP",
        #[cfg(feature = "mpi")]
        Way::Mpi(_) => "MPI",
        _ => "nothing",
    };
    format!("{} nodes, started by {}, talk over {way}", place.nodes, place.launcher)
}

impl NodeReport {
    fn new(machine: &Machine) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let host = host.or_else(|| std::env::var("HOSTNAME").ok()).map(|name| name.trim().to_owned());
        Self {
            host: host.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned()),
            process: std::process::id(),
            processors: machine.processors().iter().map(|processor| processor.kind.to_string()).collect(),
            memories: machine.memories().iter().map(|memory| (memory.kind.to_string(), memory.capacity)).collect(),
        }
    }

    /// How many processors of each kind: `2 cpu, 1 gpu`.
    fn processors(&self) -> String {
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for kind in &self.processors {
            match kinds.iter_mut().find(|(known, _)| known == kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((kind, 1)),
            }
        }
        kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
    }

    fn memories(&self) -> String {
        let memories = self.memories.iter().map(|(kind, capacity)| format!("{kind} {}", bytes(*capacity)));
        memories.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for InfoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = match self {
            Self::Machine(machine) => machine,
            Self::Job { how, nodes } => return job(f, how, nodes),
            Self::Mapping { file, rules, problems } => return mapping(f, file, rules, problems),
            Self::Rates(measured) => return f.write_str(&rates::text(*measured)),
        };
        let mut processors = Columns::new(["processor", "kind", "node", "NUMA domain", "sees"]);
        for processor in machine.processors() {
            let sees = reachable(machine.memories_visible_from(processor.id));
            let (kind, node) = (processor.kind.to_string(), processor.node.0.to_string());
            processors.row([processor.id.0.to_string(), kind, node, processor.numa_domain.to_string(), sees]);
        }
        let mut memories = Columns::new(["memory", "kind", "node", "NUMA domain", "capacity", "copies to"]);
        for memory in machine.memories() {
            let (kind, node) = (memory.kind.to_string(), memory.node.0.to_string());
            let (domain, capacity) = (memory.numa_domain.to_string(), bytes(memory.capacity));
            let copies = reachable(machine.memories_copied_from(memory.id));
            memories.row([memory.id.0.to_string(), kind, node, domain, capacity, copies]);
        }
        write!(f, "{processors}\n{memories}")
    }
}

fn job(f: &mut fmt::Formatter<'_>, how: &str, nodes: &[NodeReport]) -> fmt::Result {
    let mut table = Columns::new(["node", "host", "process", "processors", "memories"]);
    for (rank, node) in nodes.iter().enumerate() {
        let (host, process) = (node.host.clone(), node.process.to_string());
        table.row([rank.to_string(), host, process, node.processors(), node.memories()]);
    }
    write!(f, "{how}\n\n{table}")
}

/// The rules in words, in the order in which they are obeyed, and what is in vain.
fn mapping(f: &mut fmt::Formatter<'_>, file: &Path, rules: &MappingRules, problems: &[String]) -> fmt::Result {
    let explained = rules.explain();
    if explained.is_empty() {
        return writeln!(f, "{} says nothing: the mapper decides everything", file.display());
    }
    writeln!(f, "{}", file.display())?;
    writeln!(f, "Of the rules that a task or its data meets, the last one that decides something is obeyed in that.")?;
    writeln!(f, "What no rule decides is left to the mapper.\n")?;
    let mut table = Columns::new(["rule", "is about", "decides"]);
    for rule in explained {
        let mut place = [rule.rule, rule.about];
        for decision in rule.decides {
            let [rule, about] = std::mem::take(&mut place);
            table.row([rule, about, decision]);
        }
    }
    write!(f, "{table}")?;
    if !problems.is_empty() {
        writeln!(f, "\nIn vain on this machine, or in these programs:")?;
    }
    problems.iter().try_for_each(|problem| writeln!(f, "  {problem}"))
}

fn reachable(memories: &[Reachable]) -> String {
    let one = |reachable: &Reachable| {
        let Reachable { memory, affinity } = reachable;
        format!("{memory} ({} GB/s, {} ns)", f64::from(affinity.bandwidth_mb_s) / 1000.0, affinity.latency_ns)
    };
    memories.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_and_memory_has_a_line() {
        let report = InfoReport::Machine(Machine::uniform(2, 3 << 30));
        let expected = "\
processor  kind  node  NUMA domain  sees
0          cpu   0     0            memory 0 (20 GB/s, 100 ns)
1          cpu   0     0            memory 0 (20 GB/s, 100 ns)

memory  kind    node  NUMA domain  capacity  copies to
0       system  0     0            3.0 GiB   memory 0 (20 GB/s, 100 ns)
";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn every_decision_of_a_mapping_file_has_a_line_of_words() {
        let rules = "
            [[task]]
            name = ['update_*', 'sum']
            processors = 'gpu'
            priority = 2
            [[data]]
            field = 'voltage'
            privilege = 'reduces'
            memory = ['zero-copy', 0]";
        let rules = MappingRules::parse(rules).unwrap();
        let problems = rules.lacks(&Machine::uniform(1, 1 << 20), maniple::machine::NodeId(0));
        let report = InfoReport::Mapping { file: "m.toml".into(), rules, problems };
        let expected = "\
m.toml
Of the rules that a task or its data meets, the last one that decides something is obeyed in that.
What no rule decides is left to the mapper.

rule        is about                                          decides
[[task]] 1  tasks `update_*` or `sum`                         run on gpu processors
                                                              priority 2
[[data]] 1  data with field `voltage` that is contributed to  in zero-copy memory, then memory 0

In vain on this machine, or in these programs:
  [[task]] 1: the machine has no gpu processor
  [[data]] 1: the machine has no zero-copy memory
";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn every_node_of_a_job_has_a_line() {
        let small = NodeReport { host: "a".to_owned(), process: 71, ..NodeReport::new(&Machine::uniform(2, 3 << 30)) };
        let mut large = NodeReport { host: "b.example".to_owned(), process: 8, ..small.clone() };
        large.processors.push("gpu".to_owned());
        large.memories.push(("device".to_owned(), 80 << 30));
        let report = InfoReport::Job { how: "2 nodes".to_owned(), nodes: vec![small, large] };
        let expected = "\
2 nodes

node  host       process  processors    memories
0     a          71       2 cpu         system 3.0 GiB
1     b.example  8        2 cpu, 1 gpu  system 3.0 GiB, device 80.0 GiB
";
        assert_eq!(report.to_string(), expected);
    }
}
