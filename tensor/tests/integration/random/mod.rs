//! Random assignments over small integer tensors, and random schedules for them.
#![allow(dead_code)] // Each test uses a part of it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use fastrand::Rng;
use maniple_tensor::concrete::{Execution, Merge, Statement, StatementNode, Substitution, Unit};
use maniple_tensor::element::{Element, ElementType, Scalar};
use maniple_tensor::kernel::{Argument, View};
use maniple_tensor::notation::{
    Access, Assignment, BinaryOperator, DenseArray, Expression, IndexVariable, Intrinsic, Reduction, Special,
    TensorVariable, Test, cast,
};
use maniple_tensor::schedule::{Command, Races};
use num_complex::Complex;

/// An assignment, and elements for all its tensors.
pub struct Problem {
    pub assignment: Assignment,
    pub operands: BTreeMap<String, DenseArray>,
}

impl Problem {
    pub fn new(random: &mut Rng) -> Self {
        Self::of(ElementType::I64, random)
    }

    /// One of integers, with a user's reductions too.
    pub fn with_own_reductions(random: &mut Rng) -> Self {
        Self::made(ElementType::I64, (true, false), random)
    }

    /// One that has all operators and functions, and operands that are used several times: results of floats may be
    /// rounded, infinite or no numbers.
    pub fn with_all_operators(element: ElementType, random: &mut Rng) -> Self {
        Self::made(element, (false, true), random)
    }

    /// One whose elements are whole numbers, and whose results are exact in any order: what is divided is divided by
    /// powers of two, unless integers are.
    pub fn of(element: ElementType, random: &mut Rng) -> Self {
        Self::made(element, (false, false), random)
    }

    fn made(element: ElementType, (own_reductions, all_operators): (bool, bool), random: &mut Rng) -> Self {
        loop {
            let (extents, accesses, made) = (Vec::new(), Vec::new(), Vec::new());
            let mut maker = Maker { random, element, own_reductions, all_operators, extents, accesses, made };
            for name in ["i", "j", "k", "l"] {
                let extent = if maker.random.u8(..) < 8 { 0 } else { maker.random.i64(1..8) };
                maker.extents.push((IndexVariable::new(name), extent));
            }
            let order = maker.random.usize(..3);
            let left = maker.access("R", order, true);
            let right = maker.expression(3);
            let accumulate = maker.random.u8(..4) == 0;
            let masks = if maker.random.u8(..5) == 0 { maker.mask(&left) } else { Vec::new() };
            let operators = [Reduction::Sum, Reduction::Sum, Reduction::Maximum, Reduction::Minimum];
            let operator = accumulate.then(|| operators[maker.random.usize(..operators.len())]);
            // Some have variables without extent, use a reduction's variable outside of it, or compare complex numbers.
            let assignment = Assignment::masked(left, operator, &masks, right);
            let Ok(assignment) = assignment else { continue };
            if assignment.extents().values().product::<i64>() > 3000 {
                continue;
            }
            let operands = operands(&assignment, random);
            return Self { assignment, operands };
        }
    }
}

/// Small whole numbers for all tensors of `assignment`; of every third one, infinities, NaNs and negative zeros among
/// them, as far as its elements have them.
pub fn operands(assignment: &Assignment, random: &mut Rng) -> BTreeMap<String, DenseArray> {
    let rare = if random.u8(..3) == 0 { random.u32(2..40) } else { u32::MAX };
    let mut array = |tensor: &TensorVariable| {
        DenseArray::from_fn(tensor.element(), tensor.dimensions(), |_| match random.u32(..rare) {
            0 => extreme(tensor.element(), random),
            _ => whole(tensor.element(), random),
        })
    };
    assignment.tensors().iter().map(|tensor| (tensor.name().to_owned(), array(tensor))).collect()
}

/// An extreme element: of floats, one whose sums and products have one value in any order; of integers, the least or
/// the greatest one, which wrap.
fn extreme(element: ElementType, random: &mut Rng) -> Scalar {
    let mut float = || [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0][random.usize(..4)];
    match element {
        ElementType::F32 => Scalar::F32(float() as f32),
        ElementType::F64 => Scalar::F64(float()),
        ElementType::C32 => Scalar::C32(Complex::new(float() as f32, 1.0)),
        ElementType::C64 => Scalar::C64(Complex::new(2.0, float())),
        _ => [Special::Least, Special::Greatest][random.usize(..2)].of(element).expect("integers have both"),
    }
}

