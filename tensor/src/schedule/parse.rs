//! Schedules as text: commands as they are printed, with `;` or lines between them, and what follows `#` on a line for
//! the reader.

use std::fmt;
use std::str::FromStr;

use super::{Command, Races, Schedule};
use crate::concrete::{Merge, Substitution, Unit};
use crate::element::ElementType;
use crate::notation::{self, IndexVariable, TensorVariable, is_name};

/// Text that is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column, in letters, from 1.
    pub column: usize,
    /// The text that could be there.
    pub expected: String,
    /// The text that is there.
    pub found: String,
}

/// The commands and their forms.
const COMMANDS: &[(&str, &str)] = &[
    ("split", "split(VARIABLE, OUTER, INNER, FACTOR)"),
    ("split_at", "split_at(VARIABLE, OUTER, INNER, {POINT, ...})"),
    ("divide", "divide(VARIABLE, OUTER, INNER, PIECES)"),
    ("fuse", "fuse(OUTER, INNER, FUSED)"),
    ("bound", "bound(VARIABLE, BOUNDED, EXTENT)"),
    ("pos", "pos(VARIABLE, POSITION, TENSOR)"),
    ("mergeby", "mergeby(VARIABLE, two-finger, gallop or locate)"),
    ("reorder", "reorder({VARIABLE, ...})"),
    ("precompute", "precompute(EXPRESSION, {VARIABLE, ...}, {WORKSPACE VARIABLE, ...}, WORKSPACE)"),
    ("store", "store(WORKSPACE, FORMAT)"),
    ("unroll", "unroll(VARIABLE, FACTOR)"),
    ("chunk", "chunk(VARIABLE, LENGTH)"),
    ("parallelize", "parallelize(VARIABLE, threads or vector), with `, reduced` where values are combined"),
    (
        "distribute",
        "distribute({VARIABLE, ...}), or distribute({TARGET, ...}, {OUTER, ...}, {INNER, ...}, {PIECES, ...})",
    ),
    ("communicate", "communicate({TENSOR, ...}, VARIABLE)"),
    ("rotate", "rotate(TARGET, {BY, ...}, RESULT)"),
    ("substitute", "substitute({VARIABLE, ...}, LIBRARY)"),
];

/// A part of the text.
#[derive(Clone, Copy)]
struct TextPart<'a> {
    text: &'a str,
    /// The offset of its beginning.
    start: usize,
}

impl<'a> TextPart<'a> {
    /// The same without white space around it.
    fn trimmed(self) -> Self {
        let text = self.text.trim_start();
        Self { text: text.trim_end(), start: self.start + self.text.len() - text.len() }
    }

    fn from(self, offset: usize) -> Self {
        Self { text: &self.text[offset..], start: self.start + offset }
    }

    fn to(self, offset: usize) -> Self {
        Self { text: &self.text[..offset], ..self }
    }

    /// The parts between separators that are in no parentheses or braces.
    fn split(self, is_separator: impl Fn(char) -> bool) -> Vec<Self> {
        let (mut parts, mut depth, mut begun) = (Vec::new(), 0_i64, 0);
        for (at, letter) in self.text.char_indices() {
            match letter {
                '(' | '{' => depth += 1,
                ')' | '}' => depth -= 1,
                _ if depth <= 0 && is_separator(letter) => {
                    parts.push(self.to(at).from(begun));
                    begun = at + letter.len_utf8();
                }
                _ => {}
            }
        }
        parts.push(self.from(begun));
        parts
    }
}

struct Reader<'a> {
    text: &'a str,
    /// The tensors of the statement, and the workspaces that commands before have made.
    tensors: Vec<TensorVariable>,
}

type Parsed<T> = Result<T, ParseError>;

