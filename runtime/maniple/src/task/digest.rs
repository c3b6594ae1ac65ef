//! Digests of a launch's arguments for nodes that launch the same: enough to find out that arguments differ, and to
//! show where.

use std::fmt;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use serde::ser::{
    self, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use smallvec::SmallVec;

use crate::task::number::Number;

/// Arguments of equal values have equal digests, on whatever node; others very likely not. The order of a sequence does
/// not count, as those of hash maps and sets have one by chance.
#[derive(Clone, Debug)]
pub(crate) struct Digest {
    hash: u64,
    first: SmallVec<[Number; SHOWN]>,
    is_more: bool,
}

/// So many numbers are kept to be shown.
const SHOWN: usize = 2;

/// Larger arguments have no digest, as it would take too long: so many numbers, or words of texts.
const LARGEST: usize = 1024;

/// The name of a value that is no argument's own but comes from another task, where nodes may have it at different
/// times.
pub(crate) const PROMISED: &str = "maniple: a value that is promised";

impl Digest {
    /// None if the value is large, or will not be serialised.
    pub(crate) fn of(value: &impl Serialize) -> Option<Self> {
        let mut taker = Taker { hash: 0, left: LARGEST, within: 0, first: SmallVec::new(), is_more: false };
        value.serialize(&mut taker).ok()?;
        let Taker { hash, first, is_more, .. } = taker;
        Some(Self { hash, first, is_more })
    }
}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.hash.hash(hasher);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<String> = self.first.iter().map(Number::to_string).collect();
        if self.is_more {
            shown.push(format!("others with hash {:016x}", self.hash));
        }
        f.write_str(&shown.join(", "))
    }
}

/// Takes a digest.
struct Taker {
    hash: u64,
    /// So much may come yet.
    left: usize,
    /// In how many sequences it is, whose elements are not shown.
    within: usize,
    first: SmallVec<[Number; SHOWN]>,
    is_more: bool,
}

/// There is no digest.
#[derive(Debug, thiserror::Error)]
#[error("the value has no digest")]
struct NoDigest;

impl ser::Error for NoDigest {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// The hasher's own numbers are nearly linear in what is hashed, so that sums of them would say little. These are not:
/// the finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014),
/// from another beginning than 0.
fn mixed(mut hash: u64) -> u64 {
    hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

impl Taker {
    fn add(&mut self, value: impl Hash) {
        let mut hasher = FxHasher::default();
        (self.hash, value).hash(&mut hasher);
        self.hash = mixed(hasher.finish());
    }

    fn use_up(&mut self, words: usize) -> Result<(), NoDigest> {
        self.left = self.left.checked_sub(words).ok_or(NoDigest)?;
        Ok(())
    }

    fn number(&mut self, number: Number) -> Result<(), NoDigest> {
        self.use_up(1)?;
        self.add(number);
        match self.first.len() < SHOWN && self.within == 0 {
            true => self.first.push(number),
            false => self.is_more = true,
        }
        Ok(())
    }

    fn integer(&mut self, value: impl Into<i128>) -> Result<(), NoDigest> {
        self.number(Number::Integer(value.into()))
    }

    fn text(&mut self, bytes: &[u8]) -> Result<(), NoDigest> {
        self.use_up(1 + bytes.len() / 8)?;
        self.add(bytes);
        self.is_more = true;
        Ok(())
    }

    /// Which of several it is.
    fn variant(&mut self, variant: u32) -> Result<&mut Self, NoDigest> {
        self.use_up(1)?;
        self.add(variant);
        self.is_more = true;
        Ok(self)
    }

    fn collection(&mut self, length: Option<usize>) -> Result<Unordered<'_>, NoDigest> {
        if length.is_some_and(|length| length > self.left) {
            return Err(NoDigest);
        }
        self.within += 1;
        self.is_more = true;
        Ok(Unordered { outer: self.hash, count: 0, sum: 0, taker: self })
    }
}

/// A sequence or map, whose elements add up.
struct Unordered<'a> {
    taker: &'a mut Taker,
    /// The hash of what came before it.
    outer: u64,
    count: u64,
    sum: u64,
}

