//! One parameter of a task: its kind, and what it may do with which fields.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, GenericArgument, Ident, LitInt, Meta, Pat, PatType, PathArguments, PathSegment, Result, Token,
    Type,
};

/// A parameter, checked.
pub(super) struct Parameter {
    pub(super) name: Ident,
    /// As written, without the attributes that belong to this macro.
    pub(super) written: PatType,
    pub(super) kind: ParameterKind,
}

/// The source of a parameter's value.
pub(super) enum ParameterKind {
    /// The context of the running task.
    Context,
    /// Data of a region, with privileges.
    Region(Box<Region>),
    /// The point of the index launch, of this many dimensions.
    Point(TokenStream),
    /// A value that travels with the launch.
    Argument,
}

/// A region parameter.
pub(super) struct Region {
    pub(super) view: View,
    /// The struct whose members are the fields.
    pub(super) fields: Type,
    /// The number of dimensions of its points: an expression.
    pub(super) dimension: TokenStream,
    /// At least one.
    pub(super) requirements: Vec<Requirement>,
    /// The layout that all of them ask of their data.
    pub(super) layout: RegionLayout,
}

/// The layout of the data of a region.
#[derive(Clone, Default)]
pub(super) struct RegionLayout {
    pub(super) arrangement: Option<Ident>,
    pub(super) order: Option<Ident>,
    /// Bytes.
    pub(super) align: Option<LitInt>,
    /// Points around the region's.
    pub(super) pad: Option<LitInt>,
}

/// How the body sees a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// `Piece`: the data itself, in a task without a context.
    Piece,
    /// `Region`: a name to launch with, in a task with a context.
    Region,
}

/// One attribute: fields with a privilege.
pub(super) struct Requirement {
    pub(super) privilege: Privilege,
    pub(super) fields: Vec<Ident>,
}

/// The privilege of a task on fields.
pub(super) enum Privilege {
    Reads,
    Writes,
    Discards,
    /// With this operator.
    Reduces(Box<Type>),
}

impl Parameter {
    /// Reads a parameter.
    pub(super) fn parse(written: &PatType) -> Result<Self> {
        let mut written = written.clone();
        let name = identifier(&written.pat)?;
        let (mut requirements, mut point, mut layout) = (Vec::new(), None, None);
        for attribute in std::mem::take(&mut written.attrs) {
            match Role::of(&attribute)? {
                Role::Privilege => requirements.push(Requirement::parse(&attribute)?),
                Role::Point => {
                    attribute.meta.require_path_only()?;
                    point = Some(attribute);
                }
                Role::Layout if layout.is_some() => {
                    return Err(Error::new_spanned(attribute, "`layout` is given twice: write both words into one"));
                }
                Role::Layout => layout = Some((RegionLayout::parse(&attribute)?, attribute)),
                Role::Lint => written.attrs.push(attribute),
            }
        }
        check_each_field_is_named_once(&requirements)?;
        let mut kind = ParameterKind::of(&name, &written.ty, requirements, point)?;
        match (&mut kind, layout) {
            (_, None) => {}
            (ParameterKind::Region(region), Some((layout, _))) => {
                region.check_pad(&layout)?;
                region.layout = layout;
            }
            (_, Some((_, attribute))) => {
                let message = format!("`{name}` is no region and has no layout: drop `layout`");
                return Err(Error::new_spanned(attribute, message));
            }
        }
        Ok(Self { name, written, kind })
    }
}

impl ParameterKind {
    fn of(name: &Ident, ty: &Type, requirements: Vec<Requirement>, point: Option<Attribute>) -> Result<Self> {
        if let Some(point) = point {
            if !requirements.is_empty() {
                let message = format!("`{name}` is the point of the launch and has no fields: drop its privileges");
                return Err(Error::new_spanned(point, message));
            }
            return dimension_of_point(ty).map(Self::Point);
        }
        let view = match last_segment(ty).map(|segment| segment.ident.to_string()).as_deref() {
            Some("Piece") => Some(View::Piece),
            Some("Region") => Some(View::Region),
            _ => None,
        };
        match view {
            Some(_) if requirements.is_empty() => Err(Error::new_spanned(
                ty,
                format!(
                    "`{name}` is a region without a privilege: say what the task does with its fields by `#[reads(..)]`, \
                     `#[writes(..)]`, `#[discards(..)]` or `#[reduces(Operator, ..)]` before the parameter's name"
                ),
            )),
            Some(view) => Region::parse(view, ty, requirements).map(|region| Self::Region(Box::new(region))),
            None if !requirements.is_empty() => Err(Error::new_spanned(
                ty,
                format!(
                    "expected `Piece<..>` or `Region<..>` for a parameter with privileges, found `{}`",
                    text(ty.to_token_stream())
                ),
            )),
            None if is_context(ty) => Ok(Self::Context),
            None => check_argument(ty).map(|()| Self::Argument),
        }
    }
}

