//! Tensors, index variables, and the places of both in a text.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::arithmetic::cast;
use crate::element::{ElementType, Scalar};
use crate::format::Format;

/// A part of a text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// The place in a text at which something was written, if it was written in a text.
///
/// All places are equal: where a thing is written is no part of what it says.
#[derive(Clone, Copy, Default)]
pub struct TextPlace(pub Option<Span>);

impl TextPlace {
    /// The bytes from `start` to before `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self(Some(Span { start, end }))
    }

    /// The smallest place that holds both.
    pub fn join(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Self::new(a.start.min(b.start), a.end.max(b.end)),
            (a, b) => Self(a.or(b)),
        }
    }
}

impl PartialEq for TextPlace {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for TextPlace {}

impl fmt::Debug for TextPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(Span { start, end }) => write!(formatter, "{start}..{end}"),
            None => formatter.write_str("_"),
        }
    }
}

/// Coordinates of a dimension that follow from those of an index variable: `start + step * variable`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Window {
    /// The variable.
    pub of: IndexVariable,
    /// The coordinate where the variable is 0. Of a shift it may be negative.
    pub start: i64,
    /// How far coordinates of neighbours are apart: at least 1.
    pub step: i64,
    /// The end of a part of the dimension; none for a shift, which goes beyond the dimension at one end. There,
    /// elements have the fill value of the tensor.
    pub end: Option<i64>,
    /// Of shifts that are written alike, but taken of dimensions of several lengths: which of these lengths, counted
    /// from 0.
    pub length: usize,
}

impl Window {
    /// How many values the variable has; none for a shift, which does not say.
    pub fn extent(&self) -> Option<i64> {
        // Rounded up: the last step may be cut.
        self.end.map(|end| (end.saturating_sub(self.start).max(0) as u64).div_ceil(self.step.max(1) as u64) as i64)
    }

    /// The coordinate for a value of the variable.
    pub fn coordinate(&self, value: i64) -> i64 {
        self.start + self.step * value
    }

    /// The value of the variable with this coordinate, if there is one.
    pub fn value(&self, coordinate: i64) -> Option<i64> {
        let distance = coordinate - self.start;
        (distance >= 0 && distance % self.step == 0 || self.end.is_none())
            .then(|| distance / self.step)
            .filter(|value| *value >= 0 && self.extent().is_none_or(|extent| *value < extent))
    }

    /// As it is written, `i(2,8)`, `i+1`, and a prime for each other length: `i+1'`.
    fn name(&self) -> String {
        self.written() + &"'".repeat(self.length)
    }

    /// As it is written.
    fn written(&self) -> String {
        let Self { of, start, step, end, .. } = self;
        match end {
            None => format!("{of}{start:+}"),
            Some(end) if *step == 1 => format!("{of}({start},{end})"),
            Some(end) => format!("{of}({start},{end},{step})"),
        }
    }
}

/// A variable that runs over the coordinates of a dimension. Within one statement, variables of one name are one
/// variable.
#[derive(Clone)]
pub struct IndexVariable {
    name: Arc<str>,
    window: Option<Arc<Window>>,
    /// The place at which this use of the variable is written.
    pub place: TextPlace,
}

impl IndexVariable {
    /// The variable called `name`: letters, digits and `_`, the first no digit.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), window: None, place: TextPlace::default() }
    }

    /// The coordinates that are `by` after the variable's, or before them if it is negative: `i+1`. Beyond the
    /// dimension, elements are what the tensor is filled with.
    pub fn shifted(&self, by: i64) -> Self {
        match by {
            0 => self.clone(),
            _ => Self::of_window(Window { of: self.clone(), start: by, step: 1, end: None, length: 0 }),
        }
    }

    /// The coordinates from `low` to before `high`, each `step` after the one before, which the variable counts from 0:
    /// `i(low,high,step)`.
    pub fn within(&self, low: i64, high: i64, step: i64) -> Self {
        Self::of_window(Window { of: self.clone(), start: low, step, end: Some(high), length: 0 })
    }

    /// The same shift of a dimension of another length.
    pub(crate) fn of_length(&self, length: usize) -> Self {
        match self.window() {
            Some(window) if window.length != length => {
                Self { place: self.place, ..Self::of_window(Window { length, ..window.clone() }) }
            }
            _ => self.clone(),
        }
    }

    /// As it is written in a statement.
    pub(super) fn written(&self) -> String {
        self.window().map_or_else(|| self.name.to_string(), Window::written)
    }

    fn of_window(window: Window) -> Self {
        Self { name: window.name().into(), place: window.of.place, window: Some(Arc::new(window)) }
    }

    /// The part of a dimension, or shift, that this is; none for a variable alone.
    pub fn window(&self) -> Option<&Window> {
        self.window.as_deref()
    }

    /// The variable alone.
    pub fn base(&self) -> &Self {
        self.window().map_or(self, |window| window.of.base())
    }

    /// The same with another name, of the variable alone where this is a part or a shift.
    pub(crate) fn rename(&self, rename: &dyn Fn(&Self) -> Self) -> Self {
        let renamed = rename(self);
        match self.window() {
            Some(window) if renamed == *self => {
                let of = window.of.rename(rename);
                Self { place: self.place, ..Self::of_window(Window { of, ..window.clone() }) }
            }
            _ => renamed,
        }
    }

    /// The same variable, written at `place`.
    pub(crate) fn at(mut self, place: TextPlace) -> Self {
        self.place = place;
        self
    }

    /// The variable's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl PartialEq for IndexVariable {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for IndexVariable {}

