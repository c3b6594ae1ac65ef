//! Fields: the columns of a region.
//!
//! A [`FieldSpace`] names the columns; each has a [`FieldType`]. Fields come and go at run time, up
//! to the space's limit. A [`FieldId`] is an index into its space, so that sets of fields are bit
//! masks ([`crate::FieldMask`]).

use std::any::TypeId;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::{NoUninit, Zeroable};
use maniple_realm::locks::RwLock;

pub use maniple_realm::layout::FieldId;

use crate::deletion::{Deletions, Mark, Tombstone};
use crate::{FieldMask, RegionError, endings};

/// How many fields a field space may hold unless its creator says otherwise.
pub const DEFAULT_MAX_FIELDS: usize = 512;

/// A type that can be stored in a field: plain data, copied byte by byte, for which all bytes zero is a value (a field
/// that was never written reads as zero).
///
/// Implemented for every type with these properties; derive [`bytemuck::Zeroable`] for your own structs (programs on
/// `maniple`: see `maniple::bytemuck`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a field",
    label = "not plain data",
    note = "fields hold plain data that is copied byte by byte: numbers, `bool`, `Point`, `Rect`, `Ptr`, arrays, and structs of these that derive \
            `Clone`, `Copy` and `Zeroable`; nothing that owns or borrows, such as `String`, `Vec`, `Box` or a reference"
)]
pub trait FieldValue: Copy + Send + Sync + Zeroable + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Copy + Send + Sync + Zeroable + 'static> FieldValue for T {}

/// The type of a field, with what the runtime must know of it: its size and alignment in bytes and its identity.
#[derive(Clone, Copy)]
pub struct FieldType {
    /// Size of one value in bytes.
    pub size: usize,
    /// Alignment of a value in bytes.
    pub align: usize,
    /// The Rust type, for checked access.
    pub type_id: TypeId,
    /// The Rust type's name, for messages.
    pub name: &'static str,
    /// See [`is_plain`](Self::is_plain).
    plain: bool,
}

impl FieldType {
    /// The field type of the Rust type `T`.
    #[must_use]
    pub fn of<T: FieldValue>() -> Self {
        Self {
            size: size_of::<T>(),
            align: align_of::<T>(),
            type_id: TypeId::of::<T>(),
            name: std::any::type_name::<T>(),
            plain: false,
        }
    }

    /// That of a type without padding, so that values can be compared by their bytes. It is the same type as
    /// [`of`](Self::of) gives, of which more is known.
    #[must_use]
    pub fn plain<T: FieldValue + NoUninit>() -> Self {
        Self { plain: true, ..Self::of::<T>() }
    }

    /// Whether it is known that values have no padding.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.plain
    }
}

impl PartialEq for FieldType {
    fn eq(&self, other: &Self) -> bool {
        self.type_id == other.type_id
    }
}

impl Eq for FieldType {}

impl fmt::Debug for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A field's name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDescriptor {
    /// The name that messages use.
    pub name: String,
    /// The type of the values.
    pub ty: FieldType,
}

/// A set of named, typed fields, growing and shrinking at run time.
///
/// Cheap to share; all methods take `&self`.
#[derive(Debug)]
pub struct FieldSpace {
    id: u64,
    max_fields: usize,
    slots: RwLock<Vec<FieldSlot>>,
    /// How often a field was freed, or its id given to a new one.
    changes: AtomicU64,
    destroyed: Mark,
    /// Set once a field was freed.
    freed: Mark,
}

/// A field id: the field that has it now or had it last, and how many had it before.
#[derive(Debug)]
struct FieldSlot {
    field: FieldDescriptor,
    /// The field was freed. Operations that were launched before may still use it.
    is_free: bool,
    generation: u32,
}

impl FieldSlot {
    fn present(&self) -> Option<&FieldDescriptor> {
        (!self.is_free).then_some(&self.field)
    }
}

impl FieldSpace {
    pub(crate) fn new(id: u64, max_fields: usize) -> Self {
        let (slots, changes) = (RwLock::default(), AtomicU64::new(0));
        Self { id, max_fields, slots, changes, destroyed: Mark::default(), freed: Mark::default() }
    }

