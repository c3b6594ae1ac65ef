//! Finds out what machine the process runs on.
//!
//! Everything is read from Linux's own files: the cores that the process may use, the NUMA domains that they are in,
//! and the memory that is there, within the limits of the control group. Where a file is absent (another system, a
//! sandbox) the answer degrades to one domain, and to [`FALLBACK_MEMORY`] bytes.
//!
//! Affinities are nominal, not measured: [`LOCAL`] within a domain, scaled by the kernel's distance table between
//! domains. They rank memories; they predict nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::{Affinity, Machine, MemoryKind, ProcessorKind};

/// The memory assumed where the system tells nothing: 1 GiB.
pub const FALLBACK_MEMORY: u64 = 1 << 30;

/// The share of the memory found that instances may occupy unless the user says otherwise. The rest is for the program,
/// the runtime's own structures and the rest of the system.
pub const INSTANCE_SHARE: f64 = 0.75;

/// The nominal affinity of a core and the memory of its own domain.
pub const LOCAL: Affinity = Affinity { bandwidth_mb_s: 20_000, latency_ns: 100 };

/// The kernel's distance of a domain to itself, which the others are relative to.
const LOCAL_DISTANCE: u32 = 10;

/// Cores that share a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The kernel's number of it.
    pub number: u32,
    /// How many processors to run on it.
    pub processors: u32,
    /// Its share of the memory that the process may use, in bytes.
    pub memory: u64,
    /// The kernel's distances from it to each domain of the topology, in their order; 10 is the distance to itself.
    pub distances: Vec<u32>,
}

/// The part of this computer that the process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Never empty; ordered by number.
    pub domains: Vec<Domain>,
}

impl Topology {
    /// Reads the topology of this computer: as many processors as
    /// [`available_parallelism`](std::thread::available_parallelism) allows.
    pub fn detect() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::read(Path::new("/"), processors)
    }

    /// Reads the topology from the files below `root`, laid out as on a Linux system, for so many processors.
    ///
    /// A domain that gets no processor keeps its memory.
    pub fn read(root: &Path, processors: usize) -> Self {
        let total = usable_memory(root);
        let found = read_domains(root);
        if found.is_empty() {
            let distances = vec![LOCAL_DISTANCE];
            let domain = Domain { number: 0, processors: processors.max(1) as u32, memory: total, distances };
            return Self { domains: vec![domain] };
        }
        let counts = spread(&allowed_cores(root, &found), processors.max(1), &found);
        let installed: u64 = found.iter().map(|domain| domain.memory).sum();
        let domains = found
            .iter()
            .zip(counts)
            .map(|(domain, processors)| Domain {
                number: domain.number,
                processors,
                memory: share(total, domain.memory, installed, found.len()),
                distances: found.iter().map(|other| domain.distance_to(other)).collect(),
            })
            .collect();
        Self { domains }
    }

    /// The bytes that the process may use, over all domains.
    pub fn memory(&self) -> u64 {
        self.domains.iter().map(|domain| domain.memory).sum()
    }

    /// One node: a processor for each core, and a system memory for each domain that has any, holding this share of
    /// its bytes ([`INSTANCE_SHARE`] by default).
    ///
    /// # Panics
    ///
    /// If `instance_share` is not between 0 and 1.
    pub fn machine(&self, instance_share: f64) -> Machine {
        assert!((0.0..=1.0).contains(&instance_share), "a share is between 0 and 1, found {instance_share}");
        let mut builder = Machine::builder();
        let mut memories = Vec::new();
        for (place, domain) in self.domains.iter().enumerate() {
            builder.place(Default::default(), domain.number);
            if domain.memory > 0 {
                let capacity = (domain.memory as f64 * instance_share) as u64;
                memories.push((place, builder.memory(MemoryKind::System, capacity)));
            }
        }
        for domain in &self.domains {
            builder.place(Default::default(), domain.number);
            for _ in 0..domain.processors {
                let processor = builder.processor(ProcessorKind::Cpu);
                for &(place, memory) in &memories {
                    builder.sees(processor, memory, nominal(domain.distances[place]));
                }
            }
        }
        for (index, &(from, a)) in memories.iter().enumerate() {
            for &(to, b) in &memories[index..] {
                builder.copies(a, b, nominal(self.domains[from].distances[to]));
            }
        }
        builder.build().expect("a topology has a processor, and its affinities name what was added")
    }
}

fn nominal(distance: u32) -> Affinity {
    let distance = distance.max(1);
    Affinity {
        bandwidth_mb_s: LOCAL.bandwidth_mb_s * LOCAL_DISTANCE / distance,
        latency_ns: LOCAL.latency_ns * distance / LOCAL_DISTANCE,
    }
}

/// A domain as the kernel lists it.
struct FoundDomain {
    number: u32,
    cores: Vec<u32>,
    memory: u64,
    /// By position in the kernel's list of domains.
    distances: Vec<u32>,
    position: usize,
}

