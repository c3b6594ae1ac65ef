//! Kernels as CUDA C: NVRTC compiles them, where it is installed, and what a GPU cannot do is refused.
//!
//! NVRTC is looked for under its usual names, or where the environment variable `NVRTC` says.

use std::ffi::{CString, c_char, c_int, c_void};

use libloading::Library;
use maniple_kernel::element::{ElementType, Scalar};
use maniple_kernel::loops::*;

/// Compiles CUDA C to PTX.
struct Nvrtc(Library);

type Program = *mut c_void;

impl Nvrtc {
    /// The library; `None`, said aloud, where there is none.
    fn find() -> Option<Self> {
        let mut names: Vec<String> =
            ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"].map(String::from).into();
        names.extend(std::env::var("NVRTC"));
        // SAFETY: NVRTC does nothing when it is loaded.
        let found = names.iter().rev().find_map(|name| unsafe { Library::new(name) }.ok());
        if found.is_none() {
            eprintln!("NVRTC is not installed: CUDA C is printed, but not compiled");
        }
        found.map(Self)
    }

    fn compile(&self, source: &str) -> Result<String, String> {
        let source = CString::new(source).expect("no zeros");
        let option = c"--gpu-architecture=compute_75";
        // SAFETY: the functions have these types, and are called as NVRTC's manual says.
        unsafe {
            type Create = unsafe extern "C" fn(
                *mut Program,
                *const c_char,
                *const c_char,
                c_int,
                *const *const c_char,
                *const *const c_char,
            ) -> c_int;
            let create = self.0.get::<Create>(b"nvrtcCreateProgram").expect("NVRTC");
            let compile = self
                .0
                .get::<unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int>(b"nvrtcCompileProgram")
                .expect("NVRTC");
            let mut program = std::ptr::null_mut();
            let none = std::ptr::null();
            assert_eq!(create(&mut program, source.as_ptr(), c"kernel.cu".as_ptr(), 0, none, none), 0);
            if compile(program, 1, &option.as_ptr()) == 0 {
                Ok(self.text(program, b"nvrtcGetPTXSize", b"nvrtcGetPTX"))
            } else {
                Err(self.text(program, b"nvrtcGetProgramLogSize", b"nvrtcGetProgramLog"))
            }
        }
    }

    unsafe fn text(&self, program: Program, size_of: &[u8], text_of: &[u8]) -> String {
        // SAFETY: as above.
        unsafe {
            let size_of = self.0.get::<unsafe extern "C" fn(Program, *mut usize) -> c_int>(size_of).expect("NVRTC");
            let text_of = self.0.get::<unsafe extern "C" fn(Program, *mut u8) -> c_int>(text_of).expect("NVRTC");
            let mut size = 0;
            assert_eq!(size_of(program, &mut size), 0);
            let mut text = vec![0_u8; size];
            assert_eq!(text_of(program, text.as_mut_ptr()), 0);
            String::from_utf8_lossy(&text).into_owned()
        }
    }
}

fn kernel(parameters: &[&Buffer], body: Statement) -> Checked {
    let parameters = parameters.iter().map(|buffer| Parameter::Buffer((*buffer).clone())).collect();
    check(&Kernel { name: "k".into(), parameters, body }).expect("legal")
}

fn each(name: &str, kind: LoopKind, high: impl Into<Expression>, body: Statement) -> Statement {
    Statement::for_each(&Variable::index(name), 0, high, body).with_kind(kind)
}

fn index(name: &str) -> Expression {
    Variable::index(name).value()
}

fn compile(kernel: &Checked, expected: &[&str]) {
    let source = print_cuda(kernel).unwrap_or_else(|error| panic!("{error}"));
    for part in expected {
        assert!(source.contains(part), "no `{part}` in {source}");
    }
    if let Some(nvrtc) = Nvrtc::find() {
        let ptx = nvrtc.compile(&source).unwrap_or_else(|log| panic!("{log}\n{source}"));
        assert!(ptx.contains(ENTRY));
    }
}

/// A row of a matrix for each block, its sum by warps and threads, of each element type.
#[test]
fn sums_by_warps_and_threads_compile_for_all_types() {
    for element in ElementType::ALL {
        let (a, y) = (Buffer::new("a", element, 2, Access::Read), Buffer::new("y", element, 1, Access::Update));
        let sum = Variable::new("sum", element);
        let zero = Reduction::Sum.identity(element).expect("a sum");
        let add = Statement::set(&sum, a.load([index("i"), index("w") * 32 + index("t")])).reduce(Reduction::Sum);
        let threads = each("t", LoopKind::Thread, 32, add);
        let warps = each("w", LoopKind::Warp, a.high(1) / 32, threads);
        let store = Statement::store(&y, [index("i")], sum.value());
        let body = Statement::Sequence(vec![Statement::bind_mutable(&sum, zero), warps, store]);
        compile(
            &kernel(&[&a, &y], each("i", LoopKind::Block, a.high(0), body)),
            &["blockIdx.x", "threadIdx.x / 32", "__syncthreads();", "if (threadIdx.x == 0)"],
        );
    }
}

