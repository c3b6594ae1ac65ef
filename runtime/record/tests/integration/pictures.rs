//! Tests of the content of pictures of a record, and that other programs can read them.

use crate::story;
use std::collections::{BTreeMap, BTreeSet};

use maniple_record::{Because, Class, Edge, Graph, Kind, Node, Part, Place, TooLarge};
use maniple_region::Privilege;
use proptest::prelude::*;
use story::{DISCARD, READ, Story, WRITE, sum};

/// A task that writes, two that add, the application of what they add, and one that reads it elsewhere.
fn story() -> Story {
    let mut story = Story::new();
    let whole = story.whole.clone();
    let [here, there] = [(); 2].map(|()| story.instance(&whole));
    let buffer = story.buffer(&whole, sum());
    let write = story.leaf("write", &[(&whole, DISCARD, here)], [story.parent]);
    story.launch("write", 1, &[]);
    let first = story.leaf("add", &[(&whole, Privilege::Reduce(sum()), buffer)], [story.parent]);
    story.launch("add", 1, &[(0, Because::Data(0))]);
    let second = story.leaf("add", &[(&whole, Privilege::Reduce(sum()), buffer)], [story.parent, first]);
    story.launch("add", 1, &[(0, Because::Data(0))]);
    let apply = story.apply((buffer, sum(), here), [write, first, second]);
    let copy = story.copy((here, there), 0..10, [write, apply]);
    story.leaf("read", &[(&whole, READ, there)], [story.parent, copy]);
    story.launch(
        "read",
        4,
        &[(0, Because::Data(0)), (1, Because::Data(0)), (2, Because::Data(0)), (2, Because::Future)],
    );
    story
}

/// The edges by the words on the nodes.
fn edges(graph: &Graph) -> Vec<(String, String)> {
    let name = |node: usize| graph.nodes[node].label.join(" ");
    graph.edges.iter().map(|edge| (name(edge.from), name(edge.to))).collect()
}

fn pairs(edges: &[(&str, &str)]) -> Vec<(String, String)> {
    edges.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
}

#[test]
fn tasks_and_what_moves_between_them_are_drawn_without_edges_that_others_imply() {
    let graph = Graph::of_operations(&story().record, false);
    assert_eq!(
        edges(&graph),
        pairs(&[
            ("add", "add"),
            ("write", "apply 2 to 0"),
            ("add", "apply 2 to 0"),
            ("apply 2 to 0", "copy 0 to 1 charge"),
            ("copy 0 to 1 charge", "read"),
        ])
    );
    let classes: Vec<Class> = graph.nodes.iter().map(|node| node.class).collect();
    assert_eq!(classes, [Class::Task, Class::Task, Class::Task, Class::Reduction, Class::Copy, Class::Task]);
    assert_eq!(graph.nodes[0].details, ["discards charge of region `nodes` in instance 0"]);
}

#[test]
fn all_edges_are_drawn_if_that_is_wanted() {
    let all = Graph::of_operations(&story().record, true);
    assert_eq!(all.edges.len(), Graph::of_operations(&story().record, false).edges.len() + 2);
    assert_eq!(all.reduced(), Graph::of_operations(&story().record, false));
}

#[test]
fn launches_are_drawn_with_what_makes_them_wait() {
    let graph = Graph::of_launches(&story().record, false);
    assert_eq!(
        edges(&graph),
        pairs(&[("write", "add"), ("write", "add"), ("add", "read 4 points"), ("add", "read 4 points")])
    );
    let labels: Vec<_> = graph.edges.iter().map(|edge| edge.labels.join("; ")).collect();
    let charge = "charge of region `nodes`";
    assert_eq!(labels, [charge, charge, charge, &format!("{charge}; result")]);
}

#[test]
fn what_a_task_launches_comes_between_its_beginning_and_its_end() {
    let mut story = Story::new();
    let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
    let place: Place = story.place();
    let parent = story.task((place, "parent", false), &[(&whole, WRITE, memory)], [story.parent]);
    story.launch("parent", 1, &[]);
    let end = story.push(Kind::End { task: parent }, [parent]);
    story.parent = parent;
    let child = story.leaf("child", &[(&whole, WRITE, memory)], [parent]);
    story.launch("child", 1, &[]);
    story.record.operations[end.0 as usize].after.push(child);
    let tasks = Graph::of_operations(&story.record, false);
    assert_eq!(edges(&tasks), pairs(&[("child", "end of parent"), ("parent", "child")]));
    let launches = Graph::of_launches(&story.record, false);
    assert_eq!((edges(&launches), &*launches.edges[0].labels[0]), (pairs(&[("parent", "child")]), "launches"));
}

