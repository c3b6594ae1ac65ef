//! All items of a task, in the order of this file.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::options::Arrangement;
use super::parameter::{Region, RegionLayout};
use super::{Task, body, launch, names};

/// The launching side beside the user's other items, the running side in a scope of its own where its names meet no
/// others.
pub(super) fn items(task: &Task) -> TokenStream {
    let conditions = task.conditions();
    let (pieces, body, runner) = (body::pieces(task), body::function(task), body::runner(task));
    let (aliases, registration) = (names::aliases(task), registration(task));
    let (launching, agreement, free) = match &task.options.variant_of {
        Some(original) => (None, Some(launch::agreement(task, original)), None),
        None => (Some([launch::function(task), launch::landmarks(task)]), None, body::free(task)),
    };
    let launching = launching.into_iter().flatten();
    quote! {
        #(#aliases)*
        #(#launching)*

        #(#conditions)*
        const _: () = {
            #(#pieces)*
            #body
            #runner
            #free
            #registration
            #agreement
        };
    }
}

/// Makes the variant known to the runtime when the program is linked.
fn registration(task: &Task) -> TokenStream {
    let (runtime, options) = (task.runtime(), &task.options);
    let (handle, variant) = (launch::handle_of(task), task.name());
    let (leaf, inner, declares) = (!task.has_context(), options.inner.is_some(), options.variant_of.is_none());
    let layout = match options.layout {
        None => quote!(::core::option::Option::None),
        Some(Arrangement::StructOfArrays) => {
            quote!(::core::option::Option::Some(#runtime::Arrangement::StructOfArrays))
        }
        Some(Arrangement::ArrayOfStructs) => {
            quote!(::core::option::Option::Some(#runtime::Arrangement::ArrayOfStructs))
        }
    };
    let layouts = layouts(task);
    let mapper = match &options.mapper {
        None => quote!(::core::option::Option::None),
        Some(name) => quote!(::core::option::Option::Some(#name)),
    };
    let body = if leaf { quote!(Leaf) } else { quote!(Context) };
    let value = task.value_type();
    // What serde cannot do with a type is shown at the type.
    let codec = quote_spanned!(value.span()=> #runtime::generated::CodecOf::<#value>::NEW.codec());
    // Variants are launched by the task that they belong to.
    let migratable = match task.options.variant_of {
        None => migratable(task),
        Some(_) => quote!(|| ::core::option::Option::None),
    };
    quote! {
        #[#runtime::generated::linkme::distributed_slice(#runtime::generated::TASKS)]
        #[linkme(crate = #runtime::generated::linkme)]
        static __VARIANT: #runtime::generated::VariantRegistration = #runtime::generated::VariantRegistration {
            task: #handle,
            variant: #variant,
            declares: #declares,
            place: (::core::module_path!(), ::core::line!(), ::core::column!()),
            processor: #runtime::ProcessorKind::Cpu,
            options: #runtime::generated::Options {
                inner: #inner,
                layout: #layout,
                mapper: #mapper,
            },
            layouts: #layouts,
            codec: || {
                #[allow(unused_imports)]
                use #runtime::generated::NoCodec as _;
                #codec
            },
            migratable: #migratable,
            body: #runtime::generated::Body::#body(__run),
        };
    }
}

/// The layouts of requirements that say more than the task's options, as a function.
fn layouts(task: &Task) -> TokenStream {
    let runtime = task.runtime();
    let regions: Vec<&Region> = task.regions().map(|(_, region)| region).collect();
    let of_requirements = regions.iter().flat_map(|region| region.requirements.iter().map(move |one| (*region, one)));
    let layouts = of_requirements.enumerate().filter_map(|(number, (region, requirement))| {
        let RegionLayout { arrangement, order, align, pad } = region.layout.of(requirement);
        if arrangement.is_none() && order.is_none() && align.is_none() && pad.is_none() {
            return None;
        }
        let none = || quote!(::core::option::Option::None);
        let arrangement = arrangement.as_ref().map_or_else(none, |word| {
            let arrangement = if word == "soa" { quote!(StructOfArrays) } else { quote!(ArrayOfStructs) };
            quote!(::core::option::Option::Some(#runtime::Arrangement::#arrangement))
        });
        let dimension = &region.dimension;
        let order = order.as_ref().map_or_else(
            none,
            |word| quote!(::core::option::Option::Some(#runtime::DimensionOrder::#word(#dimension))),
        );
        let align = align.as_ref().map_or_else(none, |bytes| quote!(::core::option::Option::Some(#bytes)));
        let pad = pad.as_ref().map_or_else(none, |points| quote!(::core::option::Option::Some(#points)));
        let layout = quote!({ arrangement: #arrangement, order: #order, align: #align, pad: #pad });
        Some(quote!((#number, #runtime::LayoutConstraint #layout)))
    });
    quote!(|| ::std::vec![#(#layouts),*])
}

/// How the task migrates to another node, if serde knows its arguments: they, and its requirements.
fn migratable(task: &Task) -> TokenStream {
    let runtime = task.runtime();
    let types = task.arguments().map(|argument| &argument.written.ty);
    let requirements = launch::migrated(task);
    quote! {
        || {
            #[allow(unused_imports)]
            use #runtime::generated::NotMigratable as _;
            #runtime::generated::MigratableOf::<(#(#runtime::generated::Argument<#types>,)*)>::NEW
                .migratable(|| ::std::vec![#(#requirements),*])
        }
    }
}
