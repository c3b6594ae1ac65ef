//! Asks the linker to fold functions that have the same code, where it can: a generic function is compiled once for
//! each crate and type that it is used with.

use std::env;
use std::path::Path;
use std::process::Command;

/// Understood by LLVM's linker, which is that of Rust on Linux, by mold and by gold; not by GNU's.
const FOLD: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if links_with(FOLD).unwrap_or(false) {
        println!("cargo:rustc-link-arg-bins={FOLD}");
    }
}

/// Whether a program is linked for the target with an argument, by the linker and the flags of this build.
fn links_with(argument: &str) -> Option<bool> {
    let folder = env::var_os("OUT_DIR")?;
    let source = Path::new(&folder).join("linked.rs");
    std::fs::write(&source, "fn main() {}").ok()?;
    let mut compiler = Command::new(env::var_os("RUSTC")?);
    compiler.arg(&source).arg("--target").arg(env::var_os("TARGET")?).arg("--out-dir").arg(&folder);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        compiler.arg(format!("-Clinker={}", linker.display()));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    compiler.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    Some(compiler.arg(format!("-Clink-arg={argument}")).output().ok()?.status.success())
}