/// Whether both arrays have the same elements, NaNs in the same places.
pub fn same(one: &DenseArray, other: &DenseArray) -> bool {
    let float = |one: f64, other: f64| one == other || one.is_nan() && other.is_nan();
    let scalar = |(one, other): (&Scalar, &Scalar)| match (*one, *other) {
        (Scalar::F32(one), Scalar::F32(other)) => float(one.into(), other.into()),
        (Scalar::F64(one), Scalar::F64(other)) => float(one, other),
        (Scalar::C32(one), Scalar::C32(other)) => {
            float(one.re.into(), other.re.into()) && float(one.im.into(), other.im.into())
        }
        (Scalar::C64(one), Scalar::C64(other)) => float(one.re, other.re) && float(one.im, other.im),
        (one, other) => one == other,
    };
    one.dimensions() == other.dimensions() && one.values().iter().zip(other.values()).all(scalar)
}

fn whole(element: ElementType, random: &mut Rng) -> Scalar {
    let value = random.i32(-9..10);
    match element {
        ElementType::F32 => Scalar::F32(value as f32),
        ElementType::F64 => Scalar::F64(value.into()),
        ElementType::C32 => Scalar::C32(Complex::new(value as f32, random.i32(-3..4) as f32)),
        ElementType::C64 => Scalar::C64(Complex::new(value.into(), random.i32(-3..4).into())),
        // As many zeros as others.
        ElementType::Bool => Scalar::Bool(value > 0),
        _ => cast(Scalar::I32(value), element),
    }
}

struct Maker<'a> {
    random: &'a mut Rng,
    element: ElementType,
    own_reductions: bool,
    all_operators: bool,
    extents: Vec<(IndexVariable, i64)>,
    /// The accesses so far.
    accesses: Vec<Access>,
    /// The operands so far.
    made: Vec<TensorVariable>,
}

