//! The leaf task of all programs.

use std::sync::Arc;

use maniple::Argument;
use maniple::access::{Read, Reduce, Write};
use maniple::task::{LeafCall, Value};
use maniple::threads::{Parker, nap, yield_now};
use maniple::{AnyPoint, Arrangement, Error, FieldId, Point, ReductionOperator, Result};

use super::{Mistake, Run, Stop, with_dimension};
use crate::oracle::{contributions, discarded, first_digest, rewritten};
use crate::program::{Fault, Launch, RegionName, Right};
use crate::value::{Kind, Operator, Stored, Word, hash_point, mix};
use crate::{with_kind, with_operator};

/// The arguments of every task of a program.
pub(super) struct CallArguments {
    pub(super) run: Arc<Run>,
    pub(super) launch: Arc<Launch>,
    pub(super) arguments: Vec<Argument<Word>>,
}

impl CallArguments {
    /// The number of a point, and what its task starts from.
    pub(super) fn start(&self, domain: maniple::AnyRect, point: AnyPoint) -> Result<(usize, Word)> {
        self.run.tally.task();
        let number = domain.linear(point) as usize;
        self.run.trace('>', || format!("{:?} {point}", self.launch.name));
        let mut digest = first_digest(&self.launch, number);
        for argument in &self.arguments {
            digest = mix(digest, argument.get(point)?);
        }
        if self.fault(number) == Some(Fault::PanicsAtOnce) {
            panic!("on purpose, at once");
        }
        Ok((number, digest))
    }

    /// Goes wrong if the program says so.
    pub(super) fn end(&self, number: usize) -> Result<()> {
        self.run.trace('<', || format!("{:?} number {number}", self.launch.name));
        match self.fault(number) {
            Some(Fault::Fails) => Err(Error::application("failed on purpose")),
            Some(Fault::PanicsAtEnd) => panic!("on purpose, at the end"),
            _ => Ok(()),
        }
    }

    fn fault(&self, number: usize) -> Option<Fault> {
        let (point, fault) = self.launch.fault?;
        (point == number && self.run.mistake != Mistake::SwallowedFault).then_some(fault)
    }
}

/// One field of one requirement, as a task uses it.
struct Use<'a, 'b> {
    run: &'a Run,
    call: &'a LeafCall<'b>,
    requirement: usize,
    field: FieldId,
    kind: Kind,
    dim: usize,
}

/// The body: see [`crate::oracle`] for what it computes.
pub(super) fn leaf(call: &LeafCall<'_>) -> Result<Value> {
    let given: &CallArguments = call.arguments()?;
    let (run, launch) = (&*given.run, &*given.launch);
    let _at_work = run.tally.leaf();
    let (number, mut digest) = given.start(call.domain(), call.point())?;
    if run.mistake == Mistake::Hang && digest.is_multiple_of(4) {
        loop {
            Parker::default().park();
        }
    }
    delay(run, digest);
    for (requirement, wanted) in launch.requirements.iter().enumerate() {
        if wanted.right == Right::Read {
            for &field in &wanted.fields {
                digest = Use::new(run, call, requirement, wanted.region, field)?.read(digest)?;
            }
        }
    }
    delay(run, digest);
    for (requirement, wanted) in launch.requirements.iter().enumerate() {
        for &field in &wanted.fields {
            let used = Use::new(run, call, requirement, wanted.region, field)?;
            digest = match wanted.right {
                Right::Read => digest,
                Right::Write => used.rewrite(digest)?,
                Right::Discard => used.discard(digest)?,
                Right::Reduce(operator) => used.reduce(operator, digest)?,
            };
        }
    }
    delay(run, digest);
    given.end(number)?;
    let spoil = run.mistake == Mistake::WrongResult && digest.is_multiple_of(20);
    Ok(Value::new(mix(digest, if spoil { 5 } else { 4 })))
}

/// Fails unless the data that a task only reads is laid out as its variant wants it. Of what it changes it would take
/// the accessor away.
pub(super) fn check_layout(call: &LeafCall<'_>, wanted: &[Option<Arrangement>]) -> Result<()> {
    let given: &CallArguments = call.arguments()?;
    for (requirement, used) in
        given.launch.requirements.iter().enumerate().filter(|(_, used)| used.right == Right::Read)
    {
        let Some(wanted @ (Arrangement::StructOfArrays | Arrangement::ArrayOfStructs)) =
            wanted.get(requirement).copied().flatten()
        else {
            continue;
        };
        for &field in &used.fields {
            Use::new(&given.run, call, requirement, used.region, field)?.check_layout(wanted)?;
        }
    }
    Ok(())
}

impl<'a, 'b> Use<'a, 'b> {
    fn check_layout(&self, wanted: Arrangement) -> Result<()> {
        let region = self.call.region(self.requirement)?;
        let space = region.space().space();
        if space.bounds().is_empty() || !space.is_dense() {
            return Ok(());
        }
        with_kind!(self.kind, T => {
            let strides = self.call.strided::<T>(self.requirement, self.field)?.strides().to_vec();
            let is_array = strides.contains(&(size_of::<T>() as isize));
            if wanted == Arrangement::StructOfArrays && !is_array {
                let problem = format!("wants {wanted}, and has values {strides:?} bytes apart");
                return Err(Error::application(problem));
            }
        });
        Ok(())
    }

