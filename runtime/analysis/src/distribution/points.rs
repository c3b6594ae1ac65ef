//! Points as they are serialised: the bounds of each rectangle, one after the other.

use maniple_space::{AnySpace, IndexSpace, Rect, for_dimension};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of points that can be serialised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Points(
    /// The points.
    pub AnySpace,
);

impl Serialize for Points {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bounds: Vec<i64> = for_dimension!(&self.0, |space| {
            space.rects().iter().flat_map(|rect| rect.lo.0.into_iter().chain(rect.hi.0)).collect()
        });
        (self.0.dim(), bounds).serialize(serializer)
    }
}

impl<'a> Deserialize<'a> for Points {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let (dim, bounds) = <(usize, Vec<i64>)>::deserialize(deserializer)?;
        AnySpace::empty(dim).map_err(serde::de::Error::custom)?;
        let space = for_dimension!(dim, N => {
            let rect = |bounds: &[i64]| {
                let (lo, hi) = bounds.split_at(N);
                Rect::new(std::array::from_fn(|d| lo[d]), std::array::from_fn::<i64, N, _>(|d| hi[d]))
            };
            IndexSpace::<N>::from_rects(bounds.chunks_exact(2 * N).map(rect)).into()
        });
        Ok(Self(space))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(value: &impl Serialize) -> Vec<u8> {
        postcard::to_stdvec(value).unwrap()
    }

    fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
        postcard::from_bytes(bytes).ok()
    }

    proptest! {
        #[test]
        fn points_arrive_as_they_were_sent(points in prop::collection::vec(prop::array::uniform3(-9..9_i64), 0..30)) {
            let space = IndexSpace::from_points(points.into_iter().map(maniple_space::Point));
            let points = Points(space.into());
            prop_assert_eq!(decode::<Points>(&encode(&points)), Some(points));
        }
    }

    #[test]
    fn bytes_that_are_no_points_are_refused() {
        assert_eq!(decode::<Points>(&encode(&(9_usize, vec![1_i64, 2]))), None);
        assert_eq!(decode::<Points>(&[1, 200]), None);
    }
}
