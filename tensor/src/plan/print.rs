//! Plans as text.

use std::fmt::{Display, Formatter, Result};

use super::step::{Plan, Privilege, Step, Use};
use crate::loops::Parameter;
use crate::notation::{Expression, Literal, TextPlace};

impl Display for Plan {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        if let Some(initial) = self.initial {
            let initial = Expression::Literal(Literal::Typed(initial), TextPlace::default());
            writeln!(formatter, "fill {} with {initial}", self.statement.result())?;
        }
        write(formatter, &self.root, 0)
    }
}

fn write(formatter: &mut Formatter<'_>, step: &Step, indent: usize) -> Result {
    write!(formatter, "{:indent$}", "")?;
    let (uses, body) = match step {
        Step::Launch(launch) => {
            let names: Vec<_> = launch.variables.iter().map(|variable| variable.name()).collect();
            let extents: Vec<_> = launch.extents.iter().map(i64::to_string).collect();
            writeln!(formatter, "launch ({}) over {}", names.join(", "), extents.join(" x "))?;
            (&launch.uses, &launch.body)
        }
        Step::Sequence(sequence) => {
            writeln!(formatter, "for {} in 0..{}", sequence.variable, sequence.extent)?;
            (&sequence.uses, &sequence.body)
        }
        Step::Leaf(leaf) => {
            let tensors = leaf.tensors.len() + leaf.fixed.len();
            let parameters: Vec<_> = leaf.kernel.parameters.iter().take(tensors).map(Parameter::name).collect();
            return writeln!(formatter, "kernel {}({})", leaf.kernel.name, parameters.join(", "));
        }
    };
    for Use { tensor, privilege, fetched } in uses {
        let what = if *fetched { "fetch" } else { "use" };
        writeln!(formatter, "{:indent$}  {what} {tensor}, {privilege}", "")?;
    }
    write(formatter, body, indent + 2)
}

impl Display for Privilege {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Read => formatter.write_str("read"),
            Self::ReadWrite => formatter.write_str("read and written"),
            Self::Write => formatter.write_str("written"),
            Self::Reduce(operator) => write!(formatter, "reduced with {operator}"),
        }
    }
}