impl Region {
    fn parse(view: View, ty: &Type, requirements: Vec<Requirement>) -> Result<Self> {
        let malformed = || {
            let view = if view == View::Piece { "Piece" } else { "Region" };
            let message = format!(
                "expected `{view}<Fields>` or `{view}<Fields, DIMENSIONS>`, found `{}`: name the struct that derives `Fields`",
                text(ty.to_token_stream())
            );
            Error::new_spanned(ty, message)
        };
        let arguments = last_segment(ty).map(generic_arguments).unwrap_or_default();
        let (fields, dimension) = match arguments.as_slice() {
            [GenericArgument::Type(fields)] => (fields, quote!(1)),
            [GenericArgument::Type(fields), dimension @ (GenericArgument::Const(_) | GenericArgument::Type(_))] => {
                (fields, dimension.to_token_stream())
            }
            _ => return Err(malformed()),
        };
        Ok(Self { view, fields: fields.clone(), dimension, requirements, layout: RegionLayout::default() })
    }
}

impl Region {
    /// Room around a region is for tasks that use the region alone.
    fn check_pad(&self, layout: &RegionLayout) -> Result<()> {
        let Some(pad) = &layout.pad else { return Ok(()) };
        let writes = |requirement: &Requirement| requirement.privilege.writes();
        if self.view == View::Piece && self.requirements.iter().any(writes) {
            return Ok(());
        }
        let message = "room around a region is for fields of a `Piece` that the task writes or discards, and it has none: drop `pad`";
        Err(Error::new_spanned(pad, message))
    }
}

impl RegionLayout {
    /// The layout that a requirement asks for: with room around the region if it writes.
    pub(super) fn of(&self, requirement: &Requirement) -> Self {
        let pad = self.pad.clone().filter(|_| requirement.privilege.writes());
        Self { pad, ..self.clone() }
    }

    fn parse(attribute: &Attribute) -> Result<Self> {
        let expected = "expected `soa` (struct of arrays) or `aos` (array of structs), `row_major` or `column_major`, \
                        `align = BYTES` or `pad = POINTS`, or several of these";
        let mut layout = Self::default();
        if matches!(attribute.meta, Meta::Path(_)) {
            return Err(Error::new_spanned(attribute, format!("`layout` says nothing: {expected}")));
        }
        attribute.parse_nested_meta(|option| {
            let word = option.path.require_ident()?.clone();
            let place = match word.to_string().as_str() {
                "soa" | "aos" => &mut layout.arrangement,
                "row_major" | "column_major" => &mut layout.order,
                "align" if layout.align.is_some() => return Err(option.error("`align` is given twice: keep one")),
                "align" => {
                    let bytes: LitInt = option.value()?.parse()?;
                    if !bytes.base10_parse::<u32>()?.is_power_of_two() {
                        return Err(Error::new_spanned(
                            bytes,
                            "expected an alignment that is a power of two, in bytes",
                        ));
                    }
                    layout.align = Some(bytes);
                    return Ok(());
                }
                "pad" if layout.pad.is_some() => return Err(option.error("`pad` is given twice: keep one")),
                "pad" => {
                    let points: LitInt = option.value()?.parse()?;
                    points.base10_parse::<u32>()?;
                    layout.pad = Some(points);
                    return Ok(());
                }
                found => return Err(option.error(format!("{expected}, found `{found}`"))),
            };
            match place.replace(word) {
                None => Ok(()),
                Some(before) => Err(option.error(format!("`{before}` is said before, of the same: keep one"))),
            }
        })?;
        match &layout {
            Self { arrangement: None, order: None, align: None, pad: None } => {
                Err(Error::new_spanned(attribute, format!("`layout` says nothing: {expected}")))
            }
            Self { align: Some(_), pad: Some(pad), .. } => Err(Error::new_spanned(
                pad,
                "what is aligned begins with the region's own values, and has no room before them: drop `align` or `pad`",
            )),
            _ => Ok(layout),
        }
    }
}