#[test]
fn joins_are_drawn_only_where_they_spare_edges() {
    let mut story = Story::new();
    let before = [(); 3].map(|()| story.leaf("before", &[], []));
    let join = story.push(Kind::Join, before);
    story.leaf("after", &[], [join]);
    assert_eq!(Graph::of_operations(&story.record, false).nodes.len(), 4);
    story.leaf("after", &[], [join]);
    assert_eq!(Graph::of_operations(&story.record, false).nodes.len(), 6);
}

#[test]
fn a_small_graph_in_dot() {
    let mut story = Story::new();
    let (memory, whole) = (story.instance(&story.whole.clone()), story.whole.clone());
    let write = story.leaf("write", &[(&whole, DISCARD, memory)], [story.parent]);
    story.leaf("read", &[(&whole, READ, memory)], [write]);
    let expected = "digraph \"operations\" {
  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\", fontsize=11];
  edge [color=\"#495057\", fontname=\"sans-serif\", fontsize=9];
  \"operation1\" [label=\"write\", fillcolor=\"#cfe2ff\", tooltip=\"discards charge of region `nodes` in instance 0\"];
  \"operation2\" [label=\"read\", fillcolor=\"#cfe2ff\", tooltip=\"reads charge of region `nodes` in instance 0\"];
  \"operation1\" -> \"operation2\";
}
";
    assert_eq!(Graph::of_operations(&story.record, false).to_dot(), expected);
}

#[test]
fn more_than_can_be_read_is_refused() {
    let node =
        |number: usize| Node { key: number.to_string(), label: Vec::new(), details: Vec::new(), class: Class::Task };
    let nodes: Vec<Node> = (0..Graph::MOST_NODES).map(node).collect();
    let mut graph = Graph { nodes, ..Graph::default() };
    assert!(graph.to_svg().is_ok());
    graph.nodes.push(node(Graph::MOST_NODES));
    let refused = graph.to_svg().unwrap_err();
    assert_eq!(refused, TooLarge { nodes: 2001, edges: 0, passed: 0 });
    let says = "the graph has 2001 nodes and 0 edges, which go past 0 others; a picture is readable with at most 2000, 10000 and 100000:";
    assert!(refused.to_string().starts_with(says), "{refused}");
}

#[test]
fn so_are_more_lines_side_by_side_than_can_be_followed() {
    let node =
        |number: usize| Node { key: number.to_string(), label: Vec::new(), details: Vec::new(), class: Class::Task };
    let edge = |from: usize, to: usize| Edge { from, to, labels: Vec::new() };
    let chain = (1..1000).map(|to| edge(to - 1, to));
    let past = (0..300).map(|from| edge(from, 999));
    let graph =
        Graph { title: String::new(), nodes: (0..1000).map(node).collect(), edges: chain.chain(past).collect() };
    assert!(graph.to_svg().is_err_and(|refused| refused.passed > Graph::MOST_PASSED));
    // All but the chain is implied.
    assert!(graph.reduced().to_svg().is_ok());
}

/// Words of a DOT file.
#[derive(Clone, PartialEq, Debug)]
enum Token {
    /// A name or a quoted string, without its quotes and escapes but for line breaks.
    Word(String),
    Sign(String),
}

/// Reads the words of a DOT file by the grammar of Graphviz: names, quoted strings with `\"` and `\\`, and signs.
fn tokens(text: &str) -> Vec<Token> {
    let (mut tokens, mut letters) = (Vec::new(), text.chars().peekable());
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\n' => {}
            '"' => {
                let mut word = String::new();
                loop {
                    match letters.next().expect("a string ends") {
                        '"' => break,
                        '\\' => match letters.next().expect("an escape has a letter") {
                            'n' => word.push('\n'),
                            escaped @ ('"' | '\\') => word.push(escaped),
                            other => panic!("\\{other} has a meaning in labels that nobody wants"),
                        },
                        plain => {
                            assert!(!plain.is_control(), "{plain:?} in a string");
                            word.push(plain);
                        }
                    }
                }
                tokens.push(Token::Word(word));
            }
            '-' => {
                assert_eq!(letters.next(), Some('>'), "edges have a direction");
                tokens.push(Token::Sign("->".to_owned()));
            }
            '{' | '}' | '[' | ']' | '=' | ',' | ';' => tokens.push(Token::Sign(letter.to_string())),
            letter => {
                assert!(letter.is_ascii_alphanumeric() || letter == '.', "{letter:?} needs quotes");
                let mut word = letter.to_string();
                while let Some(next) = letters.next_if(|next| next.is_ascii_alphanumeric() || *next == '.') {
                    word.push(next);
                }
                tokens.push(Token::Word(word));
            }
        }
    }
    tokens
}

