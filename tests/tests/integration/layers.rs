//! The order of the sources: no two folders of a crate import each other, and within a folder files import each other
//! one way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use maniple_tests::imports::{CRATES, Manifest, Module, Modules, circles, imports, root};

#[test]
fn no_parts_of_a_folder_import_each_other() {
    let mut found = BTreeSet::new();
    for folder in CRATES {
        let own = Modules::read(&root().join(folder).join("src"));
        assert!(own.parts().len() > 1, "{folder} has no modules");
        for (module, parts) in own.layers() {
            let place = PathBuf::from(folder).join("src").join(module.iter().collect::<PathBuf>());
            let place = place.display().to_string().trim_end_matches('/').to_owned();
            found.extend(circles(&parts).into_iter().map(|circle| (place.clone(), circle)));
        }
    }
    assert!(found.is_empty(), "circles: {found:#?}");
}

#[test]
fn the_rooms_inside_maniple_import_only_those_before_them_in_the_plan() {
    let plan = fs::read_to_string(root().join("docs/src/architecture.md")).unwrap();
    let (_, table) = plan.split_once("### The rooms inside `maniple`").expect("the plan has that section");
    let rows =
        table.lines().skip_while(|line| !line.starts_with("| ---")).skip(1).take_while(|line| line.starts_with('|'));
    let rooms: Vec<&str> =
        rows.filter_map(|row| row.split('|').nth(1)).flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
    let own = Modules::read(&root().join("runtime/maniple/src"));
    let layers = own.layers();
    let parts = &layers[&Module::new()];
    let place = |name: &str| {
        rooms.iter().position(|room| *room == name).unwrap_or_else(|| panic!("`{name}` is in no row of the plan"))
    };
    let known = own.parts();
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
    let mut before = BTreeSet::new();
    for folder in CRATES {
        let Manifest { name, dependencies } = Manifest::read(&root().join(folder));
        for dependency in &dependencies {
            assert!(before.contains(dependency), "{folder} depends on {dependency}, which does not come before it");
        }
        before.insert(name);
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
