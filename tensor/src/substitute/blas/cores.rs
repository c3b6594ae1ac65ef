//! Which processors OpenBLAS knows.
//!
//! An OpenBLAS for many processors takes the kernels of one of its *cores*, by the model of the processor. For a model
//! that is newer than itself it may take those of a very old core: a fifth of the speed of the crate `gemm`.

use std::fmt;

/// The vector instructions that a kernel computes with; a processor that has one kind has those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vectors {
    /// SSE: 128 bits.
    Sse,
    /// AVX: 256 bits for some operations, or a multiplication with an addition.
    Avx,
    /// AVX2 and FMA: 256 bits, and a multiplication with an addition.
    Avx2,
    /// AVX-512.
    Avx512,
}

impl fmt::Display for Vectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sse => "SSE",
            Self::Avx => "AVX",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
        })
    }
}

/// The vector instructions with which products are computed (`kernel/x86_64/KERNEL.*`) by the cores of OpenBLAS
/// (0.3.28: `driver/others/dynamic.c`). Cores of 32 bits are left out.
const CORES: [(Vectors, &[&str]); 4] = [
    (
        Vectors::Sse,
        &[
            "Prescott",
            "Core2",
            "Penryn",
            "Dunnington",
            "Nehalem",
            "Atom",
            "Nano",
            "Opteron",
            "Opteron_SSE3",
            "Barcelona",
            "Bobcat",
        ],
    ),
    (Vectors::Avx, &["Sandybridge", "Bulldozer", "Piledriver", "Steamroller", "Excavator"]),
    (Vectors::Avx2, &["Haswell", "Zen"]),
    (Vectors::Avx512, &["SkylakeX", "Cooperlake", "SapphireRapids"]),
];

impl Vectors {
    /// The vector instructions of a core of OpenBLAS. Libraries built for one core alone spell it in capitals.
    pub(super) fn of_core(name: &str) -> Option<Self> {
        let known = |names: &&[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        CORES.iter().find(|(_, names)| known(names)).map(|(vectors, _)| *vectors)
    }

    /// The best vector instructions that this processor has; none if it is of another kind, whose cores the table
    /// lacks.
    pub(super) fn of_processor() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            Some(if is_x86_feature_detected!("avx512f") {
                Self::Avx512
            } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                Self::Avx2
            } else if is_x86_feature_detected!("avx") {
                Self::Avx
            } else {
                Self::Sse
            })
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }
}
