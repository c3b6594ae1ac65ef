//! Options and answers of programs and mappers have readers: each option of `#[task]`, each field and value of an
//! answer, each kind of processor and memory.
//!
//! Read from the sources. A name counts as read if a crate other than its own uses it, tests apart. A name without a
//! reader has a reason here, or is a promise that no code keeps.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Names that need no reader, each with its reason.
const WITHOUT_READER: &[(&str, &str)] = &[
    ("Validity::Once", "is what is not `WhileUnchanged`"),
    ("Reuse::Any", "is no condition: nothing is to be done about it"),
    ("ReductionPlace::InPlace", "is what is not `Buffer`"),
    ("Extent::Region", "is no extension"),
    ("ProcessorKind::Io", "kinds of machines are the machine layer's; nobody makes such a processor yet"),
    ("ProcessorKind::Utility", "as above"),
    ("ProcessorKind::Gpu", "as above"),
    ("MemoryKind::System", "all memories are used alike"),
    ("MemoryKind::Socket", "as above"),
    ("MemoryKind::Registered", "as above"),
    ("MemoryKind::Disk", "as above"),
    ("MemoryKind::Framebuffer", "as above"),
    ("MemoryKind::ZeroCopy", "as above"),
];

/// The types whose fields or variants a program or a mapper fills in, and the file, from the root, that declares them.
const SAID: &[(&str, &str)] = &[
    ("TaskMapping", "mapper/src/decision.rs"),
    ("Validity", "mapper/src/decision.rs"),
    ("RequirementMapping", "mapper/src/decision.rs"),
    ("InstanceChoice", "mapper/src/decision.rs"),
    ("Reuse", "mapper/src/decision.rs"),
    ("Extent", "mapper/src/decision.rs"),
    ("Columns", "mapper/src/decision.rs"),
    ("ReductionPlace", "mapper/src/decision.rs"),
    ("Slice", "mapper/src/decision.rs"),
    ("NodeSlice", "mapper/src/decision.rs"),
    ("LayoutConstraint", "runtime/realm/src/layout/constraint.rs"),
    ("ProcessorKind", "runtime/realm/src/machine.rs"),
    ("MemoryKind", "runtime/realm/src/machine.rs"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The text of all sources below a folder, comments and tests apart.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != "tests" {
                sources(&path, text);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let file = fs::read_to_string(&path).unwrap();
            let code = file.split("#[cfg(test)]\nmod tests {").next().unwrap();
            code.lines().filter(|line| !line.trim_start().starts_with("//")).for_each(|line| {
                text.push_str(line);
                text.push('\n');
            });
        }
    }
}

/// The sources of each crate of the runtime, by its folder.
fn crates() -> BTreeMap<&'static str, String> {
    let folders = ["mapper", "runtime/realm", "runtime/region", "runtime/macros", "runtime/maniple", "tensor", "apps"];
    let of = |folder: &'static str| {
        let mut text = String::new();
        sources(&root().join(folder).join("src"), &mut text);
        (folder, text)
    };
    folders.map(of).into()
}

/// The names of the fields of a struct, or variants of an enum, and whether it is an enum.
fn members(ty: &str, file: &str) -> (Vec<String>, bool) {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let (start, is_enum) = match (text.find(&format!("pub enum {ty} {{")), text.find(&format!("pub struct {ty} {{"))) {
        (Some(start), _) => (start, true),
        (_, Some(start)) => (start, false),
        _ => panic!("{file} has no `{ty}`: say where it is now"),
    };
    let body = &text[start..];
    let body = &body[..body.find("\n}").unwrap()];
    let lines = body.lines().skip(1).filter(|line| line.starts_with("    ") && !line.starts_with("     "));
    let names = lines.map(str::trim).filter(|line| !line.starts_with("//") && !line.starts_with(['#', '}', ')']));
    let name = |line: &str| {
        let line = line.trim_start_matches("pub ");
        line.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    (names.map(name).collect(), is_enum)
}

/// Whether the text has a word, not as a part of another.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !is_part(before) && !is_part(after)
    })
}

/// Whether the text reads a field: `.field`, but for assignments to it, or takes it out of its struct.
fn reads_field(text: &str, ty: &str, field: &str) -> bool {
    let reads = text.match_indices(&format!(".{field}")).any(|(at, found)| {
        let rest = text[at + found.len()..].trim_start();
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '(');
        ends && (!rest.starts_with('=') || rest.starts_with("=="))
    });
    let takes = text.match_indices(&format!("{ty} {{")).any(|(at, _)| {
        let inside = &text[at..];
        let inside = &inside[..inside.find('}').unwrap_or(inside.len())];
        has_word(inside, field) && inside.contains("..") && !inside.contains(&format!("{field}:"))
    });
    reads || takes
}

fn crate_of(file: &str) -> &str {
    &file[..file.find("/src/").unwrap()]
}

#[test]
fn every_field_and_value_that_a_mapper_or_a_machine_can_have_is_read_by_another_crate() {
    let crates = crates();
    let mut unread = Vec::new();
    for (ty, file) in SAID {
        let (names, is_enum) = members(ty, file);
        assert!(names.len() > 1, "`{ty}` has {names:?}");
        let others = || crates.iter().filter(|(folder, _)| **folder != crate_of(file)).map(|(_, text)| text);
        for name in names {
            let full = format!("{ty}::{name}");
            let is_read = match is_enum {
                true => others().any(|text| has_word(text, &full)),
                false => others().any(|text| reads_field(text, ty, &name)),
            };
            if !is_read && !WITHOUT_READER.iter().any(|(known, _)| *known == full) {
                unread.push(full);
            }
        }
    }
    assert!(
        unread.is_empty(),
        "nobody reads {unread:?}: act on it, take it away, or say in this file why it needs no reader"
    );
}

#[test]
fn every_option_of_a_task_is_read_where_the_task_is_made_and_acted_on_where_it_runs() {
    let crates = crates();
    let text = fs::read_to_string(root().join("runtime/macros/src/task/options.rs")).unwrap();
    let set = text.split("fn set(").nth(1).unwrap().split("_ =>").next().unwrap();
    let options: Vec<&str> = set
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('"')?.split_once("\" =>"))
        .map(|(name, _)| name)
        .collect();
    assert!(options.len() >= 6, "{options:?}");
    let (macros, runtime) = (&crates["runtime/macros"], &crates["runtime/maniple"]);
    let unread = options.iter().filter(|option| match **option {
        // Where the runtime's names are.
        "crate" => !macros.contains("options.runtime"),
        // What the compiler holds the function to.
        "leaf" => !macros.contains("options.leaf"),
        "name" => !macros.contains("options.name"),
        "variant_of" => !macros.contains("options.variant_of"),
        "inner" => !macros.contains("options.inner") || !has_word(runtime, "is_inner"),
        // The task's, whichever of its variants runs.
        "mapper" => !macros.contains("options.mapper") || !runtime.contains("variant.options.mapper"),
        option => !macros.contains(&format!("options.{option}")) || !runtime.contains(&format!("variant.{option}")),
    });
    let unread: Vec<_> = unread.collect();
    assert!(unread.is_empty(), "nobody acts on the options {unread:?} of `#[task]`");
}

#[test]
fn every_field_of_what_is_said_of_a_variant_is_read() {
    let crates = crates();
    let (names, _) = members("VariantInfo", "mapper/src/info.rs");
    let unread = names.iter().filter(|name| !reads_field(&crates["runtime/maniple"], "VariantInfo", name));
    let unread: Vec<_> = unread.collect();
    assert!(unread.is_empty(), "the runtime does not act on {unread:?} of `VariantInfo`");
}
