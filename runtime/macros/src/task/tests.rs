//! Tests of the items that functions become, and of the messages about functions that are no tasks.

use quote::quote;

use super::*;

fn expansion(options: TokenStream, function: TokenStream) -> String {
    let tokens = expand(options, function).unwrap();
    syn::parse2::<syn::File>(tokens.clone()).unwrap();
    tokens.to_string()
}

fn messages(options: TokenStream, function: TokenStream) -> Vec<String> {
    expand(options, function).unwrap_err().into_iter().map(|error| error.to_string()).collect()
}

/// The only message about a function without options.
fn message(function: TokenStream) -> String {
    let mut all = messages(quote!(), function);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn says(text: &str, expected: TokenStream) {
    assert!(text.contains(&expected.to_string()), "`{expected}` is not in `{text}`");
}

#[test]
fn the_launching_function_takes_targets_and_arguments_but_neither_context_nor_point() {
    let text = expansion(
        quote!(),
        quote!(
            pub(crate) fn go(
                cx: &Context,
                #[reads(a)] rows: Region<Row, 2>,
                #[point] p: Point<1>,
                mut n: u8,
            ) -> Result<f64> {
            }
        ),
    );
    says(
        &text,
        quote!(pub(crate) fn go(rows: impl ::maniple::IntoTarget<Row, 2>, n: impl ::maniple::IntoArgument<u8>) -> ::maniple::Launch<f64>),
    );
}

#[test]
fn a_result_of_any_path_is_fallible_and_without_arguments_has_no_value() {
    for output in [quote!(Result<u8>), quote!(Result<u8, E>), quote!(std::result::Result<u8, E>)] {
        let text = expansion(quote!(), quote!(fn go() -> #output {}));
        says(&text, quote!(::maniple::Launch<u8>));
        says(&text, quote!(::maniple::generated::fallible(__body_of_go())));
    }
    says(
        &expansion(
            quote!(),
            quote!(
                fn go() -> std::fmt::Result {}
            ),
        ),
        quote!(::maniple::Launch<()>),
    );
    says(
        &expansion(
            quote!(),
            quote!(
                fn go() -> Option<u8> {}
            ),
        ),
        quote!(::maniple::generated::value(__body_of_go())),
    );
}

#[test]
fn the_documentation_tells_the_privileges() {
    let text = expansion(
        quote!(),
        quote! {
            /// Adds.
            #[inline]
            fn go(#[reads(a, r#type)] #[reduces(ops::Sum, c)] rows: Piece<Row>, #[writes(d)] r#in: Piece<Row>) {}
        },
    );
    says(
        &text,
        quote!(#[doc = r" Adds."] #[doc = ""] #[doc = "Privileges: `rows` reads `a`, `type`, reduces(`Sum`) `c`; `in` writes `d`."]),
    );
    says(
        &text,
        quote!(#[inline] #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::unused_async)] fn __body_of_go),
    );
}

#[test]
fn only_an_async_body_is_awaited() {
    says(
        &expansion(
            quote!(),
            quote!(
                async fn go(cx: &Context) {}
            ),
        ),
        quote!(__body_of_go(__call.context()).await),
    );
    says(
        &expansion(
            quote!(),
            quote!(
                fn go(cx: &Context) {}
            ),
        ),
        quote!(value(__body_of_go(__call.context()))),
    );
}

#[test]
fn a_variant_has_no_launching_function_and_refers_to_its_tasks_handle_by_path() {
    let text = expansion(
        quote!(variant_of(a::update)),
        quote!(
            pub fn faster(n: u8) {}
        ),
    );
    says(&text, quote!(task: a::__handle_update));
    says(&text, quote!(variant: "faster"));
    assert!(!text.contains("fn faster") && !text.contains("fn __handle"), "{text}");
}

#[test]
fn privileges_of_variants_agree_whatever_the_names_and_paths() {
    let hash = |function: TokenStream| {
        let task = parse::task(options::parse(quote!()).unwrap(), syn::parse2(function).unwrap()).unwrap();
        launch::privileges_hash(&task)
    };
    let task = hash(quote!(
        fn a(
            #[reads(x)]
            #[reduces(Sum, y)]
            rows: Piece<Row>,
        ) {
        }
    ));
    assert_eq!(
        task,
        hash(quote!(
            fn b(
                #[reads(x)]
                #[reduces(ops::Sum, y)]
                other: Piece<Row>,
            ) {
            }
        ))
    );
    for different in [
        quote!(
            fn b(
                #[writes(x)]
                #[reduces(Sum, y)]
                rows: Piece<Row>,
            ) {
            }
        ),
        quote!(
            fn b(
                #[reads(x)]
                #[reduces(Max, y)]
                rows: Piece<Row>,
            ) {
            }
        ),
        quote!(
            fn b(
                #[reduces(Sum, y)]
                #[reads(x)]
                rows: Piece<Row>,
            ) {
            }
        ),
        quote!(
            fn b(#[reads(x)] rows: Piece<Row>, #[reduces(Sum, y)] more: Piece<Row>) {}
        ),
    ] {
        assert_ne!(task, hash(different.clone()), "{different}");
    }
}

#[test]
fn a_task_that_launches_gets_regions_and_one_that_does_not_gets_pieces() {
    assert_eq!(
        message(quote!(
            fn go(cx: &Context, #[reads(a)] rows: Piece<Row>) {}
        )),
        "expected `Region<..>`, found `Piece<Row>`: a task that launches gets regions; map them inline to touch the data, or drop the context"
    );
    assert_eq!(
        message(quote!(
            fn go(#[reads(a)] rows: maniple::Region<Row, 2>) {}
        )),
        "expected `Piece<..>`, found `maniple::Region<Row, 2>`: a task without a context touches data through pieces; to launch tasks on the \
         region, take `cx: &Context` as the first parameter"
    );
}

#[test]
fn a_context_is_what_separates_leaves_from_the_rest() {
    assert_eq!(
        messages(
            quote!(leaf),
            quote!(
                fn go(cx: &Context) {}
            )
        ),
        ["a leaf task launches nothing and never waits, but this one takes a `&Context`: drop `leaf`, or the context"]
    );
    assert_eq!(
        messages(
            quote!(inner),
            quote!(
                fn go() {}
            )
        ),
        [
            "an inner task only launches others, for which it needs a context: take `cx: &Context` as the first parameter, or drop `inner`"
        ]
    );
    assert_eq!(
        message(quote!(
            async fn go() {}
        )),
        "an `async fn` task waits, for which it needs a context: take `cx: &Context` as the first parameter, or drop `async`"
    );
}

#[test]
fn the_context_is_borrowed_once_and_comes_first() {
    let place = "expected the context once, as the first parameter: move it there";
    assert_eq!(
        message(quote!(
            fn go(n: u8, cx: &Context) {}
        )),
        place
    );
    assert_eq!(
        message(quote!(
            fn go(cx: &Context, again: &Context) {}
        )),
        place
    );
    assert_eq!(
        message(quote!(
            fn go(cx: Context) {}
        )),
        "expected `&Context`, found `Context`: borrow the context"
    );
    assert_eq!(
        message(quote!(
            fn go(cx: &mut Context) {}
        )),
        "expected `&Context`, found `&mut Context`: a context is shared by everything that the task launches"
    );
}

#[test]
fn a_region_needs_a_privilege_and_a_privilege_a_region() {
    assert_eq!(
        message(quote!(
            fn go(rows: Piece<Row>) {}
        )),
        "`rows` is a region without a privilege: say what the task does with its fields by `#[reads(..)]`, `#[writes(..)]`, \
         `#[discards(..)]` or `#[reduces(Operator, ..)]` before the parameter's name"
    );
    assert_eq!(
        message(quote!(
            fn go(#[reads(a)] rows: Vec<u8>) {}
        )),
        "expected `Piece<..>` or `Region<..>` for a parameter with privileges, found `Vec<u8>`"
    );
    for malformed in [quote!(Piece), quote!(Piece<'a, Row>), quote!(Piece<Row, 1, 2>), quote!(Piece<2>)] {
        let message = message(quote!(fn go(#[reads(a)] rows: #malformed) {}));
        assert!(
            message.starts_with("expected `Piece<Fields>` or `Piece<Fields, DIMENSIONS>`, found `Piece"),
            "{message}"
        );
    }
}

#[test]
fn a_privilege_names_fields() {
    for empty in [quote!(reads), quote!(reads())] {
        assert_eq!(
            message(quote!(fn go(#[#empty] rows: Piece<Row>) {})),
            "`reads` names no field: expected `#[reads(field, ..)]`"
        );
    }
    for empty in [quote!(reduces), quote!(reduces()), quote!(reduces(Sum)), quote!(reduces(Sum,))] {
        assert_eq!(
            message(quote!(fn go(#[#empty] rows: Piece<Row>) {})),
            "`reduces` names no field: expected `#[reduces(Operator, field, ..)]`"
        );
    }
}

#[test]
fn an_operator_behind_its_fields_is_one_error_that_says_so() {
    for (given, right) in [
        (quote!(reduces(a, Sum)), "reduces(Sum, a)"),
        (quote!(reduces(a, b, Sum)), "reduces(Sum, a, b)"),
        (quote!(reduces(r#type, Max)), "reduces(Max, r#type)"),
    ] {
        let said = message(quote!(fn go(#[#given] rows: Piece<Row>) {}));
        assert_eq!(said, format!("the operator comes first: `{right}`"));
    }
    expansion(
        quote!(),
        quote!(
            fn go(#[reduces(mine::sum, a)] rows: Piece<Row>, #[reduces(lower, b)] more: Piece<Row>) {}
        ),
    );
}

#[test]
fn a_field_is_named_once_in_a_parameter() {
    let expected = "field `a` already stands in `reads` of this parameter: name it once, with the strongest privilege (`writes` also reads)";
    assert_eq!(
        message(quote!(
            fn go(
                #[reads(a)]
                #[writes(b, a)]
                rows: Piece<Row>,
            ) {
            }
        )),
        expected
    );
    assert_eq!(
        message(quote!(
            fn go(#[reads(a, r#a)] rows: Piece<Row>) {}
        )),
        expected
    );
    expansion(
        quote!(),
        quote!(
            fn go(#[reads(a)] one: Piece<Row>, #[writes(a)] two: Piece<Row>) {}
        ),
    );
}

#[test]
fn a_point_has_dimensions_and_no_privileges() {
    for found in ["Point", "u8", "Point<'a>"] {
        let ty: Type = syn::parse_str(found).unwrap();
        assert_eq!(
            message(quote!(fn go(#[point] p: #ty) {})),
            format!("expected `Point<DIMENSIONS>` for the point of the launch, found `{found}`")
        );
    }
    assert_eq!(
        message(quote!(
            fn go(
                #[point]
                #[reads(a)]
                p: Point<1>,
            ) {
            }
        )),
        "`p` is the point of the launch and has no fields: drop its privileges"
    );
}

#[test]
fn parameters_are_plain_names_of_concrete_owned_types() {
    let pattern = "it, as errors and mappers show the name, and take it apart in the body";
    assert_eq!(
        message(quote!(
            fn go((a, b): (u8, u8)) {}
        )),
        format!("expected a parameter's name, found the pattern `(a, b)`: name {pattern}")
    );
    assert_eq!(
        message(quote!(
            fn go(_: u8) {}
        )),
        format!("expected a parameter's name, found the pattern `_`: name {pattern}")
    );
    assert_eq!(
        message(quote!(
            fn go(text: &str) {}
        )),
        "expected an argument by value, found `&str`: the task may run after its launcher; pass an owned value"
    );
    let concrete = "a task is registered once, so write the type out";
    assert_eq!(
        message(quote!(
            fn go(f: impl Copy) {}
        )),
        format!("expected a concrete type, found `impl Copy`: {concrete}")
    );
    assert_eq!(
        message(quote!(
            fn go() -> Vec<impl Copy> {}
        )),
        format!("expected a concrete type, found `Vec<impl Copy>`: {concrete}")
    );
    assert_eq!(
        message(quote!(
            fn go(&self) {}
        )),
        "expected a function, found a method: a task stands alone, so take what it needs as parameters"
    );
}

#[test]
fn a_layout_is_said_once_of_a_region_in_words_that_do_not_clash() {
    let expected = "expected `soa` (struct of arrays) or `aos` (array of structs), `row_major` or `column_major`, \
                    `align = BYTES` or `pad = POINTS`, or several of these";
    let cases = [
        (quote!(#[layout] #[reads(a)] rows: Piece<Row>), format!("`layout` says nothing: {expected}")),
        (quote!(#[layout()] #[reads(a)] rows: Piece<Row>), format!("`layout` says nothing: {expected}")),
        (quote!(#[layout(rows)] #[reads(a)] rows: Piece<Row>), format!("{expected}, found `rows`")),
        (
            quote!(#[layout(soa, aos)] #[reads(a)] rows: Piece<Row>),
            "`soa` is said before, of the same: keep one".into(),
        ),
        (
            quote!(#[layout(align = 48)] #[reads(a)] rows: Piece<Row>),
            "expected an alignment that is a power of two, in bytes".into(),
        ),
        (
            quote!(#[layout(pad = 1)] #[reads(a)] rows: Piece<Row>),
            "room around a region is for fields of a `Piece` that the task writes or discards, and it has none: drop `pad`".into(),
        ),
        (
            quote!(#[layout(pad = 1, align = 8)] #[writes(a)] rows: Piece<Row>),
            "what is aligned begins with the region's own values, and has no room before them: drop `align` or `pad`".into(),
        ),
        (
            quote!(#[layout(pad = 1, pad = 2)] #[writes(a)] rows: Piece<Row>),
            "`pad` is given twice: keep one".into(),
        ),
        (
            quote!(#[layout(align = 8, align = 16)] #[reads(a)] rows: Piece<Row>),
            "`align` is given twice: keep one".into(),
        ),
        (
            quote!(#[layout(soa)] #[reads(a)] #[layout(align = 8)] rows: Piece<Row>),
            "`layout` is given twice: write both words into one".into(),
        ),
        (quote!(#[layout(soa)] count: u8), "`count` is no region and has no layout: drop `layout`".into()),
        (quote!(#[layout(soa)] #[point] at: Point<1>), "`at` is no region and has no layout: drop `layout`".into()),
    ];
    for (parameter, expected) in cases {
        assert_eq!(message(quote!(fn go(#parameter) {})), expected);
    }
}

#[test]
fn attributes_of_parameters_are_privileges_points_or_lints() {
    assert_eq!(
        message(quote!(
            fn go(#[read(a)] rows: Piece<Row>) {}
        )),
        "expected `reads`, `writes`, `discards`, `reduces`, `layout` or `point`, found `read`"
    );
    assert_eq!(
        message(quote!(
            fn go(#[cfg(test)] n: u8) {}
        )),
        "a task has the same parameters in every build: put the condition on the task, or drop it"
    );
    assert_eq!(
        message(quote!(
            fn go(#[doc = "x"] n: u8) {}
        )),
        "a parameter can't be documented here: describe it in the task's comment"
    );
    says(
        &expansion(
            quote!(),
            quote!(
                fn go(#[expect(unused)] n: u8) {}
            ),
        ),
        quote!(fn __body_of_go(#[expect(unused)] n: u8)),
    );
}

#[test]
fn tasks_are_ordinary_functions() {
    for (function, start) in [
        (
            quote!(
                fn go<T>() {}
            ),
            "expected a task without generic parameters",
        ),
        (
            quote!(
                fn go<'a>() {}
            ),
            "expected a task without generic parameters",
        ),
        (
            quote!(
                fn go()
                where
                    u8: Copy,
                {
                }
            ),
            "expected a task without a `where` clause",
        ),
        (
            quote!(
                const fn go() {}
            ),
            "expected an ordinary function, found a `const fn`",
        ),
        (
            quote!(
                unsafe fn go() {}
            ),
            "expected a safe function",
        ),
        (
            quote!(
                extern "C" fn go() {}
            ),
            "expected an ordinary function, found a foreign calling convention",
        ),
    ] {
        let message = message(function);
        assert!(message.starts_with(start), "{message}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let all = messages(
        quote!(),
        quote!(
            const fn go(_: u8, text: &str) {}
        ),
    );
    assert_eq!(all.len(), 3, "{all:?}");
}

#[test]
fn a_result_borrows_nothing_but_what_is_static() {
    assert_eq!(
        message(quote!(
            fn go() -> Result<(u8, Option<&str>)> {}
        )),
        "expected an owned result, found `&str`: the task has ended when its result is looked at; return an owned value, such as `String` \
         for `&str`"
    );
    let text = expansion(
        quote!(leaf),
        quote!(
            fn go() -> Result<&'static Table> {}
        ),
    );
    says(&text, quote!(::maniple::Launch<&'static Table>));
}

#[test]
fn a_result_can_come_from_another_node() {
    for (result, found) in [
        (quote!(&'static str), "&'static str"),
        (quote!(Result<Option<&'static [u8]>>), "&'static [u8]"),
        (quote!((u8, [&'static std::path::Path; 2])), "&'static std::path::Path"),
    ] {
        assert_eq!(
            message(quote!(fn go() -> #result {})),
            format!(
                "expected a result that can come from another node, found `{found}`: return an owned value, such as `String` for `&str`, \
                 `Vec<u8>` for `&[u8]` or `PathBuf` for `&Path`"
            )
        );
    }
}
