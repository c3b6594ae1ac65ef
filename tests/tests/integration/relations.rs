//! Partitions that follow from fields of any integers, against sets of rows that were found one by one.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use fastrand::Rng;
use maniple::prelude::*;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{
    AnySpace, FieldId, FieldMask, FieldType, FieldValue, LogicalPartition, LogicalRegion, Privilege, Relation,
    Requirement,
};
use maniple_tests::nodes::{Nodes, on_nodes};

/// Integers of all types.
trait Number: FieldValue + Send + Sync {
    const LEAST: i128;
    const MOST: i128;

    fn new(value: i128) -> Self;
}

macro_rules! numbers {
    ($($ty:ty),*) => {
        $(impl Number for $ty {
            const LEAST: i128 = <$ty>::MIN as i128;
            const MOST: i128 = <$ty>::MAX as i128;

            fn new(value: i128) -> Self {
                value as Self
            }
        })*
    };
}

numbers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

/// A value, mostly the number of a row or near one, and now and then the least or the most that the type has.
fn value<V: Number>(random: &mut Rng) -> i128 {
    let value = match random.u8(..12) {
        0 => V::LEAST,
        1 => V::MOST,
        2 => V::MOST - 1,
        _ => random.i64(-9..60).into(),
    };
    value.clamp(V::LEAST, V::MOST)
}

/// Some rows from -5 to 50, not all of them; now and then also the last row that there can be, or none at all.
fn rows(random: &mut Rng) -> Vec<i64> {
    let mut rows: Vec<i64> = (-5..50).filter(|_| random.u8(..8) > 0).collect();
    match random.u8(..10) {
        0..2 => rows.extend([i64::MAX - 1, i64::MAX]),
        2 => rows.clear(),
        _ => {}
    }
    rows
}

/// Some pieces of rows, which may overlap.
fn pieces(random: &mut Rng, rows: &[i64], count: usize) -> Vec<BTreeSet<i64>> {
    let mut piece = || {
        let (first, end) = (random.i64(-6..40), random.i64(0..55));
        let skips = random.bool();
        rows.iter().copied().filter(|row| (first..end).contains(row) && !(skips && row % 3 == 0)).collect()
    };
    (0..count).map(|_| piece()).collect()
}

/// A region of so many fields, its rows and its values, which are the same in each of two planes if it has two
/// dimensions.
struct Table {
    region: LogicalRegion,
    rows: Vec<i64>,
    dim: usize,
}

impl Table {
    fn new(cx: &Context, rows: Vec<i64>, dim: usize) -> Result<Self> {
        let fields = cx.field_space(64);
        let region = cx.logical_region(&cx.index_space(&space(&rows, dim)), &fields)?;
        Ok(Self { region, rows, dim })
    }

    /// A new field with a value for each row.
    fn field<V: FieldValue>(&self, cx: &Context, values: Vec<V>) -> Result<FieldId> {
        let (fields, number) = (self.region.fields(), self.region.fields().fields().iter().count());
        let field = fields.allocate(&format!("field {number}"), FieldType::of::<V>())?;
        let (rows, dim) = (self.rows.clone(), self.dim);
        let writes = move |call: &maniple::task::LeafCall<'_>| -> Result<Value> {
            match dim {
                1 => {
                    let mut cells = call.write::<V, 1>(0, field)?;
                    let at = |at: Point<1>| values[rows.binary_search(&at[0]).unwrap()];
                    cells.space().points().for_each(|point| cells[point] = at(point));
                }
                _ => {
                    let mut cells = call.write::<V, 2>(0, field)?;
                    let at = |at: Point<2>| values[rows.binary_search(&at[1]).unwrap()];
                    cells.space().points().for_each(|point| cells[point] = at(point));
                }
            }
            Ok(Value::new(()))
        };
        let task = Arc::new(TaskDefinition::new("write").leaf(TaskOptions::default(), writes));
        // In another cut than the nodes'.
        let count = self.rows.len();
        let cut = [&self.rows[..count / 3], &self.rows[count / 3..count / 2], &self.rows[count / 2..]];
        let cut: Vec<AnySpace> = cut.iter().map(|rows| space(*rows, dim)).collect();
        let cut = self.region.partition(&cx.index_partition(self.region.space(), 3, &cut)?)?;
        let requirement = Requirement::new(maniple::Target::from(cut), FieldMask::of(field), Privilege::Discard);
        cx.index_launch(3, TaskLauncher::new(&task).requirement(requirement).typed::<()>());
        Ok(field)
    }

    fn partition(&self, cx: &Context, pieces: &[BTreeSet<i64>]) -> Result<LogicalPartition> {
        let spaces: Vec<AnySpace> = pieces.iter().map(|rows| space(rows, self.dim)).collect();
        Ok(self.region.partition(&cx.index_partition(self.region.space(), spaces.len(), &spaces)?)?)
    }
}

