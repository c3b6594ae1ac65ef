//! `#[task]`: a function becomes a task that can be launched by calling it.
//!
//! [`options`] reads what stands in the attribute, [`parameter`] one parameter with its privileges, [`parse`] the whole
//! function and the rules that tie them together; [`names`] has the compiler find the fields, [`launch`] writes the
//! function that describes a launch, [`body`] the code that runs it, [`expand`] puts them together. Between the two
//! halves stands [`Task`], plain data.

mod body;
mod expand;
mod launch;
mod names;
mod options;
mod parameter;
mod parse;
#[cfg(test)]
mod tests;

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::{Attribute, Ident, ItemFn, Path, Result, Type};

use options::AttributeOptions;
use parameter::{Parameter, ParameterKind, Region};

/// The items for a task, or everything that is wrong with it.
pub fn expand(options: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let task = parse::task(options::parse(options)?, syn::parse2(function)?)?;
    Ok(expand::items(&task))
}

/// A task, checked.
struct Task {
    options: AttributeOptions,
    /// The function as written; its `inputs` are superseded by `parameters`.
    function: ItemFn,
    parameters: Vec<Parameter>,
    returns: Returns,
}

/// The result of a task.
enum Returns {
    /// A value of this type, always.
    Value(Type),
    /// A `Result` with a value of this type.
    Fallible(Type),
}

impl Task {
    /// The path to the runtime's names.
    fn runtime(&self) -> &Path {
        &self.options.runtime
    }

    /// The name that mappers, profiles and errors show.
    fn name(&self) -> String {
        match &self.options.name {
            Some(name) => name.value(),
            None => self.function.sig.ident.unraw().to_string(),
        }
    }

    /// The conditions on which the task is compiled at all: they hold for every item of the task.
    fn conditions(&self) -> impl Iterator<Item = &Attribute> {
        self.function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"))
    }

    fn has_context(&self) -> bool {
        self.parameters.iter().any(|parameter| matches!(parameter.kind, ParameterKind::Context))
    }

    /// Whether it uses no regions: its launches need no analysis.
    fn is_free(&self) -> bool {
        self.regions().next().is_none()
    }

    fn regions(&self) -> impl Iterator<Item = (&Ident, &Region)> {
        self.parameters.iter().filter_map(|parameter| match &parameter.kind {
            ParameterKind::Region(region) => Some((&parameter.name, region.as_ref())),
            _ => None,
        })
    }

    /// The parameters that travel by value.
    fn arguments(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| matches!(parameter.kind, ParameterKind::Argument))
    }

    /// The type of the launch's future.
    fn value_type(&self) -> &Type {
        match &self.returns {
            Returns::Value(ty) | Returns::Fallible(ty) => ty,
        }
    }
}

/// The name of a hidden item that belongs to a task or to one of its parameters. It is invisible to lints about names,
/// and it does not take part in the user's own names.
fn hidden(prefix: &str, name: &Ident) -> Ident {
    Ident::new(&format!("__{prefix}{}", name.unraw()), Span::call_site())
}
