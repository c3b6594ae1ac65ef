//! The secret of a job: only processes that know it may take part.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The secret that all nodes of a job know, and no other process. It never crosses the wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A new one, of the system's randomness.
    ///
    /// # Errors
    ///
    /// If the system has none.
    pub fn random() -> Result<Self, getrandom::Error> {
        nonce().map(Self)
    }

    /// From 64 hexadecimal digits, as a launcher passes it on; `None` if it is anything else.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let value = |digit: u8| char::from(digit).to_digit(16);
            *byte = (value(pair[0])? * 16 + value(pair[1])?) as u8;
        }
        Some(Self(bytes))
    }

    /// As 64 hexadecimal digits, for the environment of a process. Keep it out of logs and of command lines, which
    /// others can see.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// The proof for these texts, which only a process that knows the secret can give.
    pub(super) fn prove(&self, texts: &[&[u8]]) -> [u8; 32] {
        self.code(texts).finalize().into_bytes().into()
    }

    /// Whether it was said; takes as long whether it is right or wrong.
    pub(super) fn verify(&self, texts: &[&[u8]], proof: &[u8; 32]) -> bool {
        self.code(texts).verify_slice(proof).is_ok()
    }

    fn code(&self, texts: &[&[u8]]) -> Hmac<Sha256> {
        let mut code = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0).expect("a code has keys of any length");
        for text in texts {
            // With its length, so that no two lists of texts look alike.
            code.update(&(text.len() as u64).to_le_bytes());
            code.update(text);
        }
        code
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

/// Bytes that were never used before.
pub(super) fn nonce() -> Result<[u8; 32], getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_it_was_written_and_never_printed() {
        let secret = Secret::random().unwrap();
        assert_eq!(Secret::from_hex(&secret.to_hex()), Some(secret.clone()));
        assert_ne!(Secret::random().unwrap(), secret);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_eq!(Secret::from_hex("12"), None);
        assert_eq!(Secret::from_hex(&"x".repeat(64)), None);
    }

    #[test]
    fn a_proof_holds_for_its_secret_and_its_texts_alone() {
        let (secret, other) = (Secret([1; 32]), Secret([2; 32]));
        let proof = secret.prove(&[b"ab", b"c"]);
        assert!(secret.verify(&[b"ab", b"c"], &proof));
        assert!(!secret.verify(&[b"a", b"bc"], &proof));
        assert!(!other.verify(&[b"ab", b"c"], &proof));
    }

    /// The code itself against a case of RFC 4231 (test case 2, whose key is padded with zeros to ours: HMAC does that
    /// too).
    #[test]
    fn the_code_is_hmac_with_sha_256() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let mut code = <Hmac<Sha256> as KeyInit>::new_from_slice(&key).unwrap();
        code.update(b"what do ya want for nothing?");
        assert!(hex(&code.finalize().into_bytes()).starts_with("5bdcc146bf60754e6a042426089575c7"));
    }
}
