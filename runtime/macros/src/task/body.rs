//! The running side of a task: the user's function, the types through which it sees its data, and what calls it.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, Ident};

use super::launch::{self, local};
use super::names;
use super::parameter::{Parameter, ParameterKind, Privilege, Region, View};
use super::{Returns, Task, hidden};

/// The user's function under another name, its pieces typed with the structs of [`pieces`].
pub(super) fn function(task: &Task) -> TokenStream {
    let signature = &task.function.sig;
    let attributes = task.function.attrs.iter().filter(|attribute| is_for_body(attribute));
    let name = body_name(task);
    let (asyncness, output, block) = (&signature.asyncness, &signature.output, &task.function.block);
    let parameters = task.parameters.iter().map(|parameter| match &parameter.kind {
        ParameterKind::Region(region) if region.view == View::Piece => {
            let (name, attributes) = (&parameter.name, &parameter.written.attrs);
            let piece = piece_name(task, &parameter.name);
            // Writing through an accessor needs `mut`, reading does not; a mapper's test may need neither.
            quote!(#[allow(unused_mut, unused_variables)] #(#attributes)* mut #name: #piece<'_>)
        }
        ParameterKind::Region(_) => {
            let written = &parameter.written;
            quote!(#[allow(unused_variables)] #written)
        }
        _ => parameter.written.to_token_stream(),
    });
    quote! {
        #(#attributes)*
        #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::unused_async)]
        #asyncness fn #name(#(#parameters),*) #output #block
    }
}

/// A struct for each piece: a member for each declared field, of a type that allows what was declared.
pub(super) fn pieces(task: &Task) -> impl Iterator<Item = TokenStream> {
    let runtime = task.runtime();
    task.regions().filter(|(_, region)| region.view == View::Piece).map(move |(name, region)| {
        let (fields, dimension) = (&region.fields, &region.dimension);
        let piece = piece_name(task, name);
        let members = region.requirements.iter().flat_map(|requirement| {
            names::columns(task, name, requirement).map(move |column| {
                let (name, ty) = (column.name, column.ty);
                let access = match &requirement.privilege {
                    Privilege::Reads => quote!(Read<'a, #ty, #dimension>),
                    Privilege::Writes | Privilege::Discards => quote!(Write<'a, #ty, #dimension>),
                    Privilege::Reduces(operator) => quote!(Reduce<'a, #operator, #ty, #dimension>),
                };
                quote!(#name: #runtime::access::#access)
            })
        });
        quote! {
            #[allow(dead_code, non_camel_case_types)]
            struct #piece<'a> {
                #(#members,)*
                __piece: #runtime::access::PieceInfo<'a, #fields, #dimension>,
            }

            impl<'a> ::core::ops::Deref for #piece<'a> {
                type Target = #runtime::access::PieceInfo<'a, #fields, #dimension>;

                fn deref(&self) -> &Self::Target {
                    &self.__piece
                }
            }
        }
    })
}

/// The function that the runtime calls: it takes the parameters out of the call, one by one, and runs the body.
pub(super) fn runner(task: &Task) -> TokenStream {
    let (runtime, body) = (task.runtime(), body_name(task));
    if task.is_free() && task.has_context() && task.options.variant_of.is_none() {
        let name = launch::free_name(task);
        return quote! {
            fn __run(__call: #runtime::generated::ContextCall) -> #runtime::generated::BoxFuture {
                #runtime::generated::run_free::<#name>(__call)
            }
        };
    }
    let parameters = parameters(task);
    let values = values(task);
    let wait = task.function.sig.asyncness.map(|_| quote!(.await));
    let result = match task.returns {
        Returns::Value(_) => quote!(value),
        Returns::Fallible(_) => quote!(fallible),
    };
    let steps = quote! {
        #(#parameters)*
        #runtime::generated::#result(#body(#(#values),*)#wait)
    };
    if task.has_context() {
        quote! {
            fn __run(__call: #runtime::generated::ContextCall) -> #runtime::generated::BoxFuture {
                ::std::boxed::Box::pin(async move { #steps })
            }
        }
    } else {
        quote! {
            #[allow(unused_variables)]
            fn __run(__call: &#runtime::generated::LeafCall<'_>) -> #runtime::Result<#runtime::generated::Value> {
                #steps
            }
        }
    }
}

/// The body of a task without regions by its types, which the launching function names.
pub(super) fn free(task: &Task) -> Option<TokenStream> {
    if !task.is_free() {
        return None;
    }
    let (runtime, body, name, value) = (task.runtime(), body_name(task), launch::free_name(task), task.value_type());
    let types = task.arguments().map(|argument| &argument.written.ty);
    let mut number = 0;
    let mut arguments = Vec::new();
    for Parameter { name, kind, .. } in &task.parameters {
        let argument = match kind {
            ParameterKind::Context | ParameterKind::Region(_) => continue,
            ParameterKind::Point(dimension) => quote!(#runtime::generated::point::<#dimension>(__call.point())?),
            ParameterKind::Argument => {
                let index = Literal::usize_unsuffixed(number);
                number += 1;
                quote!(__arguments.#index.take(__call.point())?)
            }
        };
        let local = local(name);
        arguments.push(quote!(let #local = #argument;));
    }
    let (values, launches) = (values(task), task.has_context());
    let wait = task.function.sig.asyncness.map(|_| quote!(.await));
    let result = match task.returns {
        Returns::Value(_) => quote!(free_value),
        Returns::Fallible(_) => quote!(free_fallible),
    };
    Some(quote! {
        impl #runtime::generated::Free for #name {
            type Arguments = (#(#runtime::generated::Argument<#types>,)*);
            type Value = #value;

            const LAUNCHES: bool = #launches;

            #[allow(unused_variables)]
            fn start(
                __call: #runtime::generated::ForkCall,
                __arguments: Self::Arguments,
            ) -> impl ::core::future::Future<Output = #runtime::generated::FreeResult<#value>> + ::core::marker::Send + 'static {
                async move {
                    #(#arguments)*
                    #runtime::generated::#result(#body(#(#values),*)#wait)
                }
            }
        }
    })
}

/// The arguments of the body: locals that hold the values of parameters.
fn values(task: &Task) -> impl Iterator<Item = TokenStream> {
    task.parameters.iter().map(|parameter| match parameter.kind {
        ParameterKind::Context => quote!(__call.context()),
        _ => local(&parameter.name).to_token_stream(),
    })
}

/// A statement for each parameter that binds its value.
fn parameters(task: &Task) -> Vec<TokenStream> {
    let runtime = task.runtime();
    let mut statements = Vec::new();
    if task.arguments().next().is_some() {
        let types = task.arguments().map(|argument| &argument.written.ty);
        statements.push(quote! {
            let __arguments = __call.arguments::<(#(#runtime::generated::Argument<#types>,)*)>()?;
        });
    }
    let (mut requirement, mut argument) = (0, 0);
    for Parameter { name, kind, .. } in &task.parameters {
        let value = match kind {
            ParameterKind::Context => continue,
            ParameterKind::Region(region) => {
                let value = region_value(task, name, region, requirement);
                requirement += region.requirements.len();
                value
            }
            ParameterKind::Point(dimension) => quote!(#runtime::generated::point::<#dimension>(__call.point())?),
            ParameterKind::Argument => {
                let index = Literal::usize_unsuffixed(argument);
                argument += 1;
                quote!(__arguments.#index.get(__call.point())?)
            }
        };
        let local = local(name);
        statements.push(quote!(let #local = #value;));
    }
    statements
}

/// The value of a region parameter whose first requirement has this number.
fn region_value(task: &Task, name: &Ident, region: &Region, first: usize) -> TokenStream {
    let (fields, dimension) = (&region.fields, &region.dimension);
    let first_number = Literal::usize_unsuffixed(first);
    if region.view == View::Region {
        return quote!(__call.region::<#fields, #dimension>(#first_number)?);
    }
    let piece = piece_name(task, name);
    let members = region.requirements.iter().enumerate().flat_map(|(index, requirement)| {
        let number = Literal::usize_unsuffixed(first + index);
        names::columns(task, name, requirement).map(move |column| {
            let (name, ty, id) = (column.name, column.ty, column.id);
            let access = match &requirement.privilege {
                Privilege::Reads => quote!(read::<#ty, #dimension>),
                Privilege::Writes | Privilege::Discards => quote!(write::<#ty, #dimension>),
                Privilege::Reduces(operator) => quote!(reduce::<#operator, #ty, #dimension>),
            };
            match (&region.layout.pad, requirement.privilege.writes()) {
                (Some(pad), true) => quote!(#name: __call.write_padded::<#ty, #dimension>(#number, #id, #pad)?),
                _ => quote!(#name: __call.#access(#number, #id)?),
            }
        })
    });
    quote!(#piece { #(#members,)* __piece: __call.piece::<#fields, #dimension>(#first_number)? })
}

fn body_name(task: &Task) -> Ident {
    hidden("body_of_", &task.function.sig.ident)
}

/// The compiler shows it when a body uses a field that the task does not declare.
fn piece_name(task: &Task, parameter: &Ident) -> Ident {
    format_ident!("{}_as_declared_by_{}", parameter.unraw(), task.function.sig.ident.unraw(), span = Span::call_site())
}

/// Attributes that mean something to callers are the launching function's; conditions stand on the whole.
fn is_for_body(attribute: &Attribute) -> bool {
    !["doc", "cfg", "deprecated", "must_use"].iter().any(|name| attribute.path().is_ident(name))
}