impl Maker<'_> {
    fn access(&mut self, name: &str, order: usize, distinct: bool) -> Access {
        let mut chosen = Vec::<(IndexVariable, i64)>::new();
        while chosen.len() < order {
            let next = self.extents[self.random.usize(..self.extents.len())].clone();
            if !distinct || !chosen.contains(&next) {
                chosen.push(next);
            }
        }
        let (variables, dimensions): (Vec<_>, Vec<_>) = chosen.into_iter().unzip();
        TensorVariable::new(name, self.element, dimensions).at(variables)
    }

    /// The same, of which some dimensions are shifted, or parts of longer ones.
    fn operand(&mut self, name: &str, order: usize, distinct: bool) -> Access {
        let access = self.access(name, order, distinct);
        let changed = access.variables.iter().zip(access.tensor.dimensions()).map(|(variable, &extent)| {
            match self.random.u8(..16) {
                // A shift of a variable does not say what its extent is: all of one statement agree by name.
                0 => (variable.shifted([-2, -1, 1][self.random.usize(..3)]), extent),
                1 if extent > 0 => {
                    let (low, step) = (self.random.i64(0..3), self.random.i64(1..4));
                    let high = low + (extent - 1) * step + 1 + self.random.i64(0..step);
                    (variable.within(low, high, step), high + self.random.i64(0..3))
                }
                _ => (variable.clone(), extent),
            }
        });
        let (variables, dimensions): (Vec<_>, Vec<_>) = changed.unzip();
        let access = TensorVariable::new(name, self.element, dimensions).at(variables);
        self.made.push(access.tensor.clone());
        access
    }

    /// An operand that is there already, in other parts or with other variables; none if no variable fits.
    fn again(&mut self) -> Option<Access> {
        let tensor = self.made.get(self.random.usize(..self.made.len().max(1)))?.clone();
        let mut variables = Vec::new();
        for &extent in tensor.dimensions() {
            let (variable, own) = self.extents[self.random.usize(..self.extents.len())].clone();
            variables.push(match self.random.u8(..4) {
                0 => variable.shifted([-2, -1, 1][self.random.usize(..3)]),
                _ if own == extent && self.random.bool() => variable,
                _ if own == 0 || own > extent => return None,
                _ => {
                    let step = if own == 1 { 1 } else { self.random.i64(1..=(extent - 1) / (own - 1)) };
                    let last = (own - 1) * step;
                    let low = self.random.i64(0..extent - last);
                    variable.within(low, low + last + 1, step)
                }
            });
        }
        Some(tensor.at(variables))
    }

    /// A mask of the result's variables, in any order.
    fn mask(&mut self, left: &Access) -> Vec<Access> {
        let mut variables = left.variables.clone();
        self.random.shuffle(&mut variables);
        let dimensions: Vec<i64> = variables
            .iter()
            .filter_map(|variable| self.extents.iter().find(|(known, _)| known == variable))
            .map(|(_, extent)| *extent)
            .collect();
        vec![TensorVariable::new("M", self.element, dimensions).at(variables)]
    }

    /// An element that was used before, or another one of the same tensor.
    fn once_more(&mut self) -> Option<Access> {
        let mut access = self.accesses.get(self.random.usize(..self.accesses.len().max(1)))?.clone();
        if let ([one, other], true) = (&mut access.variables[..], self.random.bool())
            && access.tensor.dimensions()[0] == access.tensor.dimensions()[1]
        {
            std::mem::swap(one, other);
        }
        Some(access)
    }

    /// A quotient, a remainder, a power, or a function of one operand.
    fn operation(&mut self, depth: usize) -> Expression {
        use Intrinsic::{Cos, Exp, Floor, Mod, Pow, Sin, Sqrt, Square, Tanh};
        let operand = |maker: &mut Self| maker.expression(depth - 1);
        if self.random.bool() {
            // Often an element, by which the loops could go.
            let (left, right) = (operand(self), if self.random.bool() { self.expression(0) } else { operand(self) });
            return Expression::Binary(BinaryOperator::Divide, Box::new(left), Box::new(right));
        }
        let functions = [Mod, Pow, Cos, Exp, Floor, Sin, Sqrt, Square, Tanh];
        let mut functions = std::iter::repeat_with(|| functions[self.random.usize(..functions.len())]);
        let function = functions.find(|function| function.is_defined_for(self.element)).unwrap();
        let arguments: Vec<_> = (0..function.arity()).map(|_| operand(self)).collect();
        Expression::call(function, arguments)
    }

    fn expression(&mut self, depth: usize) -> Expression {
        let operand = |maker: &mut Self| Box::new(maker.expression(depth - 1));
        if self.all_operators && depth > 0 && self.random.u8(..4) == 0 {
            return self.operation(depth);
        }
        if self.all_operators
            && self.random.u8(..8) == 0
            && let Some(access) = self.once_more()
        {
            return access.into();
        }
        match if depth == 0 { 0 } else { self.random.u8(..12) } {
            0..=2 => match self.random.u8(..10) {
                0 => self.random.i64(-5..6).into(),
                1 => (&self.extents[self.random.usize(..self.extents.len())].0).into(),
                _ => {
                    let order = self.random.usize(..4);
                    let distinct = order < 3 || self.random.bool();
                    let again = if self.random.u8(..6) == 0 { self.again() } else { None };
                    let name = format!("T{}", self.made.len() + 1);
                    let access = again.unwrap_or_else(|| self.operand(&name, order, distinct));
                    self.accesses.push(access.clone());
                    match self.random.u8(..12) {
                        0 => Expression::Test(Test::Stored, access),
                        1 => Expression::Test(Test::IsFill, access),
                        _ => access.into(),
                    }
                }
            },
            3 => Expression::Negate(operand(self)),
            // Absolute values of complex numbers are roots, and complex numbers have no order.
            4 if !matches!(self.element, ElementType::C32 | ElementType::C64) => {
                let intrinsic = [Intrinsic::Min, Intrinsic::Max, Intrinsic::Abs][self.random.usize(..3)];
                let arguments: Vec<_> = (0..intrinsic.arity()).map(|_| *operand(self)).collect();
                Expression::call(intrinsic, arguments)
            }
            5 => {
                let reductions =
                    [Reduction::Sum, Reduction::Minimum, Reduction::Maximum, Reduction::Or, Reduction::And, combined()];
                let most = reductions.len() - usize::from(!self.own_reductions);
                let reduction = reductions[self.random.usize(..most)];
                let variable = self.extents[self.random.usize(..self.extents.len())].0.clone();
                Expression::reduce(reduction, variable, *operand(self))
            }
            6 => {
                let divisor = self.random.i64(2..5);
                let exact = self.element.is_integer() || divisor != 3;
                let divisor = if exact { divisor } else { 8 };
                Expression::Binary(BinaryOperator::Divide, operand(self), Box::new(divisor.into()))
            }
            7 => match self.random.u8(..6) {
                4 => Expression::Binary(BinaryOperator::And, operand(self), operand(self)),
                5 => Expression::Binary(BinaryOperator::Or, operand(self), operand(self)),
                0 => Expression::Select(Box::new([*operand(self), *operand(self), *operand(self)]), Default::default()),
                1 if !matches!(self.element, ElementType::C32 | ElementType::C64) => {
                    let operators = [
                        BinaryOperator::Equal,
                        BinaryOperator::NotEqual,
                        BinaryOperator::Less,
                        BinaryOperator::LessEqual,
                    ];
                    Expression::Binary(operators[self.random.usize(..4)], operand(self), operand(self))
                }
                _ => Expression::Binary(BinaryOperator::Subtract, operand(self), operand(self)),
            },
            8 => Expression::Binary(BinaryOperator::Add, operand(self), operand(self)),
            _ => Expression::Binary(BinaryOperator::Multiply, operand(self), operand(self)),
        }
    }
}

