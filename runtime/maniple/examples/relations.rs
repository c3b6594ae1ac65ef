//! Partitions by fields that are known only at run time: a sparse matrix that a library was given, whatever integers it
//! is made of.
//!
//! Run it with `cargo run -p maniple --example relations`.

use maniple::prelude::*;
use maniple::{FieldId, FieldType, FieldValue, LogicalPartition, LogicalRegion, Relation};

/// A matrix in compressed rows: `offsets` has a row more than the matrix, `columns` has a row for each entry.
struct Matrix {
    rows: (LogicalRegion, FieldId),
    entries: (LogicalRegion, FieldId),
}

/// For each piece of the rows, the entries of these rows, and the elements of a vector by which they are multiplied.
async fn pieces_of(
    cx: &Context,
    matrix: &Matrix,
    vector: &LogicalRegion,
    rows: &LogicalPartition,
) -> Result<(LogicalPartition, LogicalPartition)> {
    let entries = cx.logical_image(&matrix.entries.0, rows, Relation::Offsets(matrix.rows.1)).await?;
    let elements = cx.logical_image(vector, &entries, Relation::Point(matrix.entries.1)).await?;
    Ok((entries, elements))
}

/// A region with one field.
fn column<T: FieldValue>(cx: &Context, values: Vec<T>) -> Result<(LogicalRegion, FieldId)> {
    let (rows, fields) = (cx.index_space(&Rect::from(0..values.len() as i64).into()), cx.field_space(1));
    let field = fields.allocate("values", FieldType::of::<T>())?;
    let region = cx.logical_region(&rows, &fields)?;
    let _values = cx.attach_vec(&Region::<()>::try_from_logical(region.clone())?, Field::new(field), values)?;
    Ok((region, field))
}

fn volumes(partition: &LogicalPartition) -> Vec<u64> {
    partition.partitioning().pieces().iter().map(|piece| piece.space().volume()).collect()
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        // Row 0 has entries in columns 0 and 1, row 1 in column 1, row 2 none, row 3 in columns 0, 2 and 3.
        let matrix = Matrix {
            rows: column::<u32>(cx, vec![0, 2, 3, 3, 6])?,
            entries: column::<i16>(cx, vec![0, 1, 1, 0, 2, 3])?,
        };
        let (vector, _) = column::<f64>(cx, vec![1.0; 4])?;

        let halves = [Rect::<1>::from(0..2).into(), Rect::<1>::from(2..4).into()];
        let halves = matrix.rows.0.partition(&cx.index_partition(matrix.rows.0.space(), 2, &halves)?)?;
        let (entries, elements) = pieces_of(cx, &matrix, &vector, &halves).await?;
        println!("pieces of {:?} entries need {:?} elements", volumes(&entries), volumes(&elements));
        assert_eq!((volumes(&entries), volumes(&elements)), (vec![3, 3], vec![2, 3]));

        // The other way round: entries by ranges of their columns, and the rows that have some of them.
        let by_column = cx.logical_partition_by_ranges(&matrix.entries.0, matrix.entries.1, 2, &[0..2, 2..4]).await?;
        let touching = cx.logical_preimage(&matrix.rows.0, Relation::Offsets(matrix.rows.1), &by_column).await?;
        assert_eq!((volumes(&by_column), volumes(&touching)), (vec![4, 2], vec![3, 1]));
        Ok(())
    })
}
