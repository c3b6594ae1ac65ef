//! Loops over threads: the body becomes a function of its own, of all that is in scope.

use std::fmt::Write;

use super::{Printer, Visible, print};
use crate::loops::source::Dialect;
use crate::loops::source::analysis::outer_reductions;
use crate::loops::source::expression::{type_name, update};
use crate::loops::{LoopKind, Reduction, Statement, Variable};

/// Loops are cut into no more chunks than this.
const CHUNKS: usize = 256;

/// Loops whose iterations are chunks have no more of these; where there are more iterations, some share a chunk.
const MOST_CHUNKS: usize = 1 << 20;

impl Printer<'_> {
    /// A loop that the team runs in chunks. Each chunk reduces into scalars of its own; they are combined in the order
    /// of the chunks.
    pub(super) fn threads(&mut self, number: usize, kind: LoopKind, variable: &Variable, body: &Statement) {
        let name = format!("loop_{number}");
        let reductions = outer_reductions(body);
        self.outline(&name, variable, body, &reductions);
        self.chunk_function(&name, &reductions);
        let fields: Vec<String> = self.scope.iter().flat_map(Visible::parts).map(|(_, name)| name).collect();
        self.line(&format!("if (low_{number} < high_{number}) {{"));
        self.depth += 1;
        self.line(&format!("u64 count = (u64)high_{number} - (u64)low_{number};"));
        // Those that are taken as threads come to them have an iteration each, unless each chunk reduces into a scalar,
        // of which there is room for some.
        let (chunks, most) = match kind {
            LoopKind::Chunks => (format!("{MOST_CHUNKS}"), if reductions.is_empty() { MOST_CHUNKS } else { CHUNKS }),
            _ => ("team.size < 1 ? 1 : team.size".to_owned(), CHUNKS),
        };
        self.line(&format!("i64 chunks = {chunks};"));
        self.line(&format!("if (chunks > {most}) chunks = {most};"));
        self.line("if (count < (u64)chunks) chunks = count;");
        for (reduced, _) in &reductions {
            self.line(&format!("{} r_{}[{CHUNKS}];", type_name(reduced.element), reduced.name));
        }
        let mut values = vec!["team".to_owned()];
        values.extend(fields);
        values.extend([format!("low_{number}"), "count".to_owned(), "chunks".to_owned()]);
        values.extend(reductions.iter().map(|(reduced, _)| format!("r_{}", reduced.name)));
        self.line(&format!("struct {name}_context context = {{ {} }};", values.join(", ")));
        self.line(&format!("const i32 status = team.run(team.team, chunks, {name}_chunk, &context);"));
        self.line("if (status) return status;");
        for (reduced, reduction) in &reductions {
            let partial = format!("r_{}[chunk]", reduced.name);
            let combine =
                update(Dialect::C, &format!("v_{}", reduced.name), reduced.element, Some(*reduction), &partial);
            self.line(&format!("for (i64 chunk = 0; chunk < chunks; ++chunk) {combine}"));
        }
        self.depth -= 1;
        self.line("}");
    }

    /// Prints the body of a loop over threads as a function of what it needs, and of the chunk's bounds.
    fn outline(&mut self, name: &str, variable: &Variable, body: &Statement, reductions: &[(Variable, Reduction)]) {
        let reduced = |visible: &Visible| match visible {
            Visible::Variable(variable) => reductions.iter().any(|(reduced, _)| reduced.name == variable.name),
            Visible::Buffer(_) => false,
        };
        let mut more = vec!["const i64 low".to_owned(), "const i64 high".to_owned()];
        let mut start = String::new();
        let mut end = String::new();
        for (Variable { name, element }, reduction) in reductions {
            let of = type_name(*element);
            more.push(format!("{of} *r_{name}"));
            let identity = reduction.identity(*element).map_or_else(|| "0".to_owned(), |value| print(&value.into()));
            let _ = writeln!(start, "  {of} v_{name} = {identity};");
            let _ = writeln!(end, "  *r_{name} = v_{name};");
        }
        // A scalar that is reduced into is this function's own; what it was outside comes in under another name.
        let head = self.head(name, &more);
        let mut head = head;
        for visible in self.scope.iter().filter(|visible| reduced(visible)) {
            for (type_, part) in visible.parts() {
                head = head.replace(&format!(", {type_} {part},"), &format!(", {type_} outer_{part},"));
            }
        }
        let outer = std::mem::take(&mut self.text);
        let depth = std::mem::replace(&mut self.depth, 1);
        self.unit_strides();
        self.text.push_str(&start);
        self.for_loop("low", "high", variable, body);
        self.depth = depth;
        let text = std::mem::replace(&mut self.text, outer);
        let _ = write!(self.functions, "{head} {{\n{text}{end}  return 0;\n}}\n");
    }

    /// Prints what the team calls for each chunk: it unpacks the context.
    fn chunk_function(&mut self, name: &str, reductions: &[(Variable, Reduction)]) {
        let mut fields = vec![("team_t".to_owned(), "team".to_owned())];
        fields.extend(self.scope.iter().flat_map(Visible::parts));
        let mut arguments: Vec<String> = fields.iter().map(|(_, field)| format!("c->{field}")).collect();
        fields.extend(
            [("i64", "low"), ("u64", "count"), ("i64", "chunks")].map(|(type_, name)| (type_.into(), name.into())),
        );
        arguments.extend(["low".to_owned(), "low + share + (chunk < rest)".to_owned()]);
        for (Variable { name, element }, _) in reductions {
            fields.push((format!("{} *", type_name(*element)), format!("r_{name}")));
            arguments.push(format!("c->r_{name} + chunk"));
        }
        let functions = &mut self.functions;
        let _ = writeln!(functions, "struct {name}_context {{");
        for (type_, field) in fields {
            let _ = writeln!(functions, "  {} {field};", type_.replace("restrict", ""));
        }
        let _ = write!(
            functions,
            "}};\n\
             static i32 {name}_chunk(void *context, i64 chunk) {{\n  \
             const struct {name}_context *c = context;\n  \
             const i64 share = c->count / c->chunks, rest = c->count % c->chunks;\n  \
             const i64 low = c->low + chunk * share + (chunk < rest ? chunk : rest);\n  \
             return {name}({});\n}}\n",
            arguments.join(", ")
        );
    }
}
