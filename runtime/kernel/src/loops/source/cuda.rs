//! A kernel as CUDA C, for NVRTC.
//!
//! The source has one kernel, [`ENTRY`](super::ENTRY): first a pointer to an `i32` that becomes 1 if an integer is
//! divided by zero, then the parameters in order. A buffer takes its address, then for each dimension low, high and
//! stride, as 64-bit integers. Grid and block have one dimension; any number of blocks and up to 1024 threads, a
//! multiple of 32, will do.
//!
//! Outside of loops over threads, all threads of a block do the same, except that stores are done by one of them, with
//! barriers around. Blocks cannot wait for each other: so stores are inside of the loop over blocks, of which there is
//! one, and nothing is carried out of it except by atomic stores.

use std::fmt::Write;

use super::analysis::{any_statement, constant_count, outer_reductions};
use super::expression::{element, expression, type_name, type_of, update};
use super::{Dialect, ENTRY};
use crate::loops::{
    Access, Buffer, Checked, Expression, Intrinsic, LoopKind, Parameter, Reduction, Statement, Type, Variable,
};

/// A kernel cannot be printed as CUDA C.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// Something is stored, allocated or set outside of the loop over blocks.
    #[error("on a GPU, `{0}` must be in the loop over blocks: make the outermost parallel loop one over blocks")]
    OutsideOfBlocks(String),
    /// A second loop over blocks, or one that is run several times.
    #[error("on a GPU, a kernel has one loop over blocks, and `{0}` is another: make it a kernel of its own")]
    SecondGrid(String),
    /// A scalar is carried out of the loop over blocks.
    #[error("on a GPU, `{0}` is not carried from block to block: reduce into an element, atomically")]
    Carried(String),
    /// A buffer whose size is not known.
    #[error(
        "on a GPU, buffers are allocated with constant bounds, outside of loops over warps or inside of loops over threads; `{0}` is not"
    )]
    Allocation(String),
    /// A reduction that has no form on a GPU.
    #[error("on a GPU, values are combined by sums, products, minima and maxima alone: compute this kernel on CPUs")]
    Reduction,
    /// A function that CUDA does not have.
    #[error("on a GPU, there is no `{0}` of complex numbers")]
    Function(&'static str),
}

/// `kernel` as CUDA C; see the module's documentation for the interface.
///
/// # Errors
///
/// [`CudaError`], if the kernel needs what a GPU does not have.
pub fn print_cuda(kernel: &Checked) -> Result<String, CudaError> {
    let kernel = kernel.kernel();
    let unknown = |statement: &Statement| match statement {
        Statement::Set { reduction, .. } | Statement::Store { reduction, .. } => {
            matches!(reduction, Some(Reduction::Or | Reduction::And | Reduction::Custom(_)))
        }
        _ => false,
    };
    if any_statement(&kernel.body, &unknown) {
        return Err(CudaError::Reduction);
    }
    let mut parameters = vec!["i32 *error".to_owned()];
    let mut printer = Printer { text: String::new(), depth: 1, level: Level::Grid, counter: 0, has_grid: false };
    for parameter in &kernel.parameters {
        match parameter {
            Parameter::Scalar(variable) => {
                parameters.push(format!("{} v_{}", type_name(variable.element), variable.name));
            }
            Parameter::Buffer(buffer) => printer.view(buffer, &mut parameters),
        }
    }
    printer.statement(&kernel.body)?;
    let prelude = include_str!("prelude.cu");
    Ok(format!("{prelude}extern \"C\" __global__ void {ENTRY}({}) {{\n{}}}\n", parameters.join(", "), printer.text))
}

/// The threads that run a statement together.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    /// All threads of all blocks do the same.
    Grid,
    /// All threads of a block do the same.
    Block,
    /// All threads of a warp do the same.
    Warp,
    /// Each thread for itself.
    Thread,
}

struct Printer {
    text: String,
    depth: usize,
    level: Level,
    counter: usize,
    /// Whether the loop over blocks was printed.
    has_grid: bool,
}

fn print(value: &Expression) -> String {
    expression(Dialect::Cuda, value)
}

fn first_line(statement: &Statement) -> String {
    statement.to_string().lines().next().unwrap_or_default().to_owned()
}

fn operation(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::Sum => "add",
        Reduction::Product => "multiply",
        Reduction::Minimum => "min",
        Reduction::Maximum => "max",
        Reduction::Or => "or",
        Reduction::And => "and",
        // Refused before anything is printed.
        Reduction::Custom(_) => "custom",
    }
}

impl Printer {
    fn line(&mut self, text: &str) {
        // Writing to a string succeeds.
        let _ = writeln!(self.text, "{:1$}{text}", "", 2 * self.depth);
    }

