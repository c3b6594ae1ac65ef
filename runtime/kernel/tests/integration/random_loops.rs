//! Random kernels give the same in the interpreter and compiled: integers exactly, floats closely.

use crate::common;
use fastrand::Rng;
use maniple_kernel::arithmetic::cast;
use maniple_kernel::element::ElementType::{self, C64, F64, I32, I64};
use maniple_kernel::element::{Element, Scalar};
use maniple_kernel::execution::{Argument, KernelError, Kernels, Scoped, View, interpret};
use maniple_kernel::loops::*;
use num_complex::Complex;

/// Makes kernels that stay in bounds. Most of their parallel loops are legal; the interpreter sorts out the others.
struct Maker {
    rng: Rng,
    element: ElementType,
    names: FreshNames,
    /// Variables of indices, and of elements, that can be read.
    indices: Vec<Variable>,
    values: Vec<Variable>,
    /// Variables that can be set.
    mutable: Vec<Variable>,
    /// In parallel loops: the scalar that is reduced into, and with what.
    reduces: Option<(Variable, Reduction)>,
    read: Buffer,
    written: Buffer,
    row: Buffer,
    locals: Vec<Buffer>,
    /// How many statements may still be made.
    budget: u32,
    in_loop: bool,
    parallel: bool,
}

impl Maker {
    fn new(seed: u64, element: ElementType) -> Self {
        let mut rng = Rng::with_seed(seed);
        let contiguous = [Some(0), Some(1), None][rng.usize(0..3)];
        Self {
            element,
            names: FreshNames::default(),
            indices: vec![Variable::index("n")],
            values: vec![Variable::new("p", element)],
            mutable: Vec::new(),
            reduces: None,
            read: Buffer::new("a", element, 2, Access::Read).with_contiguous(contiguous),
            written: Buffer::new("r", element, 2, Access::Update),
            row: Buffer::new("s", element, 1, Access::Update),
            locals: Vec::new(),
            budget: 14,
            in_loop: false,
            parallel: false,
            rng,
        }
    }

    fn kernel(mut self) -> Kernel {
        for name in ["n", "p", "a", "r", "s"] {
            self.names.fresh(name);
        }
        let mut statements = Vec::new();
        while self.budget > 0 {
            statements.push(self.statement(3));
        }
        let buffers = [&self.read, &self.written, &self.row].map(|buffer| Parameter::Buffer(buffer.clone()));
        let mut parameters = vec![Parameter::Scalar(Variable::index("n"))];
        parameters.extend(buffers);
        parameters.push(Parameter::Scalar(Variable::new("p", self.element)));
        Kernel { name: "random".into(), parameters, body: Statement::Sequence(statements) }
    }

