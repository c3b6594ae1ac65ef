//! A kernel as C.
//!
//! The source has one exported function, [`ENTRY`], of one argument: an array of words. The first three are the team (function,
//! handle, size); then follow the kernel's parameters in order. A scalar takes a word, a `C64` two; a buffer takes its address, then for each
//! dimension low, high and stride. It returns 0, or 1 for a division by zero, or 2 if there was no memory.
//!
//! The kernel is printed twice: once for views whose contiguous dimensions have stride 1, and once for all others. The body of each
//! `Threads` loop becomes a function of its own, which the team runs for each chunk.

use std::fmt::Write;

use super::Dialect;
use super::expression::{element, expression, may_fail, type_name, type_of, update};
use crate::loops::{
    Access, Buffer, Checked, Expression, Kernel, LoopKind, Parameter, Reduction, Statement, Type, Variable,
};

/// The name of the exported function.
pub const ENTRY: &str = "maniple_kernel";

/// Threads loops are cut into no more chunks than this.
const CHUNKS: usize = 256;

/// Buffers of at most so many bytes lie on the stack.
const STACK: i64 = 16 << 10;

/// `kernel` as C; see the module's documentation for the interface.
pub fn print_c(kernel: &Checked) -> String {
    let kernel = kernel.kernel();
    let mut source = String::from(include_str!("prelude.c"));
    let has_calls = any_expression(&kernel.body, &|value| {
        matches!(value, Expression::Call(..)) && matches!(type_of(value), Type::Number(element) if element.is_complex())
    });
    if has_calls {
        source.push_str(include_str!("functions.c"));
    }
    if any_statement(&kernel.body, &|inner| matches!(inner, Statement::Store { atomic: true, .. })) {
        source.push_str(include_str!("atomic.c"));
    }
    let strided = kernel
        .parameters
        .iter()
        .any(|parameter| matches!(parameter, Parameter::Buffer(Buffer { contiguous: Some(_), .. })));
    for unit in if strided { &[true, false][..] } else { &[false] } {
        source.push_str(&Printer::new(kernel, *unit).kernel());
    }
    source.push_str(&entry(kernel, strided));
    source
}

fn any_statement(statement: &Statement, test: &impl Fn(&Statement) -> bool) -> bool {
    let mut found = test(statement);
    statement.for_each_child(&mut |inner| found |= any_statement(inner, test));
    found
}

fn any_expression(statement: &Statement, test: &impl Fn(&Expression) -> bool) -> bool {
    fn within(value: &Expression, test: &impl Fn(&Expression) -> bool) -> bool {
        let mut found = test(value);
        value.for_each_operand(|operand| found |= within(operand, test));
        found
    }
    any_statement(statement, &|inner| {
        let mut found = false;
        inner.for_each_expression(&mut |value| found |= within(value, test));
        found
    })
}

/// Whether some view is expected to have a stride of 1, so that two versions are printed.
fn has_contiguous(kernel: &Kernel) -> bool {
    let expects = |parameter: &Parameter| matches!(parameter, Parameter::Buffer(buffer) if buffer.contiguous.is_some());
    kernel.parameters.iter().any(expects)
}

/// Something that a function needs from outside.
#[derive(Clone)]
enum Visible {
    Variable(Variable),
    Buffer(Buffer),
}

impl Visible {
    /// Types and names of the C variables that stand for it.
    fn parts(&self) -> Vec<(String, String)> {
        match self {
            Self::Variable(Variable { name, element }) => vec![(type_name(*element).to_owned(), format!("v_{name}"))],
            Self::Buffer(Buffer { name, element, rank, access, .. }) => {
                let constant = if *access == Access::Read { "const " } else { "" };
                let mut parts = vec![(format!("{constant}{} *restrict", type_name(*element)), format!("b_{name}"))];
                for dimension in 0..*rank {
                    for part in ["l", "h", "s"] {
                        parts.push(("i64".to_owned(), format!("b_{name}_{part}{dimension}")));
                    }
                }
                parts
            }
        }
    }
}

struct Printer<'a> {
    kernel: &'a Kernel,
    unit: bool,
    /// Functions that are done.
    functions: String,
    /// The function being printed.
    text: String,
    depth: usize,
    scope: Vec<Visible>,
    /// Makes names of functions and temporaries different.
    counter: usize,
}

