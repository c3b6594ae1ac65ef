//! Statements computed by this project: plans on the runtime, with their tensors where the algorithm wants them.

use std::sync::Arc;
use std::time::Instant;

use maniple::space::{AnySpace, Point, Rect};
use maniple::task::{Codec, LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Context, FieldMask, FieldValue, Privilege, Projection, Requirement, Result as RuntimeResult, Runtime, Target,
    TaskLauncher,
};
use maniple_tensor::distributed::{Computation, Tensor};
use maniple_tensor::element::{Element, ElementType};
use maniple_tensor::machine::{Grid, Machine};
use maniple_tensor::placement::{Placed, Placement};
use maniple_tensor::plan::Plan;
use maniple_tensor::rectangle::Rectangle;

use super::expected::{factor, weight};
use super::turns::next_turn;
use super::works::Work;
use crate::error::{Error, Result};

/// Computes over and over, whenever it is its turn. A node that is not the first only takes part.
///
/// # Errors
/// The errors of the runtime.
pub fn serve(runtime: &Runtime, work: &Work) -> Result<()> {
    let algorithm = work.algorithm()?;
    let plan = Arc::new(Plan::new(&algorithm.statement).map_err(Error::tensor)?);
    let grid = Grid::new(algorithm.grid.iter().map(|&extent| extent as usize).collect::<Vec<_>>());
    let machine = Machine::from(grid.map_err(Error::tensor)?);
    let served = runtime.run(async |cx| {
        let mut tensors = Vec::new();
        for (variable, placement) in &algorithm.placements {
            let tensor = Tensor::new(cx, variable).map_err(maniple::Error::from_task)?;
            place(cx, &tensor, placement, &machine)?;
            tensors.push(tensor);
        }
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        let computation = Computation::new(cx, &plan, &tensors).await.map_err(maniple::Error::from_task)?;
        let mut is_first = true;
        loop {
            let start = Instant::now();
            computation.launch(cx).map_err(maniple::Error::from_task)?.await.map_err(maniple::Error::from_task)?;
            let seconds = start.elapsed().as_secs_f64();
            let answer = weighed(cx, tensors[0]).await?;
            if !next_turn(cx, (!is_first).then_some((seconds, answer))).await? {
                return Ok(());
            }
            is_first = false;
        }
    });
    Ok(served?)
}

/// Does something with the Rust type of the elements.
macro_rules! with_type {
    ($tensor:expr, $body:ident ( $($argument:expr),* )) => {
        match $tensor.variable().element() {
            ElementType::F32 => $body::<f32>($($argument),*),
            _ => $body::<f64>($($argument),*),
        }
    };
}

/// Gives all elements of a tensor their values, each point of the machine those that it holds.
fn place(cx: &Context, tensor: &Tensor, placement: &Placement, machine: &Machine) -> RuntimeResult<()> {
    let domain = Rectangle::whole(tensor.variable().dimensions());
    let placed = Placed::new(placement, &domain, machine).map_err(maniple::Error::from_task)?;
    let points: Vec<Vec<usize>> = machine.points().collect();
    // Several copies are made of one; a scalar is in one piece.
    let pieces: Vec<Rectangle> = if placed.is_disjoint() && domain.order() > 0 {
        let piece = |point: &Vec<usize>| placed.piece(point).rectangles().next();
        points.iter().map(|point| piece(point).unwrap_or_else(|| Rectangle::empty(domain.order()))).collect()
    } else {
        vec![domain]
    };
    let spaces: Vec<AnySpace> = pieces.iter().map(space).collect();
    let partitioning = cx.index_partition(tensor.region().space(), spaces.len(), &spaces)?;
    let partition = tensor.region().partition(&partitioning)?;
    let field = tensor.field();
    let task = TaskDefinition::new("fill").leaf(TaskOptions::default(), {
        let tensor = tensor.clone();
        move |call| {
            with_type!(tensor, fill(call, &tensor))?;
            Ok(Value::new(()))
        }
    });
    let target = Target::Partition(partition, Projection::Identity);
    let requirement = Requirement::new(target, FieldMask::of(field), Privilege::Discard);
    let launcher = TaskLauncher::new(&Arc::new(task)).requirement(requirement);
    cx.index_launch(Rect::<1>::from(0..spaces.len() as i64), launcher.typed::<()>());
    Ok(())
}

