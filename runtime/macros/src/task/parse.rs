//! A function and its options become a [`Task`], if they obey the rules that tie them together.

use quote::ToTokens;
use syn::{Error, FnArg, GenericArgument, ItemFn, Result, ReturnType, Safety, Signature, Type, parse_quote};

use super::options::AttributeOptions;
use super::parameter::{
    Parameter, ParameterKind, Region, View, generic_arguments, last_segment, refuse_impl_trait, text,
};
use super::{Returns, Task};

/// Reads a task. All mistakes are reported at once, each where it is.
pub(super) fn task(options: AttributeOptions, function: ItemFn) -> Result<Task> {
    let mut mistakes = Mistakes::default();
    check_signature(&function.sig, &mut mistakes);
    let parameters = function.sig.inputs.iter().filter_map(|input| mistakes.note(parameter(input))).collect();
    // What a malformed parameter was meant to be is unknown, so only when all are well-formed can they be judged
    // together.
    mistakes.into_result()?;

    let returns = Returns::of(&function.sig.output);
    let task = Task { options, function, parameters, returns };
    let mut mistakes = Mistakes::default();
    check_context(&task, &mut mistakes);
    mistakes.into_result().map(|()| task)
}

/// The errors found so far, as one.
#[derive(Default)]
struct Mistakes(Option<Error>);

impl Mistakes {
    fn add(&mut self, offender: impl ToTokens, message: impl std::fmt::Display) {
        self.note::<()>(Err(Error::new_spanned(offender, message)));
    }

    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match (result, &mut self.0) {
            (Ok(value), _) => return Some(value),
            (Err(error), Some(errors)) => errors.combine(error),
            (Err(error), none) => *none = Some(error),
        }
        None
    }

    fn into_result(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

fn parameter(input: &FnArg) -> Result<Parameter> {
    match input {
        FnArg::Typed(written) => Parameter::parse(written),
        FnArg::Receiver(receiver) => Err(Error::new_spanned(
            receiver,
            "expected a function, found a method: a task stands alone, so take what it needs as parameters",
        )),
    }
}

/// A task is an ordinary function: one type, called by the runtime.
fn check_signature(signature: &Signature, mistakes: &mut Mistakes) {
    if !signature.generics.params.is_empty() {
        mistakes.add(
            &signature.generics,
            "expected a task without generic parameters: a task is registered once, so write one for each choice of them",
        );
    } else if let Some(clause) = &signature.generics.where_clause {
        mistakes.add(
            clause,
            "expected a task without a `where` clause: a task has concrete types, so there is nothing to bound",
        );
    }
    if let Some(token) = &signature.constness {
        mistakes.add(
            token,
            "expected an ordinary function, found a `const fn`: tasks run when the program does; drop `const`",
        );
    }
    if !matches!(signature.safety, Safety::Default) {
        mistakes.add(
            &signature.safety,
            "expected a safe function: the runtime calls a task and can't keep promises for it; drop this and argue in the body",
        );
    }
    if let Some(abi) = &signature.abi {
        mistakes.add(abi, "expected an ordinary function, found a foreign calling convention: drop it");
    }
    if let Some(variadic) = &signature.variadic {
        mistakes.add(variadic, "expected a fixed number of parameters: pass a `Vec` as an argument");
    }
    if let ReturnType::Type(_, ty) = &signature.output {
        mistakes.note(refuse_impl_trait(ty));
        mistakes.note(refuse_borrowed_result(ty));
    }
}

/// Refuses a result that borrows, at any depth that a type written plainly has: the task has ended when the program
/// looks at it.
fn refuse_borrowed_result(ty: &Type) -> Result<()> {
    match ty {
        Type::Reference(reference) if reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static") => {
            let message = format!(
                "expected an owned result, found `{}`: the task has ended when its result is looked at; return an owned value, such as \
                 `String` for `&str`",
                text(ty.to_token_stream())
            );
            Err(Error::new_spanned(ty, message))
        }
        // Serde reads these only out of data that stays. It does not know other references at all, and such a result
        // stays on its node.
        Type::Reference(reference) if is_read_by_reference(&reference.elem) => {
            let message = format!(
                "expected a result that can come from another node, found `{}`: return an owned value, such as `String` for `&str`, \
                 `Vec<u8>` for `&[u8]` or `PathBuf` for `&Path`",
                text(ty.to_token_stream())
            );
            Err(Error::new_spanned(ty, message))
        }
        Type::Tuple(tuple) => tuple.elems.iter().try_for_each(refuse_borrowed_result),
        Type::Array(array) => refuse_borrowed_result(&array.elem),
        _ => {
            last_segment(ty).map(generic_arguments).unwrap_or_default().iter().try_for_each(|argument| match argument {
                GenericArgument::Type(ty) => refuse_borrowed_result(ty),
                _ => Ok(()),
            })
        }
    }
}

