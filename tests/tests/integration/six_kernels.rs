//! The six kernels of SpDISTAL (Yadav, Aiken and Kjolstad, SC 2022, section VI) by rows, by entries and in rounds, on
//! small tensors of all kinds that its evaluation has: what the oracle says.

use std::sync::Arc;

use maniple_tensor::format::Format;
use maniple_tensor::generate::Generator;
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::notation::{Assignment, TensorVariable};
use maniple_tensor::oracle::{SparseMap, evaluate};
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};

use crate::sparse_tensors::{assignment, same, tensor};

/// An operand: its name, its extents, and its entries.
struct Input {
    name: &'static str,
    extents: Vec<i64>,
    entries: EntryList<i64>,
}

impl Input {
    fn generated(name: &'static str, extents: &[i64]) -> Self {
        let generator: Generator = name.parse().unwrap();
        let entries = generator.rows(extents, 0..extents[0], 35).unwrap();
        Self { name, extents: extents.to_vec(), entries }
    }

    fn matrix(name: &'static str, extent: i64, places: impl IntoIterator<Item = [i64; 2]>) -> Self {
        let mut entries = EntryList::new(2);
        places.into_iter().for_each(|at| entries.push(&at, (at[0] * 3 + at[1]) % 9 - 4));
        Self { name, extents: vec![extent; 2], entries }
    }

    fn stored(&self, format: &Format) -> SparseTensor<i64> {
        pack(format, &self.extents, 0, self.entries.clone(), Duplicates::Sum).unwrap().tensor
    }

    /// The same with the last coordinate of each entry further on.
    fn shifted(&self, by: i64) -> Self {
        let (last, mut entries) = (self.extents.len() - 1, EntryList::new(self.extents.len()));
        for (at, value) in self.entries.iter() {
            let mut at = at.to_vec();
            at[last] = (at[last] + by) % self.extents[last];
            entries.push(&at, value);
        }
        Self { name: self.name, extents: self.extents.clone(), entries }
    }
}

/// The graph that Mycielski's construction makes of one edge in so many steps, as both triangles.
fn mycielskian(steps: usize) -> Input {
    let (mut vertices, mut edges) = (2, vec![[0, 1]]);
    for _ in 0..steps {
        let of_copies = edges.iter().flat_map(|&[one, other]| [[one, vertices + other], [other, vertices + one]]);
        let of_hub = (0..vertices).map(|vertex| [vertices + vertex, 2 * vertices]);
        edges = edges.iter().copied().chain(of_copies).chain(of_hub).collect();
        vertices = 2 * vertices + 1;
    }
    let both = edges.into_iter().flat_map(|[one, other]| [[one, other], [other, one]]);
    Input::matrix("mycielskian", vertices, both)
}

/// Paths of which each vertex has one neighbour or two, at random numbers.
fn chains(vertices: i64) -> Input {
    let number = move |place: i64| place * 29 % vertices;
    let inside = (1..vertices).filter(|place| place % 7 != 0);
    let edges = inside.flat_map(move |place| {
        let [one, other] = [number(place - 1), number(place)];
        [[one, other], [other, one]]
    });
    Input::matrix("chains", vertices, edges)
}

/// The matrix of an optimisation with as many conditions as variables on a line: a band, one beside it, one below it,
/// and nothing in the rest.
fn conditions(variables: i64) -> Input {
    let near = |row: i64, width: i64| (row - width).max(0)..(row + width + 1).min(variables);
    let of_target = (0..variables).flat_map(move |row| near(row, 2).map(move |column| [row, column]));
    let of_conditions = (0..variables).flat_map(move |row| {
        near(row, 1).flat_map(move |column| [[variables + row, column], [column, variables + row]])
    });
    Input::matrix("conditions", 2 * variables, of_target.chain(of_conditions))
}

