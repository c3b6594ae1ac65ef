//! Tests of the meaning of placements.

use std::collections::BTreeSet;

use super::*;
use crate::machine::Machine;
use crate::rectangle::Rectangle;

fn machine(text: &str) -> Machine {
    text.parse().expect("a machine")
}

fn place(placement: &str, extents: &[i64], on: &str) -> Placed {
    let placement: Placement = placement.parse().unwrap_or_else(|error| panic!("{error}"));
    Placed::new(&placement, &Rectangle::whole(extents), &machine(on)).unwrap_or_else(|error| panic!("{error}"))
}

/// All coordinates of a tensor.
fn coordinates(placed: &Placed) -> Vec<Vec<i64>> {
    placed.domain().bounds().fold(vec![Vec::new()], |points, (low, high)| {
        points.iter().flat_map(|point| (low..high).map(move |index| [&point[..], &[index]].concat())).collect()
    })
}

fn rectangles(placed: &Placed, point: &[usize]) -> Vec<Vec<(i64, i64)>> {
    placed.piece(point).rectangles().map(|rectangle| rectangle.bounds().collect()).collect()
}

#[test]
fn placements_cover_the_tensor_with_as_many_copies_as_they_say() {
    let cases = [
        ("xy -> x", "3", 1),
        ("xy -> y", "4", 1),
        ("xy -> xy", "2x3", 1),
        ("xy -> yx", "2x3", 1),
        ("xy -> xy0", "2x3x2", 1),
        ("xy -> 1xy", "2x2x3", 1),
        ("xy -> xy*", "2x3x2", 2),
        ("xy -> **", "2x3", 6),
        ("xy -> *x", "2x3", 2),
        ("xy -> cyclic(x)y", "2x3", 1),
        ("xy -> cyclic(y, 2)*", "2x3", 3),
        ("xy -> x; xy -> y", "2/3", 1),
        ("xy -> xy; xy -> x*", "2x2/2x2", 2),
        ("xy -> cyclic(x); xy -> x", "2/3", 1),
        ("xy -> 00", "20x20", 1),
        // More processors than indices.
        ("xy -> xy", "9x11", 1),
    ];
    for (placement, on, copies) in cases {
        for extents in [[6, 6], [7, 5], [1, 8]] {
            let placed = place(placement, &extents, on);
            for coordinate in coordinates(&placed) {
                let holders = placed.holders(&coordinate);
                assert_eq!(holders.len(), copies, "{placement} on {on}: {coordinate:?} is held by {holders:?}");
            }
            let held: u128 = placed.machine().points().map(|point| placed.piece(&point).volume()).sum();
            assert_eq!(held, copies as u128 * (extents[0] * extents[1]) as u128);
            assert_eq!(placed.is_disjoint(), copies == 1);
        }
    }
}

/// The example of the paper: a matrix of 2 times 2 on a grid of 2 times 2 times 2.
#[test]
fn a_matrix_is_copied_along_the_third_dimension() {
    let placed = place("xy -> xy*", &[2, 2], "2x2x2");
    for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let holders = placed.holders(&[x as i64, y as i64]);
        assert_eq!(holders, [[x, y, 0], [x, y, 1]]);
    }
    let fixed = place("xy -> xy0", &[2, 2], "2x2x2");
    assert_eq!(fixed.holders(&[1, 0]), [[1, 0, 0]]);
    assert!(fixed.piece(&[1, 0, 1]).is_empty());
}

#[test]
fn long_names_of_dimensions_need_no_commas_on_the_right() {
    let parse = |text: &str| text.parse::<Placement>().expect("a placement");
    assert_eq!(parse("row,column -> column"), parse("row,column -> column,"));
    assert_eq!(parse("row,column -> ~column"), parse("row,column -> ~column,"));
    assert_eq!(parse("row,column -> column row *0"), parse("row,column -> column,row,*,0"));
    assert_eq!(parse("x,y -> yx"), parse("xy -> yx"));
    let error = "row,column -> rows".parse::<Placement>().expect_err("no dimension").to_string();
    assert!(
        error.starts_with("`rows` is no dimension of the tensor, which are row, column: name one of these"),
        "{error}"
    );
}

#[test]
fn two_levels_are_a_partition_of_a_partition() {
    let both = place("xy -> xy; xy -> yx", &[13, 11], "2x3/2x2");
    let outer = place("xy -> xy", &[13, 11], "2x3");
    let inner: Placement = "xy -> yx".parse().expect("a placement");
    for outer_point in outer.machine().points() {
        let piece = outer.piece(&outer_point);
        let [rectangle] = &piece.rectangles().collect::<Vec<_>>()[..] else { panic!("one rectangle") };
        let inner = Placed::new(&inner, rectangle, &machine("2x2")).expect("fits");
        for inner_point in inner.machine().points() {
            let point = [&outer_point[..], &inner_point].concat();
            assert_eq!(rectangles(&both, &point), rectangles(&inner, &inner_point));
        }
    }
}

