//! The exported function.

use std::fmt::Write;

use super::ENTRY;
use crate::loops::source::expression::type_name;
use crate::loops::{Buffer, Kernel, Parameter};

/// The exported function: it unpacks the words.
pub(super) fn entry(kernel: &Kernel) -> String {
    let mut text = format!("i32 {ENTRY}(const i64 *word) {{\n  team_t team;\n");
    text.push_str("  __builtin_memcpy(&team, word, sizeof team);\n  word += 3;\n");
    let mut arguments = vec!["team".to_owned()];
    for parameter in &kernel.parameters {
        match parameter {
            Parameter::Scalar(variable) => {
                let (of, name) = (type_name(variable.element), &variable.name);
                let _ = writeln!(text, "  {of} v_{name}; __builtin_memcpy(&v_{name}, word, sizeof v_{name});");
                let _ = writeln!(text, "  word += {};", variable.element.size().div_ceil(8));
                arguments.push(format!("v_{name}"));
            }
            Parameter::Buffer(Buffer { name, element, rank, .. }) => {
                let of = type_name(*element);
                let _ = writeln!(text, "  u64 a_{name} = *word++;");
                let mut parts = Vec::new();
                for dimension in 0..*rank {
                    let [low, high, stride] = ["l", "h", "s"].map(|part| format!("{part}{dimension}_{name}"));
                    let _ = writeln!(text, "  const i64 {low} = word[0], {high} = word[1], {stride} = word[2];");
                    // Accesses are by global indices: the address is that of the origin, which need not be there.
                    let _ = writeln!(text, "  a_{name} -= (u64){low} * (u64){stride} * sizeof({of}); word += 3;");
                    parts.extend([low, high, stride]);
                }
                arguments.push(format!("({of} *)a_{name}"));
                arguments.extend(parts);
            }
        }
    }
    let arguments = arguments.join(", ");
    let _ = writeln!(text, "  return kernel({arguments});\n}}");
    text
}
