//! Tensors of a program as they come about: given, read from files, or made; and where they lie.

use std::collections::BTreeMap;

use maniple::{Context, ProcessorKind};

use super::planned::Statements;
use super::tensors::Tensors;
use crate::distributed::{DistributedError, Pending, Tensor};
use crate::files::FileInParts;
use crate::format::Format;
use crate::generate::{Generator, RandomElements};
use crate::machine::Machine;
use crate::notation::TensorVariable;
use crate::placement::{Placed, Placement};
use crate::rectangle::Rectangle;
use crate::storage::DynamicTensor;

/// In so many pieces on each node random elements are made.
const MADE_AT_ONCE: usize = 4;

/// The sources of the tensors of a program, by their names.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// Tensors that each node has whole, as tasks neither read nor make them.
    pub given: &'a BTreeMap<String, DynamicTensor>,
    /// Tensors that tasks read from files.
    pub files: &'a BTreeMap<String, FileInParts>,
    /// Tensors that tasks make.
    pub made: &'a BTreeMap<String, Made>,
    /// The places of parts of tensors at the beginning.
    pub places: &'a [TensorPlace],
    /// Whether dense tensors are made and placed again before each run, so that each has to move as much.
    pub renews: bool,
}

/// The place of the parts of a tensor.
#[derive(Clone, Debug)]
pub struct TensorPlace {
    /// The name of the tensor.
    pub tensor: String,
    /// The placement.
    pub placement: Placement,
    /// The machine that it is for.
    pub machine: Machine,
}

/// A way in which tasks make a tensor.
#[derive(Clone, Debug)]
pub enum Made {
    /// A dense tensor, with random elements of a seed.
    Random(u64),
    /// A tensor in levels, by a generator from a seed.
    Generated(Generator, u64),
}

/// Tensors that are there, and what it took.
pub struct Gathered {
    /// The tensors, in the formats in which statements use them.
    pub tensors: Tensors,
    /// The number of elements that are stored, and their format, of each that tasks have read or made.
    pub counts: BTreeMap<String, (usize, Format)>,
    /// The bytes that each node has read.
    pub read: BTreeMap<String, Vec<u64>>,
}