impl<'a> Printer<'a> {
    fn new(kernel: &'a Kernel, unit: bool) -> Self {
        let scope = kernel
            .parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Buffer(buffer) => Visible::Buffer(buffer.clone()),
                Parameter::Scalar(variable) => Visible::Variable(variable.clone()),
            })
            .collect();
        Self { kernel, unit, functions: String::new(), text: String::new(), depth: 1, scope, counter: 0 }
    }

    fn kernel(mut self) -> String {
        let head = self.head(&format!("kernel{}", self.suffix()), &[]);
        self.unit_strides();
        let kernel = self.kernel;
        self.statement(&kernel.body);
        format!("{}{head} {{\n{}  return 0;\n}}\n", self.functions, self.text)
    }

    fn suffix(&self) -> &'static str {
        if self.unit { "_unit" } else { "" }
    }

    /// The beginning of a function of all that is in scope, and of `more`.
    fn head(&self, name: &str, more: &[String]) -> String {
        let mut parameters = vec!["const team_t team".to_owned()];
        for (type_, name) in self.scope.iter().flat_map(Visible::parts) {
            // Where strides are known, the parameter is there all the same, under a name that nobody uses.
            let known = if self.is_known(&name) { "_" } else { "" };
            parameters.push(format!("{type_} {name}{known}"));
        }
        parameters.extend_from_slice(more);
        // The version for other strides is seldom run: it is made small, which halves the time to compile a kernel.
        let seldom = if self.is_seldom() { ", cold" } else { "" };
        format!("static __attribute__((noinline{seldom})) i32 {name}({})", parameters.join(", "))
    }

    /// Whether this version is for views that are not as they were expected.
    fn is_seldom(&self) -> bool {
        !self.unit && has_contiguous(self.kernel)
    }

    /// Whether `name` is a stride that is 1 in this version.
    fn is_known(&self, name: &str) -> bool {
        self.unit_stride_names().any(|known| known == name)
    }

    fn unit_stride_names(&self) -> impl Iterator<Item = String> {
        let parameters = if self.unit { &self.kernel.parameters[..] } else { &[] };
        parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Buffer(Buffer { name, contiguous: Some(dimension), .. }) => {
                Some(format!("b_{name}_s{dimension}"))
            }
            _ => None,
        })
    }

    fn unit_strides(&mut self) {
        for name in self.unit_stride_names().collect::<Vec<_>>() {
            self.line(&format!("const i64 {name} = 1;"));
        }
    }

    fn line(&mut self, text: &str) {
        // Writing to a string succeeds.
        let _ = writeln!(self.text, "{:1$}{text}", "", 2 * self.depth);
    }

    fn fresh(&mut self) -> usize {
        self.counter += 1;
        self.counter
    }

    fn block(&mut self, head: &str, body: &Statement) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        let scope = self.scope.len();
        self.statement(body);
        self.scope.truncate(scope);
        self.depth -= 1;
        self.line("}");
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Sequence(statements) => {
                let scope = self.scope.len();
                for inner in statements {
                    if matches!(inner, Statement::Sequence(_)) {
                        self.block("", inner);
                    } else {
                        self.statement(inner);
                    }
                }
                self.scope.truncate(scope);
            }
            Statement::Let { variable, value, mutable } => {
                let constant = if *mutable { "" } else { "const " };
                let value = print(value);
                self.line(&format!("{constant}{} v_{} = {value};", type_name(variable.element), variable.name));
                self.scope.push(Visible::Variable(variable.clone()));
            }
            Statement::Set { variable, value, reduction } => {
                let target = format!("v_{}", variable.name);
                self.line(&update(Dialect::C, &target, variable.element, *reduction, &print(value)));
            }
            Statement::Store { buffer, indices, value, reduction, atomic } => {
                let target = element(Dialect::C, buffer, indices);
                let text = match reduction {
                    Some(reduction) if *atomic => {
                        let name = match reduction {
                            Reduction::Sum => "add",
                            Reduction::Product => "multiply",
                            Reduction::Minimum => "min",
                            Reduction::Maximum => "max",
                        };
                        format!("atomic_{name}_{}(&{target}, {});", type_name(buffer.element), print(value))
                    }
                    _ => update(Dialect::C, &target, buffer.element, *reduction, &print(value)),
                };
                self.line(&text);
            }
            Statement::For { variable, low, high, kind, unroll, body } => {
                let number = self.fresh();
                self.line("{");
                self.depth += 1;
                self.line(&format!("const i64 low_{number} = {}, high_{number} = {};", print(low), print(high)));
                match kind {
                    LoopKind::Threads => self.threads(number, variable, body),
                    LoopKind::Vector if can_vectorise(body) => self.vector(number, variable, body),
                    _ => {
                        if *unroll > 1 {
                            self.line(&format!("UNROLL({})", (*unroll).min(1024)));
                        }
                        self.for_loop(&format!("low_{number}"), &format!("high_{number}"), variable, body);
                    }
                }
                self.depth -= 1;
                self.line("}");
            }
            Statement::While { condition, body } => self.block(&format!("while ({})", print(condition)), body),
            Statement::If { condition, then, otherwise } => {
                self.block(&format!("if ({})", print(condition)), then);
                if let Some(otherwise) = otherwise {
                    self.block("else", otherwise);
                }
            }
            Statement::Break => self.line("break;"),
            Statement::Continue => self.line("continue;"),
            Statement::Allocate { buffer, bounds, zeroed, .. } => self.allocate(buffer, bounds, *zeroed),
        }
    }

    fn for_loop(&mut self, low: &str, high: &str, variable: &Variable, body: &Statement) {
        let scope = self.scope.len();
        self.scope.push(Visible::Variable(variable.clone()));
        let name = &variable.name;
        self.block(&format!("for (i64 v_{name} = {low}; v_{name} < {high}; ++v_{name})"), body);
        self.scope.truncate(scope);
    }

    /// A loop over vectors. What it reduces into may be summed in any order, which `omp simd` says for this loop alone.
    fn vector(&mut self, number: usize, variable: &Variable, body: &Statement) {
        let mut clauses = String::new();
        for (reduced, reduction) in outer_reductions(body) {
            let operator = match reduction {
                Reduction::Sum => "+",
                Reduction::Product => "*",
                Reduction::Minimum => "min",
                Reduction::Maximum => "max",
            };
            let _ = write!(clauses, " reduction({operator}:v_{})", reduced.name);
        }
        self.line(&format!("PRAGMA(omp simd{clauses})"));
        self.for_loop(&format!("low_{number}"), &format!("high_{number}"), variable, body);
    }

    /// A loop that the team runs in chunks. Each chunk reduces into scalars of its own; they are combined in the order of the chunks.
    fn threads(&mut self, number: usize, variable: &Variable, body: &Statement) {
        let name = format!("loop{}_{number}", self.suffix());
        let reductions = outer_reductions(body);
        self.outline(&name, variable, body, &reductions);
        self.chunk_function(&name, &reductions);
        let fields: Vec<String> = self.scope.iter().flat_map(Visible::parts).map(|(_, name)| name).collect();
        self.line(&format!("if (low_{number} < high_{number}) {{"));
        self.depth += 1;
        self.line(&format!("u64 count = (u64)high_{number} - (u64)low_{number};"));
        self.line("i64 chunks = team.size < 1 ? 1 : team.size;");
        self.line(&format!("if (chunks > {CHUNKS}) chunks = {CHUNKS};"));
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
                head = head.replace(&format!(", {type_} {part},"), &format!(", {type_} {part}_,"));
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

    fn allocate(&mut self, buffer: &Buffer, bounds: &[(Expression, Expression)], zeroed: bool) {
        let (name, of) = (&buffer.name, type_name(buffer.element));
        let number = self.fresh();
        for (dimension, (low, high)) in bounds.iter().enumerate() {
            let (low, high) = (print(low), print(high));
            self.line(&format!("const i64 b_{name}_l{dimension} = {low}, b_{name}_h{dimension} = {high};"));
        }
        self.line(&format!("u64 count_{number} = 1;"));
        for dimension in (0..bounds.len()).rev() {
            self.line(&format!("const i64 b_{name}_s{dimension} = count_{number};"));
            self.line(&format!(
                "if (__builtin_mul_overflow(count_{number}, (u64)extent(b_{name}_l{dimension}, b_{name}_h{dimension}), \
                 &count_{number})) return 2;"
            ));
        }
        match constant_count(bounds) {
            Some(count) if count * buffer.element.size() as i64 <= STACK => {
                let zeros = if zeroed { " = { 0 }" } else { "" };
                self.line(&format!("{of} m_{name}[{}] __attribute__((aligned(64))){zeros};", count.max(1)));
            }
            _ => {
                let zeroed = u8::from(zeroed);
                self.line(&format!(
                    "{of} *m_{name} __attribute__((cleanup(release))) = allocate(count_{number}, sizeof({of}), {zeroed});"
                ));
                self.line(&format!("if (!m_{name}) return 2;"));
            }
        }
        let lowest: Vec<String> = (0..bounds.len())
            .map(|dimension| format!(" - (u64)b_{name}_l{dimension} * b_{name}_s{dimension} * sizeof({of})"))
            .collect();
        let constant = if buffer.access == Access::Read { "const " } else { "" };
        self.line(&format!("{constant}{of} *restrict b_{name} = ({of} *)((u64)m_{name}{});", lowest.concat()));
        self.scope.push(Visible::Buffer(buffer.clone()));
    }
}

