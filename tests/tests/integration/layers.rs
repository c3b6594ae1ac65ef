//! The order of the sources: no two folders of a crate import each other, and within a folder files import each other one way.
//!
//! Read from the sources' tokens: paths that begin with `crate`, `super` or `self`, tests apart. The file of a folder (`mod.rs`, or `name.rs` beside `name/`) belongs to no layer of that
//! folder, as it declares and re-exports the others; seen from outside, it is part of the folder.
//!
//! Today's circles are listed below. A circle may only get smaller: the test fails if another part joins one, and if one that is listed has been cut.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The crates, by folder, in the order of the plan: each imports only those before it.
const CRATES: &[&str] = &[
    "runtime/space",
    "runtime/realm",
    "runtime/region",
    "runtime/macros",
    "mapper",
    "runtime/record",
    "runtime/analysis",
    "runtime/cluster",
    "runtime/files",
    "runtime/kernel",
    "runtime/maniple",
    "tensor",
    "apps",
    "tests",
    "benches",
];

/// The parts of a folder that import each other in a circle, by the folder from the root.
const CIRCLES: &[(&str, &[&str])] = &[
    // What a fork waits for may be forks: the type is recursive.
    ("runtime/maniple/src/fork", &["body", "cell", "running", "source", "sources"]),
];

/// A module, as its names from the root of the crate.
type Module = Vec<String>;

/// The modules of a crate that have files of their own, with the paths that each imports.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<Module, Vec<Module>>,
}

impl Crate {
    fn read(source: &Path) -> Self {
        let mut found = Self::default();
        found.read_folder(source, &Vec::new());
        found
    }

    fn read_folder(&mut self, folder: &Path, module: &Module) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
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
            let tokens: TokenStream = fs::read_to_string(&path).unwrap().parse().unwrap();
            let mut paths = Vec::new();
            imports(tokens, &own, &mut paths);
            self.modules.entry(own).or_default().extend(paths);
        }
    }

    /// The module with a file that a path leads to.
    fn target(&self, path: &Module) -> Option<&Module> {
        let lengths = (1..=path.len()).rev();
        lengths.filter_map(|length| self.modules.get_key_value(&path[..length])).map(|(module, _)| module).next()
    }

    /// For each folder that has parts: which part imports which other.
    fn layers(&self) -> BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> {
        let mut layers: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, paths) in &self.modules {
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
fn imports(tokens: TokenStream, module: &Module, paths: &mut Vec<Module>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if is_test(&tokens[at..]) {
            // The attribute, and the item: to the end of its braces or to its semicolon.
            let ends = |token: &TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(punct) => punct.as_char() == ';',
                _ => false,
            };
            at += tokens[at..].iter().position(ends).map_or(tokens.len(), |end| end + 1);
            continue;
        }
        match &tokens[at] {
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
        at += 1;
    }
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
fn circles(parts: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
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

#[test]
fn no_parts_of_a_folder_import_each_other_but_those_that_are_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let mut found = BTreeSet::new();
    for folder in CRATES {
        let source = root.join(folder).join("src");
        let own = Crate::read(&source);
        assert!(own.modules.len() > 1, "{folder} has no modules");
        for (module, parts) in own.layers() {
            let place = PathBuf::from(folder).join("src").join(module.iter().collect::<PathBuf>());
            found.extend(
                circles(&parts)
                    .into_iter()
                    .map(|circle| (place.display().to_string().trim_end_matches('/').to_owned(), circle)),
            );
        }
    }
    let listed = |(folder, parts): &(&str, &[&str])| {
        ((*folder).to_owned(), parts.iter().map(|part| (*part).to_owned()).collect::<BTreeSet<_>>())
    };
    let known: BTreeSet<_> = CIRCLES.iter().map(listed).collect();
    let new: Vec<_> = found.difference(&known).collect();
    let cut: Vec<_> = known.difference(&found).collect();
    assert!(
        new.is_empty() && cut.is_empty(),
        "circles that are not listed: {new:#?}\nlisted circles that are no more: {cut:#?}"
    );
}

#[test]
fn the_rooms_inside_maniple_import_only_those_before_them_in_the_plan() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let plan = fs::read_to_string(root.join("docs/src/architecture.md")).unwrap();
    let (_, table) = plan.split_once("### The rooms inside `maniple`").expect("the plan has that section");
    let rows =
        table.lines().skip_while(|line| !line.starts_with("| ---")).skip(1).take_while(|line| line.starts_with('|'));
    let rooms: Vec<&str> =
        rows.filter_map(|row| row.split('|').nth(1)).flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
    let own = Crate::read(&root.join("runtime/maniple/src"));
    let layers = own.layers();
    let parts = &layers[&Module::new()];
    let place = |name: &str| {
        rooms.iter().position(|room| *room == name).unwrap_or_else(|| panic!("`{name}` is in no row of the plan"))
    };
    let known: BTreeSet<&String> = own.modules.keys().filter_map(|module| module.first()).collect();
    known.iter().for_each(|name| _ = place(name));
    assert_eq!(rooms.len(), known.len(), "the plan has rooms that are not there: {rooms:?}");
    for (part, others) in parts {
        for other in others.iter().filter(|other| *other != part) {
            assert!(place(other) < place(part), "`{part}` imports `{other}`, which comes after it in the plan");
        }
    }
}

#[test]
fn crates_depend_only_on_those_before_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let mut before = BTreeSet::new();
    for folder in CRATES {
        let manifest = fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
        let lines = manifest.lines().map(str::trim);
        let dependencies = lines.clone().filter_map(|line| line.split_once(['.', ' ', '=']).map(|(name, _)| name));
        for name in dependencies.filter(|name| name.starts_with("maniple")) {
            assert!(before.contains(name), "{folder} depends on {name}, which does not come before it");
        }
        let name = lines.filter_map(|line| line.strip_prefix("name = ")).next().expect("a crate has a name");
        before.insert(name.trim_matches('"').to_owned());
    }
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let text = "
        use crate::a::{b, c::{D, E}, self as f}; use super::g; fn h() { self::i::j(); other::crate_like(); k::<crate::l::M>() }
        #[cfg(test)] mod tests { use crate::no; } #[cfg(test)] use crate::neither; pub(crate) fn m(self) -> super::super::n::O {}";
    let mut paths = Vec::new();
    imports(text.parse().unwrap(), &vec!["x".to_owned(), "y".to_owned()], &mut paths);
    let paths: Vec<_> = paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(paths, ["a::b", "a::c::D", "a::c::E", "a::self", "x::g", "x::y::i::j", "l::M", "n::O"]);
}

#[test]
fn circles_are_found_and_chains_are_none() {
    let parts = |edges: &[(&str, &str)]| {
        let mut parts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        edges.iter().for_each(|(from, to)| _ = parts.entry((*from).into()).or_default().insert((*to).into()));
        circles(&parts).into_iter().map(|circle| circle.into_iter().collect::<Vec<_>>().join("")).collect::<Vec<_>>()
    };
    assert!(parts(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
    assert_eq!(parts(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("e", "f"), ("f", "e")]), ["bc", "ef"]);
}
