//! Partitions that follow from fields, however the mapper arranges the values, against points that are looked at one by
//! one.

use maniple::mapper::{Columns, InstanceChoice, Mapper, MappingContext, RequirementMapping, TaskInfo};
use maniple::prelude::*;
use maniple::{AnySpace, Arrangement, IndexSpace, LayoutConstraint, LogicalPartition, ProcessorId, Relation};

#[derive(Fields)]
struct Cell {
    tiny: i8,
    short: u16,
    int: i32,
    long: u64,
    pair: [u16; 2],
    place: Ptr<Cell, 2>,
    block: Rect<2>,
}

#[derive(Fields)]
struct Entry {
    value: f64,
}

const ENTRIES: i64 = 12;

/// A number from -2 to 13.
fn number(at: Point<2>) -> i64 {
    (at[0] * 7 + at[1] * 5).rem_euclid(16) - 2
}

fn pair(at: Point<2>) -> [u16; 2] {
    [number(at).max(0) as u16, number(at + Point([3, 1])).max(0) as u16]
}

fn place(at: Point<2>) -> Point<2> {
    Point([number(at), number(at + Point([1, 2]))])
}

fn block(at: Point<2>) -> Rect<2> {
    Rect::new(place(at), place(at) + Point([at[0] % 3 - 1, 2]))
}

#[task(leaf)]
fn fill(#[discards(tiny, short, int, long, pair, place, block)] cells: Piece<Cell, 2>) {
    for at in cells.points() {
        cells.tiny[at] = number(at) as i8;
        cells.short[at] = number(at) as u16;
        cells.int[at] = number(at) as i32;
        cells.long[at] = number(at) as u64;
        cells.pair[at] = pair(at);
        cells.place[at] = Ptr::new(place(at));
        cells.block[at] = block(at);
    }
}

/// All fields in one instance, in some arrangement.
#[derive(Clone)]
struct Arranges(Arrangement);

impl Mapper for Arranges {
    fn map_requirement(
        &mut self,
        _: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let memory = context.machine().memories_visible_from(processor)[0].memory;
        let layout = LayoutConstraint { arrangement: Some(self.0), ..LayoutConstraint::default() };
        InstanceChoice { layout, columns: Columns::All, ..InstanceChoice::in_memory(memory) }.into()
    }
}

fn found(partition: &LogicalPartition) -> Vec<AnySpace> {
    partition.partitioning().pieces().iter().map(|piece| piece.space().clone()).collect()
}

/// For each of some pieces, those of some points that it names.
fn named<const T: usize>(
    pieces: &[AnySpace],
    of: Rect<T>,
    names: impl Fn(Point<2>, Point<T>) -> bool,
) -> Vec<AnySpace> {
    let piece = |piece: &AnySpace| {
        let piece: &IndexSpace<2> = piece.typed().unwrap();
        let is_named = |to: &Point<T>| piece.points().any(|at| names(at, *to));
        IndexSpace::from_points(of.points().filter(is_named)).into()
    };
    pieces.iter().map(piece).collect()
}

/// For each of some pieces, those of the cells that name a point in it.
fn naming<const T: usize>(
    pieces: &[AnySpace],
    cells: &IndexSpace<2>,
    names: impl Fn(Point<2>, Point<T>) -> bool,
) -> Vec<AnySpace> {
    let piece = |piece: &AnySpace| {
        let piece: &IndexSpace<T> = piece.typed().unwrap();
        let names_one = |at: &Point<2>| piece.points().any(|to| names(*at, to));
        IndexSpace::from_points(cells.points().filter(names_one)).into()
    };
    pieces.iter().map(piece).collect()
}

