//! A rule for signatures: no function takes a tuple apart in its parameters. Its calls would have values without names;
//! a parameter for each, or a struct that names them, tells the reader what they are.

use std::fs;

use maniple_tests::imports::{CRATES, root, sources, without_tests};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_parenthesis(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}

/// The places in a list of tokens at which a part begins: its start, and after each comma that is in no type's angle
/// brackets.
fn starts(tokens: &[TokenTree]) -> Vec<usize> {
    let (mut starts, mut depth) = (vec![0], 0_usize);
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Punct(punct) = token else { continue };
        match punct.as_char() {
            '<' => depth += 1,
            // Not of an arrow.
            '>' if at == 0 || !is_punct(tokens.get(at - 1), '-') => depth = depth.saturating_sub(1),
            ',' if depth == 0 => starts.push(at + 1),
            _ => {}
        }
    }
    starts
}

/// Whether a parameter's pattern is a tuple, perhaps behind attributes, `&` and `mut`.
fn is_tuple(mut parameter: &[TokenTree]) -> bool {
    while let [first, rest @ ..] = parameter {
        parameter = match first {
            TokenTree::Punct(punct) if punct.as_char() == '#' => rest.get(1..).unwrap_or_default(),
            TokenTree::Punct(punct) if punct.as_char() == '&' => rest,
            TokenTree::Ident(ident) if ident == "mut" => rest,
            _ => break,
        };
    }
    is_parenthesis(parameter.first()) && is_punct(parameter.get(1), ':')
}

/// The position after generic parameters, if there are some at this position.
fn after_generics(tokens: &[TokenTree], mut at: usize) -> usize {
    let mut depth = 0_usize;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Punct(punct)) if punct.as_char() == '<' => depth += 1,
            Some(TokenTree::Punct(punct)) if punct.as_char() == '>' && !is_punct(tokens.get(at - 1), '-') => depth -= 1,
            None => return at,
            _ => {}
        }
        if depth == 0 {
            return at + usize::from(is_punct(tokens.get(at), '>'));
        }
        at += 1;
    }
}

/// Collects the functions that take tuples apart, each as often as it does: also methods, in traits too, and functions
/// within others.
fn collect(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens = without_tests(tokens);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => collect(group.stream(), found),
            TokenTree::Ident(ident) if ident == "fn" => {
                // A type of functions has no name.
                let Some(TokenTree::Ident(name)) = tokens.get(at + 1) else { continue };
                let Some(TokenTree::Group(parameters)) = tokens.get(after_generics(&tokens, at + 2)) else { continue };
                let parameters: Vec<_> = parameters.stream().into_iter().collect();
                let tuples = starts(&parameters).into_iter().filter(|&start| is_tuple(&parameters[start..]));
                found.extend(tuples.map(|_| name.to_string()));
            }
            _ => {}
        }
    }
}

#[test]
fn no_function_takes_a_tuple_apart_in_its_parameters() {
    let mut all = Vec::new();
    for path in CRATES.iter().flat_map(|folder| sources(&root().join(folder).join("src"))) {
        let mut found = Vec::new();
        collect(fs::read_to_string(&path).unwrap().parse().expect("tokens of Rust"), &mut found);
        all.extend(found.into_iter().map(|name| format!("{}: {name}", path.display())));
    }
    assert!(all.is_empty(), "give each value a parameter, or the struct that names them:\n{}", all.join("\n"));
}

#[test]
fn parameters_that_take_tuples_apart_are_found_and_others_are_not() {
    let text = "
        fn one((a, b): (u8, u8)) {}
        impl S { async fn two<T: Fn(u8, u8) -> (u8, u8)>(&self, map: Map<u8, T>, &(a, b): &Pair, mut c: u8) {} }
        trait T { fn three(self, #[cold] (mut a, _): (u8, u8), (c, d): (u8, u8)) -> u8 { fn four((a, b): P) {} 1 } }
        fn none(pair: (u8, u8), f: impl Fn((u8, u8)) -> (u8, u8), g: fn(u8, u8), P { a, b }: P) { p.map(|(a, b)| a); }
        fn nor<A, B>(map: Map<(A, B), fn(A, B) -> B>) -> Result<(A, B)> { (a, b): (A, B) }
        #[cfg(test)] mod tests { fn in_tests((a, b): (u8, u8)) {} }
        #[cfg(test)] fn for_tests((a, b): (u8, u8)) {}";
    let mut found = Vec::new();
    collect(text.parse().unwrap(), &mut found);
    assert_eq!(found, ["one", "two", "three", "three", "four"]);
}