impl Requirement {
    fn parse(attribute: &Attribute) -> Result<Self> {
        let parser = |input: ParseStream<'_>| {
            let privilege = match name_of(attribute).as_str() {
                "reads" => Privilege::Reads,
                "writes" => Privilege::Writes,
                "discards" => Privilege::Discards,
                _ => {
                    let operator = if input.is_empty() { None } else { Some(input.parse()?) };
                    if !input.is_empty() {
                        input.parse::<Token![,]>()?;
                    }
                    // Without an operator there is no field either, which is the error below.
                    Privilege::Reduces(operator.unwrap_or_else(|| Box::new(syn::parse_quote!(()))))
                }
            };
            let fields = Punctuated::<Ident, Token![,]>::parse_terminated(input)?;
            Ok(Self { privilege, fields: fields.into_iter().collect() })
        };
        if matches!(attribute.meta, Meta::Path(_)) {
            return Err(no_field(attribute));
        }
        let requirement = attribute.parse_args_with(parser)?;
        requirement.check_order(attribute)?;
        if requirement.fields.is_empty() { Err(no_field(attribute)) } else { Ok(requirement) }
    }
}

impl Requirement {
    /// Refuses an operator and fields the wrong way round, as their names tell: then each use of them would be an error
    /// of its own.
    fn check_order(&self, attribute: &Attribute) -> Result<()> {
        let Privilege::Reduces(operator) = &self.privilege else { return Ok(()) };
        let begins_as_type = |name: &Ident| name.unraw().to_string().starts_with(char::is_uppercase);
        let field = match &**operator {
            Type::Path(path) => path.path.get_ident().filter(|name| !begins_as_type(name)),
            _ => None,
        };
        let (Some(field), Some(operator)) = (field, self.fields.iter().find(|name| begins_as_type(name))) else {
            return Ok(());
        };
        let others = self.fields.iter().filter(|name| *name != operator).map(|name| format!(", {name}"));
        let message = format!("the operator comes first: `reduces({operator}, {field}{})`", others.collect::<String>());
        Err(Error::new_spanned(&attribute.meta, message))
    }
}

fn no_field(attribute: &Attribute) -> Error {
    let name = name_of(attribute);
    let expected = if name == "reduces" { "reduces(Operator, field, ..)".into() } else { format!("{name}(field, ..)") };
    Error::new_spanned(attribute, format!("`{name}` names no field: expected `#[{expected}]`"))
}

impl Privilege {
    /// Whether nothing else uses the data meanwhile.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Self::Writes | Self::Discards)
    }

    /// The word for it in attributes and messages.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Discards => "discards",
            Self::Reduces(_) => "reduces",
        }
    }
}

/// The purpose of a parameter's attribute.
enum Role {
    Privilege,
    Point,
    Layout,
    /// For the compiler: kept on the body's parameter.
    Lint,
}

impl Role {
    fn of(attribute: &Attribute) -> Result<Self> {
        match name_of(attribute).as_str() {
            "reads" | "writes" | "discards" | "reduces" => Ok(Self::Privilege),
            "point" => Ok(Self::Point),
            "layout" => Ok(Self::Layout),
            "allow" | "expect" | "warn" | "deny" | "forbid" => Ok(Self::Lint),
            "doc" => Err(Error::new_spanned(
                attribute,
                "a parameter can't be documented here: describe it in the task's comment",
            )),
            "cfg" | "cfg_attr" => Err(Error::new_spanned(
                attribute,
                "a task has the same parameters in every build: put the condition on the task, or drop it",
            )),
            found => Err(Error::new_spanned(
                attribute,
                format!("expected `reads`, `writes`, `discards`, `reduces`, `layout` or `point`, found `{found}`"),
            )),
        }
    }
}