    /// The number that tells this field space from all others of its forest.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The most fields that can exist at a time.
    #[must_use]
    pub fn max_fields(&self) -> usize {
        self.max_fields
    }

    /// Adds a field and returns its id. The id of a freed field is used again for one of the same type only: operations
    /// that were launched before, and instances made for them, still take it for what it was.
    ///
    /// # Errors
    /// [`RegionError::TooManyFields`] when the space is full.
    pub fn allocate(&self, name: &str, ty: FieldType) -> Result<FieldId, RegionError> {
        let field = FieldDescriptor { name: name.to_owned(), ty };
        let mut slots = self.slots.write();
        if slots.iter().filter(|slot| !slot.is_free).count() >= self.max_fields {
            return Err(RegionError::TooManyFields { field: name.to_owned(), limit: self.max_fields });
        }
        let Some(free) = slots.iter().position(|slot| slot.is_free && slot.field.ty == ty) else {
            slots.push(FieldSlot { field, is_free: false, generation: 0 });
            return Ok(FieldId((slots.len() - 1) as u32));
        };
        slots[free] = FieldSlot { field, is_free: false, generation: slots[free].generation + 1 };
        self.changes.fetch_add(1, Ordering::Release);
        endings::count();
        Ok(FieldId(free as u32))
    }

    /// Removes a field: its id may be given to another. The caller remembers for which operations it is gone, and how
    /// many times a field of this id was freed: see [`Deletions`].
    ///
    /// # Errors
    /// [`RegionError::NoSuchField`] when the space has no such field.
    #[doc(hidden)]
    pub fn mark_freed(&self, field: FieldId) -> Result<(Tombstone, u32), RegionError> {
        let mut slots = self.slots.write();
        match slots.get_mut(field.0 as usize) {
            Some(slot) if !slot.is_free => {
                slot.is_free = true;
                self.changes.fetch_add(1, Ordering::Release);
                Ok((self.freed.set(), slot.generation + 1))
            }
            _ => Err(RegionError::NoSuchField { field }),
        }
    }

    /// Name and type of a field, or `None` when the space has no such field.
    #[must_use]
    pub fn get(&self, field: FieldId) -> Option<FieldDescriptor> {
        self.slots.read().get(field.0 as usize).and_then(FieldSlot::present).cloned()
    }

    /// Whether there is a field with this id for an operation: it was not freed for that, or its id has been given to
    /// another since.
    #[must_use]
    pub fn has(&self, field: FieldId, deletions: &dyn Deletions) -> bool {
        let slots = self.slots.read();
        let Some(slot) = slots.get(field.0 as usize) else { return false };
        !self.freed.is_set() || deletions.times_freed(self.id, field) <= slot.generation
    }

    /// Type of a field; of one that was freed too, since operations that were launched before may still use it.
    ///
    /// # Errors
    /// [`RegionError::NoSuchField`] when the space never had such a field.
    pub fn type_of(&self, field: FieldId) -> Result<FieldType, RegionError> {
        match self.slots.read().get(field.0 as usize) {
            Some(slot) => Ok(slot.field.ty),
            None => Err(RegionError::NoSuchField { field }),
        }
    }

