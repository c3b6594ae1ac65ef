//! A kernel as C.
//!
//! The source has one exported function, [`ENTRY`], of one argument: an array of words. The first three are the team
//! (function, handle, size); then follow the kernel's parameters in order. A scalar takes a word, a `C64` two; a buffer
//! takes its address, then for each dimension low, high and stride. It returns 0, or 1 for a division by zero, or 2 if
//! there was no memory.
//!
//! Names of the kernel's own follow a prefix that ends with an underscore and has none before: `v_` for a variable,
//! `b_` for a buffer's address, `l0_`, `h0_` and `s0_` for low, high and stride of its first dimension. So no name can
//! be taken for another one's, whatever it is.
//!
//! The body of each `Threads` and `Chunks` loop becomes a function of its own, which the team runs for each chunk.

mod entry;
mod threads;

use std::fmt::Write;

use super::Dialect;
use super::analysis::{any_expression, any_statement, can_vectorise, constant_count, outer_reductions};
use super::contraction::contracts_in_sums_alone;
use super::expression::{element, expression, type_name, type_of, update};
use super::streams::streams;
use crate::element::ElementType;
use crate::loops::{
    Access, BinaryOperator, Buffer, Checked, Expression, Kernel, LoopKind, Parameter, Reduction, Statement, Type,
    Variable,
};
use entry::entry;

/// The name of the exported function.
pub const ENTRY: &str = "maniple_kernel";

/// Buffers of at most so many bytes lie on the stack.
const STACK: i64 = 16 << 10;

/// A loop over vectors with at most so many iterations is one that compilers write out.
const UNROLLED: i64 = 64;

/// How many iterations of a loop that reads buffers along share a step in which these are fetched in advance: a line of
/// the cache has 8 values of 8 bytes.
const FETCHED_AT_ONCE: i64 = 8;

/// For which views a kernel is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strides {
    /// Views with a stride of 1 in the dimension in which they are expected to be [contiguous](Buffer::contiguous).
    /// That can be vectorised well.
    AsExpected,
    /// All views.
    Any,
}

/// `kernel` as C, for views with such `strides`; see the module's documentation for the interface.
pub fn print_c(kernel: &Checked, strides: Strides) -> String {
    let rounded = if contracts_in_sums_alone(kernel) { "" } else { "#define ROUNDED\n" };
    let kernel = kernel.kernel();
    let mut source = format!("{rounded}{}", include_str!("../prelude.c"));
    let has_calls = any_expression(&kernel.body, &|value| {
        matches!(value, Expression::Call(..)) && matches!(type_of(value), Type::Number(element) if element.is_complex())
    });
    if has_calls {
        source.push_str(include_str!("../functions.c"));
    }
    if any_statement(&kernel.body, &|inner| matches!(inner, Statement::Store { atomic: true, .. })) {
        source.push_str(include_str!("../atomic.c"));
    }
    source.push_str(&Printer::new(kernel, strides).kernel());
    source.push_str(&entry(kernel));
    source
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
                        parts.push(("i64".to_owned(), format!("{part}{dimension}_{name}")));
                    }
                }
                parts
            }
        }
    }
}

struct Printer<'a> {
    kernel: &'a Kernel,
    strides: Strides,
    /// Functions that are done.
    functions: String,
    /// The function being printed.
    text: String,
    depth: usize,
    scope: Vec<Visible>,
    /// Makes names of functions and temporaries different.
    counter: usize,
    /// Scalars that stand as integers in the order of floats, while a loop over vectors finds the least or greatest.
    ordered: Vec<Variable>,
}