fn name_of(attribute: &Attribute) -> String {
    text(attribute.path().to_token_stream())
}

fn identifier(pattern: &Pat) -> Result<Ident> {
    match pattern {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => Ok(pattern.ident.clone()),
        _ => Err(Error::new_spanned(
            pattern,
            format!(
                "expected a parameter's name, found the pattern `{}`: name it, as errors and mappers show the name, and take it apart \
                 in the body",
                text(pattern.to_token_stream())
            ),
        )),
    }
}

fn check_each_field_is_named_once(requirements: &[Requirement]) -> Result<()> {
    let mut seen: Vec<(Ident, &'static str)> = Vec::new();
    for requirement in requirements {
        for field in &requirement.fields {
            let plain = field.unraw();
            if let Some((_, first)) = seen.iter().find(|(name, _)| *name == plain) {
                let message = format!(
                    "field `{plain}` already stands in `{first}` of this parameter: name it once, with the strongest privilege (`writes` \
                     also reads)"
                );
                return Err(Error::new_spanned(field, message));
            }
            seen.push((plain, requirement.privilege.word()));
        }
    }
    Ok(())
}

fn dimension_of_point(ty: &Type) -> Result<TokenStream> {
    let malformed = || {
        let message =
            format!("expected `Point<DIMENSIONS>` for the point of the launch, found `{}`", text(ty.to_token_stream()));
        Error::new_spanned(ty, message)
    };
    let segment = last_segment(ty).filter(|segment| segment.ident == "Point").ok_or_else(malformed)?;
    match generic_arguments(segment).as_slice() {
        [dimension @ (GenericArgument::Const(_) | GenericArgument::Type(_))] => Ok(dimension.to_token_stream()),
        _ => Err(malformed()),
    }
}

fn is_context(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => reference.mutability.is_none() && is_named_context(&reference.elem),
        Type::Group(group) => is_context(&group.elem),
        _ => false,
    }
}

fn is_named_context(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|segment| segment.ident == "Context")
}

/// An argument is a value of a type that can be written down.
fn check_argument(ty: &Type) -> Result<()> {
    let found = text(ty.to_token_stream());
    let message = match ty {
        Type::Reference(reference) if is_named_context(&reference.elem) => {
            format!("expected `&Context`, found `{found}`: a context is shared by everything that the task launches")
        }
        _ if is_named_context(ty) => format!("expected `&Context`, found `{found}`: borrow the context"),
        Type::Reference(_) => {
            format!(
                "expected an argument by value, found `{found}`: the task may run after its launcher; pass an owned value"
            )
        }
        _ => return refuse_impl_trait(ty),
    };
    Err(Error::new_spanned(ty, message))
}

/// Refuses `impl Trait`, at any depth: a task is registered once, for one type.
pub(super) fn refuse_impl_trait(ty: &Type) -> Result<()> {
    fn find(tokens: TokenStream) -> Option<TokenTree> {
        tokens.into_iter().find_map(|token| match token {
            TokenTree::Ident(ident) if ident == "impl" => Some(TokenTree::Ident(ident)),
            TokenTree::Group(group) => find(group.stream()),
            _ => None,
        })
    }
    match find(ty.to_token_stream()) {
        Some(offender) => {
            let found = text(ty.to_token_stream());
            let message =
                format!("expected a concrete type, found `{found}`: a task is registered once, so write the type out");
            Err(Error::new_spanned(offender, message))
        }
        None => Ok(()),
    }
}

/// The last segment of a path, through the invisible groups that `macro_rules` leave.
pub(super) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

pub(super) fn generic_arguments(segment: &PathSegment) -> Vec<GenericArgument> {
    match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Tokens as a person would write them, near enough for a message.
pub(super) fn text(tokens: TokenStream) -> String {
    let mut text = tokens.to_string();
    for (spaced, tight) in
        [(" :: ", "::"), (":: ", "::"), (" <", "<"), ("< ", "<"), (" >", ">"), (" ,", ","), ("& ", "&"), (" !", "!")]
    {
        text = text.replace(spaced, tight);
    }
    text
}
