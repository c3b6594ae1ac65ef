//! Bulk operations: fills, copies of one field, of several or with an operator, and gathers and scatters through a
//! field of pointers.
//!
//! Run it with `cargo run -p maniple --example fills_and_copies`.

use maniple::prelude::*;

#[derive(Fields)]
struct Seat {
    guest: i64,
    neighbour: i64,
    next: Ptr<Seat>,
}

#[task(leaf)]
fn set_table(#[discards(guest, next)] seats: Piece<Seat>, count: i64) {
    for seat in seats.points() {
        seats.guest[seat] = 100 + seat[0];
        seats.next[seat] = Ptr::row((seat[0] + 1) % count);
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let seats = cx.region::<Seat>(4)?;
        let later: Region<Seat> = cx.region_like(&seats)?; // other data over the same rows
        cx.launch(set_table(&seats, 4));

        // neighbour[p] = guest[next[p]]
        cx.gather(seats.field(Seat::guest), seats.field(Seat::next), seats.field(Seat::neighbour));
        // The guest of `later` at next[p] is that of `seats` at p: everyone moves on by a seat.
        cx.scatter(seats.field(Seat::guest), seats.field(Seat::next), later.field(Seat::guest));
        cx.copy(seats.field(Seat::guest), later.field(Seat::neighbour));
        cx.fill(&seats, Seat::guest, -1)?; // what was launched before still sees the old values

        let neighbours = cx.map_read(&seats, Seat::neighbour).await?.to_vec();
        let moved = cx.map_read(&later, Seat::guest).await?.to_vec();
        println!("neighbours {neighbours:?}, then seated {moved:?}");
        assert_eq!((neighbours, moved), (vec![101, 102, 103, 100], vec![103, 100, 101, 102]));
        assert_eq!(cx.map_read(&later, Seat::neighbour).await?[2], 102);

        // Two fields at once, and then the first of them with an operator: the greater of both.
        cx.copy_fields(
            &later,
            &seats,
            &[(Seat::guest.into(), Seat::neighbour.into()), (Seat::next.into(), Seat::next.into())],
        );
        cx.contribute(Max, later.field(Seat::neighbour), seats.field(Seat::neighbour));
        let greater = cx.map_read(&seats, Seat::neighbour).await?.to_vec();
        assert_eq!(greater, [103, 101, 102, 103]);
        assert_eq!(cx.map_read(&seats, Seat::guest).await?[2], -1);
        Ok(())
    })
}
