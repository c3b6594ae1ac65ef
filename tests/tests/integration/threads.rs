//! A rule for threads: they are the machine layer's, so that all work shares its cores. What makes some of its own is
//! named here, with the reason.

use std::fs;

use maniple_tests::imports::{CRATES, root, sources, without_tests};
use proc_macro2::{TokenStream, TokenTree};

/// The files that make threads outside of the machine layer.
const ALLOWED: &[(&str, &str)] = &[
    ("runtime/kernel/src/execution/team.rs", "kernels on arrays in memory run without a runtime"),
    ("apps/src/launch/", "the launcher is no job of its own: it watches processes"),
    ("tests/", "tests watch programs that may hang"),
    ("benches/", "rivals have threads of their own"),
];

/// Whether something begins a thread: `spawn`, `scope` or `Builder` of a path with `thread`, or `spawn_scoped`.
fn makes_threads(tokens: TokenStream) -> bool {
    let tokens = without_tests(tokens);
    let named = |token: Option<&TokenTree>, names: &[&str]| matches!(token, Some(TokenTree::Ident(ident)) if names.iter().any(|name| ident == name));
    let makes = |at: usize| {
        named(tokens.get(at), &["spawn_scoped"])
            || named(tokens.get(at), &["thread"]) && named(tokens.get(at + 3), &["spawn", "scope", "Builder"])
    };
    (0..tokens.len()).any(makes)
        || tokens.into_iter().any(|token| matches!(token, TokenTree::Group(group) if makes_threads(group.stream())))
}

#[test]
fn threads_are_made_by_the_machine_layer_alone() {
    let mut found = Vec::new();
    for folder in CRATES.iter().filter(|folder| **folder != "runtime/realm") {
        for path in sources(&root().join(folder).join("src")) {
            let name = path.strip_prefix(root()).expect("a path below the root").display().to_string();
            let text = fs::read_to_string(&path).unwrap();
            if makes_threads(text.parse().expect("tokens of Rust")) {
                found.push(name);
            }
        }
    }
    let is_allowed = |name: &String| ALLOWED.iter().any(|(allowed, _)| name.starts_with(allowed));
    let others: Vec<_> = found.iter().filter(|name| !is_allowed(name)).collect();
    assert!(others.is_empty(), "these files make threads: {others:?}; use the workers of a runtime");
    let unused: Vec<_> = ALLOWED.iter().filter(|(name, _)| !found.iter().any(|file| file.starts_with(name))).collect();
    assert!(unused.is_empty(), "these files make no threads any more: {unused:?}");
}

#[test]
fn what_makes_threads_is_found() {
    let makes = |text: &str| makes_threads(text.parse().unwrap());
    assert!(makes("fn a() { std::thread::spawn(|| {}); }"));
    assert!(makes("fn a() { thread::scope(|scope| scope.spawn(b)); }"));
    assert!(makes("fn a(scope: &Scope) { thread::Builder::new().spawn_scoped(scope, b); }"));
    assert!(!makes("fn a() { std::thread::sleep(b); realm.spawn(c); thread::available_parallelism(); }"));
    assert!(!makes("#[cfg(test)] mod tests { fn a() { thread::spawn(b); } }"));
}
