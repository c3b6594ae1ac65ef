//! The fields that a task names: found in their struct, and said to be none in one place.
//!
//! A region parameter has a type alias `Checked<Struct, { .. }>`. The constant between the braces reads each field by
//! its name and, for a reduction, with the operator. If the compiler refuses it, it says so at the name and is silent
//! about all types and constants that are found through the alias, which are all that the other items have.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Ident};

use super::parameter::{Privilege, Requirement};
use super::{Task, hidden};
use crate::hash;

/// The aliases, beside the launching function.
pub(super) fn aliases(task: &Task) -> impl Iterator<Item = TokenStream> {
    let runtime = task.runtime();
    let conditions: Vec<&Attribute> = task.conditions().collect();
    task.regions().map(move |(parameter, region)| {
        let (fields, alias) = (&region.fields, alias(task, parameter));
        let names = Ident::new("names", Span::mixed_site());
        let uses = region.requirements.iter().flat_map(|requirement| {
            let names = &names;
            requirement.fields.iter().map(move |field| {
                let field_of = quote_spanned!(field.span()=> #names.#field);
                match &requirement.privilege {
                    Privilege::Reduces(operator) => {
                        quote!(#runtime::generated::is_reducible::<#operator, _, _>(#field_of))
                    }
                    _ => field_of,
                }
            })
        });
        quote! {
            #(#conditions)*
            #[doc(hidden)]
            #[allow(non_camel_case_types)]
            type #alias = #runtime::generated::Checked<#fields, {
                let #names = <#fields as #runtime::NamedFields>::NAMES;
                let _ = (#(#uses,)*);
                true
            }>;
        }
    })
}

fn alias(task: &Task, parameter: &Ident) -> Ident {
    hidden("fields_of_", &format_ident!("{}_of_{}", parameter.unraw(), task.function.sig.ident.unraw()))
}

/// A field, with its type and an expression for its number, both found through its name.
pub(super) struct NamedColumn<'a> {
    pub(super) name: &'a Ident,
    pub(super) ty: TokenStream,
    pub(super) id: TokenStream,
}

/// The fields of a requirement of a parameter.
pub(super) fn columns<'a>(
    task: &Task,
    parameter: &Ident,
    requirement: &'a Requirement,
) -> impl Iterator<Item = NamedColumn<'a>> {
    let (runtime, alias) = (task.runtime().clone(), alias(task, parameter));
    requirement.fields.iter().map(move |name| {
        let hash = hash::of_name(name);
        let lookup = quote!(<#alias as #runtime::FieldNamed<#hash>>);
        NamedColumn { name, ty: quote!(#lookup::Type), id: quote!(#lookup::ID) }
    })
}