/// A user's reduction: of integers, `a + b + a * b` is one, with all small whole numbers.
pub fn combined() -> Reduction {
    static MADE: OnceLock<Reduction> = OnceLock::new();
    *MADE.get_or_init(|| {
        Reduction::custom("circle", Special::Zero, |a, b| a.clone() + b.clone() + a * b).expect("it is a reduction")
    })
}

/// A command that is often, but not always, legal.
pub fn command(statement: &Statement, random: &mut Rng) -> Option<Command> {
    let loops: Vec<IndexVariable> = statement.body().loops().iter().map(|outer| outer.variable.clone()).collect();
    if loops.is_empty() {
        return None;
    }
    let any = |random: &mut Rng| loops[random.usize(..loops.len())].clone();
    let mut number = 0;
    let mut fresh = |prefix: &str| {
        loop {
            number += 1;
            let name = format!("{prefix}{number}");
            if statement.extent(&IndexVariable::new(&name)).is_none() && !statement.to_string().contains(&name) {
                return name;
            }
        }
    };
    // Loops in a row, which are often directly inside of one another.
    let start = random.usize(..loops.len());
    let row: Vec<IndexVariable> = loops[start..loops.len().min(start + 1 + random.usize(..3))].to_vec();
    let variable = any(random);
    let mut name = || IndexVariable::new(&fresh("v"));
    Some(match random.u8(..17) {
        0 | 1 => Command::Split { variable, outer: name(), inner: name(), factor: random.i64(1..5) },
        2 => Command::Divide { variable, outer: name(), inner: name(), pieces: random.i64(1..5) },
        3 => Command::Fuse { outer: row[0].clone(), inner: row[row.len() - 1].clone(), fused: name() },
        4 | 5 => {
            let mut order = row;
            random.shuffle(&mut order);
            Command::Reorder { order }
        }
        6 => {
            let extent = statement.extent(&variable)?;
            Command::Bound { variable, bounded: name(), extent }
        }
        7 => Command::Rotate { target: row[row.len() - 1].clone(), by: row[..row.len() - 1].to_vec(), result: name() },
        8 => {
            // Now and then more pieces than there are indices.
            let most = if random.u8(..8) == 0 { 60 } else { 4 };
            let grid = row.iter().map(|_| random.i64(1..most)).collect();
            let outer = row.iter().map(|_| name()).collect();
            let inner = row.iter().map(|_| name()).collect();
            Command::Distribute { targets: row, outer, inner, grid }
        }
        9 => Command::DistributeLoops { variables: row },
        10 => {
            let tensors = statement.tensors();
            let tensor = tensors[random.usize(..tensors.len())].name().to_owned();
            Command::Communicate { tensors: vec![tensor], variable }
        }
        11 => {
            let unit = [Unit::Threads, Unit::Vector][random.usize(..2)];
            let races = [Races::Forbidden, Races::Reduced][random.usize(..2)];
            if unit == Unit::Threads && random.u8(..3) == 0 {
                // Of a loop that is on threads already.
                let mut threaded = statement.body().loops().into_iter();
                let threaded = threaded.find(|outer| outer.execution == Execution::Parallel(Unit::Threads));
                if let Some(outer) = threaded {
                    return Some(Command::Chunk { variable: outer.variable.clone(), length: random.i64(1..5) });
                }
            }
            Command::Parallelize { variable, unit, races }
        }
        12 => match random.bool() {
            true => Command::Unroll { variable, factor: random.u32(1..5) },
            false => Command::Substitute { variables: row, substitution: Substitution::GEMM },
        },
        13 => {
            let tensors = statement.operands();
            let tensor = tensors.get(random.usize(..tensors.len().max(1)))?.name().to_owned();
            Command::Pos { variable, position: name(), tensor }
        }
        14 => Command::MergeBy { variable, merge: Merge::ALL[random.usize(..Merge::ALL.len())] },
        15 => {
            let workspaces = workspaces(statement.body());
            let workspace = workspaces.get(random.usize(..workspaces.len().max(1)))?.clone();
            let format = ["{C}", "{C~o}", "{B}", "{H}", "{D}"][random.usize(..5)].parse().ok()?;
            Command::Store { workspace, format }
        }
        _ => {
            let mut parts = Vec::new();
            values(statement.body(), &mut |value| collect(value, &mut parts));
            let expression = Box::new(parts[random.usize(..parts.len())].clone());
            let variables: Vec<_> = loops.iter().rev().take(4).filter(|_| random.bool()).cloned().collect();
            let workspace_variables = variables.iter().map(|_| name()).collect();
            Command::Precompute { expression, variables, workspace_variables, workspace: fresh("w") }
        }
    })
}

