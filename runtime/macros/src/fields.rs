//! `#[derive(Fields)]`: the members of a struct become fields of regions.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, FieldsNamed, Ident, Path, Result};

use crate::hash;

/// The implementations for a struct, or what is wrong with it.
pub fn expand(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let runtime = runtime_path(&input.attrs)?;
    let members = named_members(&input)?;
    let name = &input.ident;

    let columns: Vec<FieldColumn> =
        members.named.iter().enumerate().filter_map(|(id, member)| FieldColumn::new(id, member)).collect();
    let descriptors = columns.iter().map(|column| column.descriptor(&runtime));
    let lookups = columns.iter().map(|column| column.lookup(name, &runtime));
    let members = columns.iter().map(|column| column.named(name, &runtime));
    let values = columns.iter().map(|column| column.value(&runtime));
    let (by_name, rows) = (format_ident!("FieldsOf{}", name.unraw()), format_ident!("RowsOf{}", name.unraw()));
    let vectors = columns.iter().map(|column| column.vector(name, &runtime));
    let visits = columns.iter().map(|column| column.visit(&runtime));
    let constants = columns.iter().map(|column| column.constant(&runtime));
    let names: Vec<&Ident> = columns.iter().map(|column| column.name).collect();

    Ok(quote! {
        #[automatically_derived]
        impl #runtime::Fields for #name {
            fn descriptors() -> ::std::vec::Vec<#runtime::FieldDescriptor> {
                ::std::vec![#(#descriptors),*]
            }
        }

        #(#lookups)*

        #[automatically_derived]
        #[allow(dead_code, non_upper_case_globals)]
        impl #name {
            #(#constants)*
        }

        const _: () = {
            // Only looked up by name: it is never read, and its fields may have types that are private where the struct
            // is not.
            #[allow(dead_code, private_interfaces)]
            pub struct #by_name {
                #(#members),*
            }

            #[automatically_derived]
            impl #runtime::NamedFields for #name {
                type Names = #by_name;
                const NAMES: #by_name = #by_name { #(#values),* };
            }

            // Only the runtime looks into it, and its fields may have types that are private where the struct is not.
            #[derive(::std::default::Default)]
            #[allow(dead_code, private_interfaces)]
            pub struct #rows {
                #(#vectors),*
            }

            #[automatically_derived]
            impl #runtime::generated::Row for #name {
                type Columns = #rows;

                fn push(self, __columns: &mut #rows) {
                    #(__columns.#names.push(self.#names);)*
                }

                fn each(__columns: &mut #rows, __visit: &mut dyn ::std::ops::FnMut(#runtime::FieldId, &mut dyn #runtime::generated::RowColumn)) {
                    #(#visits)*
                }
            }

            // Regions store the members, not the struct: without this the compiler would report members that nothing
            // reads.
            #[allow(dead_code)]
            fn __uses_every_member(__row: #name) -> #name {
                let #name { #(#names),* } = __row;
                #name { #(#names),* }
            }
        };
    })
}

/// A column: a member of the struct, which turns into a field.
struct FieldColumn<'a> {
    name: &'a Ident,
    member: &'a Field,
    id: Literal,
}

impl<'a> FieldColumn<'a> {
    fn new(id: usize, member: &'a Field) -> Option<Self> {
        Some(Self { name: member.ident.as_ref()?, member, id: Literal::usize_unsuffixed(id) })
    }

    fn descriptor(&self, runtime: &Path) -> TokenStream {
        let (ty, text) = (&self.member.ty, self.name.unraw().to_string());
        // The span makes "`String` is not a field value" point at the member's type.
        let field_type = quote_spanned!(ty.span()=> #runtime::FieldType::of::<#ty>());
        let plain_type = quote!({
            #[allow(unused_imports, reason = "of use for types with padding")]
            use #runtime::generated::NoPlainType as _;
            #runtime::generated::PlainTypeOf::<#ty>::NEW.plain_type()
        });
        quote!(#runtime::FieldDescriptor {
            name: ::std::string::String::from(#text),
            ty: #plain_type.unwrap_or_else(|| #field_type)
        })
    }

    fn lookup(&self, name: &Ident, runtime: &Path) -> TokenStream {
        let (ty, id, hash) = (&self.member.ty, &self.id, hash::of_name(self.name));
        quote! {
            #[automatically_derived]
            impl #runtime::FieldNamed<#hash> for #name {
                type Type = #ty;
                const ID: #runtime::FieldId = #runtime::FieldId(#id);
            }
        }
    }