impl Hash for IndexVariable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialOrd for IndexVariable {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for IndexVariable {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name.cmp(&other.name)
    }
}

impl fmt::Debug for IndexVariable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl fmt::Display for IndexVariable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl From<&str> for IndexVariable {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for IndexVariable {
    fn from(name: String) -> Self {
        Self::new(&name)
    }
}

impl From<&IndexVariable> for IndexVariable {
    fn from(variable: &IndexVariable) -> Self {
        variable.clone()
    }
}

/// A tensor as statements see it: a name, a type, the extents of its dimensions, how it is stored, and what elements
/// are that were never set. It has no elements.
///
/// A tensor without dimensions is a scalar. Within one statement, tensors of one name are one tensor.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TensorVariable(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    name: String,
    element: ElementType,
    dimensions: Vec<i64>,
    format: Format,
    fill: Scalar,
}

impl Inner {
    /// The key that tells tensors apart.
    fn key(&self) -> (&str, ElementType, &[i64], &Format, u128) {
        (&self.name, self.element, &self.dimensions, &self.format, self.fill.bits())
    }
}

impl PartialEq for Inner {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Inner {}

impl Hash for Inner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl TensorVariable {
    /// The tensor called `name`: letters, digits and `_`, the first no digit. It is stored by rows, and filled with
    /// zeros. Names and extents are checked where the tensor is used.
    pub fn new(name: &str, element: ElementType, dimensions: impl Into<Vec<i64>>) -> Self {
        let dimensions = dimensions.into();
        let (format, fill) = (Format::dense(dimensions.len()), cast(Scalar::I32(0), element));
        Self(Arc::new(Inner { name: name.to_owned(), element, dimensions, format, fill }))
    }

    /// The same tensor, stored in a format. Loops follow it: what is side by side is used one after the other. It is
    /// checked where the tensor is used.
    pub fn stored(&self, format: Format) -> Self {
        Self(Arc::new(Inner { format, ..(*self.0).clone() }))
    }

    /// The same tensor with other extents of as many dimensions.
    pub fn with_dimensions(&self, dimensions: &[i64]) -> Self {
        Self(Arc::new(Inner { dimensions: dimensions.to_vec(), ..(*self.0).clone() }))
    }

    /// The same tensor under another name.
    pub fn renamed(&self, name: &str) -> Self {
        Self(Arc::new(Inner { name: name.to_owned(), ..(*self.0).clone() }))
    }

    /// The same tensor, where elements that were never set are `fill`, in the tensor's type.
    pub fn filled(&self, fill: Scalar) -> Self {
        Self(Arc::new(Inner { fill: cast(fill, self.element()), ..(*self.0).clone() }))
    }

    /// The tensor's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The type of its elements.
    pub fn element(&self) -> ElementType {
        self.0.element
    }

    /// The extent of each dimension.
    pub fn dimensions(&self) -> &[i64] {
        &self.0.dimensions
    }

    /// How it is stored.
    pub fn format(&self) -> &Format {
        &self.0.format
    }

    /// The value of elements that were never set.
    pub fn fill(&self) -> Scalar {
        self.0.fill
    }

    /// Whether both are the same tensor, perhaps stored in different ways.
    pub fn is_like(&self, other: &Self) -> bool {
        self.stored(other.format().clone()) == *other
    }

    /// The number of dimensions.
    pub fn order(&self) -> usize {
        self.0.dimensions.len()
    }
}

impl fmt::Debug for TensorVariable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} {:?}", self.0.name, self.0.element, self.0.dimensions)
    }
}

impl fmt::Display for TensorVariable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.name)
    }
}

/// Whether `name` can name a tensor or a variable: it is written into texts and kernels.
pub(crate) fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
