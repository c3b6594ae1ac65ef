//! The launching side of a task: the function that users call to describe a launch, and what other variants need to
//! know of it.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Ident, Path};

use super::names::{self, NamedColumn};
use super::parameter::{ParameterKind, Privilege, Region, Requirement, text};
use super::{Task, hidden};
use crate::hash;

/// The function that describes a launch. It has the task's name, visibility and documentation.
pub(super) fn function(task: &Task) -> TokenStream {
    let runtime = task.runtime();
    let (name, visibility) = (&task.function.sig.ident, &task.function.vis);
    let attributes = task.function.attrs.iter().filter(|attribute| is_for_launch(attribute));
    let privileges = documentation(task).map(|text| quote!(#[doc = ""] #[doc = #text]));
    let handle = hidden("handle_", name);
    let (parameters, value) = (generic_parameters(task), task.value_type());
    let regions = task.regions().enumerate().map(|(index, (name, region))| region_calls(task, index, name, region));
    let arguments = task.arguments().map(|argument| {
        let (name, ty) = (&argument.name, &argument.written.ty);
        quote!(#runtime::IntoArgument::<#ty>::into_argument(#name, __builder))
    });
    let arguments = quote!((#(#arguments,)*));
    let launch = if task.is_free() {
        let body = free_name(task);
        quote!(#runtime::generated::launch_free::<#body>(#handle(), |__builder| #arguments))
    } else {
        quote! {
            #runtime::generated::launch(#handle(), |__builder| {
                #(#regions)*
                let __arguments = #arguments;
                __builder.arguments(__arguments);
            })
        }
    };
    quote! {
        #(#attributes)*
        #privileges
        #[allow(clippy::too_many_arguments)]
        #visibility fn #name(#(#parameters),*) -> #runtime::Launch<#value> {
            #launch
        }
    }
}

/// The type that stands for the body of a task without regions, in that scope where its launching function is.
pub(super) fn free_name(task: &Task) -> Ident {
    hidden("free_", &task.function.sig.ident)
}

/// The type to which the launching function of a task without regions refers: it stands for the body that it launches.
fn free_landmark(task: &Task) -> Option<TokenStream> {
    let (name, conditions) = (free_name(task), task.conditions());
    let landmark = quote! {
        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        struct #name;
    };
    task.is_free().then_some(landmark)
}

/// The items to which variants in other places refer, found by the task's path: its handle and a hash of its
/// privileges.
pub(super) fn landmarks(task: &Task) -> TokenStream {
    let runtime = task.runtime();
    let (ident, visibility) = (&task.function.sig.ident, &task.function.vis);
    let (handle, privileges) = (hidden("handle_", ident), hidden("privileges_", ident));
    let (name, hash) = (task.name(), privileges_hash(task));
    let conditions: Vec<&Attribute> = task.conditions().collect();
    let free = free_landmark(task);
    quote! {
        #free

        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_snake_case)]
        #visibility fn #handle() -> &'static #runtime::generated::TaskHandle {
            static HANDLE: #runtime::generated::TaskHandle =
                #runtime::generated::TaskHandle::new(#name, ::core::concat!(::core::module_path!(), "::", #name));
            &HANDLE
        }

        #(#conditions)*
        #[doc(hidden)]
        #[allow(dead_code, non_upper_case_globals)]
        #visibility const #privileges: u64 = #hash;
    }
}

/// The path of the function that gives a task's handle.
pub(super) fn handle_of(task: &Task) -> Path {
    match &task.options.variant_of {
        Some(original) => sibling(original, "handle_"),
        None => hidden("handle_", &task.function.sig.ident).into(),
    }
}

