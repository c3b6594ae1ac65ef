//! Statements as text: the loops, indented, and the relations below.

use std::fmt::{Display, Formatter, Result};

use super::node::{Execution, Loop, Merge, StatementNode, Unit};
use super::relation::Relation;
use super::statement::Statement;
use crate::format::Format;
use crate::loops::Reduction;
use crate::notation::{Expression, Literal, TextPlace};

impl Display for Statement {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        if let Some(initial) = self.initial()
            && let Some(site) = self.body.sites().into_iter().find(|site| site.target.tensor == self.result)
        {
            let initial = match initial {
                zero if Some(zero) == Reduction::Sum.identity(zero.element_type()) => "0".to_owned(),
                other => Expression::Literal(Literal::Typed(other), TextPlace::default()).to_string(),
            };
            writeln!(formatter, "{} = {initial}", site.target)?;
        }
        self.write(formatter, &self.body, 0)?;
        for (position, relation) in self.relations.iter().enumerate() {
            if position == 0 {
                writeln!(formatter, "such that")?;
            }
            write!(formatter, "  {relation}")?;
            self.write_guard(formatter, relation)?;
            writeln!(formatter)?;
        }
        Ok(())
    }
}

impl Statement {
    fn write(&self, formatter: &mut Formatter<'_>, node: &StatementNode, depth: usize) -> Result {
        let indent = 2 * depth;
        match node {
            StatementNode::Forall(outer, body) => {
                let extent = self.extents[&outer.variable];
                let is_stored = self.positions().any(|stored| self.descends(&outer.variable, &stored.position));
                let most = if is_stored { " at most" } else { "" };
                writeln!(formatter, "{:indent$}{outer} in 0..{extent}{most}{}", "", Tags(outer))?;
                self.write(formatter, body, depth + 1)
            }
            StatementNode::Assign { target, operator, value } => {
                write!(formatter, "{:indent$}{target} ", "")?;
                match operator {
                    None => {}
                    Some(operator @ (Reduction::Sum | Reduction::Product)) => write!(formatter, "{operator}")?,
                    Some(operator) => write!(formatter, "{operator} ")?,
                }
                writeln!(formatter, "= {value}")
            }
            StatementNode::Where { workspace, consumer, producer } => {
                write!(formatter, "{:indent$}with {workspace}{:?}", "", workspace.dimensions())?;
                if *workspace.format() != Format::dense(workspace.order()) {
                    write!(formatter, " as {}", workspace.format())?;
                }
                writeln!(formatter)?;
                self.write(formatter, producer, depth + 1)?;
                self.write(formatter, consumer, depth)
            }
        }
    }

    /// Writes the ends of parts, or the end of the parent where blocks reach beyond it.
    fn write_guard(&self, formatter: &mut Formatter<'_>, relation: &Relation) -> Result {
        if let Relation::SplitAt { outer, points, extent, .. } = relation {
            write!(formatter, " < {{")?;
            points.iter().try_for_each(|point| write!(formatter, "{point}, "))?;
            write!(formatter, "{extent}}}[{outer}]")?;
        }
        if let Some((outer, inner, length)) = relation.blocks()
            && let [parent] = relation.parents()[..]
            && (self.extents[outer] - 1) * length + self.extents[inner] > self.extents[parent]
        {
            write!(formatter, " < {}", self.extents[parent])?;
        }
        Ok(())
    }
}

impl Display for Loop {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self.execution {
            Execution::Serial => formatter.write_str("for ")?,
            Execution::Parallel(unit) => write!(formatter, "{unit} for ")?,
            Execution::Distributed { level } => write!(formatter, "distributed({level}) for ")?,
        }
        self.variable.fmt(formatter)
    }
}

struct Tags<'a>(&'a Loop);

impl Display for Tags<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        if let Some(chunk) = self.0.chunk {
            write!(formatter, ", {chunk} at a time")?;
        }
        if self.0.unroll > 1 {
            write!(formatter, ", unrolled {} times", self.0.unroll)?;
        }
        if !self.0.communicate.is_empty() {
            write!(formatter, ", communicates {}", self.0.communicate.join(", "))?;
        }
        if self.0.merge != Merge::default() {
            write!(formatter, ", merged by {}", self.0.merge)?;
        }
        if let Some(substitution) = &self.0.substitution {
            write!(formatter, ", by {substitution}")?;
        }
        Ok(())
    }
}

impl Display for Unit {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        formatter.write_str(match self {
            Self::Threads => "threads",
            Self::Vector => "vector",
        })
    }
}
