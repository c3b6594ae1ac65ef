//! Records made by hand.

use maniple_mapper::InstanceId;
use maniple_record::{
    Because, Contribution, Dependence, Instance, Kind, Launch, LaunchNumber, Operation, OperationNumber, Part, Place,
    Record, Task, Usage, Value,
};
use maniple_region::operators::{Max, Sum};
use maniple_region::{FieldId, FieldMask, FieldType, Forest, LogicalRegion, OperatorId, Privilege, Requirement};
use maniple_space::{AnyRect, AnySpace, Rect};

/// A record in the making, about one region of ten rows with the fields `charge` and `voltage`, and its two halves.
pub struct Story {
    pub record: Record,
    pub whole: LogicalRegion,
    pub left: LogicalRegion,
    pub right: LogicalRegion,
    pub charge: FieldMask,
    /// The task that launches what comes next.
    pub parent: OperationNumber,
    launches: u64,
}

/// A use of `charge` by a task: the region, the privilege and the instance.
pub type Use<'a> = (&'a LogicalRegion, Privilege, InstanceId);

pub const READ: Privilege = Privilege::Read;
pub const WRITE: Privilege = Privilege::ReadWrite;
pub const DISCARD: Privilege = Privilege::Discard;

pub fn sum() -> OperatorId {
    OperatorId::of::<Sum>()
}

pub fn max() -> OperatorId {
    OperatorId::of::<Max>()
}

pub fn points(range: std::ops::Range<i64>) -> AnySpace {
    AnySpace::from(Rect::<1>::from(range))
}

impl Story {
    /// The beginning: a top-level task.
    pub fn new() -> Self {
        let forest = Forest::new();
        let (rows, columns) = (forest.index_space(&points(0..10)), forest.field_space(2));
        let charge = columns.allocate("charge", FieldType::of::<f32>()).unwrap();
        columns.allocate("voltage", FieldType::of::<f32>()).unwrap();
        let whole = forest.region(&rows, &columns).unwrap();
        whole.tree().set_name("nodes");
        let colors = AnyRect::from(Rect::<1>::from(0..2));
        let halves = forest.partition(&rows, colors, &[points(0..5), points(5..10)]).unwrap();
        let halves = whole.partition(&halves).unwrap();
        let mut story = Self {
            record: Record::default(),
            left: halves.piece(0.into()).unwrap(),
            right: halves.piece(1.into()).unwrap(),
            whole,
            charge: FieldMask::of(charge),
            parent: OperationNumber(0),
            launches: 0,
        };
        story.push(Kind::TopLevel, []);
        story
    }

    pub fn push(&mut self, kind: Kind, after: impl Into<Vec<OperationNumber>>) -> OperationNumber {
        self.record.operations.push(Operation { kind, after: after.into() });
        OperationNumber(self.record.operations.len() as u64 - 1)
    }

    /// The place of the next launch.
    pub fn place(&mut self) -> Place {
        self.launches += 1;
        Place { parent: self.parent, launch: LaunchNumber(self.launches - 1), index: 0 }
    }

    /// An instance for the values of a region.
    pub fn instance(&mut self, region: &LogicalRegion) -> InstanceId {
        self.memory(region, None)
    }

    /// A buffer for contributions to a region.
    pub fn buffer(&mut self, region: &LogicalRegion, operator: OperatorId) -> InstanceId {
        self.memory(region, Some(operator))
    }

    fn memory(&mut self, region: &LogicalRegion, buffer: Option<OperatorId>) -> InstanceId {
        let id = InstanceId(self.record.instances.len() as u64);
        let fields: FieldMask = [FieldId(0), FieldId(1)].into_iter().collect();
        self.record.instances.insert(id, Instance { region: region.clone(), fields, buffer });
        id
    }

    /// The next launch of a leaf.
    pub fn leaf(&mut self, name: &str, uses: &[Use<'_>], after: impl Into<Vec<OperationNumber>>) -> OperationNumber {
        let place = self.place();
        self.task((place, name, true), uses, after)
    }

    /// A task at a place in program order.
    pub fn task(
        &mut self,
        (place, name, is_leaf): (Place, &str, bool),
        uses: &[Use<'_>],
        after: impl Into<Vec<OperationNumber>>,
    ) -> OperationNumber {
        let usage = |&(region, privilege, instance): &Use<'_>| Usage {
            region: region.clone(),
            fields: self.charge.clone(),
            privilege,
            instances: vec![(self.charge.clone(), instance)],
        };
        let usages = uses.iter().map(usage).collect();
        self.push(Kind::Task(Task { place, name: name.to_owned(), point: None, is_leaf, usages }), after)
    }

    pub fn copy(
        &mut self,
        (from, to): (InstanceId, InstanceId),
        range: std::ops::Range<i64>,
        after: impl Into<Vec<OperationNumber>>,
    ) -> OperationNumber {
        let parts = vec![self.part(range)];
        self.push(Kind::Copy { cause: None, from, to, parts }, after)
    }

    pub fn fill(
        &mut self,
        (value, to): (Value, InstanceId),
        range: std::ops::Range<i64>,
        after: impl Into<Vec<OperationNumber>>,
    ) -> OperationNumber {
        let parts = vec![(self.part(range), value)];
        self.push(Kind::Fill { cause: None, to, parts }, after)
    }

    /// Gives all rows one value.
    pub fn fill_region(&mut self) -> OperationNumber {
        let (place, region, fields) = (self.place(), self.whole.clone(), self.charge.clone());
        self.push(Kind::FillRegion { place, region, fields }, [])
    }

    /// Notes the launch of what was pushed last, over so many points, after earlier launches.
    pub fn launch(&mut self, name: &str, points: u64, after: &[(u64, Because)]) {
        let usages = match &self.record.operations[self.record.operations.len() - 1].kind {
            Kind::Task(task) => task.usages.clone(),
            _ => Vec::new(),
        };
        let requirement = |usage: Usage| Requirement::new(usage.region, usage.fields, usage.privilege);
        self.record.launches.push(Launch {
            parent: self.parent,
            name: name.to_owned(),
            launched: None,
            points,
            requirements: usages.into_iter().map(requirement).collect(),
            after: after.iter().map(|&(on, because)| Dependence { on: LaunchNumber(on), because }).collect(),
        });
    }

    /// Applies all of a buffer of the whole region.
    pub fn apply(
        &mut self,
        (buffer, operator, to): (InstanceId, OperatorId, InstanceId),
        after: impl Into<Vec<OperationNumber>>,
    ) -> OperationNumber {
        let contributions = vec![Contribution { buffer, operator, part: self.part(0..10) }];
        self.push(Kind::Apply { cause: None, to, contributions }, after)
    }

    pub fn part(&self, range: std::ops::Range<i64>) -> Part {
        Part { fields: self.charge.clone(), points: points(range) }
    }
}