/// Another way of finding what operands have in common; often an illegal command.
pub fn merging(statement: &Statement, random: &mut Rng) -> Option<Command> {
    let loops = statement.body().loops();
    let variable = loops.get(random.usize(..loops.len().max(1)))?.variable.clone();
    Some(Command::MergeBy { variable, merge: Merge::ALL[random.usize(..Merge::ALL.len())] })
}

/// A loop in parts of different lengths; now and then an illegal command. `name` ends the names of the new loops.
pub fn parts(statement: &Statement, name: &str, random: &mut Rng) -> Option<Command> {
    let loops = statement.body().loops();
    let variable = loops.get(random.usize(..loops.len().max(1)))?.variable.clone();
    let extent = statement.extent(&variable)?.max(2);
    let mut points: Vec<i64> = (0..random.usize(1..4)).map(|_| random.i64(0..=extent)).collect();
    points.sort_unstable();
    let [outer, inner] = ["o", "i"].map(|part| IndexVariable::new(&format!("part_{part}{name}")));
    Some(Command::SplitAt { variable, outer, inner, points })
}

/// Commands that put a loop over positions in the place of those over some levels of an operand, and give threads parts
/// of it; some may be illegal.
pub fn positions(statement: &Statement, random: &mut Rng) -> Vec<Command> {
    let mut accesses: Vec<Access> = Vec::new();
    values(statement.body(), &mut |value| accesses.extend(value.accesses().into_iter().cloned()));
    // Blocks and diagonals have no positions of dimensions.
    accesses.retain(|access| {
        let tensor = &access.tensor;
        tensor.order() > 0 && tensor.format().is_plain() && statement.operands().contains(tensor)
    });
    let Some(access) = accesses.get(random.usize(..accesses.len().max(1))) else { return Vec::new() };
    let levels: Vec<IndexVariable> =
        access.tensor.format().order().iter().filter_map(|&mode| access.variables.get(mode).cloned()).collect();
    let level = random.usize(..levels.len());
    let outermost = if random.u8(..3) == 0 { random.usize(..=level) } else { 0 };
    let fused = &levels[outermost..=level];
    let mut commands = Vec::new();
    if random.bool() {
        // First those above, then these.
        let order = levels[..=level].to_vec();
        commands.push(Command::Reorder { order });
    }
    let mut variable = fused[0].clone();
    for (number, inner) in fused.iter().enumerate().skip(1) {
        let name = IndexVariable::new(&format!("f{number}"));
        commands.push(Command::Fuse { outer: variable, inner: inner.clone(), fused: name.clone() });
        variable = name;
    }
    let names = ["p", "po", "pi"].map(IndexVariable::new);
    let [position, outer, inner] = names;
    commands.push(Command::Pos { variable, position: position.clone(), tensor: access.tensor.name().to_owned() });
    let parts = random.i64(1..6);
    let parts = match random.u8(..3) {
        0 => None,
        1 => Some(Command::Split { variable: position.clone(), outer: outer.clone(), inner, factor: parts }),
        _ => Some(Command::Divide { variable: position.clone(), outer: outer.clone(), inner, pieces: parts }),
    };
    let variable = if parts.is_some() { outer } else { position };
    commands.extend(parts);
    if random.bool() {
        let unit = if random.u8(..5) == 0 { Unit::Vector } else { Unit::Threads };
        commands.push(Command::Parallelize { variable, unit, races: Races::Reduced });
    }
    commands
}

