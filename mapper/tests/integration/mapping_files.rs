//! Mapping files: what they say, what is wrong with them, and that they are obeyed.

mod decisions;

use std::collections::BTreeSet;
use std::fmt::Write;

use fastrand::Rng;
use maniple_mapper::{DataRule, Extent, MappingRules, Mistake, PrivilegeKind, Vocabulary};

const NAMES: Vocabulary<'_> = Vocabulary {
    tasks: &["update", "sum", "naïve \"task\"\n\\"],
    variants: &["plain", "fast"],
    regions: &["grid", "Node"],
    partitions: &["tiles"],
    fields: &["charge", "voltage"],
};

#[test]
fn what_is_printed_is_read_back_the_same() {
    for seed in 0..3000 {
        let rules = MappingRules::random(seed, &NAMES);
        let text = rules.to_string();
        assert_eq!(MappingRules::parse(&text), Ok(rules), "seed {seed}\n{text}");
    }
}

#[test]
fn random_rules_say_every_word_of_mapping_files() {
    let mut said = BTreeSet::new();
    for seed in 0..3000 {
        let text = MappingRules::random(seed, &NAMES).to_string();
        said.extend(text.lines().map(str::to_owned).filter(|line| !line.starts_with("priority")));
    }
    let expected = [
        "processors = \"cpu\"",
        "processors = \"gpu\"",
        "processors = 1",
        "deal = \"blocks\"",
        "deal = \"cycles\"",
        "deal = \"first-free\"",
        "variant = \"fast\"",
        "pinned = true",
        "pinned = false",
        "validity = \"once\"",
        "validity = \"while-unchanged\"",
        "virtual = true",
        "virtual = false",
        "slice = 1",
        "window = 2",
        "sharding = \"blocks\"",
        "sharding = \"cycles\"",
        "sharding = 1",
        "spread = \"stay\"",
        "spread = \"blocks\"",
        "spread = 1",
        "migrate = \"stay\"",
        "migrate = \"blocks\"",
        "migrate = \"cycles\"",
        "migrate = 1",
        "steal = true",
        "steal = false",
        "tag = 1",
        "node = 1",
        "memory = \"zero-copy\"",
        "memory = \"framebuffer\"",
        "memory = \"system\"",
        "memory = \"socket\"",
        "memory = 1",
        "extent = \"region\"",
        "extent = \"root\"",
        "extent = 1",
        "reuse = \"any\"",
        "reuse = \"exact\"",
        "reuse = \"never\"",
        "columns = \"requirement\"",
        "columns = \"separate\"",
        "columns = \"all\"",
        "arrangement = \"struct-of-arrays\"",
        "arrangement = \"array-of-structs\"",
        "arrangement = 4",
        "order = \"row-major\"",
        "order = \"column-major\"",
        "order = [1, 0]",
        "copy_priority = 1",
        "keep = \"while-used\"",
        "keep = -1",
        "align = 64",
        "reduction = \"buffer\"",
        "reduction = \"in-place\"",
        "processor = \"cpu\"",
        "privilege = \"reads\"",
        "privilege = \"writes\"",
        "privilege = \"discards\"",
        "privilege = \"reduces\"",
        "requirement = 1",
        "at_once = 1",
        "name = \"*\"",
        "region = \"Node\"",
        "partition = \"tiles\"",
        "field = \"charge\"",
    ];
    let missing: Vec<_> = expected.iter().filter(|line| !said.contains(**line)).collect();
    assert!(missing.is_empty(), "never drawn: {missing:?}");
}

#[test]
fn every_decision_has_words() {
    for seed in 0..500 {
        let rules = MappingRules::random(seed, &NAMES);
        let explained = rules.explain();
        let text = rules.to_string();
        let tables = text.lines().filter(|line| line.starts_with('[')).count();
        assert_eq!(explained.len(), tables, "{text}");
        for (table, words) in text.split("\n\n").zip(&explained) {
            let decisions = [
                "processors",
                "deal",
                "variant",
                "pinned",
                "priority",
                "copy_priority",
                "window",
                "validity",
                "virtual",
                "slice",
                "sharding",
                "spread",
                "migrate",
                "steal",
                "memory",
                "extent",
                "reuse",
                "columns",
                "arrangement",
                "order",
                "align",
                "reduction",
                "keep",
            ];
            let keys = table.lines().filter(|line| decisions.iter().any(|key| line.starts_with(&format!("{key} = "))));
            if words.rule.starts_with("[[") {
                assert_eq!(keys.count(), words.decides.len(), "{table}\n{words}");
            }
        }
    }
}

/// A text with one mistake, and what must be said of it.
#[track_caller]
fn is_refused(text: &str, message: &str) -> Mistake {
    let error = MappingRules::parse(text).unwrap_err();
    assert!(error.to_string().starts_with(message), "found    {error}\nexpected {message}");
    error.mistake
}