fn matrices() -> Vec<Input> {
    vec![
        Input::generated("band:5", &[57, 57]),
        Input::generated("poisson:7", &[49, 49]),
        Input::generated("poisson3:4", &[64, 64]),
        Input::generated("rmat:6,3", &[64, 64]),
        Input::generated("uniform:0.06", &[60, 41]),
        Input::generated("zipf:150", &[48, 70]),
        Input::generated("arrow", &[45, 45]),
        // Most rows have no entries.
        Input::generated("hypersparse:17", &[90, 90]),
        mycielskian(4),
        chains(63),
        conditions(24),
    ]
}

/// Tensors of three dimensions, with the formats of the outer two levels and of all.
fn cubes() -> Vec<(Input, &'static str, &'static str)> {
    vec![
        (Input::generated("zipf:150", &[19, 13, 17]), "csr", "{D,C,C}"),
        (Input::generated("hypersparse:25", &[60, 40, 7]), "csr", "{D,C,C}"),
        (Input::generated("uniform:0.03", &[9, 23, 12]), "csr", "{D,C,C}"),
        // As the table of patents, of which each pair of the first coordinates has some.
        (Input::generated("uniform:0.2", &[5, 11, 31]), "dense", "{D,D,C}"),
    ]
}

/// By blocks of the outermost variable.
const ROWS: &str = "distribute(i, io, ii, POINTS)";

/// A kernel: what it computes, of which operands, and the schedules that it has, of which each has so many points as
/// `POINTS` stands for.
struct Kernel<'a> {
    text: &'a str,
    tensors: Vec<(&'a str, &'a str, &'a [i64])>,
    schedules: &'a [&'a str],
}

impl Kernel<'_> {
    /// Checks that the kernel gives on 1 to 4 nodes in all of its schedules what the oracle says, and gives in how many
    /// cases.
    fn check(&self, input: &Input) -> usize {
        let assignment = assignment(self.text, &self.tensors);
        let given: Vec<(String, Arc<SparseTensor<i64>>)> = assignment
            .tensors()
            .iter()
            .map(|variable| (variable.name().to_owned(), Arc::new(operand(input, variable))))
            .collect();
        is_what_the_oracle_says(&assignment, &given, input.name);
        let computation = Computation::new(&assignment).unwrap();
        for (schedule, nodes) in self.schedules.iter().flat_map(|schedule| (1..=4).map(move |nodes| (schedule, nodes)))
        {
            // Not as many as nodes: of some nodes there are two.
            let commands = schedule.replace("POINTS", &(nodes + 1).to_string());
            let schedule = Schedule::parse(&commands, &assignment.tensors()).unwrap();
            let statement = schedule.apply(computation.statement());
            let statement = statement.unwrap_or_else(|error| panic!("{} {commands}: {error}", self.text));
            let plan = Plan::new(&statement).unwrap_or_else(|error| panic!("{} {commands}: {error}", self.text));
            assert!(!plan.launches().is_empty());
            same(nodes, &assignment, &Arc::new(plan), &given);
        }
        self.schedules.len() * 4
    }
}

/// The operand of a kernel that is called so: the input, the same with entries at other places, or a dense one.
fn operand(input: &Input, variable: &TensorVariable) -> SparseTensor<i64> {
    match variable.name() {
        "B" => input.stored(variable.format()),
        "C" | "D" if !variable.format().is_dense() => {
            input.shifted(if variable.name() == "C" { 1 } else { 2 }).stored(variable.format())
        }
        _ => tensor(variable, 1),
    }
}

/// Checks that one kernel on the whole gives what the oracle does. What runs on nodes is compared with that kernel.
fn is_what_the_oracle_says(assignment: &Assignment, given: &[(String, Arc<SparseTensor<i64>>)], name: &str) {
    let maps = given.iter().map(|(name, stored)| (name.clone(), SparseMap::of_tensor(&**stored))).collect();
    let expected = evaluate(assignment, &maps).unwrap();
    let operands: Vec<(&str, &SparseTensor<i64>)> = given.iter().map(|(name, stored)| (&**name, &**stored)).collect();
    let kernels = Kernels::new(None, None);
    let found = Computation::new(assignment).unwrap().run_by(&operands, &kernels, &Serial).unwrap();
    let difference = expected.difference(&SparseMap::of_tensor(&found), |one, other| one == other);
    assert_eq!(difference, None, "{assignment} of {name}");
}