/// The content of a DOT file: nodes with their labels, and edges.
#[derive(Debug, Default)]
struct Dot {
    labels: BTreeMap<String, String>,
    edges: Vec<(String, String)>,
}

fn parse(text: &str) -> Dot {
    let tokens = tokens(text);
    let sign = |sign: &str| Token::Sign(sign.to_owned());
    let [Token::Word(digraph), Token::Word(_), open, body @ .., close] = tokens.as_slice() else { panic!("{text}") };
    assert_eq!((digraph.as_str(), open, close), ("digraph", &sign("{"), &sign("}")));
    let mut dot = Dot::default();
    for statement in body.split(|token| *token == sign(";")).filter(|statement| !statement.is_empty()) {
        let start = statement.iter().position(|token| *token == sign("[")).unwrap_or(statement.len());
        let attributes = attributes(&statement[start..]);
        match &statement[..start] {
            [Token::Word(kind)] if kind == "node" || kind == "edge" => {}
            [Token::Word(node)] => drop(dot.labels.insert(node.clone(), attributes["label"].clone())),
            [Token::Word(from), arrow, Token::Word(to)] if *arrow == sign("->") => {
                dot.edges.push((from.clone(), to.clone()));
            }
            other => panic!("{other:?} is no statement"),
        }
    }
    dot
}

fn attributes(tokens: &[Token]) -> BTreeMap<String, String> {
    let Some((open, rest)) = tokens.split_first() else { return BTreeMap::new() };
    let (close, list) = rest.split_last().expect("a list ends");
    assert_eq!((open, close), (&Token::Sign("[".to_owned()), &Token::Sign("]".to_owned())));
    let one = |attribute: &[Token]| match attribute {
        [Token::Word(name), Token::Sign(equals), Token::Word(value)] if equals == "=" => (name.clone(), value.clone()),
        other => panic!("{other:?} is no attribute"),
    };
    list.split(|token| *token == Token::Sign(",".to_owned())).map(one).collect()
}

/// Graphs with any text, without circles.
fn graphs() -> impl Strategy<Value = Graph> {
    let classes = prop::sample::select(vec![Class::Task, Class::Copy, Class::Join, Class::Fence]);
    let line = "[ -~é<>&\"'\\\\]{0,12}";
    let node = (prop::collection::vec(line, 0..3), prop::collection::vec(line, 0..2), classes);
    let nodes = prop::collection::vec(node, 0..40);
    let edge = (0..40_usize, 0..40_usize, prop::collection::vec(line, 0..2));
    (nodes, prop::collection::vec(edge, 0..80)).prop_map(|(nodes, edges)| {
        let count = nodes.len();
        let nodes = nodes.into_iter().enumerate();
        let nodes =
            nodes.map(|(number, (label, details, class))| Node { key: format!("n{number}"), label, details, class });
        let edges = edges.into_iter().filter(|(from, to, _)| from < to && *to < count);
        let edges = edges.map(|(from, to, labels)| ((from, to), Edge { from, to, labels })).collect::<BTreeMap<_, _>>();
        Graph { title: "any <&> \"graph\"".to_owned(), nodes: nodes.collect(), edges: edges.into_values().collect() }
    })
}

/// All pairs of nodes of which one can be reached from the other.
fn reachable(graph: &Graph) -> BTreeSet<(usize, usize)> {
    let mut pairs = BTreeSet::new();
    for node in 0..graph.nodes.len() {
        let mut open = vec![node];
        while let Some(here) = open.pop() {
            let next = graph.edges.iter().filter(|edge| edge.from == here).map(|edge| edge.to);
            open.extend(next.filter(|&to| pairs.insert((node, to))));
        }
    }
    pairs
}

/// A box of a picture.
#[derive(Debug)]
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