/// Stops the compilation if a variant takes other parameters than its task, or declares other privileges.
pub(super) fn agreement(task: &Task, original: &Path) -> TokenStream {
    let runtime = task.runtime();
    let (parameters, value) = (generic_parameters(task), task.value_type());
    let names = task.parameters.iter().filter(|parameter| launch_type(runtime, &parameter.kind, quote!()).is_some());
    let names = names.map(|parameter| &parameter.name);
    let (privileges, hash) = (sibling(original, "privileges_"), privileges_hash(task));
    let message = format!(
        "`{}` is a variant of `{}`: expected the same privileges on the same fields of each region, in the same order",
        task.function.sig.ident,
        text(original.to_token_stream())
    );
    let check = quote_spanned!(original.span()=> ::core::assert!(#privileges == #hash, #message));
    quote! {
        const _: () = #check;

        #[allow(dead_code, clippy::too_many_arguments)]
        fn __takes_the_same_parameters(#(#parameters),*) -> #runtime::Launch<#value> {
            #original(#(#names),*)
        }
    }
}

/// The parameters of the launching function: anything that stands for the task's own.
fn generic_parameters(task: &Task) -> Vec<TokenStream> {
    task.parameters
        .iter()
        .filter_map(|parameter| {
            let name = &parameter.name;
            let ty = launch_type(task.runtime(), &parameter.kind, parameter.written.ty.to_token_stream())?;
            Some(quote!(#name: #ty))
        })
        .collect()
}

/// The type of the launching function's parameter for a parameter of the task, if it has one.
fn launch_type(runtime: &Path, kind: &ParameterKind, written: TokenStream) -> Option<TokenStream> {
    match kind {
        ParameterKind::Region(region) => {
            let (fields, dimension) = (&region.fields, &region.dimension);
            Some(quote!(impl #runtime::IntoTarget<#fields, #dimension>))
        }
        ParameterKind::Argument => Some(quote!(impl #runtime::IntoArgument<#written>)),
        ParameterKind::Context | ParameterKind::Point(_) => None,
    }
}

/// Tells the builder of a region and of what is done with it.
fn region_calls(task: &Task, index: usize, name: &Ident, region: &Region) -> TokenStream {
    let runtime = task.runtime();
    let (fields, dimension) = (&region.fields, &region.dimension);
    let number = proc_macro2::Literal::usize_unsuffixed(index);
    let text = name.unraw().to_string();
    let requirements = region.requirements.iter().map(|requirement| {
        let (registrations, privilege, ids) = requirement_of(task, name, requirement);
        quote! {
            #registrations
            __builder.requirement(#privilege, &[#(#ids),*]);
        }
    });
    quote! {
        __builder.region(#number, #text, #runtime::IntoTarget::<#fields, #dimension>::into_target(#name));
        #(#requirements)*
    }
}

/// The facts about each requirement that another node needs if the task migrates there.
pub(super) fn migrated(task: &Task) -> impl Iterator<Item = TokenStream> {
    let runtime = task.runtime();
    task.regions().flat_map(move |(name, region)| {
        region.requirements.iter().map(move |requirement| {
            let fields = &region.fields;
            let (registrations, privilege, ids) = requirement_of(task, name, requirement);
            quote! {{
                #registrations
                #runtime::generated::MigratedRequirement::of::<#fields>(#privilege, &[#(#ids),*])
            }}
        })
    })
}

/// The code that registers the reductions of a requirement, its privilege, and its fields.
fn requirement_of(
    task: &Task,
    parameter: &Ident,
    requirement: &Requirement,
) -> (Option<TokenStream>, TokenStream, Vec<TokenStream>) {
    let runtime = task.runtime();
    let columns: Vec<NamedColumn> = names::columns(task, parameter, requirement).collect();
    let (registrations, privilege) = match &requirement.privilege {
        Privilege::Reads => (None, quote!(Read)),
        Privilege::Writes => (None, quote!(ReadWrite)),
        Privilege::Discards => (None, quote!(Discard)),
        Privilege::Reduces(operator) => {
            let types = columns.iter().map(|column| &column.ty);
            // The machine layer reduces without knowing types: it must have met each pair before the launch is
            // analysed. The first launch sees to that: all launches share the table.
            let registrations = quote! {{
                static MET: ::std::sync::Once = ::std::sync::Once::new();
                MET.call_once(|| { #(#runtime::register_reduction::<#operator, #types>();)* });
            }};
            (Some(registrations), quote!(Reduce(#runtime::OperatorId::of::<#operator>())))
        }
    };
    let ids = columns.into_iter().map(|column| column.id).collect();
    (registrations, quote!(#runtime::Privilege::#privilege), ids)
}

/// An item that belongs to a task elsewhere, beside it.
fn sibling(task: &Path, prefix: &str) -> Path {
    let mut path = task.clone();
    if let Some(last) = path.segments.last_mut() {
        let span = last.ident.span();
        last.ident = hidden(prefix, &last.ident);
        last.ident.set_span(span);
    }
    path
}

/// A hash of the privileges of each region, in order: what a variant must have in common with its task besides types.
/// Of operators only the last segment counts, as paths may be written in several ways.
pub(super) fn privileges_hash(task: &Task) -> u64 {
    let text: Vec<String> = task.regions().map(|(_, region)| privileges_text(region, "")).collect();
    hash::fnv1a(&text.join("; "))
}

/// Attributes that mean something to callers. `allow` also goes with the body; what remains goes there alone.
fn is_for_launch(attribute: &Attribute) -> bool {
    ["doc", "cfg", "deprecated", "must_use", "allow"].iter().any(|name| attribute.path().is_ident(name))
}

/// A sentence on what the task does with its regions, if it has any.
fn documentation(task: &Task) -> Option<String> {
    let regions: Vec<String> =
        task.regions().map(|(name, region)| format!("`{}` {}", name.unraw(), privileges_text(region, "`"))).collect();
    (!regions.is_empty()).then(|| format!("Privileges: {}.", regions.join("; ")))
}

/// "reads `from`, `to`, reduces(`Sum`) `charge`", with the given quote.
fn privileges_text(region: &Region, quote: &str) -> String {
    let requirements = region.requirements.iter().map(|requirement| {
        let operator = match &requirement.privilege {
            Privilege::Reduces(operator) => format!("({quote}{}{quote})", operator_name(operator)),
            _ => String::new(),
        };
        let fields: Vec<String> =
            requirement.fields.iter().map(|field| format!("{quote}{}{quote}", field.unraw())).collect();
        format!("{}{operator} {}", requirement.privilege.word(), fields.join(", "))
    });
    requirements.collect::<Vec<_>>().join(", ")
}

fn operator_name(operator: &syn::Type) -> String {
    match super::parameter::last_segment(operator) {
        Some(segment) => text(segment.to_token_stream()),
        None => text(operator.to_token_stream()),
    }
}

/// The name of a local that holds a parameter's value.
pub(super) fn local(name: &Ident) -> Ident {
    format_ident!("__{}", name.unraw(), span = Span::mixed_site())
}
