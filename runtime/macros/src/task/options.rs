//! The options between the parentheses of `#[task(..)]`.

use proc_macro2::{Span, TokenStream};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Error, Ident, LitStr, Path, Result, parenthesized, parse_quote};

/// The options of a task. Flags keep where they were written, for messages.
pub(super) struct AttributeOptions {
    pub(super) leaf: Option<Span>,
    pub(super) inner: Option<Span>,
    pub(super) name: Option<LitStr>,
    pub(super) variant_of: Option<Path>,
    pub(super) layout: Option<Arrangement>,
    pub(super) mapper: Option<LitStr>,
    pub(super) runtime: Path,
}

/// How the instances of a variant must be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    StructOfArrays,
    ArrayOfStructs,
}

/// Reads the options.
pub(super) fn parse(tokens: TokenStream) -> Result<AttributeOptions> {
    let mut options = AttributeOptions {
        leaf: None,
        inner: None,
        name: None,
        variant_of: None,
        layout: None,
        mapper: None,
        runtime: parse_quote!(::maniple),
    };
    let mut seen = Vec::new();
    syn::meta::parser(|option| {
        let name = option.path.get_ident().map(Ident::to_string).unwrap_or_default();
        if seen.contains(&name) {
            return Err(option.error(format!("`{name}` is given twice: keep one")));
        }
        options.set(&name, &option)?;
        seen.push(name);
        Ok(())
    })
    .parse2(tokens)?;
    match &options {
        AttributeOptions { mapper: Some(mapper), variant_of: Some(_), .. } => {
            Err(Error::new_spanned(mapper, "a variant is launched by the task that it is of: name the mapper there"))
        }
        _ => Ok(options),
    }
}

impl AttributeOptions {
    fn set(&mut self, name: &str, option: &ParseNestedMeta<'_>) -> Result<()> {
        match name {
            "leaf" => self.leaf = Some(option.path.span()),
            "inner" => self.inner = Some(option.path.span()),
            "name" => self.name = Some(name_in(option)?),
            "variant_of" => {
                let task;
                parenthesized!(task in option.input);
                self.variant_of = Some(task.call(Path::parse_mod_style)?);
                if !task.is_empty() {
                    return Err(
                        task.error("expected the path of one task, as in `variant_of(physics::update_voltages)`")
                    );
                }
            }
            "mapper" => self.mapper = Some(option.value()?.parse()?),
            "layout" => self.layout = Some(layout_in(option)?),
            "crate" => self.runtime = option.value()?.call(Path::parse_mod_style)?,
            _ => {
                return Err(option.error(
                    "unknown option of `task`: expected `leaf`, `inner`, `name = \"..\"`, `variant_of(..)`, \
                     `layout = soa` or `layout = aos`, `mapper = \"..\"`, or `crate = ..`",
                ));
            }
        }
        Ok(())
    }
}

fn name_in(option: &ParseNestedMeta<'_>) -> Result<LitStr> {
    let name: LitStr = option.value()?.parse()?;
    if name.value().is_empty() {
        return Err(Error::new_spanned(
            &name,
            "a task's name can't be empty: leave `name` out to use the function's name",
        ));
    }
    Ok(name)
}

fn layout_in(option: &ParseNestedMeta<'_>) -> Result<Arrangement> {
    let name: Ident = option.value()?.parse()?;
    match name.to_string().as_str() {
        "soa" => Ok(Arrangement::StructOfArrays),
        "aos" => Ok(Arrangement::ArrayOfStructs),
        found @ ("row_major" | "column_major") => Err(Error::new_spanned(
            &name,
            format!("say `#[layout({found})]` beside the privileges of the parameters whose data is to lie so"),
        )),
        found => Err(Error::new_spanned(
            &name,
            format!("expected `soa` (struct of arrays) or `aos` (array of structs), found `{found}`"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use quote::{ToTokens, quote};

    use super::*;

    fn message(tokens: TokenStream) -> String {
        match parse(tokens) {
            Ok(_) => panic!("the options are accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn no_option_is_needed() {
        let options = parse(quote!()).unwrap();
        assert!(options.leaf.is_none() && options.inner.is_none());
        assert!(options.name.is_none() && options.variant_of.is_none() && options.layout.is_none());
        assert_eq!(options.runtime.to_token_stream().to_string(), quote!(::maniple).to_string());
    }

    #[test]
    fn every_option_is_read() {
        let options =
            parse(quote!(leaf, inner, name = "update", variant_of(a::b), layout = aos, crate = crate)).unwrap();
        assert!(options.leaf.is_some() && options.inner.is_some());
        assert_eq!(options.name.unwrap().value(), "update");
        assert_eq!(options.variant_of.unwrap().to_token_stream().to_string(), quote!(a::b).to_string());
        assert_eq!(options.layout, Some(Arrangement::ArrayOfStructs));
        assert_eq!(parse(quote!(mapper = "near")).unwrap().mapper.unwrap().value(), "near");
        assert_eq!(options.runtime.to_token_stream().to_string(), "crate");
        assert_eq!(parse(quote!(layout = soa)).unwrap().layout, Some(Arrangement::StructOfArrays));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(message(quote!(leave)).starts_with("unknown option of `task`: expected `leaf`, `inner`, `name"));
        assert!(message(quote!(std::leaf)).starts_with("unknown option of `task`"));
        assert_eq!(
            message(quote!(variant_of(a), mapper = "near")),
            "a variant is launched by the task that it is of: name the mapper there"
        );
        assert_eq!(message(quote!(leaf, leaf)), "`leaf` is given twice: keep one");
        assert_eq!(
            message(quote!(layout = rows)),
            "expected `soa` (struct of arrays) or `aos` (array of structs), found `rows`"
        );
        assert!(message(quote!(layout = column_major)).contains("`#[layout(column_major)]` beside the privileges"));
        assert_eq!(
            message(quote!(name = "")),
            "a task's name can't be empty: leave `name` out to use the function's name"
        );
        assert_eq!(
            message(quote!(variant_of(a, b))),
            "expected the path of one task, as in `variant_of(physics::update_voltages)`"
        );
    }
}
