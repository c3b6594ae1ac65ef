//! A number for a field's name, so that a `const` parameter can carry it.
//!
//! `#[derive(Fields)]` implements `FieldNamed<HASH>` for each member and `#[task]` asks for `FieldNamed<HASH>`: the two
//! macros never see each other's input, and meet in this function.

use proc_macro2::Literal;
use syn::Ident;
use syn::ext::IdentExt;

/// FNV-1a with 64 bits (Fowler, Noll and Vo; RFC 9923) of a text.
pub fn fnv1a(text: &str) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    text.bytes().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// The hash of a member's name as a literal of type `u64`; `r#type` and `type` are one name.
pub fn of_name(name: &Ident) -> Literal {
    let mut literal = Literal::u64_suffixed(fnv1a(&name.unraw().to_string()));
    literal.set_span(name.span());
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the test vectors of Landon Curt Noll's reference implementation.
    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_raw_identifier_has_the_hash_of_its_plain_name() {
        let raw: Ident = syn::parse_str("r#type").unwrap();
        assert_eq!(of_name(&raw).to_string(), format!("{}u64", fnv1a("type")));
    }
}
