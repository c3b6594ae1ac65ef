//! Entries that were read from a file.

use maniple_files::NumberType;
use maniple_tensor::element::ElementType;
use maniple_tensor::storage::EntryList;

/// What is in a file.
#[derive(Clone, Debug)]
pub struct Contents<T> {
    /// The extent of each dimension.
    pub dimensions: Vec<i64>,
    /// The value of what is not stored.
    pub fill: T,
    /// What is stored.
    pub entries: EntryList<T>,
}

/// The type of elements that files call by this name.
pub fn element_of(number: NumberType) -> ElementType {
    match number {
        NumberType::Bool => ElementType::Bool,
        NumberType::U8 => ElementType::U8,
        NumberType::I8 => ElementType::I8,
        NumberType::I16 => ElementType::I16,
        NumberType::U32 => ElementType::U32,
        NumberType::I32 => ElementType::I32,
        NumberType::I64 => ElementType::I64,
        NumberType::F32 => ElementType::F32,
        NumberType::F64 => ElementType::F64,
        NumberType::C32 => ElementType::C32,
        NumberType::C64 => ElementType::C64,
    }
}
