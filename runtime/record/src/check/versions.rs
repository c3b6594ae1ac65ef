//! Versions: the values that a field can have at a point, told apart by the operations that made them.

use maniple_region::OperatorId;
use rustc_hash::FxHashMap;

use crate::check::sets::{Common, Set, Sets};
use crate::record::{OperationNumber, Record};

/// A version of a [`Versions`]. Equal versions are equal handles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Version(u32);

/// The origin of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Making {
    /// No operation: memory as it was found.
    Nothing,
    /// The operation that was to make it could not, or was not asked to: any value is right.
    Anything,
    /// The value that was lost, written by a fill that never runs.
    Lost,
    /// Zero, as everything is to begin with.
    Initial,
    /// The identity of a reduction, in a buffer.
    Identity,
    /// An operation wrote it.
    Written(OperationNumber),
    /// A version changed by contributions of one operator. It is not itself of that kind by that operator, so that the
    /// order of contributions of one operator makes no difference.
    Reduced(Version, OperatorId, Set),
}

/// A contributor: a requirement of an operation.
pub(crate) type Contributor = (OperationNumber, usize);

/// Makes versions, and keeps each only once.
pub(crate) struct Versions {
    makings: Vec<Making>,
    known: FxHashMap<Making, Version>,
    sets: Sets,
    contributors: Vec<Contributor>,
    numbers: FxHashMap<Contributor, u32>,
}

/// Why contributions could not be added to a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// This one is in it already.
    Twice(Contributor),
    /// They are none, but something else that was in the buffer.
    NoContributions,
}

impl Versions {
    pub(crate) const NOTHING: Version = Version(0);
    pub(crate) const ANYTHING: Version = Version(1);
    pub(crate) const LOST: Version = Version(2);
    pub(crate) const INITIAL: Version = Version(3);
    pub(crate) const IDENTITY: Version = Version(4);

    /// The versions of a record.
    pub(crate) fn of_record(record: &Record) -> Self {
        let reducers = record.numbered().flat_map(|(number, operation)| {
            let usages = operation.kind.usages().iter().enumerate();
            let reductions =
                usages.filter(|(_, usage)| matches!(usage.privilege, maniple_region::Privilege::Reduce(_)));
            reductions.map(move |(requirement, _)| (number, requirement))
        });
        let contributors: Vec<Contributor> = reducers.collect();
        let numbers = contributors.iter().enumerate().map(|(number, &contributor)| (contributor, number as u32));
        let numbers = numbers.collect();
        let sets = Sets::below(contributors.len());
        let mut versions = Self { makings: Vec::new(), known: FxHashMap::default(), sets, contributors, numbers };
        for making in [Making::Nothing, Making::Anything, Making::Lost, Making::Initial, Making::Identity] {
            versions.keep(making);
        }
        versions
    }

    /// Returns the version that an operation wrote.
    pub(crate) fn written(&mut self, by: OperationNumber) -> Version {
        self.keep(Making::Written(by))
    }

    /// A version with one contribution more.
    pub(crate) fn contributed(
        &mut self,
        version: Version,
        operator: OperatorId,
        contributor: Contributor,
    ) -> Result<Version, Refused> {
        let one = self.sets.of(self.numbers[&contributor]);
        self.reduced(version, operator, one)
    }

    /// A version with all contributions of a buffer more.
    pub(crate) fn applied(
        &mut self,
        version: Version,
        operator: OperatorId,
        buffer: Version,
    ) -> Result<Version, Refused> {
        match self.makings[buffer.0 as usize] {
            Making::Identity => Ok(version),
            Making::Reduced(Self::IDENTITY, by, contributions) if by == operator => {
                self.reduced(version, operator, contributions)
            }
            _ => Err(Refused::NoContributions),
        }
    }

    fn reduced(&mut self, version: Version, operator: OperatorId, more: Set) -> Result<Version, Refused> {
        let (base, contributions) = match self.makings[version.0 as usize] {
            Making::Reduced(base, by, contributions) if by == operator => (base, contributions),
            _ => (version, Sets::EMPTY),
        };
        match self.sets.union(contributions, more) {
            Ok(all) => Ok(self.keep(Making::Reduced(base, operator, all))),
            Err(Common(number)) => Err(Refused::Twice(self.contributors[number as usize])),
        }
    }

    /// Whether a version may be anything, since something that it is made of may be.
    pub(crate) fn is_anything(&self, mut version: Version) -> bool {
        while let Making::Reduced(base, ..) = self.makings[version.0 as usize] {
            version = base;
        }
        version == Self::ANYTHING
    }

    /// A version in words.
    pub(crate) fn describe(&self, version: Version, record: &Record) -> String {
        let (mut layers, mut version) = (Vec::new(), version);
        while let Making::Reduced(base, operator, set) = self.makings[version.0 as usize] {
            let contributors = self.sets.numbers(set).into_iter();
            let names = contributors.map(|number| record.name(self.contributors[number as usize].0).to_string());
            layers.push(format!("reduced by {operator} by {}", names.collect::<Vec<_>>().join(" and ")));
            version = base;
        }
        let base = match self.makings[version.0 as usize] {
            Making::Nothing => "what was never written".to_owned(),
            Making::Anything => "anything".to_owned(),
            Making::Lost => "what was lost".to_owned(),
            Making::Initial => "the zero that everything is to begin with".to_owned(),
            Making::Identity => "an empty buffer".to_owned(),
            Making::Written(by) => format!("what {} made", record.name(by)),
            Making::Reduced(..) => unreachable!("the reductions were taken off above"),
        };
        std::iter::once(base).chain(layers.into_iter().rev()).collect::<Vec<_>>().join(", ")
    }

    fn keep(&mut self, making: Making) -> Version {
        *self.known.entry(making).or_insert_with(|| {
            self.makings.push(making);
            Version(self.makings.len() as u32 - 1)
        })
    }
}