    /// The field with this name, if there is one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<FieldId> {
        let slots = self.slots.read();
        let index = slots.iter().position(|slot| slot.present().is_some_and(|field| field.name == name))?;
        Some(FieldId(index as u32))
    }

    /// The name of a field for messages; `field #n` when the space has no such field.
    #[must_use]
    pub fn name_of(&self, field: FieldId) -> String {
        match self.get(field) {
            Some(descriptor) => descriptor.name,
            None => format!("field #{}", field.0),
        }
    }

    /// The names of a set of fields for messages, separated by commas.
    #[must_use]
    pub fn names_of(&self, fields: &FieldMask) -> String {
        let names: Vec<_> = fields.iter().map(|field| self.name_of(field)).collect();
        names.join(", ")
    }

    /// All fields that exist now.
    #[must_use]
    pub fn fields(&self) -> FieldMask {
        let slots = self.slots.read();
        let present = slots.iter().enumerate().filter(|(_, slot)| !slot.is_free);
        present.map(|(index, _)| FieldId(index as u32)).collect()
    }

    /// All fields that there are for an operation: also those that were freed after it.
    #[must_use]
    pub fn fields_for(&self, deletions: &dyn Deletions) -> FieldMask {
        let slots = self.slots.read().len() as u32;
        (0..slots).map(FieldId).filter(|field| self.has(*field, deletions)).collect()
    }

    /// How often a field was freed, or its id given to a new one: unless this has changed, all ids mean what they
    /// meant.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// How many fields have had an id before the one that has it now, for an operation: one that comes before a field
    /// was freed does not see the next.
    #[must_use]
    pub fn generation(&self, field: FieldId, deletions: &dyn Deletions) -> u32 {
        let generation = self.slots.read().get(field.0 as usize).map_or(0, |slot| slot.generation);
        if generation == 0 { 0 } else { generation.min(deletions.times_freed(self.id, field)) }
    }

    /// Marks the space as destroyed. For which operations, the caller remembers: see [`Deletions`].
    #[doc(hidden)]
    #[must_use]
    pub fn mark_destroyed(&self) -> Tombstone {
        self.destroyed.set()
    }

    /// # Errors
    /// [`RegionError::Destroyed`] if the space is destroyed: no region is made of it.
    pub fn check_alive(&self, deletions: &dyn Deletions) -> Result<(), RegionError> {
        if self.destroyed.is_set() && deletions.is_destroyed(self.id) {
            return Err(RegionError::Destroyed { what: format!("field space {}", self.id) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field was freed so many times.
    struct Times(u32);

    impl Deletions for Times {
        fn is_destroyed(&self, _: u64) -> bool {
            false
        }

        fn times_freed(&self, _: u64, _: FieldId) -> u32 {
            self.0
        }
    }

    #[test]
    fn a_full_field_space_refuses_a_field_and_takes_one_again_when_one_is_freed() {
        let space = FieldSpace::new(1, 2);
        let a = space.allocate("a", FieldType::of::<f32>()).unwrap();
        space.allocate("b", FieldType::of::<i64>()).unwrap();
        assert!(matches!(
            space.allocate("c", FieldType::of::<i64>()),
            Err(RegionError::TooManyFields { limit: 2, .. })
        ));
        space.mark_freed(a).unwrap();
        assert_eq!(space.find("a"), None);
        let c = space.allocate("c", FieldType::of::<f32>()).unwrap();
        assert_eq!((c, space.get(c).unwrap().name), (a, "c".to_owned()));
        assert_eq!((space.changes(), space.generation(c, &Times(1))), (2, 1));
        assert_eq!(space.generation(c, &Times(0)), 0, "for who comes before");
        assert_eq!(space.fields().iter().count(), 2);
        space.mark_freed(c).unwrap();
        assert_eq!(space.fields().iter().count(), 1);
        assert_eq!(space.fields_for(&Times(1)), FieldMask::of(c), "for who comes before");
        assert_eq!(space.fields_for(&Times(2)), FieldMask::default());
    }

    #[test]
    fn a_freed_field_keeps_its_type_for_those_who_still_use_it() {
        let space = FieldSpace::new(1, 1);
        let a = space.allocate("a", FieldType::of::<f32>()).unwrap();
        space.mark_freed(a).unwrap();
        let b = space.allocate("b", FieldType::of::<u8>()).unwrap();
        assert_ne!(a, b);
        assert_eq!(space.type_of(a), Ok(FieldType::of::<f32>()));
        assert_eq!(space.get(a), None);
        assert!(space.has(a, &Times(0)) && !space.has(a, &Times(1)));
    }

    #[test]
    fn freeing_a_field_twice_is_an_error() {
        let space = FieldSpace::new(1, 2);
        let a = space.allocate("a", FieldType::of::<f32>()).unwrap();
        space.mark_freed(a).unwrap();
        assert!(matches!(space.mark_freed(a), Err(RegionError::NoSuchField { .. })));
    }
}
