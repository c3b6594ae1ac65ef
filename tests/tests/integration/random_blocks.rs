//! Random statements of Shinde, *SuperTaco* (MIT 2019), in random blocks and formats, loaded from files, computed and
//! stored on 1, 2 and 4 nodes: what the oracle says.
//!
//! 200 cases; for more, `MANIPLE_TESTS_COUNT=5000`. A failure names its case, and `MANIPLE_TESTS_SEED` runs that one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;
use maniple::Result;
use maniple_files::tcs::{self, Width};
use maniple_tensor::distributed::{Computation as Distributed, TcsFile, Tensor, assemble};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::lower::Output;
use maniple_tensor::notation::{Assignment, TensorVariable, parse};
use maniple_tensor::oracle::{SparseMap, evaluate};
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::tcs_files::Case as File;

/// The statements that are computed, and of each tensor the name and the variables, the result first.
const STATEMENTS: [(&str, &[(&str, &str)]); 3] = [
    ("a(i) = B(i,j) * c(j)", &[("a", "i"), ("B", "ij"), ("c", "j")]),
    ("A(i,j,k) = B(i,j,l) * C(k,l)", &[("A", "ijk"), ("B", "ijl"), ("C", "kl")]),
    ("A(i,k) = B(i,j) * C(j,k)", &[("A", "ik"), ("B", "ij"), ("C", "jk")]),
];

/// The levels that a tensor of so many dimensions can have in a file.
const LEVELS: [&[&str]; 3] =
    [&["d", "d", "s"], &["dd", "ds", "ds", "ss", "sd"], &["ddd", "dss", "sss", "dds", "dsd", "ssd"]];

/// How blocks are computed, for a count of what the cases have.
#[derive(Default)]
struct Blocks {
    commands: String,
    points: usize,
    steps: usize,
    extended: usize,
    /// Variables that are summed over and say where kernels run.
    mapped_sums: usize,
}

/// The schedule of random splits, order, extension and mapping, as `--split`, `--order`, `--extend` and `--map` say
/// them.
fn blocks(assignment: &Assignment, loops: &[String], random: &mut Rng) -> Blocks {
    let extent = |name: &str| {
        let mut extents = assignment.extents().iter();
        *extents.find(|(variable, _)| variable.name() == name).unwrap().1
    };
    let (mut commands, mut split) = (String::new(), Vec::new());
    for name in loops {
        if random.u8(..3) == 0 {
            continue;
        }
        let mut points: Vec<i64> = (0..random.usize(1..4)).map(|_| random.i64(0..=extent(name))).collect();
        points.sort_unstable();
        // Ranges without values would have nothing to do.
        points.dedup();
        points.retain(|point| (1..extent(name)).contains(point));
        let points = points.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        commands += &match points.is_empty() || random.bool() {
            true => format!("divide({name}, {name}b, {name}in, {}); ", random.i64(2..6)),
            false => format!("split_at({name}, {name}b, {name}in, {{{points}}}); "),
        };
        split.push(name.as_str());
    }
    let mut order: Vec<&str> = loops.iter().map(String::as_str).collect();
    if random.bool() {
        random.shuffle(&mut order);
    }
    let is_free = |name: &str| assignment.left().variables.iter().any(|variable| variable.name() == name);
    // Those of the result, if nothing is said.
    let is_default = random.bool();
    let is_mapped = |name: &&str| if is_default { is_free(name) } else { random.bool() };
    let mapped: Vec<&str> = loops.iter().map(String::as_str).filter(is_mapped).collect();
    let extended: Vec<&str> = split.iter().copied().filter(|name| !is_free(name) && random.bool()).collect();
    let blocks = |is_one: &dyn Fn(&str) -> bool| -> Vec<String> {
        order.iter().filter(|name| split.contains(name) && is_one(name)).map(|name| format!("{name}b")).collect()
    };
    let of_map = blocks(&|name| mapped.contains(&name));
    let of_extension = blocks(&|name| !mapped.contains(&name) && extended.contains(&name));
    let steps = blocks(&|name| !mapped.contains(&name) && !extended.contains(&name));
    let points = [of_map.clone(), of_extension.clone()].concat();
    let inner = loops.iter().map(|name| if split.contains(&&**name) { format!("{name}in") } else { name.clone() });
    let all = [points.clone(), steps.clone(), inner.collect()].concat().join(", ");
    commands += &format!("reorder({{{all}}}); ");
    if !points.is_empty() {
        commands += &format!("distribute({{{}}}); ", points.join(", "));
    }
    if let Some(innermost) = steps.last() {
        let operands: Vec<&str> = assignment.right().accesses().iter().map(|access| access.tensor.name()).collect();
        commands += &format!("communicate({{{}}}, {innermost})", operands.join(", "));
    }
    Blocks {
        commands,
        points: points.len(),
        steps: steps.len(),
        extended: of_extension.len(),
        mapped_sums: of_map.iter().filter(|name| !is_free(name.trim_end_matches('b'))).count(),
    }
}

