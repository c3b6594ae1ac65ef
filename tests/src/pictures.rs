//! Pictures of what imports what, for the book.

use std::collections::{BTreeMap, BTreeSet};

use maniple::record::{Class, Edge, Graph, Node};

use crate::imports::{CRATES, Manifest, Modules, circles, root};

/// The pictures, each with the name of its file: of the crates, and of the parts of `runtime/maniple`.
///
/// # Panics
/// If the sources cannot be read.
#[must_use]
pub fn pictures() -> [(&'static str, String); 2] {
    [("crates.svg", crates()), ("parts.svg", parts())]
        .map(|(file, graph)| (file, graph.reduced().to_svg().expect("few boxes and lines")))
}

/// The crates, each above those that it depends on.
fn crates() -> Graph {
    let manifests = CRATES.iter().map(|folder| (*folder, Manifest::read(&root().join(folder)))).collect::<Vec<_>>();
    let label = |&(folder, ref manifest): &(&str, Manifest)| vec![manifest.name.clone(), folder.to_owned()];
    let below = manifests.iter().map(|(_, manifest)| (manifest.name.clone(), manifest.dependencies.clone())).collect();
    let labels = manifests.iter().map(|manifest| (manifest.1.name.clone(), label(manifest))).collect();
    graph("what each crate depends on", &labels, &below)
}

/// The parts of `runtime/maniple`, each above those that it imports. Parts that import each other in a circle are one
/// box.
fn parts() -> Graph {
    let modules = Modules::read(&root().join("runtime/maniple/src"));
    let mut imports = modules.layers().remove(&Vec::new()).unwrap_or_default();
    let circles = circles(&imports);
    // A part is known by itself, or by the first of its circle.
    let head = |part: &str| match circles.iter().find(|circle| circle.contains(part)) {
        Some(circle) => circle.first().cloned().unwrap_or_default(),
        None => part.to_owned(),
    };
    let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut below: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for part in modules.parts() {
        labels.entry(head(part)).or_default().push(part.to_owned());
        let others = imports.remove(part).unwrap_or_default().into_iter().map(|other| head(&other));
        below.entry(head(part)).or_default().extend(others.filter(|other| *other != head(part)));
    }
    graph("what each part of the crate maniple imports", &labels, &below)
}

/// A graph of boxes by their keys, with their labels, each above others. Resting the pointer on a box tells of all of
/// those.
fn graph(title: &str, labels: &BTreeMap<String, Vec<String>>, below: &BTreeMap<String, BTreeSet<String>>) -> Graph {
    let position: BTreeMap<&String, usize> = labels.keys().zip(0..).collect();
    let details = |key: &String| match below.get(key) {
        Some(others) if !others.is_empty() => {
            vec![format!("imports {}", others.iter().map(String::as_str).collect::<Vec<_>>().join(", "))]
        }
        _ => vec!["imports no other".to_owned()],
    };
    let node = |(key, label): (&String, &Vec<String>)| Node {
        key: key.clone(),
        label: label.clone(),
        details: details(key),
        class: Class::Task,
    };
    let edges = below.iter().flat_map(|(from, others)| others.iter().map(move |to| (from, to)));
    let edge = |(from, to)| Some(Edge { from: *position.get(from)?, to: *position.get(to)?, labels: Vec::new() });
    Graph { title: title.to_owned(), nodes: labels.iter().map(node).collect(), edges: edges.filter_map(edge).collect() }
}