    fn view(&mut self, Buffer { name, element, rank, access, .. }: &Buffer, parameters: &mut Vec<String>) {
        let of = type_name(*element);
        parameters.push(format!("u64 a_{name}"));
        for dimension in 0..*rank {
            let [low, high, stride] = ["l", "h", "s"].map(|part| format!("{part}{dimension}_{name}"));
            self.line(&format!("a_{name} -= (u64){low} * (u64){stride} * sizeof({of});"));
            parameters.extend([low, high, stride].map(|part| format!("i64 {part}")));
        }
        let constant = if *access == Access::Read { "const " } else { "" };
        self.line(&format!("{constant}{of} *__restrict__ b_{name} = ({of} *)a_{name};"));
    }

    fn block(&mut self, head: &str, body: &Statement) -> Result<(), CudaError> {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        self.statement(body)?;
        self.depth -= 1;
        self.line("}");
        Ok(())
    }

    /// Waits for the other threads that do the same, if there are any.
    fn barrier(&mut self) {
        match self.level {
            Level::Block => self.line("__syncthreads();"),
            Level::Warp => self.line("__syncwarp();"),
            Level::Grid | Level::Thread => {}
        }
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), CudaError> {
        let mut wrong = None;
        statement.for_each_expression(&mut |value| wrong = wrong.or(missing_function(value)));
        if let Some(function) = wrong {
            return Err(CudaError::Function(function.name()));
        }
        match statement {
            Statement::Sequence(statements) => {
                for inner in statements {
                    if matches!(inner, Statement::Sequence(_)) {
                        self.block("", inner)?;
                    } else {
                        self.statement(inner)?;
                    }
                }
                Ok(())
            }
            Statement::Let { variable, value, mutable } => {
                let constant = if *mutable { "" } else { "const " };
                let (of, name) = (type_name(variable.element), &variable.name);
                self.line(&format!("{constant}{of} v_{name} = {};", print(value)));
                Ok(())
            }
            Statement::Set { variable, value, reduction } => {
                let target = format!("v_{}", variable.name);
                self.line(&update(Dialect::Cuda, &target, variable.element, *reduction, &print(value)));
                Ok(())
            }
            Statement::Store { .. } => self.store(statement),
            Statement::For { variable, low, high, kind, unroll, body } => {
                self.counter += 1;
                let number = self.counter;
                self.line("{");
                self.depth += 1;
                self.line(&format!("const i64 low_{number} = {}, high_{number} = {};", print(low), print(high)));
                let bounds = [format!("low_{number}"), format!("high_{number}")];
                match (kind, self.level) {
                    (LoopKind::Block, Level::Grid) => self.grid(statement, variable, &bounds, body)?,
                    (LoopKind::Warp, Level::Block) | (LoopKind::Thread, Level::Block | Level::Warp) => {
                        self.parallel(*kind, variable, &bounds, body)?;
                    }
                    _ => {
                        let copies = Statement::copies(*unroll, body);
                        if copies > 1 {
                            self.line(&format!("UNROLL({copies})"));
                        }
                        self.for_loop(variable, &bounds, "0", "1", body)?;
                    }
                }
                self.depth -= 1;
                self.line("}");
                Ok(())
            }
            Statement::While { condition, body } => self.block(&format!("while ({})", print(condition)), body),
            Statement::If { condition, then, otherwise } => {
                self.block(&format!("if ({})", print(condition)), then)?;
                match otherwise {
                    Some(otherwise) => self.block("else", otherwise),
                    None => Ok(()),
                }
            }
            Statement::Break => {
                self.line("break;");
                Ok(())
            }
            Statement::Continue => {
                self.line("continue;");
                Ok(())
            }
            Statement::Allocate { buffer, bounds, zeroed, .. } => self.allocate(statement, buffer, bounds, *zeroed),
        }
    }

    fn store(&mut self, statement: &Statement) -> Result<(), CudaError> {
        let Statement::Store { buffer, indices, value, reduction, atomic } = statement else { return Ok(()) };
        let target = element(Dialect::Cuda, buffer, indices);
        let text = match reduction {
            Some(reduction) if *atomic => {
                let of = type_name(buffer.element);
                format!("atomic_{}_{of}(&{target}, {});", operation(*reduction), print(value))
            }
            _ => update(Dialect::Cuda, &target, buffer.element, *reduction, &print(value)),
        };
        // Others may still be loading what is stored, and will load it next.
        self.barrier();
        match self.level {
            Level::Grid => return Err(CudaError::OutsideOfBlocks(first_line(statement))),
            Level::Block => self.line(&format!("if (threadIdx.x == 0) {{ {text} }}")),
            Level::Warp => self.line(&format!("if ((threadIdx.x & 31) == 0) {{ {text} }}")),
            Level::Thread => self.line(&text),
        }
        self.barrier();
        Ok(())
    }

    fn for_loop(
        &mut self,
        variable: &Variable,
        [low, high]: &[String; 2],
        first: &str,
        step: &str,
        body: &Statement,
    ) -> Result<(), CudaError> {
        let name = &variable.name;
        self.block(&format!("for (i64 v_{name} = {low} + {first}; v_{name} < {high}; v_{name} += {step})"), body)
    }