#[test]
fn kernels_of_matrices_give_on_nodes_what_the_oracle_says() {
    const ENTRIES: &str = "fuse(i, j, f); pos(f, p, B); divide(p, po, pi, POINTS); distribute(po)";
    // Rows and columns on a grid, and parts of the columns one after the other.
    const BATCHED: &str = "divide(i, io, ii, POINTS); divide(k, ko, ki, 2); divide(ki, kr, kc, 3); \
                           reorder({io, ko, kr, ii, j, kc}); distribute({io, ko}); communicate({A, C}, kr)";
    let mut cases = 0;
    for input in matrices() {
        let [rows, columns] = input.extents[..] else { unreachable!("matrices have two") };
        let (all, left, right): (_, &[i64], &[i64]) = (&input.extents[..], &[rows, 7], &[columns, 7]);
        let kernels = [
            Kernel {
                text: "a(i) = B(i,j) * c(j)",
                tensors: vec![("a", "dense", &all[..1]), ("B", "csr", all), ("c", "dense", &all[1..])],
                schedules: &[ROWS, ENTRIES],
            },
            Kernel {
                text: "A(i,k) = B(i,j) * C(j,k)",
                tensors: vec![("A", "dense", left), ("B", "csr", all), ("C", "dense", right)],
                schedules: &[ROWS, ENTRIES, BATCHED],
            },
            // A sum of different patterns has no entries that could be dealt.
            Kernel {
                text: "A(i,j) = B(i,j) + C(i,j) + D(i,j)",
                tensors: vec![("A", "csr", all), ("B", "csr", all), ("C", "csr", all), ("D", "csr", all)],
                schedules: &[ROWS],
            },
            Kernel {
                text: "A(i,j) = B(i,j) * C(i,k) * D(j,k)",
                tensors: vec![("A", "csr", all), ("B", "csr", all), ("C", "dense", left), ("D", "dense", right)],
                schedules: &[ROWS, ENTRIES],
            },
        ];
        cases += kernels.iter().map(|kernel| kernel.check(&input)).sum::<usize>();
    }
    assert_eq!(cases, 11 * 8 * 4);
}

#[test]
fn kernels_of_tensors_give_on_nodes_what_the_oracle_says() {
    const FIBERS: &str = "fuse(i, j, f); pos(f, p, B); divide(p, po, pi, POINTS); distribute(po)";
    const ENTRIES: &str = "fuse(i, j, f); fuse(f, k, g); pos(g, p, B); divide(p, po, pi, POINTS); distribute(po)";
    const BATCHED: &str = "divide(l, lr, lc, 3); distribute(i, io, ii, POINTS); reorder({io, lr, ii, j, k, lc}); \
                           communicate({A, C, D}, lr)";
    let by_entries = format!("reorder({{i, j, k, l}}); {ENTRIES}");
    let mut cases = 0;
    for (input, outer, format) in cubes() {
        let [i, j, k] = input.extents[..] else { unreachable!("they have three") };
        let (all, of_i, of_j, of_k): (_, &[i64], &[i64], &[i64]) = (&input.extents[..], &[i, 5], &[j, 5], &[k, 5]);
        // Of a result in levels a point has the entries of its fibers.
        let of_fibers = if outer == "dense" { ENTRIES } else { FIBERS };
        let kernels = [
            Kernel {
                text: "A(i,j) = B(i,j,k) * c(k)",
                tensors: vec![("A", outer, &all[..2]), ("B", format, all), ("c", "dense", &all[2..])],
                schedules: &[ROWS, of_fibers],
            },
            Kernel {
                text: "A(i,l) = B(i,j,k) * C(j,l) * D(k,l)",
                tensors: vec![("A", "dense", of_i), ("B", format, all), ("C", "dense", of_j), ("D", "dense", of_k)],
                schedules: &[ROWS, &by_entries, BATCHED],
            },
        ];
        cases += kernels.iter().map(|kernel| kernel.check(&input)).sum::<usize>();
    }
    assert_eq!(cases, 4 * 5 * 4);
}
