//! Rows that are being made, column by column.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_region::{Field, FieldId, FieldValue, Fields};

use crate::external::attach::FieldMemory;
use crate::support::error::{AttachmentError, Error, Result};

/// The rows that a task has made, as many as it found: what it returns for
/// [`Context::collect`](crate::Context::collect) to make a region of.
///
/// Rows are [pushed](Self::push) one after the other, or whole columns are [adopted](Self::adopt) as they are. A column
/// without values is zero.
pub struct Output<F: Row> {
    /// Copies of an output have the rows in common. They are gone once they were collected.
    columns: Arc<Mutex<Option<F::Columns>>>,
}

/// A row of a region: a struct that derives [`Fields`], of which [`Output`] keeps many.
pub trait Row: Fields + Sized {
    /// A vector for each member.
    type Columns: Default + 'static;

    /// Adds the row's members to the columns.
    #[doc(hidden)]
    fn push(self, columns: &mut Self::Columns);

    /// Visits each column.
    #[doc(hidden)]
    fn each(columns: &mut Self::Columns, visit: &mut dyn FnMut(FieldId, &mut dyn RowColumn));
}

/// The values of one field of some rows.
pub trait RowColumn {
    /// How many there are.
    fn rows(&self) -> usize;

    /// Takes the values out.
    #[allow(private_interfaces, reason = "called by the runtime only")]
    fn take(&mut self) -> Taken;

    /// The vector.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// The values of a column, which are of this type, and the vector that they are in.
pub(crate) struct Taken {
    pub(super) memory: FieldMemory,
    pub(super) ty: TypeId,
    pub(super) owner: Box<dyn Any + Send>,
}

impl<T: Send + 'static> RowColumn for Vec<T> {
    fn rows(&self) -> usize {
        self.len()
    }

    #[allow(private_interfaces, reason = "called by the runtime only")]
    fn take(&mut self) -> Taken {
        let mut values = std::mem::take(self);
        Taken { memory: FieldMemory::of_vec(&mut values), ty: TypeId::of::<T>(), owner: Box::new(values) }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl<F: Row> Output<F> {
    /// No rows yet.
    #[must_use]
    pub fn new() -> Self {
        Self { columns: Arc::new(Mutex::new(Some(F::Columns::default()))) }
    }

    /// Adds a row.
    pub fn push(&mut self, row: F) {
        self.with_columns(|columns| row.push(columns));
    }

    /// Makes a vector the column of a field, instead of what was pushed there. All columns that have values have to
    /// have as many in the end.
    ///
    /// # Errors
    /// [`Error::Launch`] if the rows have no such field, or it has another type.
    pub fn adopt<T: FieldValue>(&mut self, field: Field<F, T>, values: Vec<T>) -> Result<()> {
        let mut values = Some(values);
        self.with_columns(|columns| {
            F::each(columns, &mut |id, column| {
                if id == field.id()
                    && let Some(column) = column.as_any().downcast_mut::<Vec<T>>()
                {
                    values.take().into_iter().for_each(|values| *column = values);
                }
            });
        });
        match values {
            None => Ok(()),
            Some(_) => {
                let problem = format!("the rows have no {} of type `{}`", field.id(), std::any::type_name::<T>());
                Err(Error::launch("output", problem))
            }
        }
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// [`Error::Attachment`] if columns that have values differ in length, or the rows were collected already.
    pub fn rows(&self) -> Result<usize> {
        let mut columns = self.columns.lock();
        let columns = columns.as_mut().ok_or(AttachmentError::Collected)?;
        let mut rows = 0;
        F::each(columns, &mut |_, column| rows = rows.max(column.rows()));
        let mut ragged = None;
        F::each(columns, &mut |id, column| {
            if column.rows() != 0 && column.rows() != rows {
                ragged = Some((id, column.rows()));
            }
        });
        let Some((id, found)) = ragged else { return Ok(rows) };
        let field = F::descriptors().into_iter().nth(id.0 as usize).map_or_else(String::new, |field| field.name);
        Err(AttachmentError::Ragged { field, rows, found }.into())
    }

    /// The columns, which are gone then.
    pub(super) fn take(&self) -> Option<F::Columns> {
        self.columns.lock().take()
    }

    fn with_columns(&mut self, change: impl FnOnce(&mut F::Columns)) {
        // Nearly always there is one copy.
        match Arc::get_mut(&mut self.columns) {
            Some(columns) => change(columns.get_mut().get_or_insert_default()),
            None => change(self.columns.lock().get_or_insert_default()),
        }
    }
}

impl<F: Row> Default for Output<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Row> Clone for Output<F> {
    fn clone(&self) -> Self {
        Self { columns: Arc::clone(&self.columns) }
    }
}

impl<F: Row> Extend<F> for Output<F> {
    fn extend<I: IntoIterator<Item = F>>(&mut self, rows: I) {
        match Arc::get_mut(&mut self.columns) {
            Some(columns) => {
                let columns = columns.get_mut().get_or_insert_default();
                rows.into_iter().for_each(|row| row.push(columns));
            }
            // No lock is held while the iterator runs, which may add rows to a copy.
            None => rows.into_iter().for_each(|row| self.push(row)),
        }
    }
}

impl<F: Row> FromIterator<F> for Output<F> {
    fn from_iter<I: IntoIterator<Item = F>>(rows: I) -> Self {
        let mut output = Self::new();
        output.extend(rows);
        output
    }
}

impl<F: Row> fmt::Debug for Output<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rows() {
            Ok(rows) => write!(f, "Output({rows} rows)"),
            Err(error) => write!(f, "Output({error})"),
        }
    }
}