/// Rows, of one plane or of two.
fn space<'a>(rows: impl IntoIterator<Item = &'a i64>, dim: usize) -> AnySpace {
    match dim {
        1 => IndexSpace::<1>::from_points(rows.into_iter().map(|&row| Point([row]))).into(),
        _ => IndexSpace::<2>::from_points(rows.into_iter().flat_map(|&row| [Point([0, row]), Point([1, row])])).into(),
    }
}

/// The rows of the pieces of a partition: of two planes the same.
fn found(partition: &LogicalPartition) -> Vec<BTreeSet<i64>> {
    let rows = |space: &AnySpace| {
        let rows: BTreeSet<i64> = space.points().map(|point| *point.coords().last().unwrap()).collect();
        assert_eq!(space.volume(), (rows.len() * space.dim()) as u64, "planes differ");
        rows
    };
    partition.partitioning().pieces().iter().map(|piece| rows(piece.space())).collect()
}

/// The rows that each row names.
type Names = Vec<(i64, Range<i128>)>;

fn image(names: &Names, sources: &[BTreeSet<i64>], targets: &[i64]) -> Vec<BTreeSet<i64>> {
    let is_named = |piece: &BTreeSet<i64>, target: i64| {
        names.iter().any(|(row, named)| piece.contains(row) && named.contains(&target.into()))
    };
    sources.iter().map(|piece| targets.iter().copied().filter(|&target| is_named(piece, target)).collect()).collect()
}

fn preimage(names: &Names, targets: &[BTreeSet<i64>]) -> Vec<BTreeSet<i64>> {
    let naming = |piece: &BTreeSet<i64>| {
        let naming = names.iter().filter(|(_, named)| piece.iter().any(|&target| named.contains(&target.into())));
        naming.map(|&(row, _)| row).collect()
    };
    targets.iter().map(naming).collect()
}

/// All relations by fields of one type, and of another for what takes two; `offset` tells apart the rows whose next one
/// is there.
async fn relations<V: Number, W: Number>(cx: &Context, random: &mut Rng, dim: usize) -> Result<()> {
    let (table, targets) = (Table::new(cx, rows(random), dim)?, Table::new(cx, rows(random), 1)?);
    let count = table.rows.len();
    let mut values = || (0..count).map(|_| value::<V>(random)).collect::<Vec<_>>();
    let (first, second) = (values(), values());
    let others: Vec<i128> = (0..count).map(|_| value::<W>(random)).collect();
    let pairs = first.iter().zip(&second).map(|(&lo, &hi)| [V::new(lo), V::new(hi)]).collect();
    let [rows, ranges] =
        [table.field(cx, first.iter().copied().map(V::new).collect())?, table.field::<[V; 2]>(cx, pairs)?];
    let ends = table.field(cx, others.iter().copied().map(W::new).collect())?;
    let names = |end: &dyn Fn(usize) -> i128| -> Names {
        (0..count).map(|row| (table.rows[row], first[row]..end(row))).collect()
    };
    let next = |row: usize| match table.rows.get(row + 1) {
        Some(&next) if next == table.rows[row] + 1 => first[row + 1],
        _ => first[row],
    };
    let relations = [
        (Relation::Point(rows), names(&|row| first[row] + 1)),
        (Relation::Range(ranges), names(&|row| second[row])),
        (Relation::Between(rows, ends), names(&|row| others[row])),
        (Relation::Offsets(rows), names(&next)),
    ];
    let sources = pieces(random, &table.rows, 4);
    let wanted = pieces(random, &targets.rows, 3);
    let (by_rows, by_targets) = (table.partition(cx, &sources)?, targets.partition(cx, &wanted)?);
    for (relation, names) in &relations {
        let about = format!("{relation:?} by {}", std::any::type_name::<V>());
        let named = cx.logical_image(&targets.region, &by_rows, *relation).await?;
        let expected = image(names, &sources, &targets.rows);
        assert_eq!(found(&named), expected, "image of {about}");
        let naming = cx.logical_preimage(&table.region, *relation, &by_targets).await?;
        let expected_naming = preimage(names, &wanted);
        assert_eq!(found(&naming), expected_naming, "preimage of {about}");
        // Of partitions whose pieces no node has as a whole.
        let again = cx.logical_image(&targets.region, &naming, *relation).await?;
        assert_eq!(found(&again), image(names, &expected_naming, &targets.rows), "second image of {about}");
        let back = cx.logical_preimage(&table.region, *relation, &named).await?;
        assert_eq!(found(&back), preimage(names, &expected), "second preimage of {about}");
    }
    let mut range =
        || value::<V>(random) - i128::from(random.u8(..2)) * 7..value::<V>(random) + i128::from(random.u8(..2));
    let by_values = [i128::MIN..i128::MAX, range(), range(), V::LEAST..V::MOST, 0..10];
    let split = cx.logical_partition_by_ranges(&table.region, rows, 5, &by_values).await?;
    let within = |range: &Range<i128>| {
        (0..count).filter(|&row| range.contains(&first[row])).map(|row| table.rows[row]).collect()
    };
    assert_eq!(found(&split), by_values.iter().map(within).collect::<Vec<BTreeSet<i64>>>());
    let colors = cx.logical_partition_by_field(&table.region, rows, 30).await?;
    let of_color = |color| (0..count).filter(|&row| first[row] == color).map(|row| table.rows[row]).collect();
    assert_eq!(found(&colors), (0..30).map(of_color).collect::<Vec<BTreeSet<i64>>>());
    // Values that are used by pieces that no node has as a whole: where they are is known in blocks.
    let same = |call: &maniple::task::LeafCall<'_>| Ok(Value::new(call.point()[0]));
    let task = Arc::new(TaskDefinition::new("touch").leaf(TaskOptions::default(), same));
    let requirement = Requirement::new(maniple::Target::from(colors), FieldMask::of(rows), Privilege::ReadWrite);
    cx.index_launch(30, TaskLauncher::new(&task).requirement(requirement).typed::<i64>());
    for (relation, names) in &relations {
        let named = cx.logical_image(&targets.region, &by_rows, *relation).await?;
        assert_eq!(found(&named), image(names, &sources, &targets.rows), "{relation:?}, in blocks");
    }
    Ok(())
}

