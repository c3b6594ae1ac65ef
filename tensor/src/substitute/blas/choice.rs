//! Which library multiplies, and why.
//!
//! A library that is named is taken, or the program is told why not. Else the choice depends on what is installed and
//! on the processor, and on nothing else: if it were timed, a program's results could differ from run to run.

use super::cores::Vectors;
use super::error::BlasError;
use super::library::{Blas, Candidate};

/// Which library multiplies: what [`super::use_library`] takes.
const VARIABLE: &str = "MANIPLE_BLAS";

/// The libraries that are tried if none is named, in this order, each by the names that it goes by.
const USUAL: [[&str; 2]; 3] =
    [["libopenblas.so.0", "libopenblas.so"], ["libblis.so.4", "libblis.so"], ["libmkl_rt.so.2", "libmkl_rt.so"]];

/// The library that multiplies, and the reason.
#[derive(Debug)]
pub(super) struct Choice {
    /// None: the crate `gemm`.
    pub(super) blas: Option<Blas>,
    /// In words.
    pub(super) reason: String,
}

/// The reason why a library is passed over that was not named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// It cannot be used at all.
    #[error(transparent)]
    Unusable(#[from] BlasError),
    /// Its kernels are for processors that can do less, and so are slow, or more, and would not run.
    #[error("{library} takes its kernels for {core}, with {kernels}, where this processor has {processor}")]
    Other { library: String, core: String, kernels: Vectors, processor: Vectors },
    /// It is not known what its kernels compute with.
    #[error("{library} takes its kernels for {core}, and whether they make use of this processor is not known")]
    Unknown { library: String, core: String },
}

impl Choice {
    /// The choice that the environment asks for. A library that cannot be used is replaced by the crate `gemm`, with a
    /// warning.
    pub(super) fn of_environment() -> Self {
        let wanted = std::env::var(VARIABLE).unwrap_or_default();
        Self::of(&wanted).unwrap_or_else(|error| {
            tracing::warn!("matrices are multiplied by the crate gemm, not by {VARIABLE}={wanted}: {error}");
            Self { blas: None, reason: format!("{VARIABLE}={wanted} cannot be used: {error}") }
        })
    }

    /// The choice that a user's words stand for.
    pub(super) fn of(wanted: &str) -> Result<Self, BlasError> {
        let asked = "it was asked for".to_owned();
        Ok(match wanted.trim() {
            "" => Self::automatic(),
            "auto" => {
                let choice = Self::automatic();
                if choice.blas.is_none() {
                    tracing::warn!("matrices are multiplied by the crate gemm: {}", choice.reason);
                }
                choice
            }
            "none" => Self { blas: None, reason: asked },
            name => Self { blas: Some(Candidate::load(name)?.accept()?), reason: asked },
        })
    }

    /// The best choice on this machine, as far as that is known without trying.
    fn automatic() -> Self {
        let processor = Vectors::of_processor();
        let open = |name: &str| {
            let candidate = Candidate::load(name)?;
            let reason = fits(name, candidate.core(), processor)?;
            Ok((candidate.accept()?, reason))
        };
        match first(open) {
            Ok((blas, reason)) => Self { blas: Some(blas), reason },
            Err(refusals) if refusals.is_empty() => {
                Self { blas: None, reason: format!("none of {} is installed", USUAL.as_flattened().join(", ")) }
            }
            Err(refusals) => {
                let refusals: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                Self { blas: None, reason: refusals.join("; ") }
            }
        }
    }
}

/// Whether a library is good for a processor, by the core that its kernels are for if it tells; if so, why.
fn fits(library: &str, core: Option<&str>, processor: Option<Vectors>) -> Result<String, Refusal> {
    let Some(core) = core else { return Ok("it is installed, and chooses its kernels by itself".to_owned()) };
    let (library, core) = (library.to_owned(), core.to_owned());
    match (Vectors::of_core(&core), processor) {
        (Some(kernels), Some(processor)) if kernels == processor => {
            Ok(format!("it is installed, and its kernels use {processor}, the best that this processor has"))
        }
        (Some(kernels), Some(processor)) => Err(Refusal::Other { library, core, kernels, processor }),
        _ => Err(Refusal::Unknown { library, core }),
    }
}