impl<'a> Printer<'a> {
    fn new(kernel: &'a Kernel, strides: Strides) -> Self {
        let scope = kernel
            .parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Buffer(buffer) => Visible::Buffer(buffer.clone()),
                Parameter::Scalar(variable) => Visible::Variable(variable.clone()),
            })
            .collect();
        Self {
            kernel,
            strides,
            functions: String::new(),
            text: String::new(),
            depth: 1,
            scope,
            counter: 0,
            ordered: Vec::new(),
        }
    }

    fn kernel(mut self) -> String {
        let head = self.head("kernel", &[]);
        self.unit_strides();
        let kernel = self.kernel;
        self.statement(&kernel.body);
        format!("{}{head} {{\n{}  return 0;\n}}\n", self.functions, self.text)
    }

    /// The beginning of a function of all that is in scope, and of `more`.
    fn head(&self, name: &str, more: &[String]) -> String {
        let mut parameters = vec!["const team_t team".to_owned()];
        for (type_, name) in self.scope.iter().flat_map(Visible::parts) {
            // Where strides are known, the parameter is there all the same, under a name that nothing uses.
            let known = if self.is_known(&name) { "known_" } else { "" };
            parameters.push(format!("{type_} {known}{name}"));
        }
        parameters.extend_from_slice(more);
        format!("static __attribute__((noinline)) i32 {name}({})", parameters.join(", "))
    }

    /// Whether `name` is a stride that is 1 in this version.
    fn is_known(&self, name: &str) -> bool {
        self.unit_stride_names().any(|known| known == name)
    }

    fn unit_stride_names(&self) -> impl Iterator<Item = String> {
        let parameters = if self.strides == Strides::AsExpected { &self.kernel.parameters[..] } else { &[] };
        parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Buffer(Buffer { name, contiguous: Some(dimension), .. }) => Some(format!("s{dimension}_{name}")),
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
            Statement::Set { variable, value, reduction: Some(reduction) } if self.ordered.contains(variable) => {
                let (of, minimum) = (type_name(variable.element), *reduction == Reduction::Minimum);
                let (order, sign) = if minimum { ("order_min", "<") } else { ("order_max", ">") };
                let (value, target, integer) = (print(value), ordered_name(variable), integer_name(variable));
                self.line(&format!(
                    "{{ const {integer} value_ = {order}_{of}({value}); {target} = value_ {sign} {target} ? value_ : {target}; }}"
                ));
            }
            Statement::Set { variable, value, reduction } => {
                let target = format!("v_{}", variable.name);
                self.line(&update(Dialect::C, &target, variable.element, *reduction, &print(value)));
            }
            Statement::Store { buffer, indices, value, reduction, atomic } => {
                let target = element(Dialect::C, buffer, indices);
                let text = match reduction {
                    Some(reduction) if *atomic => {
                        let name = reduction.operator().map_or("", |operator| operator.properties().stem);
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
                    LoopKind::Threads | LoopKind::Chunks => self.threads(number, *kind, variable, body),
                    LoopKind::Vector if can_vectorise(body, STACK) => {
                        self.vector(number, variable, body);
                        let bounds = [(low.clone(), high.clone())];
                        if constant_count(&bounds).is_some_and(|count| count <= UNROLLED) {
                            self.line("APART;");
                        }
                    }
                    LoopKind::Serial if *unroll <= 1 && !streams(variable, body).is_empty() => {
                        self.streaming(number, variable, body);
                    }
                    _ => {
                        let copies = Statement::copies(*unroll, body);
                        if copies > 1 {
                            self.line(&format!("UNROLL({copies})"));
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

    /// A loop that reads buffers along, in blocks, before each of which is fetched what later blocks will read.
    fn streaming(&mut self, number: usize, variable: &Variable, body: &Statement) {
        let scope = self.scope.len();
        self.scope.push(Visible::Variable(variable.clone()));
        let name = &variable.name;
        self.line(&format!("for (i64 v_{name} = low_{number}; v_{name} < high_{number};) {{"));
        self.depth += 1;
        for buffer in streams(variable, body) {
            self.line(&format!("AHEAD({});", element(Dialect::C, buffer, &[variable.value()])));
        }
        let rest = format!("high_{number} - v_{name} > {FETCHED_AT_ONCE}");
        let block = format!("{rest} ? v_{name} + {FETCHED_AT_ONCE} : high_{number}");
        self.line(&format!("const i64 block_{number} = {block};"));
        self.block(&format!("for (; v_{name} < block_{number}; ++v_{name})"), body);
        self.depth -= 1;
        self.line("}");
        self.scope.truncate(scope);
    }

    /// A loop over vectors. What it reduces into may be combined in any order, which `omp simd` says for this loop
    /// alone. OpenMP leaves open what NaNs do in its own least and greatest of floats: so these are found among
    /// integers in the same order.
    fn vector(&mut self, number: usize, variable: &Variable, body: &Statement) {
        let mut clauses = String::new();
        let known = self.ordered.len();
        for (reduced, reduction) in outer_reductions(body) {
            let operator = reduction.operator().map_or("", BinaryOperator::name);
            let name = if matches!(reduction, Reduction::Minimum | Reduction::Maximum) && !reduced.element.is_integer()
            {
                let name = ordered_name(&reduced);
                if !self.ordered.contains(&reduced) {
                    let (of, integer) = (type_name(reduced.element), integer_name(&reduced));
                    self.line(&format!("{integer} {name} = order_{operator}_{of}(v_{});", reduced.name));
                    self.ordered.push(reduced);
                }
                name
            } else {
                format!("v_{}", reduced.name)
            };
            let _ = write!(clauses, " reduction({operator}:{name})");
        }
        self.line(&format!("PRAGMA(omp simd{clauses})"));
        self.for_loop(&format!("low_{number}"), &format!("high_{number}"), variable, body);
        for reduced in self.ordered.split_off(known) {
            let of = type_name(reduced.element);
            self.line(&format!("v_{} = of_order_{of}({});", reduced.name, ordered_name(&reduced)));
        }
    }

    fn allocate(&mut self, buffer: &Buffer, bounds: &[(Expression, Expression)], zeroed: bool) {
        let (name, of) = (&buffer.name, type_name(buffer.element));
        let number = self.fresh();
        for (dimension, (low, high)) in bounds.iter().enumerate() {
            let (low, high) = (print(low), print(high));
            self.line(&format!("const i64 l{dimension}_{name} = {low}, h{dimension}_{name} = {high};"));
        }
        self.line(&format!("u64 count_{number} = 1;"));
        for dimension in (0..bounds.len()).rev() {
            self.line(&format!("const i64 s{dimension}_{name} = count_{number};"));
            self.line(&format!(
                "if (__builtin_mul_overflow(count_{number}, (u64)extent(l{dimension}_{name}, h{dimension}_{name}), \
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
            .map(|dimension| format!(" - (u64)l{dimension}_{name} * s{dimension}_{name} * sizeof({of})"))
            .collect();
        let constant = if buffer.access == Access::Read { "const " } else { "" };
        self.line(&format!("{constant}{of} *restrict b_{name} = ({of} *)((u64)m_{name}{});", lowest.concat()));
        self.scope.push(Visible::Buffer(buffer.clone()));
    }
}

/// The integer that stands for a scalar in the order of floats.
fn ordered_name(variable: &Variable) -> String {
    format!("o_{}", variable.name)
}

/// The type of that integer.
fn integer_name(variable: &Variable) -> &'static str {
    if variable.element == ElementType::F32 { "i32" } else { "i64" }
}

fn print(value: &Expression) -> String {
    expression(Dialect::C, value)
}