impl Reader<'_> {
    fn wrong<T>(&self, at: TextPart<'_>, expected: impl Into<String>) -> Parsed<T> {
        let before = &self.text[..at.start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let found = at.text.lines().next().unwrap_or_default().trim_end();
        let found = if found.is_empty() { "nothing".to_owned() } else { format!("`{found}`") };
        Err(ParseError { line, column, expected: expected.into(), found })
    }

    fn name(&self, part: TextPart<'_>, what: &str) -> Parsed<String> {
        if is_name(part.text) { Ok(part.text.to_owned()) } else { self.wrong(part, what) }
    }

    fn variable(&self, part: TextPart<'_>) -> Parsed<IndexVariable> {
        self.name(part, "an index variable").map(IndexVariable::from)
    }

    fn number<T: FromStr>(&self, part: TextPart<'_>) -> Parsed<T> {
        part.text.parse().or_else(|_| self.wrong(part, "a number"))
    }

    /// Several things in braces, or one without.
    fn group<T>(&self, part: TextPart<'_>, read: impl Fn(TextPart<'_>) -> Parsed<T>) -> Parsed<Vec<T>> {
        let Some(inside) = part.text.strip_prefix('{') else { return Ok(vec![read(part)?]) };
        let Some(inside) = inside.strip_suffix('}') else { return self.wrong(part, "a list with `}` at its end") };
        let inside = TextPart { text: inside, start: part.start + 1 };
        if inside.trimmed().text.is_empty() {
            return Ok(Vec::new());
        }
        inside.split(|letter| letter == ',').into_iter().map(|item| read(item.trimmed())).collect()
    }

    fn variables(&self, part: TextPart<'_>) -> Parsed<Vec<IndexVariable>> {
        self.group(part, |part| self.variable(part))
    }

    fn command(&self, part: TextPart<'_>) -> Parsed<Command> {
        let end = part.text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let name = &part.text[..end.unwrap_or(part.text.len())];
        let Some((_, form)) = COMMANDS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = COMMANDS.iter().map(|(known, _)| *known).collect();
            return self.wrong(part, format!("one of {}", known.join(", ")));
        };
        let inside = part.from(name.len()).trimmed();
        let Some(arguments) = inside.text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else {
            return self.wrong(inside, *form);
        };
        let arguments = TextPart { text: arguments, start: inside.start + 1 };
        let arguments: Vec<TextPart<'_>> =
            arguments.split(|letter| letter == ',').into_iter().map(TextPart::trimmed).collect();
        let one = |part| self.variable(part);
        Ok(match (name, &arguments[..]) {
            ("split", &[variable, outer, inner, factor]) => Command::Split {
                variable: one(variable)?,
                outer: one(outer)?,
                inner: one(inner)?,
                factor: self.number(factor)?,
            },
            ("split_at", &[variable, outer, inner, points]) => Command::SplitAt {
                variable: one(variable)?,
                outer: one(outer)?,
                inner: one(inner)?,
                points: self.group(points, |part| self.number(part))?,
            },
            ("divide", &[variable, outer, inner, pieces]) => Command::Divide {
                variable: one(variable)?,
                outer: one(outer)?,
                inner: one(inner)?,
                pieces: self.number(pieces)?,
            },
            ("fuse", &[outer, inner, fused]) => {
                Command::Fuse { outer: one(outer)?, inner: one(inner)?, fused: one(fused)? }
            }
            ("bound", &[variable, bounded, extent]) => {
                Command::Bound { variable: one(variable)?, bounded: one(bounded)?, extent: self.number(extent)? }
            }
            ("pos", &[variable, position, tensor]) => Command::Pos {
                variable: one(variable)?,
                position: one(position)?,
                tensor: self.name(tensor, "a tensor")?,
            },
            ("mergeby", &[variable, merge]) => {
                let Some(merge) = Merge::ALL.into_iter().find(|known| known.to_string() == merge.text) else {
                    return self.wrong(merge, "two-finger, gallop, locate, bitmap or hash");
                };
                Command::MergeBy { variable: one(variable)?, merge }
            }
            ("reorder", &[order]) => Command::Reorder { order: self.variables(order)? },
            ("precompute", &[expression, variables, inside, workspace]) => Command::Precompute {
                expression: Box::new(self.expression(expression)?),
                variables: self.variables(variables)?,
                workspace_variables: self.variables(inside)?,
                workspace: self.name(workspace, "the name of a workspace")?,
            },
            ("store", &[workspace, format]) => Command::Store {
                workspace: self.name(workspace, "the name of a workspace")?,
                format: format.text.parse().or_else(|error| self.wrong(format, format!("a format ({error})")))?,
            },
            ("unroll", &[variable, factor]) => {
                Command::Unroll { variable: one(variable)?, factor: self.number(factor)? }
            }
            ("chunk", &[variable, length]) => Command::Chunk { variable: one(variable)?, length: self.number(length)? },
            ("parallelize", &[variable, unit, ref races @ ..]) if races.len() < 2 => {
                let races = match races.first() {
                    None => Races::Forbidden,
                    Some(part) if part.text == "reduced" => Races::Reduced,
                    Some(part) => return self.wrong(*part, "`reduced`"),
                };
                let units = [Unit::Threads, Unit::Vector];
                let Some(unit) = units.into_iter().find(|known| known.to_string() == unit.text) else {
                    return self.wrong(unit, "threads or vector");
                };
                Command::Parallelize { variable: one(variable)?, unit, races }
            }
            ("distribute", &[variables]) => Command::DistributeLoops { variables: self.variables(variables)? },
            ("distribute", &[targets, outer, inner, grid]) => Command::Distribute {
                targets: self.variables(targets)?,
                outer: self.variables(outer)?,
                inner: self.variables(inner)?,
                grid: self.group(grid, |part| self.number(part))?,
            },
            ("communicate", &[tensors, variable]) => Command::Communicate {
                tensors: self.group(tensors, |part| self.name(part, "a tensor"))?,
                variable: one(variable)?,
            },
            ("rotate", &[target, by, result]) => {
                Command::Rotate { target: one(target)?, by: self.variables(by)?, result: one(result)? }
            }
            ("substitute", &[variables, library]) => Command::Substitute {
                variables: self.variables(variables)?,
                substitution: Substitution::new(self.name(library, "a library")?),
            },
            _ => return self.wrong(part, *form),
        })
    }

    fn expression(&self, part: TextPart<'_>) -> Parsed<notation::Expression> {
        notation::parse_expression(part.text, &self.tensors).or_else(|error| {
            let place = error.span().map_or(0, |span| span.start.min(part.text.len()));
            self.wrong(part.from(place), format!("an expression ({})", error.kind))
        })
    }
}