#[test]
fn mistakes_are_told_with_their_place_and_what_to_write() {
    is_refused("[[tsk]]\nname = 'a'", "line 1, column 3: there is no key `tsk` in the file; did you mean `task`?");
    is_refused(
        "[[task]]\nproiority = 1",
        "line 2, column 1: there is no key `proiority` in [[task]]; did you mean `priority`?",
    );
    is_refused(
        "[[data]]\n  memroy = 1",
        "line 2, column 3: there is no key `memroy` in [[data]]; did you mean `memory`?",
    );
    is_refused(
        "[[task]]\ncolour = 1",
        "line 2, column 1: there is no key `colour` in [[task]]; expected `name`, `tag`, `node`,",
    );
    is_refused(
        "[[task]]\nprocessors = 'gpuu'",
        "line 2, column 14: `gpuu` is not a kind of processor; did you mean `gpu`?",
    );
    is_refused(
        "[[data]]\nmemory = ['system', 'zerocopy']",
        "line 2, column 21: `zerocopy` is not a kind of memory; did you mean `zero-copy`?",
    );
    is_refused(
        "[[task]]\npriority = 'high'",
        "line 2, column 12: `priority` is a whole number of 32 bits; found \"high\"",
    );
    is_refused(
        "[[task]]\npriority = 3000000000",
        "line 2, column 12: `priority` is a whole number of 32 bits; found 3000000000",
    );
    is_refused("[[task]]\nslice = 0", "line 2, column 9: `slice` is a whole number of at least 1; found 0");
    is_refused("[[data]]\narrangement = 3", "line 2, column 15: `arrangement` is \"struct-of-arrays\"");
    is_refused("[[data]]\norder = [0, 0]", "line 2, column 9: `order` is \"row-major\", \"column-major\", or");
    for wrong in ["48", "0", "4194304", "-8", "'64'"] {
        is_refused(
            &format!("[[data]]\nalign = {wrong}"),
            "line 2, column 9: `align` is a power of two of bytes up to 2097152; found",
        );
    }
    is_refused("[[data]]\nkeep = 'forever'", "line 2, column 8: `keep` is \"while-used\", or the rank of copies");
    is_refused(
        "[[data]]\nkeep = 3000000000",
        "line 2, column 8: `keep` is a whole number of 32 bits; found 3000000000",
    );
    is_refused("[[data]]\nmin_bytes = '4 kB'\nextent = 'root'", "line 2, column 13: `min_bytes` is a number of bytes");
    is_refused("[[task]]\nname = []\npinned = true", "line 2, column 8: `name` is a name or a list of names");
    is_refused("[[task]]\nname = 'a'", "line 1, column 1: this rule decides nothing: give it one of `processors`,");
    is_refused("[[data]]\nfield = 'a'", "line 1, column 1: this rule decides nothing: give it one of `memory`,");
    is_refused("task = 4", "line 1, column 8: `task` is a table: write [[task]] above its keys; found 4");
    is_refused("[[task]\nname = 'a'", "line 1, column 8: ");
    is_refused("[[task]]\nspread = 'cycles'", "line 2, column 10: `spread` is \"stay\", \"blocks\"");
    let follows = is_refused(
        "[[task]]\nnode = 1\nsharding = 'cycles'",
        "line 3, column 12: `sharding` cannot follow from `node`",
    );
    assert!(matches!(follows, Mistake::CannotFollow { decision: "sharding", condition: "node", .. }));
    is_refused("[[task]]\ntag = 1\nsteal = false", "line 3, column 9: `steal` cannot follow from `tag`");
}

#[test]
fn a_file_is_named_in_its_mistakes() {
    let error = MappingRules::read("/there/is/no/such.toml").unwrap_err();
    assert!(error.to_string().starts_with("/there/is/no/such.toml: cannot read the mapping file: "), "{error}");
}

#[test]
fn no_text_makes_the_reader_panic_and_mistakes_lie_in_the_text() {
    let mut random = Rng::with_seed(7);
    let letters: Vec<char> = "[]{}=\"'\\,.0-a\n #é".chars().collect();
    for seed in 0..3000 {
        let mut text: Vec<char> = MappingRules::random(seed, &NAMES).to_string().chars().collect();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..=text.len());
            match random.usize(..3) {
                0 if at < text.len() => drop(text.remove(at)),
                1 if at < text.len() => text[at] = letters[random.usize(..letters.len())],
                _ => text.insert(at, letters[random.usize(..letters.len())]),
            }
        }
        let text: String = text.into_iter().collect();
        match MappingRules::parse(&text) {
            Ok(rules) => assert_eq!(MappingRules::parse(&rules.to_string()), Ok(rules), "{text}"),
            Err(error) => {
                let (line, column) = error.place.unwrap();
                let lines: Vec<&str> = text.split('\n').collect();
                assert!((1..=lines.len()).contains(&line), "{error}\n{text}");
                assert!((1..=lines[line - 1].chars().count() + 1).contains(&column), "{error}\n{text}");
            }
        }
    }
}

#[test]
fn a_rule_is_printed_with_its_conditions_before_its_decisions() {
    let rule = DataRule { privilege: Some(PrivilegeKind::Reads), extent: Some(Extent::Root), ..DataRule::default() };
    let mut text = String::new();
    write!(text, "{}", MappingRules { data: vec![rule], ..MappingRules::default() }).unwrap();
    assert_eq!(text, "[[data]]\nprivilege = \"reads\"\nextent = \"root\"\n");
}