    /// The member of the struct of names.
    fn named(&self, fields: &Ident, runtime: &Path) -> TokenStream {
        let (name, hash) = (self.name, hash::of_name(self.name));
        // Not as written: `Self` means another struct here.
        quote!(pub #name: #runtime::Field<#fields, <#fields as #runtime::FieldNamed<#hash>>::Type>)
    }

    /// The member of the struct of columns.
    fn vector(&self, row: &Ident, runtime: &Path) -> TokenStream {
        let (name, hash) = (self.name, hash::of_name(self.name));
        quote!(pub #name: ::std::vec::Vec<<#row as #runtime::FieldNamed<#hash>>::Type>)
    }

    /// Shows that to a visitor.
    fn visit(&self, runtime: &Path) -> TokenStream {
        let (name, id) = (self.name, &self.id);
        quote!(__visit(#runtime::FieldId(#id), &mut __columns.#name);)
    }

    /// The value of that member.
    fn value(&self, runtime: &Path) -> TokenStream {
        let (name, id) = (self.name, &self.id);
        quote!(#name: #runtime::Field::new(#runtime::FieldId(#id)))
    }

    fn constant(&self, runtime: &Path) -> TokenStream {
        let (name, id, ty, visibility) = (self.name, &self.id, &self.member.ty, &self.member.vis);
        let mut docs: Vec<TokenStream> = self
            .member
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("doc"))
            .map(|doc| quote!(#doc))
            .collect();
        if docs.is_empty() {
            let text = format!("Field `{}`.", name.unraw());
            docs.push(quote!(#[doc = #text]));
        }
        quote! {
            #(#docs)*
            #visibility const #name: #runtime::Field<Self, #ty> = #runtime::Field::new(#runtime::FieldId(#id));
        }
    }
}

/// The members, if the input is a struct that regions can be made of.
fn named_members(input: &DeriveInput) -> Result<&FieldsNamed> {
    let (offender, found) = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(members) => return check_generics(input).map(|()| members),
            Fields::Unnamed(members) => (members.to_token_stream(), "a tuple struct. Give each member a name"),
            Fields::Unit => (input.ident.to_token_stream(), "a struct without members. Add one for each field"),
        },
        Data::Enum(data) => {
            (data.enum_token.to_token_stream(), "an enum. Make it a struct, or store the enum in a member of one")
        }
        Data::Union(data) => (data.union_token.to_token_stream(), "a union. Make it a struct"),
    };
    let expected = "expected a struct with named members, each of which becomes a field of the region";
    Err(Error::new_spanned(offender, format!("{expected}; found {found}")))
}

/// A region's fields have one size each, so the struct must be one type.
fn check_generics(input: &DeriveInput) -> Result<()> {
    let offender = match &input.generics.where_clause {
        _ if !input.generics.params.is_empty() => input.generics.to_token_stream(),
        Some(clause) => clause.to_token_stream(),
        None => return Ok(()),
    };
    let message = format!(
        "expected a struct without generic parameters, found `{}` with some. Write one struct for each choice of them",
        input.ident
    );
    Err(Error::new_spanned(offender, message))
}

/// The path to the runtime's names: `::maniple`, unless `#[fields(crate = path)]` says otherwise.
fn runtime_path(attributes: &[Attribute]) -> Result<Path> {
    let mut runtime = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("fields")) {
        attribute.parse_nested_meta(|option| {
            if !option.path.is_ident("crate") {
                return Err(option.error("unknown option of `fields`: expected `crate = path::to::maniple`"));
            }
            if runtime.is_some() {
                return Err(option.error("`crate` is given twice: keep one"));
            }
            runtime = Some(option.value()?.call(Path::parse_mod_style)?);
            Ok(())
        })?;
    }
    Ok(runtime.unwrap_or_else(|| syn::parse_quote!(::maniple)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expansion(input: TokenStream) -> String {
        let tokens = expand(input).unwrap();
        syn::parse2::<syn::File>(tokens.clone()).unwrap();
        tokens.to_string()
    }

    fn message(input: TokenStream) -> String {
        expand(input).unwrap_err().to_string()
    }

    fn says(text: &str, expected: TokenStream) {
        assert!(text.contains(&expected.to_string()), "`{expected}` is not in `{text}`");
    }

    #[test]
    fn members_are_numbered_in_their_order_and_found_by_the_hash_of_their_name() {
        let text = expansion(quote!(
            struct Wire {
                from: Ptr<Node>,
                current: f32,
            }
        ));
        let (from, current) =
            (Literal::u64_suffixed(hash::fnv1a("from")), Literal::u64_suffixed(hash::fnv1a("current")));
        says(
            &text,
            quote!(impl ::maniple::FieldNamed<#from> for Wire { type Type = Ptr<Node>; const ID: ::maniple::FieldId = ::maniple::FieldId(0); }),
        );
        says(
            &text,
            quote!(impl ::maniple::FieldNamed<#current> for Wire { type Type = f32; const ID: ::maniple::FieldId = ::maniple::FieldId(1); }),
        );
        says(
            &text,
            quote!(
                type Names = FieldsOfWire;
            ),
        );
        says(&text, quote!(pub current: ::maniple::Field<Wire, <Wire as ::maniple::FieldNamed<#current));
        says(&text, quote!(current: ::maniple::Field::new(::maniple::FieldId(1))));
    }

    #[test]
    fn a_constant_has_its_members_visibility_and_documentation() {
        let text = expansion(quote!(
            pub struct Wire {
                /// In amperes.
                pub(crate) current: f32,
                charge: f32,
            }
        ));
        says(&text, quote!(pub(crate) const current: ::maniple::Field<Self, f32>));
        says(&text, quote!(#[doc = r" In amperes."] pub(crate) const));
        says(&text, quote!(#[doc = "Field `charge`."] const charge));
    }

    #[test]
    fn a_raw_member_has_its_plain_name_in_the_region() {
        let text = expansion(quote!(
            struct Row {
                r#type: u8,
            }
        ));
        says(&text, quote!(::std::string::String::from("type")));
        says(&text, quote!(const r#type));
    }

    #[test]
    fn the_path_of_the_runtime_can_be_chosen() {
        let text = expansion(quote!(
            #[fields(crate = crate::model)]
            struct Row {
                value: u8,
            }
        ));
        says(&text, quote!(impl crate::model::Fields for Row));
        assert!(!text.contains("maniple"), "{text}");
    }

    #[test]
    fn only_structs_with_named_members_have_fields() {
        let expected = "expected a struct with named members, each of which becomes a field of the region; found ";
        for (input, found) in [
            (
                quote!(
                    struct Row(f32);
                ),
                "a tuple struct. Give each member a name",
            ),
            (
                quote!(
                    struct Row;
                ),
                "a struct without members. Add one for each field",
            ),
            (
                quote!(
                    enum Row {
                        Full,
                    }
                ),
                "an enum. Make it a struct, or store the enum in a member of one",
            ),
            (quote!(union Row { bits: u32 }), "a union. Make it a struct"),
        ] {
            assert_eq!(message(input), format!("{expected}{found}"));
        }
    }

    #[test]
    fn generic_structs_are_refused() {
        let expected = "expected a struct without generic parameters, found `Row` with some. Write one struct for each choice of them";
        assert_eq!(
            message(quote!(
                struct Row<T> {
                    value: T,
                }
            )),
            expected
        );
        assert_eq!(
            message(quote!(
                struct Row<'a> {
                    value: &'a u8,
                }
            )),
            expected
        );
        assert_eq!(
            message(quote!(
                struct Row
                where
                    u8: Copy,
                {
                    value: u8,
                }
            )),
            expected
        );
    }

    #[test]
    fn options_other_than_the_path_are_refused() {
        assert_eq!(
            message(quote!(
                #[fields(krate = x)]
                struct Row {
                    value: u8,
                }
            )),
            "unknown option of `fields`: expected `crate = path::to::maniple`"
        );
        assert_eq!(
            message(quote!(
                #[fields(crate = x, crate = y)]
                struct Row {
                    value: u8,
                }
            )),
            "`crate` is given twice: keep one"
        );
    }
}