#[test]
fn integers_of_all_types_name_rows_on_any_number_of_nodes() {
    for (nodes, seeds) in [(1, 0..6), (2, 6..8), (3, 8..10), (8, 10..11)] {
        let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
            for seed in seeds.clone() {
                let mut random = Rng::with_seed(seed);
                let dim = 1 + usize::from(seed % 3 == 1);
                macro_rules! each {
                    ($($ty:ty, $other:ty);*) => { $(relations::<$ty, $other>(cx, &mut random, dim).await?;)* };
                }
                each!(i8, u64; i16, i32; i32, u16; i64, u64; isize, i8; u8, i64; u16, u8; u32, i16; u64, i64; usize, u32);
            }
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn points_and_rectangles_of_any_dimension_name_points() {
    let results = on_nodes(Nodes::new(2), async |cx, _| -> Result<()> {
        let table = Table::new(cx, (0..20).collect(), 1)?;
        let plane = cx.logical_region(&cx.index_space(&Rect::<2>::from_shape([5, 5]).into()), &cx.field_space(1))?;
        let points = table.field(cx, (0..20).map(|row| Point([row % 5, row % 7])).collect())?;
        let rects = table.field(cx, (0..20).map(|row| Rect::new([row % 5, 0], [row % 5, row % 3 - 1])).collect())?;
        let halves = table.partition(cx, &[(0..10).collect(), (10..20).collect()])?;
        let all = |named: &dyn Fn(i64, Point<2>) -> bool| {
            let half = |rows: Range<i64>| {
                let square = Rect::<2>::from_shape([5, 5]).points();
                AnySpace::from(IndexSpace::from_points(square.filter(|&at| rows.clone().any(|row| named(row, at)))))
            };
            [half(0..10), half(10..20)]
        };
        let pointed = cx.logical_image(&plane, &halves, Relation::Point(points)).await?;
        let touched = cx.logical_image(&plane, &halves, Relation::Range(rects)).await?;
        let spaces =
            |of: &LogicalPartition| of.partitioning().pieces().iter().map(|piece| piece.space().clone()).collect();
        let (pointed, touched): (Vec<_>, Vec<_>) = (spaces(&pointed), spaces(&touched));
        assert_eq!(pointed, all(&|row, at| at == Point([row % 5, row % 7])));
        assert_eq!(touched, all(&|row, at| at[0] == row % 5 && at[1] < row % 3));
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn targets_may_be_huge_and_pieces_more_than_points() {
    for nodes in [1, 3] {
        let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
            let (one, none) = (Table::new(cx, vec![7], 1)?, Table::new(cx, Vec::new(), 1)?);
            let huge = cx.logical_region(&cx.index_space(&Rect::from(0..1 << 40).into()), &cx.field_space(1))?;
            let [first, nothing] = [one.field(cx, vec![1_i64 << 39])?, none.field(cx, Vec::<u64>::new())?];
            let [end, range] = [one.field(cx, vec![u64::MAX])?, one.field(cx, vec![[i64::MIN, i64::MAX]])?];
            let pieces = vec![[7].into(), BTreeSet::new(), [7].into()];
            let (sources, empty) = (one.partition(cx, &pieces)?, none.partition(cx, &vec![BTreeSet::new(); 5])?);
            let volumes = |of: LogicalPartition| -> Vec<u64> {
                of.partitioning().pieces().iter().map(|piece| piece.space().volume()).collect()
            };
            for (relation, count) in [
                (Relation::Point(first), 1),
                (Relation::Between(first, end), 1 << 39),
                (Relation::Range(range), 1 << 40),
                (Relation::Offsets(first), 0),
            ] {
                let image = cx.logical_image(&huge, &sources, relation).await?;
                assert_eq!(volumes(image.clone()), [count, 0, count], "{relation:?}");
                let back = cx.logical_preimage(&one.region, relation, &image).await?;
                let found = u64::from(count > 0);
                assert_eq!(volumes(back), [found, 0, found], "{relation:?}");
            }
            let nothings = [Relation::Point(nothing), Relation::Between(nothing, nothing), Relation::Offsets(nothing)];
            for relation in nothings {
                assert_eq!(volumes(cx.logical_image(&huge, &empty, relation).await?), [0; 5]);
                assert_eq!(volumes(cx.logical_preimage(&none.region, relation, &sources).await?), [0; 3]);
                assert_eq!(volumes(cx.logical_image(&none.region, &sources, Relation::Point(first)).await?), [0; 3]);
            }
            assert_eq!(volumes(cx.logical_partition_by_field(&none.region, nothing, 3).await?), [0; 3]);
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn what_names_no_rows_is_refused_with_what_was_found() {
    for nodes in [1, 2] {
        let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
            let table = Table::new(cx, (0..20).collect(), 1)?;
            let plane =
                cx.logical_region(&cx.index_space(&Rect::<2>::from_shape([5, 5]).into()), &cx.field_space(1))?;
            let numbers = table.field(cx, vec![1_u16; 20])?;
            let floats = table.field(cx, vec![1.0_f32; 20])?;
            let halves = table.partition(cx, &[(0..10).collect(), (10..20).collect()])?;
            let tiles = cx.index_partition(plane.space(), 1, &[Rect::<2>::from_shape([2, 2]).into()])?;
            let tiles = plane.partition(&tiles)?;
            let (points, pairs) = (Relation::Point, Relation::Range);
            let wrong = [
                (cx.logical_image(&table.region, &halves, points(floats)).await, "holds `f32`, not integers"),
                (cx.logical_image(&table.region, &halves, pairs(numbers)).await, "holds `u16`, not pairs of integers"),
                (cx.logical_image(&table.region, &halves, Relation::Between(numbers, floats)).await, "`f32`"),
                (cx.logical_preimage(&table.region, Relation::Offsets(floats), &halves).await, "`f32`"),
                (cx.logical_image(&plane, &halves, points(numbers)).await, "not points of 2 dimensions"),
                (cx.logical_preimage(&table.region, points(numbers), &tiles).await, "not points of 2 dimensions"),
                (cx.logical_partition_by_field(&table.region, floats, 3).await, "holds `f32`, not integers"),
                (
                    cx.logical_partition_by_ranges(&table.region, floats, 2, &[0..1, 1..2]).await,
                    "holds `f32`, not integers",
                ),
                (cx.logical_partition_by_ranges(&table.region, numbers, 3, &[0..1, 1..2]).await, "3"),
                (cx.logical_partition_by_ranges(&table.region, numbers, 0, &[]).await, "at least one piece"),
                (cx.logical_image(&table.region, &halves, points(FieldId(40))).await, "field #40 does not exist"),
            ];
            for (made, expected) in wrong {
                let error = made.unwrap_err().to_string();
                assert!(error.contains(expected), "{error}");
            }
            cx.free_field(table.region.fields(), numbers)?;
            assert!(cx.logical_image(&table.region, &halves, points(numbers)).await.is_err());
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}