/// Tiles in the memory that a block shares.
#[test]
fn buffers_outside_of_threads_are_shared_and_inside_are_private() {
    let real = ElementType::F32;
    let (a, b) = (Buffer::new("a", real, 2, Access::Read), Buffer::new("b", real, 2, Access::Update));
    let (tile, own) = (Buffer::new("tile", real, 2, Access::Update), Buffer::new("own", real, 1, Access::Update));
    let allocate = |buffer: &Buffer, extents: &[i64]| {
        Statement::allocate(buffer, extents.iter().map(|extent| (Expression::from(1), Expression::from(extent + 1))))
    };
    let load = Statement::store(&tile, [index("t") + 1, 1.into()], a.load([index("i"), index("t")]));
    let twice = Statement::Sequence(vec![
        allocate(&own, &[2]),
        Statement::store(&own, [1.into()], tile.load([index("u") + 1, 1.into()])).reduce(Reduction::Maximum),
        Statement::store(
            &b,
            [index("i"), index("u")],
            own.load([1.into()]) * Expression::from(Scalar::F32(f32::INFINITY)),
        ),
    ]);
    let body = Statement::Sequence(vec![
        allocate(&tile, &[16, 2]),
        each("t", LoopKind::Thread, 16, load),
        each("u", LoopKind::Thread, 16, twice).with_unroll(4),
    ]);
    compile(
        &kernel(&[&a, &b], each("i", LoopKind::Block, a.high(0), body)),
        &["__shared__ f32 m_tile[32];", "  f32 m_own[2];", "__restrict__"],
    );
}

/// All operators and functions, divisions by zero, and atomic sums.
#[test]
fn all_operators_and_functions_compile() {
    for element in ElementType::ALL {
        let y = Buffer::new("y", element, 1, Access::Update);
        let x = Buffer::new("x", element, 1, Access::Read);
        let (left, right) = (x.load([index("i")]), x.load([index("i") / x.high(0)]));
        use BinaryOperator::*;
        let mut values = vec![-left.clone(), left.clone().equal(right.clone()).select(left.clone(), right.clone())];
        for operator in
            [Add, Subtract, Multiply, Divide, Remainder, FloorDivide, FloorRemainder, Bit, NextBit, Minimum, Maximum]
        {
            values.push(left.clone().binary(operator, right.clone()));
        }
        values.extend(
            Intrinsic::ALL.iter().map(|function| Expression::call(*function, vec![left.clone(); function.arguments()])),
        );
        values.extend(ElementType::ALL.map(|other| left.clone().cast(other).cast(element)));
        let mut statements = Vec::new();
        for value in values {
            let store = Statement::store(&y, [0.into()], value).reduce(Reduction::Sum).atomic();
            let one = each("i", LoopKind::Block, 4, store.clone());
            let parameters = [&x, &y].map(|buffer| Parameter::Buffer(buffer.clone())).into();
            let candidate = Kernel { name: "k".into(), parameters, body: one };
            // What the type has not, the verifier refuses; what CUDA has not, the printer.
            match check(&candidate).map(|checked| print_cuda(&checked)) {
                Ok(Ok(_)) => statements.push(store),
                Ok(Err(error)) => assert!(matches!(error, CudaError::Function(_)), "{error}"),
                Err(error) => assert!(matches!(error.rule, Rule::Undefined { .. } | Rule::Cast { .. }), "{error}"),
            }
        }
        assert!(statements.len() >= 6, "{element}: {}", statements.len());
        let body = each("i", LoopKind::Block, 4, Statement::Sequence(statements));
        compile(&kernel(&[&x, &y], body), &["checked_i64", "atomic_add_"]);
    }
}

#[test]
fn what_a_gpu_cannot_do_is_refused() {
    let real = ElementType::C64;
    let y = Buffer::new("y", real, 1, Access::Update);
    let one = Scalar::C64(num_complex::Complex::new(1.0, 0.0));
    let store = || Statement::store(&y, [index("i")], one);
    let refused = |body| print_cuda(&kernel(&[&y], body)).expect_err("refused");
    assert_eq!(
        refused(each("i", LoopKind::Threads, 4, store())),
        CudaError::OutsideOfBlocks("y[i] = (1.0, 0.0)c64".into())
    );
    let blocks = || each("i", LoopKind::Block, 4, store());
    assert_eq!(
        refused(Statement::Sequence(vec![blocks(), blocks()])),
        CudaError::SecondGrid("block for i in 0..4".into())
    );
    assert!(matches!(refused(each("k", LoopKind::Serial, 4, blocks())), CudaError::SecondGrid(_)));
    let sum = Variable::new("sum", real);
    let carried = each("i", LoopKind::Block, 4, Statement::set(&sum, one).reduce(Reduction::Sum));
    assert_eq!(
        refused(Statement::Sequence(vec![Statement::bind_mutable(&sum, one), carried])),
        CudaError::Carried("sum".into())
    );
    let own = Buffer::new("own", real, 1, Access::Update);
    let allocate = Statement::allocate(&own, [(0.into(), y.high(0))]);
    let body = each("i", LoopKind::Block, 4, Statement::Sequence(vec![allocate]));
    assert!(matches!(refused(body), CudaError::Allocation(_)));
    let sine = Statement::store(&y, [index("i")], Expression::call(Intrinsic::Sin, [y.load([index("i")])]));
    assert_eq!(refused(each("i", LoopKind::Block, 4, sine)), CudaError::Function("sin"));
}