#[test]
fn blocks_are_the_quotient_rounded_up_and_the_last_ones_may_be_empty() {
    let placed = place("x -> x", &[5], "4");
    assert_eq!(rectangles(&placed, &[0]), [[(0, 2)]]);
    assert_eq!(rectangles(&placed, &[2]), [[(4, 5)]]);
    assert!(placed.piece(&[3]).is_empty());
    // Fewer indices than pieces.
    let placed = place("x -> x", &[2], "4");
    let volumes: Vec<u128> = placed.machine().points().map(|point| placed.piece(&point).volume()).collect();
    assert_eq!(volumes, [1, 1, 0, 0]);
    let placed = place("x -> x", &[0], "2");
    assert!(placed.machine().points().all(|point| placed.piece(&point).is_empty()));
}

#[test]
fn cyclic_placements_deal_out_in_turn() {
    let placed = place("x -> cyclic(x)", &[7], "3");
    assert_eq!(rectangles(&placed, &[0]), [[(0, 1)], [(3, 4)], [(6, 7)]]);
    let placed = place("x -> cyclic(x, 2)", &[7], "3");
    assert_eq!(rectangles(&placed, &[0]), [[(0, 2)], [(6, 7)]]);
    assert!(!placed.is_blocked());
    // One processor gets all, as one rectangle.
    assert_eq!(rectangles(&place("x -> cyclic(x)", &[7], "1"), &[0]), [[(0, 7)]]);
}

#[test]
fn bounds_may_start_anywhere() {
    let placement: Placement = "x -> x".parse().expect("a placement");
    let placed = Placed::new(&placement, &Rectangle::new([(-5, 4)]), &machine("2")).expect("fits");
    assert_eq!(rectangles(&placed, &[1]), [[(0, 4)]]);
    let widest = Placed::new(&placement, &Rectangle::new([(i64::MIN, i64::MAX)]), &machine("2")).expect("fits");
    assert_eq!(rectangles(&widest, &[1]), [[(0, i64::MAX)]]);
}

#[test]
fn scalars_are_placed_too() {
    let placed = place(" -> 1*", &[], "2x3");
    let held: Vec<_> = placed.machine().points().filter(|point| placed.piece(point).volume() == 1).collect();
    assert_eq!(held, [[1, 0], [1, 1], [1, 2]]);
}

#[test]
fn points_of_one_color_hold_one_piece() {
    let placed = place("xy -> y*x1; xy -> x", &[9, 7], "2x2x3x2/2");
    assert_eq!(placed.colors(), [2, 3, 2]);
    let mut seen = BTreeSet::new();
    for point in placed.machine().points() {
        match placed.color(&point) {
            None => assert!(placed.piece(&point).is_empty()),
            Some(color) => {
                assert_eq!(color, [point[0], point[2], point[4]]);
                let copy = [point[0], 1 - point[1], point[2], point[3], point[4]];
                assert_eq!(placed.piece(&point), placed.piece(&copy));
                seen.insert(color);
            }
        }
    }
    assert_eq!(seen.len(), 12);
}

#[test]
fn points_that_are_not_there_hold_nothing() {
    let placed = place("xy -> xy", &[4, 4], "2x2");
    for point in [&[2, 0][..], &[0], &[0, 0, 0]] {
        assert!(placed.piece(point).is_empty());
        assert_eq!(placed.color(point), None);
    }
}

#[test]
fn text_is_read_as_it_is_written() {
    for text in [
        "xy -> xy",
        "xy -> x",
        "xy -> xy*",
        "xy -> xy0",
        "xyz -> z*y0",
        "xy -> xy; xy -> x",
        "xy -> cyclic(x)cyclic(y, 4)",
        "row,column -> column,12",
        "xy -> ~x",
        "xyz -> *~y",
        "xy -> f : ~f",
        "fy -> g : ~g*",
        "row,column -> ~column,*",
        " -> *",
    ] {
        assert_eq!(text.parse::<Placement>().unwrap_or_else(|error| panic!("{error}")).to_string(), text);
    }
    assert_eq!("x y->x , y".parse::<Placement>().expect("a placement").to_string(), "xy -> xy");
}