    fn grid(
        &mut self,
        statement: &Statement,
        variable: &Variable,
        bounds: &[String; 2],
        body: &Statement,
    ) -> Result<(), CudaError> {
        // Deeper than the kernel's own sequence, it might run several times.
        if std::mem::replace(&mut self.has_grid, true) || self.depth > 2 {
            return Err(CudaError::SecondGrid(first_line(statement)));
        }
        if let Some((carried, _)) = outer_reductions(body).first() {
            return Err(CudaError::Carried(carried.name.to_string()));
        }
        self.level = Level::Block;
        self.for_loop(variable, bounds, "blockIdx.x", "gridDim.x", body)?;
        self.level = Level::Grid;
        Ok(())
    }

    /// A loop that the threads or warps of this level share.
    fn parallel(
        &mut self,
        kind: LoopKind,
        variable: &Variable,
        bounds: &[String; 2],
        body: &Statement,
    ) -> Result<(), CudaError> {
        let outer = self.level;
        let (inner, first, step) = match (kind, outer) {
            (LoopKind::Warp, _) => (Level::Warp, "threadIdx.x / 32", "blockDim.x / 32"),
            (_, Level::Warp) => (Level::Thread, "(threadIdx.x & 31)", "32"),
            _ => (Level::Thread, "threadIdx.x", "blockDim.x"),
        };
        let reductions = outer_reductions(body);
        for (reduced, reduction) in &reductions {
            let (of, name) = (type_name(reduced.element), &reduced.name);
            let identity = reduction.identity(reduced.element).map_or_else(|| "0".into(), |value| print(&value.into()));
            self.line(&format!("const {of} r_{name} = v_{name};"));
            self.line(&format!("v_{name} = {identity};"));
        }
        self.level = inner;
        self.for_loop(variable, bounds, first, step, body)?;
        self.level = outer;
        self.barrier();
        for (reduced, reduction) in &reductions {
            let (of, name, operation) = (type_name(reduced.element), &reduced.name, operation(*reduction));
            let identity = reduction.identity(reduced.element).map_or_else(|| "0".into(), |value| print(&value.into()));
            let group = if outer == Level::Warp { "warp" } else { "block" };
            // The threads of a warp have the same: one speaks for it.
            let own = match kind {
                LoopKind::Warp => format!("(threadIdx.x & 31) == 0 ? v_{name} : {identity}"),
                _ => format!("v_{name}"),
            };
            self.line(&format!("v_{name} = {operation}_{of}(r_{name}, {group}_{operation}_{of}({own}));"));
        }
        Ok(())
    }

    fn allocate(
        &mut self,
        statement: &Statement,
        buffer: &Buffer,
        bounds: &[(Expression, Expression)],
        zeroed: bool,
    ) -> Result<(), CudaError> {
        let count = constant_count(bounds).filter(|_| matches!(self.level, Level::Block | Level::Thread));
        let count = count.ok_or_else(|| CudaError::Allocation(first_line(statement)))?;
        let (name, of) = (&buffer.name, type_name(buffer.element));
        let mut stride = 1_i64;
        let mut origin = "0".to_owned();
        for (dimension, (low, high)) in bounds.iter().enumerate().rev() {
            let (low, high) = (print(low), print(high));
            self.line(&format!("const i64 l{dimension}_{name} = {low}, h{dimension}_{name} = {high};"));
            self.line(&format!("const i64 s{dimension}_{name} = {stride};"));
            let _ = write!(origin, " + l{dimension}_{name} * s{dimension}_{name}");
            stride *= constant_count(&bounds[dimension..=dimension]).unwrap_or(1).max(1);
        }
        let count = count.max(1);
        let shared = if self.level == Level::Block { "__shared__ " } else { "" };
        self.line(&format!("{shared}{of} m_{name}[{count}];"));
        if zeroed {
            let (first, step) = if self.level == Level::Block { ("threadIdx.x", "blockDim.x") } else { ("0", "1") };
            self.barrier();
            let zero = Reduction::Sum.identity(buffer.element).map_or_else(|| "0".into(), |value| print(&value.into()));
            self.line(&format!("for (i64 at = {first}; at < {count}; at += {step}) m_{name}[at] = {zero};"));
            self.barrier();
        }
        self.line(&format!("{of} *b_{name} = m_{name} - ({origin});"));
        Ok(())
    }
}

/// A function of complex numbers that CUDA lacks.
fn missing_function(value: &Expression) -> Option<Intrinsic> {
    let mut missing = match value {
        Expression::Call(Intrinsic::Conj | Intrinsic::Abs | Intrinsic::Square | Intrinsic::Cube, _) => None,
        Expression::Call(function, _) => match type_of(value) {
            Type::Number(element) if element.is_complex() => Some(*function),
            _ => None,
        },
        _ => None,
    };
    value.for_each_operand(|operand| missing = missing.or(missing_function(operand)));
    missing
}
