//! Results of launches that several nodes share, scanned: each node gets what its points come to with those before
//! them.

use maniple::mapper::{Sharding, TaskInfo};
use maniple::prelude::*;
use maniple::{AnyRect, FutureMap};
use maniple_tests::nodes::{Nodes, on_nodes};

const DOMAIN: [i64; 2] = [5, 7];

#[task(leaf)]
fn number(#[point] point: Point<2>) -> i64 {
    point[0] * 1000 + point[1] * point[1]
}

#[task(leaf)]
fn sound_before(#[point] point: Point<2>, bad: Point<2>) -> Result<i64> {
    if point == bad { Err(Error::application("it is bad")) } else { Ok(1) }
}

#[task(leaf)]
fn twice(#[point] point: Point<2>, before: i64) -> i64 {
    2 * before + point[0]
}

fn cyclic(_: usize, _: &TaskInfo<'_>, _: usize) -> Sharding {
    Sharding::Cyclic
}

fn strange(_: usize, launch: &TaskInfo<'_>, _: usize) -> Sharding {
    match launch.name {
        "twice" => Sharding::Blocked,
        // In runs of three, the last ones on the first node.
        _ => Sharding::by_point("strange", |point, domain: &AnyRect, nodes| {
            (domain.volume() - 1 - domain.linear(point)) as usize / 3 % nodes
        }),
    }
}

/// All that is seen of scans, and where those of a launch with a point that fails are sound.
async fn scans(cx: &Context) -> Result<Vec<Vec<i64>>> {
    let domain = Rect::from_shape(DOMAIN);
    let numbers = cx.index_launch(domain, number());
    let before = numbers.exclusive_scan(Sum);
    let mut seen = vec![cx.index_launch(domain, twice(&before)).all().await?];
    seen.push(before.all().await?);
    seen.push(numbers.scan(Sum).all().await?);
    seen.push(numbers.scan(Min).all().await?);
    seen.push(numbers.exclusive_scan(Max).scan(Max).all().await?);
    seen.push(vec![numbers.scan(Sum).get([2, 3])?.await?]);
    let bad = Point([2, 4]);
    let values = cx.index_launch(domain, sound_before(bad));
    for scanned in [values.scan(Sum), values.exclusive_scan(Sum)] {
        seen.push(sound(&scanned, domain).await?);
    }
    assert!(values.await.is_err());
    // Nothing looks at these.
    drop(cx.index_launch(domain, number()).scan(Sum));
    Ok(seen)
}

async fn sound(scanned: &FutureMap<i64>, domain: Rect<2>) -> Result<Vec<i64>> {
    let mut sound = Vec::new();
    for point in domain.points() {
        match scanned.get(point)?.await {
            Ok(value) => sound.push(value),
            Err(error) => assert!(error.to_string().contains("it is bad"), "{error}"),
        }
    }
    Ok(sound)
}

#[test]
fn scans_on_several_nodes_give_what_they_give_on_one() {
    let expected = on_nodes(Nodes::new(1), async |cx: &Context, _| scans(cx).await).remove(0).unwrap();
    let number = |row: i64, column: i64| row * 1000 + column * column;
    let numbers: Vec<i64> = Rect::from_shape(DOMAIN).points().map(|point| number(point[0], point[1])).collect();
    assert_eq!(expected[1], (0..numbers.len()).map(|end| numbers[..end].iter().sum()).collect::<Vec<i64>>());
    assert_eq!(
        (&expected[6][..], &expected[7][..]),
        (&(1..=18).collect::<Vec<_>>()[..], &(0..=18).collect::<Vec<_>>()[..])
    );
    for nodes in [2, 3, 5, 8] {
        for job in [Nodes::new(nodes), Nodes::new(nodes).dealt(cyclic), Nodes::new(nodes).dealt(strange)] {
            for seen in on_nodes(job, async |cx: &Context, _| scans(cx).await) {
                assert_eq!(seen.unwrap(), expected, "on {nodes} nodes");
            }
        }
    }
}
