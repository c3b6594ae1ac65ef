//! How what nodes print is shown: whole lines, each with the number of its node before it.

use std::io::{self, BufRead, BufReader, Read, Write};

use console::Color;

/// Longer lines are shown in pieces: what has no lines at all is not to fill the memory.
const LONGEST: u64 = 64 << 10;

const COLOURS: [Color; 6] = [Color::Cyan, Color::Green, Color::Yellow, Color::Magenta, Color::Blue, Color::Red];

/// How lines are shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// How many nodes there are.
    pub nodes: usize,
    /// Whether their numbers are shown.
    pub has_prefix: bool,
    /// Whether the numbers are coloured.
    pub coloured: bool,
}

impl Style {
    /// What stands before the lines of a node.
    #[must_use]
    pub fn prefix(&self, rank: usize) -> String {
        if !self.has_prefix {
            return String::new();
        }
        let width = (self.nodes - 1).to_string().len();
        let number = format!("[{rank:>width$}]");
        let colour = console::Style::new().fg(COLOURS[rank % COLOURS.len()]).force_styling(self.coloured);
        format!("{} ", colour.apply_to(number))
    }
}

/// Shows all that comes, line by line, until the end. If that is not possible any more, it still takes what comes, so that nodes are not held up.
///
/// # Errors
/// Why the first line that could not be shown was not.
pub fn show(from: impl Read, prefix: &str, mut to: impl Write) -> io::Result<()> {
    let mut shown = Ok(());
    let mut from = BufReader::new(from);
    let mut line = prefix.as_bytes().to_vec();
    loop {
        line.truncate(prefix.len());
        match from.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) => return shown,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return shown,
        }
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        // In one piece: lines of several nodes do not mix.
        let written = to.write_all(&line).and_then(|()| to.flush());
        shown = shown.and(written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        let mut to = Vec::new();
        show(bytes, "[1] ", &mut to).unwrap();
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn every_line_has_the_number_of_its_node() {
        assert_eq!(shown(b"one\n\ntwo\n"), "[1] one\n[1] \n[1] two\n");
        assert_eq!(shown(b""), "");
    }

    #[test]
    fn the_last_line_ends_even_if_the_node_did_not_end_it() {
        assert_eq!(shown(b"one\ntwo"), "[1] one\n[1] two\n");
    }

    #[test]
    fn a_line_without_end_is_shown_in_pieces() {
        let length = LONGEST as usize;
        let text = shown(&vec![b'x'; length + 1]);
        assert_eq!(text, format!("[1] {}\n[1] x\n", "x".repeat(length)));
    }

    #[test]
    fn numbers_stand_below_each_other() {
        let style = Style { nodes: 11, has_prefix: true, coloured: false };
        assert_eq!((style.prefix(2), style.prefix(10)), ("[ 2] ".to_owned(), "[10] ".to_owned()));
        assert_eq!(Style { nodes: 10, ..style }.prefix(2), "[2] ");
        assert_eq!(Style { has_prefix: false, ..style }.prefix(2), "");
    }

    #[test]
    fn numbers_are_coloured_if_asked_for_and_lines_are_not() {
        let style = Style { nodes: 2, has_prefix: true, coloured: true };
        assert_eq!(style.prefix(1), "\u{1b}[32m[1]\u{1b}[0m ");
        assert_ne!(style.prefix(0)[..5], style.prefix(1)[..5]);
    }
}