/// Whether serde reads references to such values.
fn is_read_by_reference(ty: &Type) -> bool {
    let is_named = |ty: &Type, names: &[&str]| {
        last_segment(ty).is_some_and(|segment| names.iter().any(|name| segment.ident == name))
    };
    match ty {
        Type::Slice(slice) => is_named(&slice.elem, &["u8"]),
        _ => is_named(ty, &["str", "Path"]),
    }
}

/// A task either launches and waits (it has a context and sees regions) or touches data (it has none and sees pieces).
fn check_context(task: &Task, mistakes: &mut Mistakes) {
    for parameter in task.parameters.iter().skip(1).filter(|parameter| matches!(parameter.kind, ParameterKind::Context))
    {
        mistakes.add(&parameter.written.ty, "expected the context once, as the first parameter: move it there");
    }
    let options = &task.options;
    if task.has_context() {
        if let Some(span) = options.leaf {
            mistakes.note::<()>(Err(Error::new(
                span,
                "a leaf task launches nothing and never waits, but this one takes a `&Context`: drop `leaf`, or the context",
            )));
        }
    } else {
        if let Some(span) = options.inner {
            mistakes.note::<()>(Err(Error::new(
                span,
                "an inner task only launches others, for which it needs a context: take `cx: &Context` as the first parameter, or drop \
                 `inner`",
            )));
        }
        if let Some(token) = &task.function.sig.asyncness {
            mistakes.add(
                token,
                "an `async fn` task waits, for which it needs a context: take `cx: &Context` as the first parameter, or drop `async`",
            );
        }
    }
    for parameter in &task.parameters {
        if let ParameterKind::Region(region) = &parameter.kind {
            check_view(parameter, region, task.has_context(), mistakes);
        }
    }
}

fn check_view(parameter: &Parameter, region: &Region, has_context: bool, mistakes: &mut Mistakes) {
    let found = text(parameter.written.ty.to_token_stream());
    match (region.view, has_context) {
        (View::Piece, true) => mistakes.add(
            &parameter.written.ty,
            format!(
                "expected `Region<..>`, found `{found}`: a task that launches gets regions; map them inline to touch the data, or drop \
                 the context"
            ),
        ),
        (View::Region, false) => mistakes.add(
            &parameter.written.ty,
            format!(
                "expected `Piece<..>`, found `{found}`: a task without a context touches data through pieces; to launch tasks on the \
                 region, take `cx: &Context` as the first parameter"
            ),
        ),
        _ => {}
    }
}

impl Returns {
    /// A type whose last segment is `Result` is one; without generic arguments, as `fmt::Result`, it has no value.
    fn of(output: &ReturnType) -> Self {
        let ReturnType::Type(_, ty) = output else {
            return Self::Value(parse_quote!(()));
        };
        match last_segment(ty) {
            Some(segment) if segment.ident == "Result" => {
                let value = generic_arguments(segment).into_iter().find_map(|argument| match argument {
                    GenericArgument::Type(value) => Some(value),
                    _ => None,
                });
                Self::Fallible(value.unwrap_or_else(|| parse_quote!(())))
            }
            _ => Self::Value(Type::clone(ty)),
        }
    }
}