impl Sources<'_> {
    /// Whether tasks read or make a tensor.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.files.contains_key(name) || self.made.contains_key(name)
    }

    /// Whether tasks read a tensor, or make one in levels.
    #[must_use]
    pub fn is_stored(&self, name: &str) -> bool {
        self.files.contains_key(name) || matches!(self.made.get(name), Some(Made::Generated(..)))
    }

    /// A tensor, or a file that tasks read, that differs between nodes, each of which has read or made it for itself:
    /// which one, and on which node. Of `.tcs` files the headers tell, which have checksums of all that is in them; of
    /// others their lengths and what is here and there.
    ///
    /// # Errors
    ///
    /// [`maniple::Error`] if a node fails.
    pub async fn differing(&self, cx: &Context) -> maniple::Result<Option<(String, usize)>> {
        let files = self.files.iter().map(|(name, file)| format!("{name}, from {},", file.name()));
        let names = self.given.keys().cloned().chain(files);
        let digests =
            self.given.values().map(DynamicTensor::digest).chain(self.files.values().map(FileInParts::digest));
        let nodes = cx.per_node(digests.collect::<Vec<u64>>()).all().await?;
        let Some(first) = nodes.first() else { return Ok(None) };
        // Files of other kinds on some nodes are read in other ways.
        let is_other =
            |digests: &[u64], number: usize| digests.len() != first.len() || digests[number] != first[number];
        let node = |number: usize| nodes.iter().position(|digests| is_other(digests, number));
        Ok(names.enumerate().find_map(|(number, name)| node(number).map(|node| (name, node))))
    }

    /// All operands of statements, where they are placed.
    ///
    /// # Errors
    ///
    /// [`DistributedError`] if a file can't be read, or a tensor not be made, converted or placed.
    pub fn gathered<'s>(&'s self, cx: &'s Context, statements: &'s Statements, forgets: bool) -> Pending<'s, Gathered> {
        Box::pin(async move {
            let mut all = Tensors::new(Vec::new(), forgets);
            let (mut counts, mut read) = (BTreeMap::new(), BTreeMap::new());
            let mut variables = statements.operands();
            // What is added to a dense result goes into what it has.
            for result in statements.results().filter(|result| self.has(result.name())) {
                if !variables.iter().any(|variable| variable.name() == result.name()) {
                    variables.push(result.clone());
                }
            }
            for variable in &variables {
                let is_there = all.has(variable.name());
                let mut add = |tensor: Tensor| {
                    counts.insert(variable.name().to_owned(), (tensor.count(), tensor.variable().format().clone()));
                    all.add(tensor);
                };
                match (self.files.get(variable.name()), self.made.get(variable.name())) {
                    (Some(file), _) if !is_there => {
                        let (mut tensor, bytes) = file.read(cx, variable).await?;
                        // What is assigned to is where results go.
                        if statements.assign(variable.name()) && tensor.variable().format() != variable.format() {
                            let converted = tensor.converted(cx, variable).await?;
                            tensor.destroy(cx)?;
                            tensor = converted;
                        }
                        add(tensor);
                        read.insert(variable.name().to_owned(), bytes);
                    }
                    (None, Some(Made::Generated(generator, seed))) if !is_there => {
                        add(Tensor::generated(cx, variable, generator, *seed).await?);
                    }
                    (None, Some(Made::Random(seed))) if !is_there => {
                        let tensor = Tensor::new(cx, variable)?;
                        if !self.renews {
                            let pieces = tensor.slabs(MADE_AT_ONCE * cx.nodes());
                            tensor.fill_randomly(cx, &pieces, RandomElements::new(*seed, variable))?;
                        }
                        all.add(tensor);
                    }
                    (Some(_), _) | (None, Some(_)) => {}
                    (None, None) => self.add_given(cx, &mut all, variable)?,
                }
            }
            for result in statements.results().filter(|result| result.format().is_dense()) {
                if !all.has(result.name()) {
                    self.add_given(cx, &mut all, result)?;
                }
            }
            let operands = statements.operands();
            for variable in operands.iter().filter(|variable| !statements.assign(variable.name())) {
                all.convert(cx, variable).await?;
            }
            // What was loaded in a format in which nothing uses it.
            let is_used =
                |tensor: &Tensor| statements.assign(tensor.variable().name()) || operands.contains(tensor.variable());
            all.retain(cx, is_used)?;
            if !self.renews {
                self.place(cx, &all).await?;
            }
            let is_kept = |name: &str| match self.renews {
                true => self.files.contains_key(name),
                false => self.has(name),
            };
            all.keep(cx, |name| statements.assign(name) && is_kept(name)).await?;
            Ok(Gathered { tensors: all, counts, read })
        })
    }

    /// Gives dense tensors the elements that they are given, before a run; and makes those of random elements anew and
    /// places all, if that is to be done before each run.
    ///
    /// # Errors
    ///
    /// [`DistributedError`] if a tensor can't be made or placed.
    pub async fn renew(&self, cx: &Context, tensors: &Tensors) -> Result<(), DistributedError> {
        for tensor in tensors.all().iter().filter(|tensor| tensor.variable().format().is_dense()) {
            if let Some(stored) = self.given.get(tensor.variable().name()) {
                tensor.write_dynamic(cx, stored)?;
            }
        }
        if !self.renews {
            return Ok(());
        }
        let processors = cx.nodes() * cx.machine().processors_of(ProcessorKind::Cpu).count();
        for tensor in tensors.all() {
            let variable = tensor.variable();
            if let Some(Made::Random(seed)) = self.made.get(variable.name()) {
                let own = self.places.iter().find(|place| place.tensor == variable.name());
                let pieces = own.and_then(|place| place.pieces(variable));
                let pieces = pieces.unwrap_or_else(|| tensor.slabs(processors));
                tensor.fill_randomly(cx, &pieces, RandomElements::new(*seed, variable))?;
            }
        }
        self.place(cx, tensors).await
    }

    /// Adds a tensor that is given, in the format of the variable, or a dense one.
    fn add_given(&self, cx: &Context, all: &mut Tensors, variable: &TensorVariable) -> Result<(), DistributedError> {
        if variable.format().is_dense() {
            all.add(Tensor::new(cx, variable)?);
        } else if let Some(stored) = self.given.get(variable.name()) {
            let stored = stored.convert(variable.format()).map_err(maniple::Error::from_task)?;
            all.add(Tensor::from_dynamic(cx, variable, &stored)?);
        }
        Ok(())
    }

    /// Brings tensors to where they are placed.
    async fn place(&self, cx: &Context, all: &Tensors) -> Result<(), DistributedError> {
        for TensorPlace { tensor: name, placement, machine } in self.places {
            for tensor in all.all().iter().filter(|tensor| tensor.variable().name() == name) {
                match tensor.is_in_levels() {
                    false => tensor.place(cx, placement, machine)?.await?,
                    true => tensor.place_levels(cx, placement, machine).await?.await?,
                }
            }
        }
        Ok(())
    }
}

impl TensorPlace {
    /// The pieces of a tensor.
    fn pieces(&self, tensor: &TensorVariable) -> Option<Vec<Rectangle>> {
        let placed = Placed::new(&self.placement, &Rectangle::whole(tensor.dimensions()), &self.machine).ok()?;
        let piece = |point: Vec<usize>| placed.piece(&point).rectangles().collect::<Vec<_>>();
        Some(placed.machine().points().flat_map(piece).collect())
    }
}
