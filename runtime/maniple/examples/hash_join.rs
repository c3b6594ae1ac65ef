//! A hash join: two tables are dealt into buckets by a hash of what they are joined by, buckets are joined side by
//! side, and nothing is known of the size of the result before.
//!
//! Run it with `cargo run -p maniple --example hash_join`.

use std::collections::HashMap;

use maniple::prelude::*;

#[derive(Fields)]
struct Customer {
    number: i64,
    city: u32,
    bucket: u32,
}

#[derive(Fields)]
struct Order {
    customer: i64,
    cents: i64,
    bucket: u32,
}

/// An order, with the city of its customer: a row of the result.
#[derive(Fields)]
struct Shipment {
    city: Ptr<City>,
    cents: i64,
}

#[derive(Fields)]
struct City {
    orders: u64,
    cents: i64,
}

const PIECES: usize = 4;
const BUCKETS: usize = 8;
const CITIES: usize = 5;

/// Equal numbers are in one bucket, whatever table they are in.
fn bucket(number: i64) -> u32 {
    ((number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32 % BUCKETS as u32
}

/// Customers have every third number.
fn customer(row: i64) -> (i64, u32) {
    (3 * row, (row % CITIES as i64) as u32)
}

/// Orders are of customers that exist, and of others. Some customers have none, and some have many.
fn order(row: i64) -> (i64, i64) {
    ((row * row) % 1500, 100 + row % 7)
}

#[task(leaf)]
fn read_customers(#[discards(number, city, bucket)] rows: Piece<Customer>) {
    for row in rows.points() {
        (rows.number[row], rows.city[row]) = customer(row[0]);
        rows.bucket[row] = bucket(rows.number[row]);
    }
}

#[task(leaf)]
fn read_orders(#[discards(customer, cents, bucket)] rows: Piece<Order>) {
    for row in rows.points() {
        (rows.customer[row], rows.cents[row]) = order(row[0]);
        rows.bucket[row] = bucket(rows.customer[row]);
    }
}

/// Joins a bucket: a table of its customers, and a look at it for each of its orders.
#[task(leaf)]
fn join(
    #[reads(number, city)] customers: Piece<Customer>,
    #[reads(customer, cents)] orders: Piece<Order>,
) -> Output<Shipment> {
    let cities: HashMap<i64, u32> =
        customers.points().map(|row| (customers.number[row], customers.city[row])).collect();
    let found = orders.points().filter_map(|row| Some((cities.get(&orders.customer[row])?, orders.cents[row])));
    found.map(|(&city, cents)| Shipment { city: Ptr::row(city.into()), cents }).collect()
}

#[task(leaf)]
fn add_up(#[reads(city, cents)] rows: Piece<Shipment>, #[reduces(Sum, orders, cents)] cities: Piece<City>) {
    for row in rows.points() {
        cities.orders.fold(rows.city[row], 1);
        cities.cents.fold(rows.city[row], rows.cents[row]);
    }
}

/// The same on one thread: rows, and cents by city.
fn expected(customers: i64, orders: i64) -> (u64, Vec<i64>) {
    let cities: HashMap<i64, u32> = (0..customers).map(customer).collect();
    let mut sums = vec![0; CITIES];
    let mut rows = 0;
    for (number, cents) in (0..orders).map(order) {
        if let Some(&city) = cities.get(&number) {
            rows += 1;
            sums[city as usize] += cents;
        }
    }
    (rows, sums)
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let (customers, orders) = (cx.region::<Customer>(400)?, cx.region::<Order>(10_000)?);
        cx.index_launch(PIECES, read_customers(&customers.partition(PIECES).equal()?));
        cx.index_launch(PIECES, read_orders(&orders.partition(PIECES).equal()?));

        // The rows of a bucket are wherever they are: nothing is moved to make buckets.
        let customers_of = cx.partition_by_field(&customers, Customer::bucket, BUCKETS).await?;
        let orders_of = cx.partition_by_field(&orders, Order::bucket, BUCKETS).await?;
        let (shipments, of_bucket) = cx.collect(cx.index_launch(BUCKETS, join(&customers_of, &orders_of))).await?;

        // What has come out is a region like any other.
        let cities = cx.region::<City>(CITIES)?;
        cx.index_launch(BUCKETS, add_up(&of_bucket, &cities));
        let cents = cx.map_read(&cities, City::cents).await?.to_vec();
        let sizes: Vec<u64> = of_bucket.pieces().map(|piece| piece.volume()).collect();
        println!("{} shipments, by buckets {sizes:?}; cents by city {cents:?}", shipments.volume());
        assert_eq!((shipments.volume(), cents), expected(400, 10_000));

        // And nothing comes of nothing.
        let none = cx.region::<Customer>(0)?;
        let none_of = cx.partition_by_field(&none, Customer::bucket, BUCKETS).await?;
        let (nothing, _) = cx.collect(cx.index_launch(BUCKETS, join(&none_of, &orders_of))).await?;
        assert_eq!(nothing.volume(), 0);
        Ok(())
    })
}
