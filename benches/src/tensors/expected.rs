//! Elements of tensors, and the expected results: elements are products of a small number for each index, so that sums
//! over them are products of sums.

/// The factor of each element for the value of its index in the dimension of this number.
#[must_use]
pub fn factor(dimension: usize, index: i64) -> i64 {
    1 + index % [2, 3, 2, 3][dimension]
}

/// The weight of an element of a result for each of its indices: so that elements in wrong places are noticed.
#[must_use]
pub fn weight(index: i64) -> i64 {
    1 + index % 5
}

/// The sum of all elements of the result with their weights, where `accesses` has the letters of the result's indices
/// and then those of each factor, and letters from `i` on have these extents.
#[must_use]
pub fn answer(accesses: &[&str], extents: &[u64]) -> u64 {
    let sum = |(letter, extent): (char, &u64)| {
        let one = |index: i64| {
            let places = |access: &str| access.chars().position(|other| other == letter);
            let weight = if accesses[0].contains(letter) { weight(index) } else { 1 };
            let factors = accesses[1..].iter().filter_map(|access| places(access));
            factors.fold(weight, |product, dimension| product * factor(dimension, index)) as u64
        };
        (0..*extent as i64).map(one).sum::<u64>()
    };
    ('i'..).zip(extents).map(sum).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_matrix_product_is_that_of_three_loops() {
        let (rows, columns, inner) = (4_i64, 7, 3);
        let mut sum = 0;
        for i in 0..rows {
            for j in 0..columns {
                for k in 0..inner {
                    let product = factor(0, i) * factor(1, k) * factor(0, k) * factor(1, j);
                    sum += weight(i) * weight(j) * product;
                }
            }
        }
        assert_eq!(answer(&["ij", "ik", "kj"], &[4, 7, 3]), sum as u64);
    }
}
