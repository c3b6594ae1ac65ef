//! The result of a task, whatever its type.

use std::any::Any;
use std::fmt;

use smallbox::{SmallBox, smallbox, space::S4};

/// The result of a task, whatever its type.
///
/// Values of up to three words, such as a number or a pair of numbers, are kept in place: they cost no allocation.
///
/// ```
/// use maniple::task::Value;
///
/// let value = Value::new(42_i32);
/// assert_eq!(value.downcast_ref(), Some(&42_i32));
/// assert!(!value.is::<u64>());
/// assert_eq!(value.downcast::<i32>().ok(), Some(42));
/// ```
pub struct Value(SmallBox<dyn Held, S4>);

impl Value {
    /// A value of some type.
    #[inline]
    #[must_use]
    pub fn new<T: Send + Sync + 'static>(value: T) -> Self {
        Self(smallbox!(Some(value)))
    }

    /// Whether it has a type.
    #[inline]
    #[must_use]
    pub fn is<T: 'static>(&self) -> bool {
        self.as_any().is::<T>()
    }

    /// The value, if it has this type.
    #[inline]
    #[must_use]
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.as_any().downcast_ref()
    }

    /// The value, taken out.
    ///
    /// # Errors
    /// It itself, if it has another type.
    pub fn downcast<T: 'static>(mut self) -> Result<T, Self> {
        let mut place: Option<T> = None;
        self.0.move_into(&mut place);
        place.ok_or(self)
    }

    /// The value as any.
    #[inline]
    pub(crate) fn as_any(&self) -> &dyn Any {
        self.0.as_any()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Value")
    }
}

/// An `Option<T>` that has a value until that is moved out.
trait Held: Send + Sync {
    fn as_any(&self) -> &dyn Any;

    /// Moves the value into an `Option<T>`; another type's is left as it is.
    fn move_into(&mut self, place: &mut dyn Any);
}

impl<T: Send + Sync + 'static> Held for Option<T> {
    #[inline]
    fn as_any(&self) -> &dyn Any {
        match self {
            Some(value) => value,
            None => &(),
        }
    }

    fn move_into(&mut self, place: &mut dyn Any) {
        if let Some(place) = place.downcast_mut::<Self>() {
            *place = self.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn small_values_stay_in_place() {
        assert!(!Value::new(()).0.is_heap());
        assert!(!Value::new((1.5, 7_u64, 3_u32)).0.is_heap());
        assert!(!Value::new(String::from("a string is three words")).0.is_heap());
        assert!(Value::new([0_u64; 8]).0.is_heap());
    }

    #[test]
    fn a_value_is_dropped_once_wherever_it_goes() {
        let there = Arc::new(());
        let values = || [Value::new(Arc::clone(&there)), Value::new(([0_u64; 8], Arc::clone(&there)))];
        for (number, value) in values().into_iter().enumerate() {
            let value = value.downcast::<u64>().expect_err("it is no number");
            assert!(value.is::<Arc<()>>() == (number == 0));
            match value.downcast::<Arc<()>>() {
                Ok(found) => assert!(Arc::ptr_eq(&found, &there)),
                Err(value) => assert!(value.downcast::<([u64; 8], Arc<()>)>().is_ok()),
            }
        }
        drop(values());
        assert_eq!(Arc::strong_count(&there), 1);
    }
}