impl Unordered<'_> {
    fn begin(&mut self) {
        self.taker.hash = 0;
    }

    fn finish(&mut self) {
        self.sum = self.sum.wrapping_add(self.taker.hash);
        self.count += 1;
    }

    fn close(self) {
        self.taker.hash = self.outer;
        self.taker.add((self.count, self.sum));
        self.taker.within -= 1;
    }
}

impl SerializeSeq for Unordered<'_> {
    type Ok = ();
    type Error = NoDigest;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoDigest> {
        self.begin();
        value.serialize(&mut *self.taker)?;
        self.finish();
        Ok(())
    }

    fn end(self) -> Result<(), NoDigest> {
        self.close();
        Ok(())
    }
}

impl SerializeMap for Unordered<'_> {
    type Ok = ();
    type Error = NoDigest;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NoDigest> {
        self.begin();
        key.serialize(&mut *self.taker)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoDigest> {
        value.serialize(&mut *self.taker)?;
        self.finish();
        Ok(())
    }

    fn end(self) -> Result<(), NoDigest> {
        self.close();
        Ok(())
    }
}

/// Parts that come in the order of their type.
macro_rules! ordered {
    ($($ordered:ident . $part:ident ( $($name:ident)? )),*) => {
        $(impl $ordered for &mut Taker {
            type Ok = ();
            type Error = NoDigest;

            fn $part<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Result<(), NoDigest> {
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), NoDigest> {
                Ok(())
            }
        })*
    };
}

ordered!(
    SerializeTuple.serialize_element(),
    SerializeTupleStruct.serialize_field(),
    SerializeTupleVariant.serialize_field(),
    SerializeStruct.serialize_field(_name),
    SerializeStructVariant.serialize_field(_name)
);

macro_rules! integers {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<(), NoDigest> {
            self.integer(value)
        })*
    };
}

impl<'a> Serializer for &'a mut Taker {
    type Ok = ();
    type Error = NoDigest;
    type SerializeSeq = Unordered<'a>;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Unordered<'a>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    integers!(
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64
    );

    fn serialize_u128(self, value: u128) -> Result<(), NoDigest> {
        self.text(&value.to_le_bytes())
    }

    fn serialize_f32(self, value: f32) -> Result<(), NoDigest> {
        self.number(Number::Float(value.into()))
    }

    fn serialize_f64(self, value: f64) -> Result<(), NoDigest> {
        self.number(Number::Float(value))
    }