/// The first of the usual libraries that can be opened; else why those are refused that are installed.
pub(super) fn first<L>(open: impl Fn(&'static str) -> Result<L, Refusal>) -> Result<L, Vec<Refusal>> {
    let is_absent = |opened: &Result<L, Refusal>| matches!(opened, Err(Refusal::Unusable(BlasError::Load { .. })));
    let mut refusals = Vec::new();
    for names in USUAL {
        match names.into_iter().map(&open).find(|opened| !is_absent(opened)) {
            Some(Ok(library)) => return Ok(library),
            Some(Err(refusal)) => refusals.push(refusal),
            None => (),
        }
    }
    Err(refusals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_the_crate_gemm() {
        let choice = Choice::of(" none ").expect("nothing can fail");
        assert!(choice.blas.is_none());
        assert_eq!(choice.reason, "it was asked for");
    }

    #[test]
    fn auto_is_what_is_chosen_by_default() {
        let [default, auto] = ["", "auto"].map(|wanted| Choice::of(wanted).expect("gemm is always there"));
        let name = |choice: &Choice| choice.blas.as_ref().map(|blas| blas.name.clone());
        assert_eq!((name(&default), &default.reason), (name(&auto), &auto.reason));
    }

    #[test]
    fn by_default_the_first_library_multiplies_that_knows_the_processor() {
        use Vectors::{Avx, Avx2, Avx512, Sse};
        let (open, blis, mkl) = ("libopenblas.so.0", "libblis.so.4", "libmkl_rt.so.2");
        /// The installed libraries, with the core that each tells; the processor; the library that multiplies, if not
        /// `gemm`.
        type Case<'a> = (&'a [(&'a str, Option<&'a str>)], Option<Vectors>, Option<&'a str>);
        #[rustfmt::skip]
        let table: [Case<'_>; 20] = [
            (&[],                                         Some(Avx2),   None),
            (&[(open, Some("Zen"))],                      Some(Avx2),   Some(open)),
            (&[(open, Some("Haswell"))],                  Some(Avx2),   Some(open)),
            (&[(open, Some("HASWELL"))],                  Some(Avx2),   Some(open)),
            (&[(open, Some("SkylakeX"))],                 Some(Avx512), Some(open)),
            (&[(open, Some("Cooperlake"))],               Some(Avx512), Some(open)),
            (&[(open, Some("SapphireRapids"))],           Some(Avx512), Some(open)),
            (&[(open, Some("Prescott"))],                 Some(Avx512), None),
            (&[(open, Some("Haswell"))],                  Some(Avx512), None),
            (&[(open, Some("Sandybridge"))],              Some(Avx2),   None),
            (&[(open, Some("Excavator"))],                Some(Avx2),   None),
            (&[(open, Some("Sandybridge"))],              Some(Avx),    Some(open)),
            (&[(open, Some("Nehalem"))],                  Some(Sse),    Some(open)),
        (&[(open, Some("SkylakeX"))],                 Some(Avx2),   None),
            (&[(open, Some("Unknown"))],                  Some(Sse),    None),
            (&[(open, Some("neoversen1"))],               None,         None),
            (&[(open, Some("Nehalem")), (blis, None)],    Some(Avx2),   Some(blis)),
        (&[("libopenblas.so", Some("Zen"))],          Some(Avx2),   Some("libopenblas.so")),
            (&[(mkl, None), (open, Some("Zen"))],         Some(Avx2),   Some(open)),
            (&[(mkl, None)],                              None,         Some(mkl)),
        ];
        for (installed, processor, expected) in table {
            let found = first(|name| {
                let absent = || BlasError::Load { library: name.to_owned(), message: "no such file".to_owned() };
                let (_, core) = installed.iter().find(|(known, _)| *known == name).ok_or_else(absent)?;
                fits(name, *core, processor).map(|_| name)
            });
            assert_eq!(found.ok(), expected, "{installed:?} on {processor:?}");
        }
    }

    #[test]
    fn a_library_that_is_passed_over_is_told_with_the_reason_and_absent_ones_are_not() {
        let library = || "libopenblas.so.0".to_owned();
        let refusals = first(|name| match name {
            "libopenblas.so.0" => fits(name, Some("Prescott"), Some(Vectors::Avx512)),
            _ => Err(BlasError::Load { library: name.to_owned(), message: "no such file".to_owned() }.into()),
        });
        let (core, kernels, processor) = ("Prescott".to_owned(), Vectors::Sse, Vectors::Avx512);
        let refusals = refusals.expect_err("none is good for it");
        assert_eq!(refusals, [Refusal::Other { library: library(), core, kernels, processor }]);
        assert_eq!(
            refusals[0].to_string(),
            "libopenblas.so.0 takes its kernels for Prescott, with SSE, where this processor has AVX-512"
        );
        let unknown = fits("libopenblas.so.0", Some("Zen17"), Some(Vectors::Avx2));
        assert_eq!(unknown, Err(Refusal::Unknown { library: library(), core: "Zen17".to_owned() }));
    }
}