/// A statement with its operands and how it is computed.
struct Case {
    about: String,
    declared: TensorVariable,
    operands: Vec<(String, File<f64>)>,
    plan: Arc<Plan>,
    blocks: Blocks,
    expected: BTreeMap<Vec<i64>, f64>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        loop {
            if let Some(case) = Self::drawn(seed, &mut random) {
                return case;
            }
        }
    }

    /// A random case, if the statement can be computed so.
    fn drawn(seed: u64, random: &mut Rng) -> Option<Self> {
        let (text, tensors) = STATEMENTS[random.usize(..STATEMENTS.len())];
        let extents: BTreeMap<char, u64> =
            "ijkl".chars().zip([20, 12, 6, 7].map(|most| random.u64(1..=most))).collect();
        let mut files: Vec<(String, File<f64>)> = Vec::new();
        for (name, variables) in tensors {
            let extents: Vec<u64> = variables.chars().map(|variable| extents[&variable]).collect();
            let levels = LEVELS[extents.len() - 1];
            // Of results, every other one is dense.
            let choices = levels.len();
            let is_dense = files.is_empty() && random.bool();
            let levels = levels[if is_dense { 0 } else { random.usize(..choices) }];
            let mut order: Vec<usize> = (0..extents.len()).collect();
            if random.u8(..3) == 0 {
                random.shuffle(&mut order);
            }
            let all = extents.iter().product::<u64>();
            let entries = (0..random.u64(0..=all)).map(|_| {
                let at = extents.iter().map(|extent| random.u64(..extent)).collect();
                (at, f64::from(random.i8(-4..5)))
            });
            let entries = entries.collect();
            files.push(((*name).to_owned(), File { extents, levels, order, entries }));
        }
        let variables: Vec<TensorVariable> = files.iter().map(|(name, file)| file.variable(name)).collect();
        let assignment = parse(text, &variables).unwrap();
        let computation = Computation::new(&assignment).ok()?;
        let spine = computation.statement().spine();
        let loops: Vec<String> = spine.iter().map(|outer| outer.variable.name().to_owned()).collect();
        let blocks = blocks(&assignment, &loops, random);
        let schedule = Schedule::parse(&blocks.commands, &variables).unwrap();
        let plan = Plan::new(&schedule.apply(computation.statement()).ok()?).ok()?;
        if plan.order().steps() * plan.order().points() > 60 {
            return None;
        }
        let maps = files[1..].iter().map(|(name, file)| (name.clone(), map(file))).collect();
        let expected = evaluate(&assignment, &maps).unwrap();
        let expected = expected.entries().iter().filter_map(|(at, value)| match value {
            Scalar::F64(value) => Some((at.clone(), *value)),
            _ => None,
        });
        let described: Vec<String> =
            variables.iter().map(|variable| format!("{} as {}", variable.name(), variable.format())).collect();
        let about = format!("case {seed}: {text} of {} {extents:?}: {}", described.join(", "), blocks.commands);
        Some(Self {
            about,
            declared: variables[0].clone(),
            operands: files.split_off(1),
            plan: Arc::new(plan),
            blocks,
            expected: expected.filter(|(_, value)| *value != 0.0).collect(),
        })
    }

    /// The file that so many nodes make of those of the operands.
    fn stored(&self, nodes: usize, folder: &Path) -> Vec<u8> {
        let to = folder.join(format!("{nodes}.tcs"));
        let done = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
            let mut operands = Vec::new();
            let used = self.plan.statement.tensors();
            for variable in used.into_iter().filter(|variable| *variable != self.plan.statement.result()) {
                // One that is used in two formats has two names.
                let is_own = |name: &str| {
                    variable.name().strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
                };
                let (name, _) = self.operands.iter().find(|(name, _)| is_own(name)).unwrap();
                let file = TcsFile::open(&folder.join(name)).unwrap();
                let stored = variable.stored(file.format().unwrap());
                operands.push(Tensor::load(cx, &stored, &file).await?.0.converted(cx, variable).await?);
            }
            let mut tensors: Vec<&Tensor> = operands.iter().collect();
            if self.plan.leaf().output == Output::Entries {
                let made = assemble(cx, &self.plan, &tensors).await?;
                made.converted(cx, &self.declared).await?.store(cx, &to, Width::Eight).await?;
                return Ok(());
            }
            let made = Tensor::for_result(cx, &self.plan, &tensors)?;
            tensors.insert(0, &made);
            Distributed::new(cx, &self.plan, &tensors).await?.launch(cx)?.await?;
            made.converted(cx, &self.declared).await?.store(cx, &to, Width::Eight).await?;
            Ok(())
        });
        done.into_iter()
            .for_each(|done| done.unwrap_or_else(|error| panic!("{} on {nodes} nodes: {error}", self.about)));
        fs::read(to).unwrap()
    }

    fn check(&self) {
        let folder = tempfile::tempdir().unwrap();
        for (name, file) in &self.operands {
            fs::write(folder.path().join(name), file.file(Width::Eight)).unwrap();
        }
        for nodes in [1, 2, 4] {
            let bytes = self.stored(nodes, folder.path());
            let mut found = BTreeMap::new();
            tcs::Tensor::<f64>::read(&bytes[..]).unwrap().for_each(|at, value| {
                let at: Vec<i64> = at.iter().map(|coordinate| *coordinate as i64).collect();
                assert!(
                    found.insert(at, value).is_none(),
                    "{} on {nodes} nodes: an element is there twice",
                    self.about
                );
            });
            found.retain(|_, value| *value != 0.0);
            assert_eq!(found, self.expected, "{} on {nodes} nodes\n{}", self.about, self.plan.statement);
        }
    }
}