    fn serialize_char(self, value: char) -> Result<(), NoDigest> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), NoDigest> {
        self.text(value.as_bytes())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), NoDigest> {
        self.text(value)
    }

    fn serialize_none(self) -> Result<(), NoDigest> {
        self.variant(0).map(drop)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NoDigest> {
        value.serialize(self.variant(1)?)
    }

    fn serialize_unit(self) -> Result<(), NoDigest> {
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), NoDigest> {
        Ok(())
    }

    fn serialize_unit_variant(self, _name: &'static str, index: u32, _: &'static str) -> Result<(), NoDigest> {
        self.variant(index).map(drop)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<(), NoDigest> {
        if name == PROMISED { self.variant(0).map(drop) } else { value.serialize(self) }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), NoDigest> {
        value.serialize(self.variant(index)?)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Unordered<'a>, NoDigest> {
        self.collection(length)
    }

    fn serialize_tuple(self, _length: usize) -> Result<Self, NoDigest> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Self, NoDigest> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        index: u32,
        _: &'static str,
        _length: usize,
    ) -> Result<Self, NoDigest> {
        self.variant(index)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Unordered<'a>, NoDigest> {
        self.collection(length)
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Self, NoDigest> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        index: u32,
        _: &'static str,
        _length: usize,
    ) -> Result<Self, NoDigest> {
        self.variant(index)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use serde::Serialize;

    use super::*;
    use crate::Argument;

    fn hash(value: &impl Serialize) -> Option<u64> {
        Digest::of(value).map(|digest| digest.hash)
    }

    fn shown(value: &impl Serialize) -> String {
        Digest::of(value).map_or_else(String::new, |digest| digest.to_string())
    }

    #[derive(Serialize)]
    enum Shape {
        Point,
        Ball(f64),
        Box { wide: f64, high: f64 },
    }

    #[test]
    fn what_differs_anywhere_has_another_digest() {
        let digests = [
            hash(&(1, 2)),
            hash(&(2, 1)),
            hash(&(1, 2, 0)),
            hash(&0.0),
            hash(&-0.0),
            hash(&"maniple"),
            hash(&"manipel"),
            hash(&Some(0)),
            hash(&vec![1, 2]),
            hash(&vec![1, 3]),
            hash(&vec![1, 2, 2]),
            hash(&vec![vec![1, 2], vec![]]),
            hash(&vec![vec![1], vec![2]]),
            hash(&Shape::Ball(1.0)),
            hash(&Shape::Ball(2.0)),
            hash(&Shape::Box { wide: 1.0, high: 2.0 }),
            hash(&Shape::Box { wide: 2.0, high: 1.0 }),
            hash(&HashMap::from([(1, 2), (3, 4)])),
            hash(&HashMap::from([(1, 4), (3, 2)])),
            hash(&u128::MAX),
        ];
        assert!(digests.iter().all(Option::is_some), "{digests:?}");
        assert_ne!(hash(&None::<i32>), hash(&Some(0)));
        assert_ne!(hash(&vec![Shape::Point]), hash(&vec![Shape::Point, Shape::Point]));
        for (place, digest) in digests.iter().enumerate() {
            assert!(!digests[..place].contains(digest), "number {place}: {digests:?}");
        }
    }

    #[test]
    fn the_order_of_hash_maps_and_sets_does_not_count() {
        let names = || (0..100).map(|number| format!("name {number}"));
        let (one, other): (HashSet<_>, HashSet<_>) = (names().collect(), names().rev().collect());
        assert_eq!(hash(&one), hash(&other));
        let map = |set: &HashSet<String>| set.iter().map(|name| (name.clone(), name.len())).collect::<HashMap<_, _>>();
        assert_eq!(hash(&map(&one)), hash(&map(&other)));
        // Whatever order it has, it is too large or not.
        let many: HashSet<_> = (0..LARGEST).map(|number| number.to_string().repeat(9)).collect();
        assert_eq!(hash(&many), None);
    }

    #[test]
    fn the_first_numbers_are_shown() {
        assert_eq!(shown(&(0.5, 3_u8)), "0.5, 3");
        assert!(shown(&(0.5, 3_u8, 4)).starts_with("0.5, 3, others with hash "), "{}", shown(&(0.5, 3_u8, 4)));
        assert!(shown(&(vec![1, 2], true)).starts_with("1, others with hash "));
        assert_eq!(shown(&()), "");
    }

    #[test]
    fn what_is_large_has_no_digest() {
        assert!(hash(&vec![1.0; LARGEST]).is_some());
        assert_eq!(hash(&vec![1.0; LARGEST + 1]), None);
        assert_eq!(hash(&vec![vec![1.0; 2]; LARGEST]), None);
        assert_eq!(hash(&"x".repeat(LARGEST * 8)), None);
    }

    #[test]
    fn values_count_and_futures_do_not() {
        let runtime = crate::Runtime::builder().workers(1).build().unwrap();
        runtime
            .run(async |cx| {
                let future = |value: i32| cx.per_node(value).map(|value| value);
                let (one, other) = (future(1), future(2));
                let argument =
                    |value, of: &crate::FutureMap<i32>| (Argument::Value(value), Argument::PerPoint(of.clone()));
                assert!(hash(&argument(1.5, &one)).is_some());
                assert_eq!(hash(&argument(1.5, &one)), hash(&argument(1.5, &other)));
                assert_ne!(hash(&argument(1.5, &one)), hash(&argument(2.5, &one)));
                Ok(())
            })
            .unwrap();
    }
}