    fn scoped<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let (indices, values, mutable, locals) =
            (self.indices.len(), self.values.len(), self.mutable.len(), self.locals.len());
        let result = make(self);
        self.indices.truncate(indices);
        self.values.truncate(values);
        self.mutable.truncate(mutable);
        self.locals.truncate(locals);
        result
    }

    fn block(&mut self, depth: u32) -> Statement {
        let count = self.rng.u32(1..4);
        self.scoped(|maker| Statement::Sequence((0..count).map(|_| maker.statement(depth)).collect()))
    }

    fn statement(&mut self, depth: u32) -> Statement {
        self.budget = self.budget.saturating_sub(1);
        match self.rng.u32(0..if depth == 0 { 7 } else { 14 }) {
            0 => {
                let variable = Variable::new(self.names.fresh("x"), self.element);
                let value = self.value(2);
                self.values.push(variable.clone());
                if !self.parallel && self.rng.bool() {
                    self.mutable.push(variable.clone());
                }
                Statement::bind_mutable(&variable, value)
            }
            1 => {
                let variable = self.names.index("i");
                let value = self.index(2);
                self.indices.push(variable.clone());
                Statement::bind(&variable, value)
            }
            2 if !self.mutable.is_empty() && !self.parallel => {
                let variable = self.mutable[self.rng.usize(0..self.mutable.len())].clone();
                Statement::set(&variable, self.value(2))
            }
            3 => {
                let name = self.names.fresh("t");
                let buffer = Buffer::new(name, self.element, 2, Access::Update);
                let high = if self.rng.bool() { self.index(1).minimum(9).maximum(0) } else { 4.into() };
                let bounds = [((-2).into(), 2.into()), (1.into(), high + 2)];
                self.locals.push(buffer.clone());
                Statement::allocate(&buffer, bounds)
            }
            4 if self.in_loop => {
                let condition = self.condition(1);
                let leave = if self.parallel || self.rng.bool() { Statement::Continue } else { Statement::Break };
                Statement::when(condition, leave)
            }
            5 if self.reduces.is_some() => self.reduce(),
            7 => {
                let condition = self.condition(2);
                Statement::choose(condition, self.block(depth - 1), self.block(depth - 1))
            }
            8 => self.counted_while(depth - 1),
            9..=11 => self.serial(depth - 1),
            12..=13 => self.parallel(depth - 1),
            _ => self.store(),
        }
    }

    fn reduce(&mut self) -> Statement {
        let value = self.value(2);
        match &self.reduces {
            Some((variable, reduction)) => Statement::set(variable, value).reduce(*reduction),
            None => Statement::nothing(),
        }
    }

    fn store(&mut self) -> Statement {
        let value = self.value(3);
        let value = self.bounded(value);
        if self.parallel {
            // A row of its own, or a sum into one element, atomic for loops over blocks.
            if self.rng.u32(0..4) == 0 {
                let index = self.row.low(0) + 1;
                return Statement::store(&self.row.clone(), [index], value).reduce(Reduction::Sum).atomic();
            }
            let own = self.indices.iter().find(|index| index.name.starts_with("own")).cloned();
            let Some(own) = own else { return Statement::nothing() };
            let column = self.index(1);
            let column = within(column, &self.written, 1);
            let store = Statement::store(&self.written.clone(), [own.value(), column], value);
            return if self.rng.bool() { store.reduce(self.reduction()) } else { store };
        }
        let buffer = match self.rng.usize(0..3) {
            0 if !self.locals.is_empty() => self.locals[self.rng.usize(0..self.locals.len())].clone(),
            1 => self.row.clone(),
            _ => self.written.clone(),
        };
        let indices: Vec<_> = (0..buffer.rank)
            .map(|dimension| {
                let index = self.index(2);
                within(index, &buffer, dimension)
            })
            .collect();
        let store = Statement::store(&buffer, indices, value);
        if self.rng.bool() { store.reduce(self.reduction()) } else { store }
    }

    fn reduction(&mut self) -> Reduction {
        let all = [Reduction::Sum, Reduction::Sum, Reduction::Minimum, Reduction::Maximum];
        all[self.rng.usize(0..if self.element.is_complex() { 2 } else { 4 })]
    }

    fn counted_while(&mut self, depth: u32) -> Statement {
        let counter = self.names.index("w");
        self.scoped(|maker| {
            maker.indices.push(counter.clone());
            let outer = (std::mem::replace(&mut maker.in_loop, true), std::mem::replace(&mut maker.parallel, false));
            // Stores of a serial loop within a parallel one would race.
            maker.parallel = outer.1;
            let body = maker.block(depth);
            (maker.in_loop, maker.parallel) = outer;
            let count = Statement::set(&counter, counter.value() + 1);
            Statement::Sequence(vec![
                Statement::bind_mutable(&counter, 0),
                Statement::repeat_while(counter.value().less(3), Statement::Sequence(vec![count, body])),
            ])
        })
    }

    fn serial(&mut self, depth: u32) -> Statement {
        let variable = self.names.index("k");
        let (low, high) = (self.rng.i64(-3..2), self.rng.i64(-3..7));
        let unroll = self.rng.u32(1..4);
        let high = if self.rng.bool() { high.into() } else { self.index(1).minimum(5) };
        self.scoped(|maker| {
            maker.indices.push(variable.clone());
            let outer = std::mem::replace(&mut maker.in_loop, true);
            let body = maker.block(depth);
            maker.in_loop = outer;
            Statement::for_each(&variable, low, high, body).with_unroll(unroll)
        })
    }

    fn parallel(&mut self, depth: u32) -> Statement {
        let kind = [LoopKind::Threads, LoopKind::Vector, LoopKind::Block][self.rng.usize(0..3)];
        let nested = self.parallel;
        let variable = self.names.index(if nested { "k" } else { "own" });
        let sum = Variable::new(self.names.fresh("sum"), self.element);
        let reduction = self.reduction();
        let body = self.scoped(|maker| {
            maker.indices.push(variable.clone());
            let outer = (std::mem::replace(&mut maker.in_loop, true), std::mem::replace(&mut maker.parallel, true));
            let reduces = maker.reduces.replace((sum.clone(), reduction));
            let mutable = std::mem::take(&mut maker.mutable);
            let body = maker.block(depth);
            maker.mutable = mutable;
            maker.reduces = reduces;
            (maker.in_loop, maker.parallel) = outer;
            body
        });
        let (low, high) = (self.written.low(0), self.written.high(0));
        let each = Statement::for_each(&variable, low, high, body).with_kind(kind);
        let start = self.constant();
        let bind = Statement::bind_mutable(&sum, start);
        if nested {
            return Statement::Sequence(vec![bind, each]);
        }
        let value = self.bounded(sum.value());
        let after = Statement::store(&self.row.clone(), [self.row.high(0) - 1], value);
        Statement::Sequence(vec![bind, each, after])
    }

    /// Keeps floats from growing without limit.
    fn bounded(&mut self, value: Expression) -> Expression {
        if self.element.is_integer() {
            return value;
        }
        let one = match self.element {
            C64 => Scalar::C64(Complex::new(1.0, 0.0)),
            _ => Scalar::F64(1.0),
        };
        value.clone() / (Expression::from(one) + Expression::call(Intrinsic::Abs, [value]))
    }

    fn constant(&mut self) -> Expression {
        let value = self.rng.i32(-4..5);
        Expression::from(match self.element {
            I32 if self.rng.u8(0..8) == 0 => Scalar::I32(i32::MIN),
            I64 if self.rng.u8(0..8) == 0 => Scalar::I64(i64::MAX),
            element if element.is_integer() => cast(Scalar::I32(value), element),
            C64 => Scalar::C64(Complex::new(value.into(), 0.5)),
            _ => Scalar::F64(f64::from(value) / 4.0),
        })
    }

    fn value(&mut self, depth: u32) -> Expression {
        if depth == 0 {
            return match self.rng.u32(0..3) {
                0 => self.constant(),
                1 => self.values[self.rng.usize(0..self.values.len())].value(),
                _ => self.load(),
            };
        }
        let (left, right) = (self.value(depth - 1), self.value(depth - 1));
        match self.rng.u32(0..10) {
            0 | 1 => left + right,
            2 => left - right,
            3 | 4 => left * right,
            5 => -left,
            6 if self.element.is_integer() => match self.rng.u32(0..7) {
                // Now and then by zero.
                0 => left / right,
                1 => left.floor_remainder(right.maximum(Expression::index(2).cast(self.element))),
                2 => left % Expression::index(3).cast(self.element),
                3 => left.floor_divide(Expression::index(-1).cast(self.element)),
                4 => left.bit(right),
                5 => left.next_bit(right),
                _ => left.floor_divide(Expression::index(7).cast(self.element)),
            },
            7 if !self.element.is_complex() => left.minimum(right),
            8 if !self.element.is_complex() => left.maximum(right),
            9 => self.condition(1).select(left, right),
            _ if self.element.is_complex() => left,
            _ => self.index(1).cast(self.element),
        }
    }

    fn load(&mut self) -> Expression {
        let buffer = match self.rng.usize(0..3) {
            0 if !self.locals.is_empty() => self.locals[self.rng.usize(0..self.locals.len())].clone(),
            1 if !self.parallel => self.written.clone(),
            _ => self.read.clone(),
        };
        let indices: Vec<_> = (0..2)
            .map(|dimension| {
                let index = self.index(1);
                within(index, &buffer, dimension)
            })
            .collect();
        buffer.load(indices)
    }

    fn index(&mut self, depth: u32) -> Expression {
        if depth == 0 {
            return match self.rng.u32(0..4) {
                0 => self.rng.i64(-5..6).into(),
                1 => self.read.high(self.rng.usize(0..2)),
                _ => self.indices[self.rng.usize(0..self.indices.len())].value(),
            };
        }
        let (left, right) = (self.index(depth - 1), self.index(depth - 1));
        match self.rng.u32(0..5) {
            0 => left + right,
            1 => left - right,
            2 => left * right,
            3 => left.ceiling_divide(3),
            _ => left.minimum(right),
        }
    }

    fn condition(&mut self, depth: u32) -> Expression {
        let (left, right) = (self.index(1), self.index(1));
        match self.rng.u32(0..5) {
            0 => left.less(right),
            1 => left.less_equal(right),
            2 => left.equal(right),
            3 if depth > 0 => !self.condition(depth - 1),
            _ if depth > 0 => {
                let first = self.condition(depth - 1);
                let second = self.condition(depth - 1);
                if self.rng.bool() { first.and(second) } else { first.or(second) }
            }
            _ => left.not_equal(right),
        }
    }
}