async fn compare(cx: &Context, space: IndexSpace<2>) -> Result<()> {
    let bounds = space.bounds();
    let cells = cx.region_over::<Cell, 2>(space.clone())?;
    let all = cx.region_over::<Cell, 2>(bounds)?;
    let entries = cx.region::<Entry>(ENTRIES as usize)?;
    cx.launch(fill(&cells));
    let (pieces, parts) = (cells.partition(3).equal()?, entries.partition(4).equal()?);
    let (owned, owned_entries) = (found(pieces.logical()), found(parts.logical()));
    let line = Rect::from(0..ENTRIES);
    // Numbers of all widths; the large ones of unsigned types name nothing.
    for field in [Cell::tiny.id(), Cell::short.id(), Cell::int.id(), Cell::long.id()] {
        let is = |at: Point<2>, to: Point<1>| number(at) == to[0];
        let colors = cx.logical_partition_by_field(cells.logical(), field, ENTRIES as usize).await?;
        let of_color = |color| space.points().filter(move |&at| number(at) == color);
        let expected: Vec<AnySpace> =
            (0..ENTRIES).map(|color| IndexSpace::from_points(of_color(color)).into()).collect();
        assert_eq!(found(&colors), expected, "{field:?}");
        let image = cx.logical_image(entries.logical(), pieces.logical(), Relation::Point(field)).await?;
        assert_eq!(found(&image), named(&owned, line, is), "{field:?}");
        let preimage = cx.logical_preimage(cells.logical(), Relation::Point(field), parts.logical()).await?;
        assert_eq!(found(&preimage), naming(&owned_entries, &space, is), "{field:?}");
    }
    let within = |at: Point<2>, to: Point<1>| (i64::from(pair(at)[0])..i64::from(pair(at)[1])).contains(&to[0]);
    let image = cx.logical_image(entries.logical(), pieces.logical(), Relation::Range(Cell::pair.id())).await?;
    assert_eq!(found(&image), named(&owned, line, within));
    let preimage = cx.logical_preimage(cells.logical(), Relation::Range(Cell::pair.id()), parts.logical()).await?;
    assert_eq!(found(&preimage), naming(&owned_entries, &space, within));
    let between = Relation::Between(Cell::short.id(), Cell::int.id());
    assert!(
        found(&cx.logical_image(entries.logical(), pieces.logical(), between).await?).iter().all(AnySpace::is_empty)
    );
    // Points and rectangles, by fields whose types the program names, and by such as are known at run time.
    let wholes = all.partition(5).equal()?;
    let owned_wholes = found(wholes.logical());
    let points = |at: Point<2>, to: Point<2>| place(at) == to;
    let touches = |at: Point<2>, to: Point<2>| block(at).contains(to);
    let image = cx.image(&all, &pieces, Cell::place).await?;
    assert_eq!(found(image.logical()), named(&owned, bounds, points));
    let preimage = cx.preimage(&cells, Cell::place, &wholes).await?;
    assert_eq!(found(preimage.logical()), naming(&owned_wholes, &space, points));
    let image = cx.image_of_rects(&all, &pieces, Cell::block).await?;
    assert_eq!(found(image.logical()), named(&owned, bounds, touches));
    let preimage = cx.preimage_of_rects(&cells, Cell::block, &wholes).await?;
    assert_eq!(found(preimage.logical()), naming(&owned_wholes, &space, touches));
    let image = cx.logical_image(all.logical(), pieces.logical(), Relation::Range(Cell::block.id())).await?;
    assert_eq!(found(&image), named(&owned, bounds, touches));
    Ok(())
}

#[test]
fn values_say_the_same_in_every_arrangement() {
    for arrangement in [Arrangement::StructOfArrays, Arrangement::ArrayOfStructs, Arrangement::Blocked(4)] {
        let runtime = Runtime::builder().workers(2).mapper(Arranges(arrangement)).build().unwrap();
        let outcome = runtime.run(async |cx| {
            compare(cx, Rect::new([-2, 0], [9, 13]).into()).await?;
            let holes = [Rect::new([0, 0], [4, 3]), Rect::new([2, 6], [9, 9]), Rect::new([40, 40], [41, 55])];
            compare(cx, IndexSpace::from_rects(holes)).await
        });
        outcome.unwrap_or_else(|error| panic!("{arrangement}: {error}"));
    }
}
