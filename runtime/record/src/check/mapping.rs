//! Whether operations were mapped in an order that the logical analysis may allow.

use maniple_region::{FieldId, FieldMask, LogicalRegion, Privilege, TreeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::check::atoms::Atoms;
use crate::check::program::{data, each_atom};
use crate::check::violation::Violation;
use crate::record::{Kind, LaunchNumber, OperationNumber, Place, Record, Task};

/// The latest users of an atom of a field, among all operations that one task has launched so far.
#[derive(Default)]
struct Users {
    /// For each privilege the one that was mapped last, of launches before the latest.
    earlier: Latest,
    /// The same of the latest launch: its own points need no order.
    own: Latest,
    launch: LaunchNumber,
}

type Latest = SmallVec<[(Privilege, OperationNumber); 2]>;

/// Checks that operations of one task that interfere were mapped in program order.
///
/// Operations of different tasks need no such order: where the tasks interfere, one ends before the other is mapped or
/// begins.
///
/// # Errors
/// [`Violation::MappedTooEarly`].
pub(crate) fn check_mapping_order(record: &Record, order: &[OperationNumber], atoms: &Atoms) -> Result<(), Violation> {
    let mut users: FxHashMap<(OperationNumber, TreeId, FieldId, u32), Users> = FxHashMap::default();
    for &number in order {
        let Some(operation) = record.operation(number) else { continue };
        let Some(place) = operation.kind.place() else { continue };
        for (region, fields, privilege) in uses(&operation.kind) {
            let mut violation = Ok(());
            each_atom(atoms, region, fields, |field, atom| {
                let users = users.entry((place.parent, region.tree().id(), field, atom)).or_default();
                if let Some(first) = users.add(number, place, privilege) {
                    violation = Err((first, field, atom));
                }
            });
            violation.map_err(|(first, field, atom)| Violation::MappedTooEarly {
                first: record.name(first),
                second: record.name(number),
                data: data(atoms, region, field, atom),
            })?;
        }
    }
    Ok(())
}

impl Users {
    /// Adds a user; gives one that comes earlier in program order, interferes, and was mapped later.
    fn add(&mut self, number: OperationNumber, place: Place, privilege: Privilege) -> Option<OperationNumber> {
        if self.launch != place.launch {
            self.launch = place.launch;
            let own = std::mem::take(&mut self.own);
            own.into_iter().for_each(|(privilege, number)| note(&mut self.earlier, privilege, number));
        }
        note(&mut self.own, privilege, number);
        let late =
            |&&(other, earlier): &&(Privilege, OperationNumber)| other.interferes_with(privilege) && earlier > number;
        self.earlier.iter().find(late).map(|(_, earlier)| *earlier)
    }
}

fn note(latest: &mut Latest, privilege: Privilege, number: OperationNumber) {
    match latest.iter_mut().find(|(known, _)| *known == privilege) {
        Some((_, known)) => *known = number.max(*known),
        None => latest.push((privilege, number)),
    }
}

/// Returns the uses for which an operation was launched, by itself or by the operations that it launches.
fn uses(kind: &Kind) -> Vec<(&LogicalRegion, &FieldMask, Privilege)> {
    let usages = match kind {
        Kind::Task(Task { usages, .. }) | Kind::Lost { usages, .. } => usages.as_slice(),
        Kind::Mapping { usage, .. } => std::slice::from_ref(usage),
        Kind::FillRegion { region, fields, .. } => return vec![(region, fields, Privilege::Discard)],
        _ => &[],
    };
    usages.iter().map(|usage| (&usage.region, &usage.fields, usage.privilege)).collect()
}
