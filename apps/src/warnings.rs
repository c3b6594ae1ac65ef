//! What libraries warn of, where people see it.

use std::io;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// From now on, prints what the tensor compiler warns of on the standard error: that there is no C compiler, or that a library cannot be used. What the
/// runtime has to say of failures comes with the error that ends the program.
pub(crate) fn print() {
    let lines =
        tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false).with_target(false).without_time();
    let of_tensors = Targets::new().with_target("maniple_tensor", LevelFilter::WARN);
    // Should there be a subscriber already, it hears of them.
    let _ = tracing_subscriber::registry().with(lines.with_filter(of_tensors)).try_init();
}
