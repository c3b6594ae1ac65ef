//! Imports of the sources, read from their tokens: paths that begin with `crate`, `super` or `self`, tests apart; and
//! dependencies of crates.
//!
//! The file of a folder (`mod.rs`, or `name.rs` beside `name/`) belongs to no layer of that folder, as it declares and
//! re-exports the others; seen from outside, it is part of the folder. [`pictures`](crate::pictures) draws it, and
//! `tests/integration/layers.rs` holds the order.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The crates, by folder, in the order of the plan: each imports only those before it.
pub const CRATES: &[&str] = &[
    "runtime/space",
    "runtime/realm",
    "runtime/region",
    "runtime/macros",
    "mapper",
    "runtime/record",
    "runtime/analysis",
    "runtime/cluster",
    "runtime/element",
    "runtime/files",
    "runtime/kernel",
    "runtime/maniple",
    "runtime/storage",
    "tensor",
    "apps/tasks",
    "apps",
    "tests",
    "benches",
];

/// The root of the sources.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files of Rust in a folder and those below, but for tests.
///
/// # Panics
/// If a folder can't be read.
#[must_use]
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false => found.extend(path.extension().is_some_and(|ending| ending == "rs").then_some(path)),
        }
    }
    found
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A crate, by its manifest.
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// The crates of the project that it depends on, also for its tests.
    pub dependencies: BTreeSet<String>,
}

impl Manifest {
    /// That of the crate in a folder.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        let manifest = text(&folder.join("Cargo.toml"));
        let lines = manifest.lines().map(str::trim);
        let keys = lines.clone().filter_map(|line| line.split_once(['.', ' ', '=']).map(|(name, _)| name));
        let dependencies = keys.filter(|name| name.starts_with("maniple")).map(str::to_owned).collect();
        let mut names = lines.filter_map(|line| line.strip_prefix("name = "));
        Self { name: names.next().expect("a crate has a name").trim_matches('"').to_owned(), dependencies }
    }
}

/// A module, as its names from the root of the crate.
pub type Module = Vec<String>;

/// The modules of a crate that have files of their own, with the paths of its own crate that each imports.
#[derive(Default)]
pub struct Modules {
    paths: BTreeMap<Module, Vec<Module>>,
}

impl Modules {
    /// Reads the modules of a crate, by its folder of sources.
    ///
    /// # Panics
    /// If a file cannot be read, or is no Rust.
    #[must_use]
    pub fn read(source: &Path) -> Self {
        let mut found = Self::default();
        found.read_folder(source, &Vec::new());
        found
    }

    fn read_folder(&mut self, folder: &Path, module: &Module) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("the folder stays").path();
            let stem = path.file_stem().and_then(OsStr::to_str).expect("a name in UTF-8").to_owned();
            let inner = [module.as_slice(), std::slice::from_ref(&stem)].concat();
            if path.is_dir() {
                if stem != "tests" {
                    self.read_folder(&path, &inner);
                }
                continue;
            }
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            if !is_source || stem == "tests" || stem == "main" {
                continue;
            }
            let own = if stem == "mod" || stem == "lib" { module.clone() } else { inner };
            let tokens: TokenStream = text(&path).parse().expect("tokens of Rust");
            let mut paths = Vec::new();
            imports(tokens, &own, &mut paths);
            self.paths.entry(own).or_default().extend(paths);
        }
    }

    /// The module with a file that a path leads to.
    fn target(&self, path: &Module) -> Option<&Module> {
        let lengths = (1..=path.len()).rev();
        lengths.filter_map(|length| self.paths.get_key_value(&path[..length])).map(|(module, _)| module).next()
    }

    /// The parts of the crate: modules and folders of its root.
    #[must_use]
    pub fn parts(&self) -> BTreeSet<&str> {
        self.paths.keys().filter_map(|module| module.first()).map(String::as_str).collect()
    }

    /// For each folder that has parts: which part imports which other.
    #[must_use]
    pub fn layers(&self) -> BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> {
        let mut layers: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, paths) in &self.paths {
            for to in paths.iter().filter_map(|path| self.target(path)) {
                let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
                if let (Some(part), Some(other)) = (from.get(common), to.get(common)) {
                    let parts = layers.entry(from[..common].to_vec()).or_default();
                    parts.entry(part.clone()).or_default().insert(other.clone());
                }
            }
        }
        layers
    }
}

/// Collects the paths that begin with `crate`, `super` or `self` in the tokens of a module.
pub fn imports(tokens: TokenStream, module: &Module, paths: &mut Vec<Module>) {
    let tokens = without_tests(tokens);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(ident) => {
                let is_first = at == 0 || !is_colon(&tokens[at - 1]);
                let start = match ident.to_string().as_str() {
                    "crate" => Some(Vec::new()),
                    "self" => Some(module.clone()),
                    "super" => Some(module[..module.len().saturating_sub(1)].to_vec()),
                    _ => None,
                };
                if let Some(start) = start.filter(|_| is_first && tokens.get(at + 1).is_some_and(is_colon)) {
                    tree(&tokens[at + 1..], start, paths);
                }
            }
            TokenTree::Group(group) => imports(group.stream(), module, paths),
            _ => {}
        }
    }
}

/// The tokens of a file or group, but for items that are compiled for tests alone. Groups among them are as they were.
#[must_use]
pub fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let (mut kept, mut rest) = (Vec::with_capacity(tokens.len()), tokens.as_slice());
    while let [first, others @ ..] = rest {
        if is_test(rest) {
            // The attribute, and the item: to the end of its braces or to its semicolon.
            let ends = |token: &TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(punct) => punct.as_char() == ';',
                _ => false,
            };
            rest = rest.iter().position(ends).map_or(&[], |end| &rest[end + 1..]);
            continue;
        }
        kept.push(first.clone());
        rest = others;
    }
    kept
}

/// Collects the paths of a use tree, or a path, that goes on after `start`.
fn tree(mut tokens: &[TokenTree], mut start: Module, paths: &mut Vec<Module>) {
    while let [first, second, rest @ ..] = tokens
        && is_colon(first)
        && is_colon(second)
    {
        match rest.first() {
            Some(TokenTree::Ident(name)) if name == "super" => _ = start.pop(),
            Some(TokenTree::Ident(name)) => start.push(name.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                for part in inner.split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')) {
                    if let [TokenTree::Ident(name), rest @ ..] = part {
                        tree(rest, [start.as_slice(), &[name.to_string()]].concat(), paths);
                    }
                }
                return;
            }
            _ => break,
        }
        tokens = &rest[1..];
    }
    paths.push(start);
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
}

/// Whether `#[cfg(test)]` is next.
fn is_test(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(punct), TokenTree::Group(group), ..]
        if punct.as_char() == '#' && group.stream().to_string().replace(' ', "") == "cfg(test)")
}

/// The parts that can be reached from themselves, in circles: parts of one circle reach each other.
#[must_use]
pub fn circles(parts: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(part) = next.pop() {
            next.extend(parts.get(part).into_iter().flatten().filter(|other| reached.insert((*other).clone())));
        }
        reached
    };
    let reached: BTreeMap<_, _> = parts.keys().map(|part| (part, reached(part))).collect();
    let circle = |(part, others): (&&String, &BTreeSet<String>)| {
        let back = |other: &&String| reached.get(other).is_some_and(|back| back.contains(*part));
        others.contains(*part).then(|| others.iter().filter(back).cloned().collect::<BTreeSet<_>>())
    };
    reached.iter().filter_map(circle).collect::<BTreeSet<_>>().into_iter().collect()
}