/// `index` brought into the bounds of `buffer`, which is not empty.
fn within(index: Expression, buffer: &Buffer, dimension: usize) -> Expression {
    let (low, high) = (buffer.low(dimension), buffer.high(dimension));
    low.clone() + index.floor_remainder((high - low).maximum(1))
}

/// Runs the kernel of `seed` both ways; gives what happened, or `None` if its parallel loops are not independent.
fn compare<T: Element>(
    seed: u64,
    kernels: &Kernels,
    make: impl Fn(i64) -> T,
    close: impl Fn(T, T) -> bool,
) -> Option<bool> {
    let kernel = Maker::new(seed, T::TYPE).kernel();
    let checked = check(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    // A is given transposed now and then; indices start anywhere.
    let strides = if seed.is_multiple_of(2) { [7, 1] } else { [1, 5] };
    let a: Vec<T> = (0..40).map(|number| make(number * 7919 % 23 - 11)).collect();
    let start: Vec<T> = (0..64).map(|number| make(number % 5)).collect();
    let run = |how: &mut dyn FnMut(&mut [Argument<'_>]) -> Result<(), KernelError>| {
        let (mut r, mut s) = (start.clone(), start.clone());
        let view =
            |elements, bounds: &[_], strides: &[_]| View::update(elements, bounds, strides).expect("fits").into();
        let result = how(&mut [
            3_i64.into(),
            View::read(&a, &[(-1, 4), (2, 7)], &strides).expect("fits").into(),
            view(&mut r, &[(5, 12), (-3, 3)], &[9, 1]),
            view(&mut s, &[(0, 4)], &[2]),
            make(2).into(),
        ]);
        (result, r, s)
    };
    let (expected, r, s) = run(&mut |arguments| interpret(&checked, arguments, true));
    match expected {
        // Locals may be empty here.
        Err(KernelError::Race { .. } | KernelError::OutOfBounds { .. }) => return None,
        Err(KernelError::DivisionByZero { .. }) | Ok(()) => {}
        Err(error) => panic!("{error}\n{kernel}"),
    }
    let executable = kernels.get(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    assert!(executable.is_compiled());
    let (found, found_r, found_s) = run(&mut |arguments| {
        // SAFETY: the interpreter saw that the kernel stays in bounds and that its loops are independent.
        unsafe { executable.call(arguments, &Scoped { threads: 3 }) }
    });
    assert_eq!(found, expected, "seed {seed}\n{kernel}");
    if expected.is_ok() {
        let same = |left: &[T], right: &[T]| left.iter().zip(right).all(|(left, right)| close(*left, *right));
        assert!(
            same(&r, &found_r) && same(&s, &found_s),
            "seed {seed}\n{kernel}\n{r:?} {s:?}\n{found_r:?} {found_s:?}"
        );
    }
    Some(expected.is_ok())
}

/// Compares as many kernels as the environment variable `RANDOM_LOOPS` says.
fn run<T: Element>(make: impl Fn(i64) -> T, close: impl Fn(T, T) -> bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(kernels) = common::compiled(&folder) else { return };
    let programs = std::env::var("RANDOM_LOOPS").ok().and_then(|value| value.parse().ok()).unwrap_or(10);
    let results: Vec<_> = (0..programs).filter_map(|seed| compare(seed, &kernels, &make, &close)).collect();
    let finished = results.iter().filter(|finished| **finished).count();
    assert!(2 * finished > programs as usize, "{finished} of {programs} kernels run to their end");
}

#[test]
fn random_kernels_of_i64_give_the_same_compiled_and_interpreted() {
    run(|value| value, |left, right| left == right);
}

#[test]
fn random_kernels_of_small_integers_give_the_same_compiled_and_interpreted() {
    run(|value| value as u8, |left, right| left == right);
    run(|value| value as i8, |left, right| left == right);
    run(|value| (value as i16).wrapping_mul(3000), |left, right| left == right);
    run(|value| value as u32, |left, right| left == right);
    run(|value| value % 3 == 0, |left, right| left == right);
}

#[test]
fn random_kernels_of_i32_give_the_same_compiled_and_interpreted() {
    run(|value| value as i32, |left, right| left == right);
}

/// An eighth of the number, or for the ends of what there is an infinity, a NaN or a negative zero.
fn part(value: i64) -> f64 {
    match value {
        11 => f64::INFINITY,
        -11 => f64::NEG_INFINITY,
        -10 => f64::NAN,
        -9 => -0.0,
        _ => value as f64 / 8.0,
    }
}

fn near(left: f64, right: f64) -> bool {
    left == right || left.is_nan() && right.is_nan() || (left - right).abs() <= 1e-9
}

#[test]
fn random_kernels_of_f64_give_nearly_the_same_compiled_and_interpreted() {
    run(part, near);
    assert_eq!(F64, f64::TYPE);
}

#[test]
fn random_kernels_of_complex_numbers_give_nearly_the_same_compiled_and_interpreted() {
    let close = |left: Complex<f64>, right: Complex<f64>| near(left.re, right.re) && near(left.im, right.im);
    run(|value| Complex::new(part(value), 0.25), close);
}
