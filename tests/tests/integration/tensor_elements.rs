//! Many elements of tensors at once: what is written is what is read, and what is made is made where it is.

use std::sync::atomic::{AtomicUsize, Ordering};

use maniple::{FieldValue, Result};
use maniple_tensor::distributed::{DistributedError, Tensor};
use maniple_tensor::element::{Complex, Element};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::rectangle::Rectangle;
use maniple_tests::nodes::{Nodes, on_nodes};

fn on(nodes: usize, program: impl AsyncFn(&maniple::Context) -> Result<()> + Sync) {
    on_nodes(Nodes::new(nodes), async |cx, _| program(cx).await).into_iter().for_each(|result| result.unwrap());
}

async fn round_trip<T: Element + FieldValue>(
    cx: &maniple::Context,
    extents: &[i64],
    number: impl Fn(i64) -> T,
) -> Result<()> {
    let tensor = Tensor::new(cx, &TensorVariable::new("T", T::TYPE, extents))?;
    let elements: Vec<T> = (0..extents.iter().product()).map(number).collect();
    tensor.write_elements(cx, elements.clone())?;
    assert_eq!(tensor.read_elements::<T>(cx).await?, elements, "{extents:?}");
    // In the order of coordinates, as the slow way has them.
    let scalars: Vec<_> = elements.iter().map(|element| element.to_scalar()).collect();
    assert_eq!(tensor.read(cx).await?.values(), scalars, "{extents:?}");
    Ok(())
}

#[test]
fn what_is_written_is_read_in_all_types_and_shapes() {
    for nodes in [1, 2, 4] {
        on(nodes, async |cx| {
            for extents in [&[][..], &[1], &[7], &[3, 5], &[1, 9], &[5, 3, 2], &[2, 3, 4, 5]] {
                round_trip(cx, extents, |number| number as i32).await?;
                round_trip(cx, extents, |number| number).await?;
                round_trip(cx, extents, |number| number as f32 / 2.0).await?;
                round_trip(cx, extents, |number| number as f64 / 2.0).await?;
                round_trip(cx, extents, |number| Complex::new(number as f32, 1.0)).await?;
                round_trip(cx, extents, |number| Complex::new(1.0, number as f64)).await?;
            }
            Ok(())
        });
    }
}

#[test]
fn elements_are_made_from_their_coordinates() {
    for nodes in [1, 2, 4] {
        on(nodes, async |cx| {
            let tensor = Tensor::new(cx, &TensorVariable::new("T", i64::TYPE, [4, 6]))?;
            let tile = |i: i64, j: i64| Rectangle::new([(2 * i, 2 * i + 2), (3 * j, 3 * j + 3)]);
            // Equal pieces count once, empty ones not at all.
            let pieces = [tile(0, 0), tile(0, 1), tile(1, 0), tile(1, 1), tile(0, 1), Rectangle::empty(2)];
            tensor.generate(cx, &pieces, |point| 10 * point[0] + point[1])?;
            let expected: Vec<i64> = (0..24).map(|number| number / 6 * 10 + number % 6).collect();
            assert_eq!(tensor.read_elements::<i64>(cx).await?, expected);
            // What is in no piece stays.
            tensor.generate(cx, &[tile(1, 1)], |_| -1_i64)?;
            let changed = |(number, kept): (usize, &i64)| if number / 6 >= 2 && number % 6 >= 3 { -1 } else { *kept };
            let expected: Vec<i64> = expected.iter().enumerate().map(changed).collect();
            assert_eq!(tensor.read_elements::<i64>(cx).await?, expected);
            Ok(())
        });
    }
}

#[test]
fn each_node_makes_its_own_part() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    on(4, async |cx| {
        let tensor = Tensor::new(cx, &TensorVariable::new("T", f64::TYPE, [8, 100]))?;
        let slabs = tensor.slabs(4);
        assert_eq!(slabs.len(), 4, "one for each node");
        tensor.generate(cx, &slabs, |_| {
            MADE.fetch_add(1, Ordering::Relaxed);
            1.0
        })?;
        cx.execution_fence().await?;
        Ok(())
    });
    assert_eq!(MADE.load(Ordering::Relaxed), 800, "no element is made twice");
}

#[test]
fn elements_that_do_not_fit_are_refused() {
    on(1, async |cx| {
        let tensor = Tensor::new(cx, &TensorVariable::new("T", f64::TYPE, [2, 3]))?;
        let few = tensor.write_elements(cx, vec![1.0; 5]).unwrap_err().to_string();
        assert_eq!(few, "T has 6 elements, but was given 5");
        let other = tensor.write_elements(cx, vec![1_i32; 6]).unwrap_err().to_string();
        assert_eq!(other, "T has elements of type f64, but was given i32");
        assert!(matches!(tensor.read_elements::<f32>(cx).await, Err(DistributedError::Shape { .. })));
        assert!(tensor.generate(cx, &tensor.slabs(1), |_| 1_i64).is_err());
        Ok(())
    });
}
