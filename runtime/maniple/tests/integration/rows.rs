//! Fields that are read and written row by row, whatever the region's dimension, layout and shape.

use std::sync::Arc;

use maniple::prelude::*;
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{Arrangement, DimensionOrder, FieldId, LayoutConstraint, Privilege, Requirement};

#[derive(Fields)]
struct Cell {
    mark: u8,
    value: i64,
}

/// A value that tells where it is.
fn value_at(at: &[i64]) -> i64 {
    at.iter().fold(7, |value, index| 100 * value + index)
}

/// Checks a row, and gives its points.
fn points_of(first: &[i64], values: &[i64]) -> Vec<Vec<i64>> {
    let point = |number: usize| {
        let mut at = first.to_vec();
        *at.last_mut().unwrap() += number as i64;
        assert_eq!(values[number], value_at(&at), "at {at:?}");
        at
    };
    (0..values.len()).map(point).collect()
}

fn write(call: &LeafCall<'_>, field: FieldId) -> Result<Value> {
    call.write_rows(0, field, &mut |first, values: &mut [i64]| {
        let mut at = first.to_vec();
        for value in values {
            *value = value_at(&at);
            *at.last_mut().unwrap() += 1;
        }
    })?;
    let again = call.write_rows(0, field, &mut |_, _: &mut [i64]| panic!("the field is taken"));
    assert!(matches!(again, Err(Error::Access { .. })), "{again:?}");
    Ok(Value::new(()))
}

fn read(call: &LeafCall<'_>, field: FieldId) -> Result<Value> {
    let mut points = Vec::new();
    call.read_rows(0, field, &mut |first, values| points.extend(points_of(first, values)))?;
    let other = call.read_rows(0, field, &mut |_, _: &[f64]| panic!("the field has integers"));
    assert!(matches!(other, Err(Error::Access { .. })), "{other:?}");
    Ok(Value::new(points))
}

/// Writes and reads a field of a region in a layout, each in another one.
async fn check<const D: usize>(cx: &Context, space: &IndexSpace<D>, layouts: [LayoutConstraint; 2]) -> Result<()> {
    let cells = cx.region_over::<Cell, D>(space.clone())?;
    let field = Cell::value.id();
    let launcher = |name, layout, body: fn(&LeafCall<'_>, FieldId) -> Result<Value>, privilege| {
        let options = TaskOptions { layout, ..TaskOptions::default() };
        let task = Arc::new(TaskDefinition::new(name).leaf(options, move |call| body(call, field)));
        let fields = cells.logical().fields().fields();
        TaskLauncher::new(&task).requirement(Requirement::new(cells.logical().clone(), fields, privilege))
    };
    cx.fill_field(&cells, field, -1_i64)?;
    assert_eq!(cx.read_field::<i64>(cells.logical(), field).await?, vec![-1_i64; space.volume() as usize]);
    cx.launch(launcher("write", layouts[0], write, Privilege::ReadWrite).typed::<()>()).await?;
    let found = cx.launch(launcher("read", layouts[1], read, Privilege::Read).typed::<Vec<Vec<i64>>>()).await?;
    let points: Vec<Vec<i64>> = space.points().map(|point| point.0.to_vec()).collect();
    assert_eq!(found, points, "{layouts:?}");
    let values: Vec<i64> = points.iter().map(|at| value_at(at)).collect();
    assert_eq!(cx.read_field::<i64>(cells.logical(), field).await?, values);
    assert_eq!(cx.map_read(&cells, Cell::value).await?.to_vec(), values);
    let other = cx.read_field::<f64>(cells.logical(), field).await;
    assert!(matches!(&other, Err(Error::Access { problem, .. }) if problem.contains("i64, not f64")), "{other:?}");
    Ok(())
}

async fn check_all<const D: usize>(cx: &Context, spaces: &[IndexSpace<D>]) -> Result<()> {
    let of = |arrangement, order| LayoutConstraint {
        arrangement: Some(arrangement),
        order: Some(order),
        ..LayoutConstraint::default()
    };
    let (apart, together) = (Arrangement::StructOfArrays, Arrangement::ArrayOfStructs);
    let layouts = [
        of(apart, DimensionOrder::row_major(D)),
        of(together, DimensionOrder::row_major(D)),
        of(apart, DimensionOrder::column_major(D)),
        of(together, DimensionOrder::column_major(D)),
    ];
    for space in spaces {
        for number in 0..layouts.len() {
            check(cx, space, [layouts[number], layouts[(number + 1) % layouts.len()]]).await?;
        }
    }
    Ok(())
}

#[test]
fn rows_have_all_values_in_order_in_every_dimension_and_layout() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let line = |low: i64, high: i64| Rect::<1>::from(low..high);
        let lines = [IndexSpace::from(line(-3, 8)), IndexSpace::from_rects([line(0, 2), line(5, 6), line(9, 20)])];
        check_all::<1>(cx, &lines).await?;
        let cells = Rect::<2>::from_shape([3, 5]);
        let far = Rect::from_shape([1, 4]).translate(Point([6, 2]));
        check_all::<2>(cx, &[IndexSpace::from(cells), IndexSpace::from_rects([cells, far])]).await?;
        check_all::<3>(cx, &[IndexSpace::from(Rect::from_shape([2, 3, 4]))]).await?;
        check_all::<4>(cx, &[IndexSpace::from(Rect::from_shape([2, 1, 3, 2]))]).await?;
        check_all::<1>(cx, &[IndexSpace::from(line(4, 4))]).await
    });
    outcome.unwrap();
}