fn print(value: &Expression) -> String {
    expression(Dialect::C, value)
}

/// How many elements there are, if all bounds are constants and it is not unreasonable.
pub(super) fn constant_count(bounds: &[(Expression, Expression)]) -> Option<i64> {
    use crate::element::Scalar::I64;
    bounds.iter().try_fold(1_i64, |count, bound| match bound {
        (Expression::Constant(I64(low)), Expression::Constant(I64(high))) => {
            count.checked_mul(high.checked_sub(*low)?.max(0)).filter(|count| *count < 1 << 40)
        }
        _ => None,
    })
}

/// The scalars that `body` reduces into but does not bind, in the order of their first reduction.
pub(super) fn outer_reductions(body: &Statement) -> Vec<(Variable, Reduction)> {
    fn collect(statement: &Statement, found: &mut Vec<(Variable, Reduction)>) {
        if let Statement::Set { variable, reduction: Some(reduction), .. } = statement
            && !found.iter().any(|(known, _)| known == variable)
        {
            found.push((variable.clone(), *reduction));
        }
        statement.for_each_child(&mut |inner| collect(inner, found));
    }
    let mut found = Vec::new();
    collect(body, &mut found);
    body.for_each_bound(&mut |name| found.retain(|(variable, _)| variable.name != *name));
    found
}