fn space(piece: &Rectangle) -> AnySpace {
    fn rect<const D: usize>(piece: &Rectangle) -> AnySpace {
        let bounds: Vec<_> = piece.bounds().collect();
        AnySpace::from(Rect::<D>::new(
            std::array::from_fn(|d| bounds.get(d).map_or(0, |bounds| bounds.0)),
            std::array::from_fn(|d| bounds.get(d).map_or(0, |bounds| bounds.1 - 1)),
        ))
    }
    match piece.order() {
        0 | 1 => rect::<1>(piece),
        2 => rect::<2>(piece),
        _ => rect::<3>(piece),
    }
}

/// An element's type that can be made of a number.
trait Number: Element + FieldValue {
    fn of(number: i64) -> Self;
    fn number(self) -> f64;
}

impl Number for f32 {
    fn of(number: i64) -> Self {
        number as Self
    }

    fn number(self) -> f64 {
        self.into()
    }
}

impl Number for f64 {
    fn of(number: i64) -> Self {
        number as Self
    }

    fn number(self) -> f64 {
        self
    }
}

fn fill<T: Number>(call: &LeafCall<'_>, tensor: &Tensor) -> RuntimeResult<()> {
    fn rows<T: Number, const D: usize>(call: &LeafCall<'_>, tensor: &Tensor) -> RuntimeResult<()> {
        let mut into = call.write::<T, D>(0, tensor.field())?;
        let rows: Vec<Rect<D>> = into.space().rows().collect();
        let last: Vec<i64> = (0..tensor.variable().dimensions().last().copied().unwrap_or(1))
            .map(|index| factor(D - 1, index))
            .collect();
        for row in rows {
            let Point(at) = row.lo;
            let before: i64 = (0..D - 1).map(|dimension| factor(dimension, at[dimension])).product();
            let mut span = into.span_mut(row);
            for (value, last) in span.iter_mut().zip(&last[at[D - 1] as usize..]) {
                *value = T::of(before * last);
            }
        }
        Ok(())
    }
    match tensor.variable().order() {
        0 | 1 => rows::<T, 1>(call, tensor),
        2 => rows::<T, 2>(call, tensor),
        _ => rows::<T, 3>(call, tensor),
    }
}

/// The sum of all elements with their weights.
async fn weighed(cx: &Context, tensor: &Tensor) -> RuntimeResult<u64> {
    let field = tensor.field();
    let task = TaskDefinition::new("weigh").codec(Codec::of::<u64>()).leaf(TaskOptions::default(), {
        let tensor = tensor.clone();
        move |call| Ok(Value::new(with_type!(tensor, weigh(call, &tensor))? as u64))
    });
    let requirement = Requirement::new(tensor.region().clone(), FieldMask::of(field), Privilege::Read);
    cx.launch(TaskLauncher::new(&Arc::new(task)).requirement(requirement).typed::<u64>()).await
}

fn weigh<T: Number>(call: &LeafCall<'_>, tensor: &Tensor) -> RuntimeResult<f64> {
    fn rows<T: Number, const D: usize>(call: &LeafCall<'_>, tensor: &Tensor) -> RuntimeResult<f64> {
        let from = call.read::<T, D>(0, tensor.field())?;
        let (mut sum, order) = (0.0, tensor.variable().order());
        for point in from.space().points() {
            let weights: i64 = point.0[..order].iter().map(|&index| weight(index)).product();
            sum += from[point].number() * weights as f64;
        }
        Ok(sum)
    }
    match tensor.variable().order() {
        0 | 1 => rows::<T, 1>(call, tensor),
        2 => rows::<T, 2>(call, tensor),
        _ => rows::<T, 3>(call, tensor),
    }
}