/// The names of the workspaces in a statement.
pub fn workspaces(node: &StatementNode) -> Vec<String> {
    match node {
        StatementNode::Forall(_, body) => workspaces(body),
        StatementNode::Assign { .. } => Vec::new(),
        StatementNode::Where { workspace, consumer, producer } => {
            let inside = [workspaces(consumer), workspaces(producer)].concat();
            [vec![workspace.name().to_owned()], inside].concat()
        }
    }
}

fn values(node: &StatementNode, visit: &mut impl FnMut(&Expression)) {
    match node {
        StatementNode::Forall(_, body) => values(body, visit),
        StatementNode::Assign { value, .. } => visit(value),
        StatementNode::Where { consumer, producer, .. } => {
            values(consumer, visit);
            values(producer, visit);
        }
    }
}

fn collect(expression: &Expression, parts: &mut Vec<Expression>) {
    parts.push(expression.clone());
    expression.operands().into_iter().for_each(|operand| collect(operand, parts));
}

/// The statement of `assignment` after some legal commands, which are told.
pub fn schedule(assignment: &Assignment, random: &mut Rng) -> (Statement, Vec<Command>) {
    let mut statement = Statement::new(assignment);
    let mut commands = Vec::new();
    for _ in 0..random.usize(4..24) {
        let Some(command) = command(&statement, random) else { break };
        // An illegal one leaves the statement as it is.
        if let Ok(changed) = command.apply(&statement)
            && size(&changed) < 30_000.0
        {
            statement = changed;
            commands.push(command);
        }
    }
    (statement, commands)
}

/// Two or three loops as one, blocks of which are distributed, after which come some legal commands; none if there are
/// not enough loops.
pub fn fused(assignment: &Assignment, random: &mut Rng) -> Option<Statement> {
    let statement = Statement::new(assignment);
    let loops: Vec<IndexVariable> = statement.spine().iter().map(|outer| outer.variable.clone()).collect();
    let first = random.usize(..loops.len().max(2) - 1);
    let statement = match first {
        0 => statement,
        _ => statement.distribute([loops[0].clone()], ["go"], ["gi"], &[random.i64(1..4)]).ok()?,
    };
    let statement = match first {
        0 => statement,
        _ => statement.reorder([loops[first].clone(), loops.get(first + 1)?.clone(), "gi".into()]).unwrap_or(statement),
    };
    let mut statement = statement.fuse(loops.get(first)?.clone(), loops.get(first + 1)?.clone(), "f").ok()?;
    let mut name = "f";
    if let Some(third) = loops.get(first + 2).filter(|_| random.bool())
        && let Ok(fused) = statement.fuse("f", third.clone(), "ff")
    {
        (statement, name) = (fused, "ff");
    }
    let statement = match random.bool() {
        true => statement.divide(name, "fo", "fi", random.i64(2..7)),
        false => statement.split(name, "fo", "fi", random.i64(1..12)),
    };
    let statement = statement.ok()?.distribute_loops(["fo"]).ok()?;
    Some(more(statement, 6, random))
}