/// The entries of a file.
fn map(file: &File<f64>) -> SparseMap {
    let dimensions: Vec<i64> = file.extents.iter().map(|extent| *extent as i64).collect();
    let mut map = SparseMap::new(&dimensions, Scalar::F64(0.0));
    for (at, value) in &file.entries {
        let at: Vec<i64> = at.iter().map(|coordinate| *coordinate as i64).collect();
        assert!(map.set(&at, Scalar::F64(*value)) && map.element() == ElementType::F64);
    }
    map
}

#[test]
fn random_blocks_from_files_to_a_file_give_what_the_oracle_says_on_any_nodes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let one = number("MANIPLE_TESTS_SEED");
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 0..number("MANIPLE_TESTS_COUNT").unwrap_or(200),
    };
    let all = seeds.end - seeds.start;
    let (mut distributed, mut in_steps, mut extended, mut mapped_sums, mut sparse) = (0, 0, 0, 0, 0);
    for seed in seeds {
        let case = Case::new(seed);
        distributed += u64::from(case.blocks.points > 0);
        in_steps += u64::from(case.blocks.points > 0 && case.blocks.steps > 0);
        extended += u64::from(case.blocks.extended > 0);
        mapped_sums += u64::from(case.blocks.mapped_sums > 0);
        sparse += u64::from(!case.declared.format().is_dense());
        case.check();
    }
    let counts = [distributed, in_steps, extended, mapped_sums, sparse];
    println!("{all} cases: {counts:?} distributed, in steps, extended, mapped by sums, with sparse results");
    assert!(one.is_some() || counts.iter().all(|count| *count >= all / 20), "{counts:?} of {all}");
}