#[test]
fn what_is_wrong_in_a_text_is_pointed_at() {
    use ParseErrorKind::*;
    let cases = [
        ("xy", 0..2, Arrow),
        ("xy -> x; xy", 8..11, Arrow),
        ("xx -> x", 1..2, Duplicate("x".into())),
        ("xy -> xx", 7..8, Duplicate("x".into())),
        ("xy -> zz", 6..8, Unknown { name: "zz".into(), known: "x, y".into() }),
        ("xy -> xyz", 8..9, Unknown { name: "z".into(), known: "x, y".into() }),
        (" -> z", 4..5, Unknown { name: "z".into(), known: "none".into() }),
        ("xy -> x; xy -> yy", 16..17, Duplicate("y".into())),
        ("x0 -> x", 1..2, Name),
        ("x* -> x", 1..2, Name),
        ("xy -> x+", 7..8, Item),
        ("xy -> cyclic(x", 6..14, Item),
        ("xy -> cyclic(3)", 13..14, Item),
        ("xy -> cyclic(x, 0)", 16..17, Number),
        ("xy -> cyclic(x, q)", 16..17, Number),
        ("xy -> x,99999999999999999999999", 8..31, Number),
        ("xy -> cyclic(z)", 6..15, Cyclic("z".into())),
        ("xy -> ~", 6..7, NonZero),
        ("xy -> ~3", 6..7, NonZero),
        ("xy -> ~z", 6..8, NonZero),
        ("xy -> ~x~x", 8..10, Duplicate("x".into())),
        ("xy -> f : ~f~f", 12..14, Duplicate("f".into())),
        ("xy -> x : ~x", 5..8, Fused),
        ("xy -> fg : ~f", 5..9, Fused),
        ("äö -> ä?", 10..11, Item),
    ];
    for (text, span, kind) in cases {
        let error = text.parse::<Placement>().expect_err(text);
        assert_eq!((error.span, error.kind), (span, kind), "{text}");
    }
    let error = "xx -> x".parse::<Placement>().expect_err("twice");
    assert_eq!(error.to_string(), "`x` occurs twice on this side: take two names\n  xx -> x\n   ^");
}

#[test]
fn a_placement_must_fit_tensor_and_machine() {
    let wrong = |placement: &str, on: &str| {
        let placement: Placement = placement.parse().expect("a placement");
        Placed::new(&placement, &Rectangle::whole(&[4, 4]), &machine(on)).expect_err("does not fit").to_string()
    };
    assert_eq!(wrong("xyz -> x", "2"), "`xyz -> x` names 3 dimensions, and the tensor has 2");
    assert_eq!(
        wrong("xy -> xy", "2"),
        "`xy -> xy` says something about 2 dimensions of the grid, and the grid 2 has 1"
    );
    assert_eq!(
        wrong("xy -> x2", "2x2"),
        "`xy -> x2` keeps the tensor at index 2 of dimension 1 of the grid, which has indices below 2"
    );
    assert_eq!(
        wrong("xy -> x", "2/2"),
        "`xy -> x` has 1 statements, and the machine 2/2 has 2 levels: give one for each, separated by `;`"
    );
    let by_hand = |grid: Vec<Along>| {
        let level = Distribution { dimensions: vec!["x".into()], grid };
        Placed::new(&Placement { levels: vec![level] }, &Rectangle::whole(&[4]), &machine("2x2"))
            .expect_err("does not fit")
    };
    let x = Along::Partition(0, Cut::Blocked);
    assert!(matches!(by_hand(vec![x, x]), PlacementError::Partition { dimension: 0, .. }));
    assert!(matches!(
        by_hand(vec![x, Along::Partition(5, Cut::Blocked)]),
        PlacementError::Partition { dimension: 5, .. }
    ));
    let none = Along::Partition(0, Cut::Cyclic(0));
    assert!(matches!(by_hand(vec![none, Along::Broadcast]), PlacementError::Block { .. }));
}

#[test]
fn a_picture_has_each_processor_and_as_many_colors_as_pieces() {
    for (placement, extents, on, colors) in [
        ("xy -> xy*", &[8, 6][..], "2x3x2", 6),
        ("x -> x", &[5], "4", 3),
        ("xyz -> z", &[4, 4, 4], "2", 2),
        (" -> *", &[], "3", 1),
        ("xyzw -> w", &[4, 4, 4, 4], "2", 2),
    ] {
        let placed = place(placement, extents, on);
        let svg = draw(&placed, "A < B & \"C\"");
        assert_eq!(svg.matches("<title>processor").count(), placed.machine().size());
        let used: BTreeSet<&str> = svg.split("fill=\"hsl").skip(1).filter_map(|part| part.split('"').next()).collect();
        assert_eq!(used.len(), colors, "{placement}");
        assert!(svg.contains("A &lt; B &amp; &quot;C&quot;") && svg.contains("-&gt;"));
        assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
    }
}
