//! The language of Graphviz.

use std::fmt::Write;

use crate::picture::graph::{Class, Graph, Node};

impl Graph {
    /// The graph in the language DOT, for Graphviz and other tools: `dot -Tsvg`.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut text = format!("digraph {} {{\n", quoted(&self.title));
        text += "  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\", fontsize=11];\n";
        text += "  edge [color=\"#495057\", fontname=\"sans-serif\", fontsize=9];\n";
        for node in &self.nodes {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {} [{}];", quoted(&node.key), attributes(node));
        }
        for edge in &self.edges {
            let (from, to) = (quoted(&self.nodes[edge.from].key), quoted(&self.nodes[edge.to].key));
            let label =
                if edge.labels.is_empty() { String::new() } else { format!(" [label={}]", lines(&edge.labels)) };
            let _ = writeln!(text, "  {from} -> {to}{label};");
        }
        text += "}\n";
        text
    }
}

fn attributes(node: &Node) -> String {
    let shape = if node.class == Class::Join { ", shape=point, width=0.08" } else { "" };
    let tooltip = if node.details.is_empty() { String::new() } else { format!(", tooltip={}", lines(&node.details)) };
    format!("label={}, fillcolor={}{tooltip}{shape}", lines(&node.label), quoted(node.class.color()))
}

/// Lines as one quoted string.
fn lines(lines: &[String]) -> String {
    let escaped: Vec<String> = lines.iter().map(|line| escape(line)).collect();
    format!("\"{}\"", escaped.join("\\n"))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escape(text))
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