fn number(node: roxmltree::Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

fn frame(group: roxmltree::Node<'_, '_>) -> Frame {
    let shape = group.children().find(|child| child.has_tag_name("rect") || child.has_tag_name("circle")).unwrap();
    if shape.has_tag_name("circle") {
        let (x, y, r) = (number(shape, "cx"), number(shape, "cy"), number(shape, "r"));
        return Frame { left: x - r, right: x + r, top: y - r, bottom: y + r };
    }
    let (left, top) = (number(shape, "x"), number(shape, "y"));
    Frame { left, right: left + number(shape, "width"), top, bottom: top + number(shape, "height") }
}

/// The ends of a line: its first and last points.
fn ends(path: roxmltree::Node<'_, '_>) -> [(f64, f64); 2] {
    let commands = path.attribute("d").unwrap();
    let numbers: Vec<f64> = commands
        .split(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != '-')
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().unwrap())
        .collect();
    let last_swing = commands.rsplit('C').next().unwrap();
    let swing: Vec<f64> = last_swing
        .split(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != '-')
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().unwrap())
        .collect();
    [(numbers[0], numbers[1]), (swing[4], swing[swing.len() - 1])]
}

proptest! {
    #[test]
    fn dot_says_what_the_graph_says_whatever_is_written_on_it(graph in graphs()) {
        let dot = parse(&graph.to_dot());
        prop_assert_eq!(dot.labels.len(), graph.nodes.len());
        for node in &graph.nodes {
            prop_assert_eq!(&dot.labels[&node.key], &node.label.join("\n"));
        }
        let edges = graph.edges.iter().map(|edge| (graph.nodes[edge.from].key.clone(), graph.nodes[edge.to].key.clone()));
        prop_assert_eq!(dot.edges, edges.collect::<Vec<_>>());
    }

    #[test]
    fn without_edges_that_others_imply_the_same_is_reachable_and_every_edge_is_needed(graph in graphs()) {
        let reduced = graph.clone().reduced();
        prop_assert_eq!(reachable(&reduced), reachable(&graph));
        for left_out in 0..reduced.edges.len() {
            let mut fewer = reduced.clone();
            fewer.edges.remove(left_out);
            prop_assert_ne!(reachable(&fewer), reachable(&graph));
        }
    }

    #[test]
    fn pictures_are_well_formed_boxes_keep_apart_and_edges_go_down(graph in graphs()) {
        let svg = graph.to_svg().unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let page = document.root_element();
        prop_assert!(page.has_tag_name(("http://www.w3.org/2000/svg", "svg")));
        let boxes: BTreeMap<&str, Frame> =
            page.children().filter(|child| child.has_tag_name("g")).map(|group| (group.attribute("id").unwrap(), frame(group))).collect();
        prop_assert_eq!(boxes.len(), graph.nodes.len());
        for (name, here) in &boxes {
            prop_assert!(here.left >= 0.0 && here.right <= number(page, "width") && here.bottom <= number(page, "height"));
            for (_, other) in boxes.iter().filter(|(other, _)| *other != name) {
                let apart = here.right < other.left || other.right < here.left || here.bottom < other.top || other.bottom < here.top;
                prop_assert!(apart, "{here:?} and {other:?}");
            }
        }
        let paths: Vec<_> = page.children().filter(|child| child.has_tag_name("path")).collect();
        prop_assert_eq!(paths.len(), graph.edges.len());
        for (edge, path) in graph.edges.iter().zip(paths) {
            let (from, to) = (&boxes[&*graph.nodes[edge.from].key], &boxes[&*graph.nodes[edge.to].key]);
            let [start, end] = ends(path);
            prop_assert!(from.bottom < to.top);
            prop_assert!((start.1 - from.bottom).abs() < 0.2 && from.left < start.0 && start.0 < from.right, "{start:?} {from:?}");
            prop_assert!((end.1 - to.top).abs() < 0.2 && to.left < end.0 && end.0 < to.right, "{end:?} {to:?}");
        }
    }
}

#[test]
fn details_of_a_part_name_its_points() {
    let mut story = Story::new();
    let whole = story.whole.clone();
    let [here, there] = [(); 2].map(|()| story.instance(&whole));
    let part: Part = story.part(2..5);
    story.push(Kind::Copy { cause: None, from: here, to: there, parts: vec![part] }, []);
    let graph = Graph::of_operations(&story.record, false);
    assert_eq!(graph.nodes[0].details, ["the copy of charge from instance 0 to instance 1", "at {(2)..=(4)}"]);
}
