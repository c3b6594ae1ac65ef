//! Names of operations, for messages and listings.

use std::fmt;

use maniple_mapper::InstanceId;
use maniple_region::FieldMask;

use crate::record::{Kind, LaunchNumber, OperationNumber, Part, Record, Task, Usage};

/// The name of an operation: a description in a few words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationName {
    /// Its number.
    pub number: OperationNumber,
    /// The words; none if it is not in the record.
    pub text: String,
    /// Whether it was replayed.
    pub replayed: bool,
}

impl Record {
    /// Returns the name of an operation, in a few words.
    #[must_use]
    pub fn name(&self, number: OperationNumber) -> OperationName {
        let text = self.operation(number).map(|operation| self.describe(&operation.kind));
        OperationName { number, text: text.unwrap_or_default(), replayed: self.replayed.contains(&number) }
    }

    /// The names of the fields of some parts of an instance.
    pub(crate) fn names_of(&self, instance: InstanceId, parts: &mut dyn Iterator<Item = &Part>) -> String {
        let fields = parts.fold(FieldMask::new(), |all, part| all.union(&part.fields));
        self.instances.get(&instance).map_or_else(String::new, |known| known.region.fields().names_of(&fields))
    }

    /// Returns the place at which a task was launched: ` (launched at src/main.rs:12:5)`, or nothing.
    fn launched_at(&self, task: &Task) -> String {
        let launched = self.launch(task.place.launch).and_then(|launch| launch.launched.as_ref());
        launched.map_or_else(String::new, |launched| format!(" (launched at {launched})"))
    }

    pub(crate) fn describe(&self, kind: &Kind) -> String {
        match kind {
            Kind::TopLevel => "the top-level task".to_owned(),
            Kind::Task(task) => format!("task `{task}`{}", self.launched_at(task)),
            Kind::Mapping { usage, .. } => format!("an inline mapping of {}", usage.region),
            Kind::FillRegion { region, fields, .. } => {
                format!("the fill of {} of {region}", region.fields().names_of(fields))
            }
            Kind::Lost { place, .. } => {
                let name = self.launch(place.launch).map_or("a task", |launch| &launch.name);
                format!("the loss of what `{name}` was to write")
            }
            Kind::Fence { .. } => "an execution fence".to_owned(),
            Kind::End { task } => match self.operation(*task).map(|operation| &operation.kind) {
                Some(Kind::Task(task)) => format!("the end of task `{task}`"),
                _ => "the end of the top-level task".to_owned(),
            },
            Kind::Join => "a join".to_owned(),
            Kind::Copy { from, to, parts, .. } => {
                let fields = self.names_of(*to, &mut parts.iter());
                format!("the copy of {fields} from instance {} to instance {}", from.0, to.0)
            }
            Kind::Fill { to, parts, .. } => {
                format!(
                    "the fill of {} in instance {}",
                    self.names_of(*to, &mut parts.iter().map(|(part, _)| part)),
                    to.0
                )
            }
            Kind::Refill { buffer, .. } => format!("the emptying of buffer {}", buffer.0),
            Kind::Apply { to, contributions, .. } => {
                let buffers: Vec<String> = contributions.iter().map(|part| part.buffer.0.to_string()).collect();
                format!("the application of buffers {} to instance {}", buffers.join(", "), to.0)
            }
        }
    }
}

impl fmt::Display for Record {
    /// A line for each operation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, operation) in self.numbered() {
            let after: Vec<String> = operation.after.iter().map(ToString::to_string).collect();
            let after = if after.is_empty() { "nothing".to_owned() } else { after.join(", ") };
            let OperationName { text, replayed, .. } = self.name(number);
            let replayed = if replayed { ", replayed," } else { "" };
            let unfinished = if self.unfinished.contains(&number) { ", unfinished," } else { "" };
            writeln!(f, "{number}: {text}{replayed}{unfinished} after {after}")?;
            for Usage { region, fields, privilege, instances } in operation.kind.usages() {
                let instances: Vec<String> = instances.iter().map(|(_, instance)| instance.0.to_string()).collect();
                let (names, points) = (region.fields().names_of(fields), region.space().space());
                writeln!(f, "    {privilege} {names} of {region} {points} in instances {}", instances.join(", "))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for OperationNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text.as_str() {
            "" => write!(f, "operation {}", self.number),
            text if self.replayed => write!(f, "{text} (operation {}, replayed)", self.number),
            text => write!(f, "{text} (operation {})", self.number),
        }
    }
}

impl fmt::Display for LaunchNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.point.map_or(Ok(()), |point| point.fmt(f))
    }
}