/// Loops distributed twice, with tensors communicated at both launches and at steps around and between them; none if
/// there are no loops.
pub fn nested(assignment: &Assignment, random: &mut Rng) -> Option<Statement> {
    let mut statement = Statement::new(assignment);
    let loops: Vec<IndexVariable> = statement.spine().iter().map(|outer| outer.variable.clone()).collect();
    let target = loops.get(random.usize(..loops.len().max(1)))?;
    if let Some(stepped) = loops.iter().find(|other| *other != target && random.bool()) {
        statement = statement.divide(stepped.clone(), "so", "si", random.i64(1..4)).ok()?;
    }
    let between = random.bool();
    let order: Vec<IndexVariable> = match (statement.extent(&"so".into()).is_some(), between) {
        (true, true) => vec![target.clone(), "so".into()],
        (true, false) => vec!["so".into(), target.clone()],
        (false, _) => vec![target.clone()],
    };
    let statement = statement.reorder(order).ok()?;
    let statement = statement.distribute([target.clone()], ["to"], ["ti"], &[random.i64(2..4)]).ok()?;
    let statement = if between { statement.reorder(["so", "ti"]).unwrap_or(statement) } else { statement };
    let statement = statement.distribute(["ti"], ["tio"], ["tii"], &[random.i64(2..4)]).ok()?;
    let names: Vec<String> = statement.tensors().iter().map(|tensor| tensor.name().to_owned()).collect();
    let mut changed = statement;
    for place in ["so", "to", "tio"] {
        for name in &names {
            if random.bool()
                && let Ok(communicated) = changed.communicate([name.as_str()], place)
            {
                changed = communicated;
            }
        }
    }
    Some(more(changed, 4, random))
}

/// The statement after at most so many more legal commands.
fn more(mut statement: Statement, most: usize, random: &mut Rng) -> Statement {
    for _ in 0..random.usize(..most) {
        if let Some(command) = command(&statement, random)
            && let Ok(changed) = command.apply(&statement)
            && size(&changed) < 30_000.0
        {
            statement = changed;
        }
    }
    statement
}

/// How many iterations the innermost loops have.
pub fn size(statement: &Statement) -> f64 {
    fn of(statement: &Statement, node: &StatementNode) -> f64 {
        match node {
            StatementNode::Forall(outer, body) => {
                statement.extent(&outer.variable).unwrap_or(0) as f64 * of(statement, body)
            }
            StatementNode::Assign { .. } => 1.0,
            StatementNode::Where { consumer, producer, .. } => of(statement, consumer) + of(statement, producer),
        }
    }
    of(statement, statement.body())
}

/// The result of a kernel for the whole of `statement`, which `run` runs.
pub fn result(
    statement: &Statement,
    operands: &BTreeMap<String, DenseArray>,
    run: impl FnOnce(&mut [Argument<'_>]),
) -> DenseArray {
    let integers = |array: &DenseArray| -> Vec<i64> {
        array.values().iter().map(|value| i64::from_scalar(*value).expect("all are integers")).collect()
    };
    let mut elements: Vec<Vec<i64>> =
        statement.tensors().iter().map(|tensor| integers(&operands[tensor.name()])).collect();
    let mut arguments = Vec::new();
    for (position, (tensor, elements)) in statement.tensors().into_iter().zip(&mut elements).enumerate() {
        let view = match position {
            0 => View::dense_mut(elements, tensor.dimensions()),
            _ => View::dense(elements, tensor.dimensions()),
        };
        arguments.push(view.expect("the elements fit").into());
    }
    run(&mut arguments);
    drop(arguments);
    DenseArray::from_elements(statement.result().dimensions(), &elements[0]).expect("the elements fit")
}