/// Whether `omp simd` may be said of a loop with this body: it must not be left early, and reductions must be of C's own types.
fn can_vectorise(body: &Statement) -> bool {
    let stands_in_the_way = |statement: &Statement| {
        let mut fails = match statement {
            Statement::Allocate { bounds, .. } => constant_count(bounds).is_none_or(|count| count * 16 > STACK),
            Statement::Store { atomic, .. } => *atomic,
            Statement::For { kind, .. } => *kind == LoopKind::Threads,
            _ => false,
        };
        statement.for_each_expression(&mut |value| fails |= may_fail(value));
        fails
    };
    !any_statement(body, &stands_in_the_way)
        && outer_reductions(body).iter().all(|(variable, _)| !variable.element.is_complex())
}

/// The exported function: unpacks the words and chooses the version.
fn entry(kernel: &Kernel, strided: bool) -> String {
    let mut text = format!("i32 {ENTRY}(const i64 *word) {{\n  team_t team;\n");
    text.push_str("  __builtin_memcpy(&team, word, sizeof team);\n  word += 3;\n");
    let mut arguments = vec!["team".to_owned()];
    let mut conditions = Vec::new();
    for parameter in &kernel.parameters {
        match parameter {
            Parameter::Scalar(variable) => {
                let (of, name) = (type_name(variable.element), &variable.name);
                let _ = writeln!(text, "  {of} v_{name}; __builtin_memcpy(&v_{name}, word, sizeof v_{name});");
                let _ = writeln!(text, "  word += {};", variable.element.size().div_ceil(8));
                arguments.push(format!("v_{name}"));
            }
            Parameter::Buffer(Buffer { name, element, rank, contiguous, .. }) => {
                let of = type_name(*element);
                let _ = writeln!(text, "  u64 a_{name} = *word++;");
                let mut parts = Vec::new();
                for dimension in 0..*rank {
                    let [low, high, stride] = ["l", "h", "s"].map(|part| format!("b_{name}_{part}{dimension}"));
                    let _ = writeln!(text, "  const i64 {low} = word[0], {high} = word[1], {stride} = word[2];");
                    // Accesses are by global indices: the address is that of the origin, which need not be there.
                    let _ = writeln!(text, "  a_{name} -= (u64){low} * (u64){stride} * sizeof({of}); word += 3;");
                    parts.extend([low, high, stride]);
                }
                arguments.push(format!("({of} *)a_{name}"));
                arguments.extend(parts);
                conditions.extend(contiguous.map(|dimension| format!("b_{name}_s{dimension} == 1")));
            }
        }
    }
    let arguments = arguments.join(", ");
    if strided {
        let _ = writeln!(text, "  if ({}) return kernel_unit({arguments});", conditions.join(" && "));
    }
    let _ = writeln!(text, "  return kernel({arguments});\n}}");
    text
}