impl FoundDomain {
    fn distance_to(&self, other: &Self) -> u32 {
        let assumed = if self.number == other.number { LOCAL_DISTANCE } else { 2 * LOCAL_DISTANCE };
        self.distances.get(other.position).copied().unwrap_or(assumed)
    }
}

fn read_domains(root: &Path) -> Vec<FoundDomain> {
    let Ok(entries) = fs::read_dir(root.join("sys/devices/system/node")) else { return Vec::new() };
    let mut folders: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix("node")?.parse().ok()?;
            Some((number, entry.path()))
        })
        .collect();
    folders.sort_unstable();
    let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    folders
        .into_iter()
        .enumerate()
        .map(|(position, (number, folder))| FoundDomain {
            number,
            cores: parse_list(&text(folder.join("cpulist"))),
            memory: parse_kilobytes(&text(folder.join("meminfo")), "MemTotal:").unwrap_or(0),
            distances: text(folder.join("distance")).split_whitespace().filter_map(|word| word.parse().ok()).collect(),
            position,
        })
        .filter(|domain| !domain.cores.is_empty() || domain.memory > 0)
        .collect()
}

/// The cores that the process may run on; all that were found if the system does not say.
fn allowed_cores(root: &Path, domains: &[FoundDomain]) -> Vec<u32> {
    let status = fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed = line.map(parse_list).unwrap_or_default();
    let mut found: Vec<u32> = domains.iter().flat_map(|domain| &domain.cores).copied().collect();
    found.sort_unstable();
    let both: Vec<u32> = found.iter().copied().filter(|core| allowed.binary_search(core).is_ok()).collect();
    if both.is_empty() { found } else { both }
}

/// How many of `processors` go to each domain: spread evenly over the allowed cores, since a control group's quota
/// limits how many run at once but not which.
fn spread(allowed: &[u32], processors: usize, domains: &[FoundDomain]) -> Vec<u32> {
    let mut counts = vec![0; domains.len()];
    if allowed.is_empty() {
        counts[0] = processors as u32;
        return counts;
    }
    for index in 0..processors {
        let core = allowed[index * allowed.len() / processors];
        let home = domains.iter().position(|domain| domain.cores.contains(&core)).unwrap_or(0);
        counts[home] += 1;
    }
    counts
}

/// `total` in proportion to `part` of `whole`; evenly among `count` if the whole is unknown.
fn share(total: u64, part: u64, whole: u64, count: usize) -> u64 {
    if whole == 0 {
        return total / count as u64;
    }
    (u128::from(total) * u128::from(part) / u128::from(whole)) as u64
}

/// The bytes that this process may use.
#[cfg(feature = "tcp")]
pub(crate) fn memory_of_this_process() -> u64 {
    let root = Path::new("/");
    usable_memory(root).min(limit(root, "Max address space").unwrap_or(u64::MAX))
}

/// How many bytes this process may have addresses for.
#[cfg(feature = "tcp")]
pub(crate) fn addresses_of_this_process() -> u64 {
    limit(Path::new("/"), "Max address space").unwrap_or(u64::MAX)
}

/// How long a file of this process may become: one that makes it longer is ended by a signal.
#[cfg(feature = "tcp")]
pub(crate) fn longest_file() -> u64 {
    limit(Path::new("/"), "Max file size").unwrap_or(u64::MAX)
}

/// A limit of this process, from `/proc/self/limits`, where it is followed by the one that it could raise it to. None
/// if there is none.
pub(crate) fn limit(root: &Path, name: &str) -> Option<u64> {
    let limits = fs::read_to_string(root.join("proc/self/limits")).ok()?;
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// The memory of the computer, or the smallest limit of a control group above the process.
fn usable_memory(root: &Path) -> u64 {
    memory_told(root).unwrap_or(FALLBACK_MEMORY)
}

/// The same, if the system tells.
pub(crate) fn memory_told(root: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let installed = parse_kilobytes(&meminfo, "MemTotal:").filter(|&bytes| bytes > 0);
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| group_limit(root, line));
    limits.chain(installed).min()
}

/// The smallest memory limit from a line of `/proc/self/cgroup`, `hierarchy:controllers:path`, up to the root of its
/// hierarchy. Version 2 has an empty list of controllers; version 1 names `memory`.
fn group_limit(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        listed if listed.split(',').any(|name| name == "memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    let mount = root.join(mount);
    let group = mount.join(path.trim_start_matches('/'));
    let above = group.ancestors().take_while(|folder| folder.starts_with(&mount));
    above.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()).min()
}