impl Schedule {
    /// Reads commands as they are printed, with `;` or lines between them; `#` begins a comment. Expressions are of
    /// these tensors.
    ///
    /// # Errors
    ///
    /// The first thing that is no command, with its line and column.
    pub fn parse(text: &str, tensors: &[TensorVariable]) -> Result<Self, ParseError> {
        // Comments leave room, so that places stay what they are.
        let without: Vec<String> = text
            .split('\n')
            .map(|line| match line.split_once('#') {
                Some((command, comment)) => format!("{command}{}", " ".repeat(comment.len() + 1)),
                None => line.to_owned(),
            })
            .collect();
        let without = without.join("\n");
        let mut reader = Reader { text, tensors: tensors.to_vec() };
        let whole = TextPart { text: &without, start: 0 };
        let parts = whole.split(|letter| matches!(letter, ';' | '\n')).into_iter().map(TextPart::trimmed);
        let mut commands = Vec::new();
        for part in parts.filter(|part| !part.text.is_empty()) {
            let command = reader.command(part)?;
            if let Command::Precompute { expression, variables, workspace, .. } = &command {
                // The statement has it with its type and extents.
                let element = reader.tensors.first().map_or(ElementType::F64, TensorVariable::element);
                let element = expression.accesses().first().map_or(element, |access| access.tensor.element());
                reader.tensors.push(TensorVariable::new(workspace, element, vec![1; variables.len()]));
            }
            commands.push(command);
        }
        Ok(Self { commands })
    }
}

impl FromStr for Schedule {
    type Err = ParseError;

    /// As [`Schedule::parse`], for commands without expressions of tensors.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text, &[])
    }
}

impl FromStr for Command {
    type Err = ParseError;

    /// Reads one command, as it is printed, without expressions of tensors.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        Reader { text, tensors: Vec::new() }.command(TextPart { text, start: 0 })
    }
}

impl fmt::Display for Schedule {
    /// Writes a line for each command, which parse to the same schedule.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.commands.iter().try_for_each(|command| writeln!(formatter, "{command}"))
    }
}
