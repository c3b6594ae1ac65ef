//! A whole kernel.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Buffer, Statement, Variable};

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// A view of a tensor.
    Buffer(Buffer),
    /// A number: an index of an outer loop, an extent, a coefficient.
    Scalar(Variable),
}

impl Parameter {
    /// The name.
    pub fn name(&self) -> &str {
        match self {
            Self::Buffer(buffer) => &buffer.name,
            Self::Scalar(variable) => &variable.name,
        }
    }
}

/// A function of views and scalars.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// An identifier, for messages and profiles.
    pub name: String,
    /// The parameters of the kernel, in order. Buffers that are updated overlap no other buffer.
    pub parameters: Vec<Parameter>,
    /// The statement that the kernel runs.
    pub body: Statement,
}

/// Hands out names that differ from one another.
///
/// ```
/// use maniple_kernel::loops::FreshNames;
///
/// let mut names = FreshNames::default();
/// assert_eq!([&*names.fresh("i"), &*names.fresh("i"), &*names.fresh("i'")], ["i", "i_1", "i_"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct FreshNames {
    used: HashSet<Arc<str>>,
}

impl FreshNames {
    /// A name that was not handed out before: `wish` itself if it can be, with a number otherwise. Characters that
    /// names can't have become `_`.
    pub fn fresh(&mut self, wish: &str) -> Arc<str> {
        let mut name: String =
            wish.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }).collect();
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            name.insert(0, '_');
        }
        let mut candidate: Arc<str> = name.as_str().into();
        let mut number = 0;
        while !self.used.insert(candidate.clone()) {
            number += 1;
            candidate = format!("{name}_{number}").into();
        }
        candidate
    }

    /// A fresh index variable.
    pub fn index(&mut self, wish: &str) -> Variable {
        Variable::index(self.fresh(wish))
    }
}
