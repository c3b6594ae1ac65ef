//! Warnings of the libraries, and other events that `RUST_LOG` asks for, on the standard error.

use std::io::{self, Write};

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The variable that asks for more: targets and levels, as in many programs that are written in Rust.
const VARIABLE: &str = "RUST_LOG";

/// From now on, prints on the standard error what the tensor compiler warns of, that there is no C compiler, or that a
/// library cannot be used; and what a mapping file says in vain. What the runtime has to say of failures comes with the
/// error that ends the program. Prints what `RUST_LOG` asks for instead, if that is set: `maniple=debug` tells why
/// replays are given up.
pub(crate) fn print() {
    let lines =
        tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false).with_target(false).without_time();
    // Should there be a subscriber already, it hears of them.
    let _ = tracing_subscriber::registry().with(lines.with_filter(wanted())).try_init();
}

fn wanted() -> Targets {
    let targets = ["maniple_kernel", "maniple_tensor", "maniple::mapper"];
    let usual = Targets::new().with_targets(targets.map(|target| (target, LevelFilter::WARN)));
    let Some(asked) = std::env::var(VARIABLE).ok().filter(|asked| !asked.is_empty()) else { return usual };
    asked.parse().unwrap_or_else(|error| {
        let expected = "expected targets and levels, such as maniple=debug";
        let _ = writeln!(io::stderr(), "warning: {VARIABLE}={asked} is ignored: {error}; {expected}");
        usual
    })
}