/// The number of bytes on the line of a `meminfo` file that holds `key`, stated there in units of 1,024.
pub(crate) fn parse_kilobytes(text: &str, key: &str) -> Option<u64> {
    let (_, value) = text.lines().find_map(|line| line.split_once(key))?;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The numbers of a kernel list such as `0-3,8`, ascending. What is malformed is left out.
fn parse_list(text: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = text
        .trim()
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
        })
        .flatten()
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{MemoryId, ProcessorId};

    /// A folder of fixture files, removed when dropped.
    struct Fixture(PathBuf);

    impl Fixture {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("maniple-topology-{}-{name}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn limits_of_the_process_are_read_where_there_are_some() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max file size             1048576              unlimited            bytes     \n\
                      Max address space         unlimited            unlimited            bytes     \n";
        let root = Fixture::new("process", &[("proc/self/limits", limits)]);
        assert_eq!(limit(&root.0, "Max file size"), Some(1 << 20));
        assert_eq!(limit(&root.0, "Max address space"), None);
        assert_eq!(limit(Path::new("/there/is/nothing"), "Max file size"), None);
    }

    #[test]
    fn kernel_lists_are_numbers_and_ranges() {
        assert_eq!(parse_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_list(" 5"), [5]);
        assert_eq!(parse_list(""), []);
        assert_eq!(parse_list("2,x,1-"), [2]);
    }

    #[test]
    fn memory_totals_are_in_units_of_1024_bytes() {
        assert_eq!(parse_kilobytes("MemTotal:       16 kB\nMemFree: 1 kB\n", "MemTotal:"), Some(16 * 1024));
        assert_eq!(parse_kilobytes("Node 1 MemTotal:  4 kB\n", "MemTotal:"), Some(4096));
        assert_eq!(parse_kilobytes("MemTotal: many kB", "MemTotal:"), None);
    }

    #[test]
    fn without_any_file_there_is_one_domain() {
        let topology = Topology::read(Path::new("/nonexistent"), 3);
        let expected = Domain { number: 0, processors: 3, memory: FALLBACK_MEMORY, distances: vec![10] };
        assert_eq!(topology.domains, [expected]);
        assert_eq!(Topology::read(Path::new("/nonexistent"), 0).domains[0].processors, 1);
    }

    #[test]
    fn the_smallest_limit_of_the_groups_above_bounds_the_memory() {
        let fixture = Fixture::new(
            "limits",
            &[
                ("proc/meminfo", "MemTotal: 1000 kB\n"),
                ("proc/self/cgroup", "0::/outer/inner\n"),
                ("sys/fs/cgroup/outer/memory.max", "512000\n"),
                ("sys/fs/cgroup/outer/inner/memory.max", "max\n"),
            ],
        );
        assert_eq!(Topology::read(&fixture.0, 1).memory(), 512_000);
    }

    #[test]
    fn limits_of_the_first_version_of_control_groups_count_too() {
        let fixture = Fixture::new(
            "version1",
            &[
                ("proc/meminfo", "MemTotal: 1000 kB\n"),
                ("proc/self/cgroup", "9:cpu:/x\n8:memory:/job\n0::/\n"),
                ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n"),
                ("sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n"),
            ],
        );
        assert_eq!(Topology::read(&fixture.0, 1).memory(), 4096);
    }

    #[test]
    fn two_domains_give_two_memories_each_nearest_to_its_own_cores() {
        let fixture = Fixture::new(
            "domains",
            &[
                ("proc/meminfo", "MemTotal: 4000 kB\n"),
                ("proc/self/status", "Name: x\nCpus_allowed_list:\t0-2,4-7\n"),
                ("sys/devices/system/node/node0/cpulist", "0-3\n"),
                ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 3000 kB\n"),
                ("sys/devices/system/node/node0/distance", "10 20\n"),
                ("sys/devices/system/node/node1/cpulist", "4-7\n"),
                ("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 1000 kB\n"),
                ("sys/devices/system/node/node1/distance", "20 10\n"),
            ],
        );
        let topology = Topology::read(&fixture.0, 7);
        assert_eq!(topology.domains.iter().map(|domain| domain.processors).collect::<Vec<_>>(), [3, 4]);
        let machine = topology.machine(0.5);
        let capacities: Vec<_> = machine.memories().iter().map(|memory| memory.capacity).collect();
        assert_eq!(capacities, [1500 * 1024, 500 * 1024]);
        assert_eq!(machine.memories_visible_from(ProcessorId(0))[0].memory, MemoryId(0));
        assert_eq!(machine.memories_visible_from(ProcessorId(6))[0].memory, MemoryId(1));
        let across = Affinity { bandwidth_mb_s: 10_000, latency_ns: 200 };
        assert_eq!(machine.memory_affinity(MemoryId(0), MemoryId(1)), Some(across));
    }

    #[test]
    fn a_quota_below_the_cores_spreads_processors_over_the_domains() {
        let fixture = Fixture::new(
            "quota",
            &[("sys/devices/system/node/node0/cpulist", "0-3\n"), ("sys/devices/system/node/node1/cpulist", "4-7\n")],
        );
        let topology = Topology::read(&fixture.0, 2);
        assert_eq!(topology.domains.iter().map(|domain| domain.processors).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn this_computer_has_a_processor_and_memory() {
        let machine = Topology::detect().machine(INSTANCE_SHARE);
        assert!(!machine.processors().is_empty());
        assert!(machine.memories().iter().any(|memory| memory.capacity > 0));
        for processor in machine.processors() {
            assert!(!machine.memories_visible_from(processor.id).is_empty());
        }
    }
}
