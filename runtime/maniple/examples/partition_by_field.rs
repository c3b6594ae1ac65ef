//! A partition that is computed from a field: each row says which piece it belongs to.
//!
//! Run it with `cargo run -p maniple --example partition_by_field`.

use maniple::prelude::*;

#[derive(Fields)]
struct Order {
    customer: u32,
    amount: u64,
}

#[task(leaf)]
fn load(#[discards(customer, amount)] orders: Piece<Order>) {
    for order in orders.points() {
        orders.customer[order] = (order[0] * order[0] % 3) as u32;
        orders.amount[order] = order[0] as u64;
    }
}

#[task(leaf)]
fn total(#[reads(amount)] orders: Piece<Order>) -> u64 {
    orders.points().map(|order| orders.amount[order]).sum()
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let orders = cx.region::<Order>(12)?;
        cx.launch(load(&orders));
        // The field is read by tasks, after `load` and without being told so.
        let by_customer = cx.partition_by_field(&orders, Order::customer, 3).await?;
        let totals = cx.index_launch(3, total(&by_customer)).all().await?;
        println!("customers ordered for {totals:?}");
        assert_eq!(totals, [18, 48, 0]);
        Ok(())
    })
}