    fn new(run: &'a Run, call: &'a LeafCall<'b>, requirement: usize, region: RegionName, field: usize) -> Result<Self> {
        let id = run.field(region, field).map_err(|Stop(error)| error)?;
        let kind = run.expected.kind_ever(region, field).map_err(|why| Error::application(format!("{why:?}")))?;
        let dim = call.region(requirement)?.space().space().dim();
        Ok(Self { run, call, requirement, field: id, kind, dim })
    }

    fn read(&self, digest: Word) -> Result<Word> {
        with_kind!(self.kind, T => with_dimension!(self.dim, D => self.read_as::<T, D>(digest)))
    }

    fn read_as<T: Stored, const D: usize>(&self, mut digest: Word) -> Result<Word> {
        let values: Read<'_, T, D> = self.call.read(self.requirement, self.field)?;
        if digest.is_multiple_of(2) {
            for row in values.space().rows() {
                digest = values.span(row).iter().fold(digest, |digest, value| mix(digest, value.word()));
            }
        } else {
            digest = values.space().points().fold(digest, |digest, point| mix(digest, values[point].word()));
        }
        Ok(digest)
    }

    fn rewrite(&self, digest: Word) -> Result<Word> {
        with_kind!(self.kind, T => with_dimension!(self.dim, D => self.rewrite_as::<T, D>(digest)))
    }

    fn rewrite_as<T: Stored, const D: usize>(&self, mut digest: Word) -> Result<Word> {
        let mut values: Write<'_, T, D> = self.call.write(self.requirement, self.field)?;
        for point in values.space().points() {
            let old = values[point].word();
            if let Some(random) = rewritten(digest, point.into(), old) {
                let new = T::from_word(self.kind.make(self.spoilt(random)));
                if random.is_multiple_of(3) {
                    assert!(values.set(point, new));
                } else {
                    values[point] = new
                }
            }
            digest = mix(digest, old);
        }
        Ok(digest)
    }

    fn discard(&self, digest: Word) -> Result<Word> {
        with_kind!(self.kind, T => with_dimension!(self.dim, D => self.discard_as::<T, D>(digest)))
    }

    fn discard_as<T: Stored, const D: usize>(&self, mut digest: Word) -> Result<Word> {
        let mut values: Write<'_, T, D> = self.call.write(self.requirement, self.field)?;
        let by_rows = digest.is_multiple_of(2);
        let mut next = |point: Point<D>| {
            let value = T::from_word(self.kind.make(self.spoilt(discarded(digest, point.into()))));
            digest = mix(digest, 1);
            value
        };
        if by_rows {
            for row in values.space().rows() {
                let mut span = values.span_mut(row);
                span.iter_mut().zip(row.points()).for_each(|(value, point)| *value = next(point));
            }
        } else {
            values.space().points().for_each(|point| values[point] = next(point));
        }
        Ok(digest)
    }

    fn reduce(&self, operator: Operator, digest: Word) -> Result<Word> {
        let unknown = Error::application(format!("{operator:?} ran on {:?}", self.kind));
        with_operator!(operator, self.kind, Op, T =>
            with_dimension!(self.dim, D => self.reduce_as::<Op, T, D>(digest)), else Err(unknown))
    }

    fn reduce_as<Op: ReductionOperator<T, Rhs: Stored>, T: Stored, const D: usize>(
        &self,
        digest: Word,
    ) -> Result<Word> {
        let mut values: Reduce<'_, Op, T, D> = self.call.reduce(self.requirement, self.field)?;
        for point in values.space().points() {
            for random in contributions(digest, point.into()) {
                if self.run.mistake == Mistake::LostContribution && random.is_multiple_of(20) {
                    continue;
                }
                values.fold(point, <Op::Rhs as Stored>::from_word(random));
            }
        }
        Ok(digest)
    }

    fn spoilt(&self, random: Word) -> Word {
        let spoil = self.run.mistake == Mistake::WrongValue && random.is_multiple_of(50);
        if spoil { random ^ 1 } else { random }
    }
}

/// Lets others go first now and then.
pub(super) fn delay(run: &Run, seed: Word) {
    let Some(seed) = run.delays.map(|delays| mix(delays, seed)) else { return };
    match seed % 16 {
        0..=2 => yield_now(),
        3..=4 => (0..seed / 16 % 3000).for_each(|_| std::hint::spin_loop()),
        5 if seed.is_multiple_of(5) => nap(std::time::Duration::from_micros(seed / 16 % 200)),
        _ => {}
    }
}

/// A number for a point of a launch, to seed delays.
pub(super) fn seed_of(launch: &Launch, point: AnyPoint) -> Word {
    mix(launch.name.0.into(), hash_point(point))
}
