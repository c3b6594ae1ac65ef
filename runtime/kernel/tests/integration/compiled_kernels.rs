//! Compiled kernels: how they are found, kept, and called.

use crate::common;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use maniple_kernel::arithmetic::cast;
use maniple_kernel::element::ElementType::{F32, F64, I64};
use maniple_kernel::element::{ElementType, Scalar};
use maniple_kernel::execution::{Argument, Compiler, Executable, KernelError, Kernels, Scoped, Serial, Team, View};
use maniple_kernel::loops::*;
use maniple_kernel::operators::{Formula, Special};

/// `y(i) = x(i) + number`.
fn shift(number: i64) -> Kernel {
    let (x, y) = (Buffer::new("x", I64, 1, Access::Read), Buffer::new("y", I64, 1, Access::Update));
    let i = Variable::index("i");
    let body = Statement::store(&y, [i.value()], x.load([i.value()]) + number);
    Kernel {
        name: "shift".into(),
        body: Statement::for_each(&i, y.low(0), y.high(0), body).with_kind(LoopKind::Threads),
        parameters: vec![Parameter::Buffer(x), Parameter::Buffer(y)],
    }
}

fn run_shift(executable: &Executable, team: &dyn Team) -> Result<Vec<i64>, KernelError> {
    let (x, mut y) = ([1_i64, 2, 3, 4, 5], vec![0_i64; 5]);
    let mut arguments =
        [View::dense(&x, &[5]).expect("fits").into(), View::dense_mut(&mut y, &[5]).expect("fits").into()];
    // SAFETY: the kernel accesses each element of `y`, and the same of `x`, once.
    unsafe { executable.call(&mut arguments, team) }?;
    Ok(y)
}

struct Fixture {
    _folder: tempfile::TempDir,
    cache: PathBuf,
    compiler: Compiler,
}

impl Fixture {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        common::compiled(&folder)?;
        let cache = folder.path().join("kernels");
        Some(Self { _folder: folder, cache, compiler: Compiler::find()? })
    }

    fn kernels(&self) -> Kernels {
        Kernels::new(Some(self.compiler.clone()), Some(self.cache.clone()))
    }

    fn entries(&self) -> Vec<PathBuf> {
        let mut entries: Vec<_> = fs::read_dir(&self.cache)
            .expect("the folder is there")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "so"))
            .collect();
        entries.sort();
        entries
    }
}

#[test]
fn a_kernel_is_compiled_once_and_then_found_in_memory_and_on_disk() {
    let Some(fixture) = Fixture::new() else { return };
    let kernels = fixture.kernels();
    let first = kernels.get(&shift(1)).expect("compiles");
    assert!(first.is_compiled());
    assert!(Arc::ptr_eq(&first, &kernels.get(&shift(1)).expect("in memory")));
    let [entry] = &fixture.entries()[..] else { panic!("one entry") };
    let file = |path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).expect("an entry"));
    let before = file(entry);
    let again = fixture.kernels().get(&shift(1)).expect("on disk");
    assert_eq!(run_shift(&again, &Serial), Ok(vec![2, 3, 4, 5, 6]));
    assert_eq!(file(entry), before, "the entry was not written again");
}

#[test]
fn kernels_that_differ_in_anything_are_compiled_apart() {
    let Some(fixture) = Fixture::new() else { return };
    let kernels = fixture.kernels();
    let run = |kernel: &Kernel| run_shift(&kernels.get(kernel).expect("compiles"), &Serial).expect("runs");
    assert_eq!(run(&shift(1)), [2, 3, 4, 5, 6]);
    assert_eq!(run(&shift(-1)), [0, 1, 2, 3, 4]);
    // Least and greatest look alike.
    let with = |reduction| {
        let mut kernel = shift(1);
        let [Parameter::Buffer(x), Parameter::Buffer(y)] = &kernel.parameters[..] else { panic!("two buffers") };
        let i = Variable::index("i");
        let value = x.load([i.value()]).binary(reduction, 3);
        kernel.body = Statement::for_each(&i, 0, 5, Statement::store(y, [i.value()], value));
        kernel
    };
    assert_eq!(run(&with(BinaryOperator::Minimum)), [1, 2, 3, 3, 3]);
    assert_eq!(run(&with(BinaryOperator::Maximum)), [3, 3, 3, 4, 5]);
    assert_eq!(fixture.entries().len(), 4);
}

#[test]
fn views_with_other_strides_get_a_version_of_their_own() {
    let Some(fixture) = Fixture::new() else { return };
    let executable = fixture.kernels().get(&shift(1)).expect("compiles");
    let run = |stride: i64, other: i64| {
        let (x, mut y) = ((0..9).collect::<Vec<i64>>(), [0_i64; 9]);
        let mut arguments = [
            View::read(&x, &[(0, 3)], &[stride]).expect("fits").into(),
            View::update(&mut y, &[(0, 3)], &[other]).expect("fits").into(),
        ];
        // SAFETY: the loop is over the elements of `y`, and `x` has as many.
        unsafe { executable.call(&mut arguments, &Scoped { threads: 2 }) }.expect("runs");
        [0, 1, 2].map(|index| y[index * other as usize])
    };
    assert_eq!(run(1, 1), [1, 2, 3]);
    assert_eq!(fixture.entries().len(), 1);
    assert_eq!(run(4, 1), [1, 5, 9]);
    assert_eq!(run(1, 3), [1, 2, 3]);
    assert_eq!(run(0, 2), [1, 1, 1]);
    assert_eq!(fixture.entries().len(), 2);
}

#[test]
fn a_damaged_entry_is_made_again() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.kernels().get(&shift(1)).expect("compiles");
    let [entry] = &fixture.entries()[..] else { panic!("one entry") };
    let whole = fs::read(entry).expect("an entry");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&whole[..whole.len() / 2], &whole[..whole.len() - 1], &[], &flipped] {
        fs::write(entry, damaged).expect("writable");
        let executable = fixture.kernels().get(&shift(1)).expect("compiles again");
        assert_eq!(run_shift(&executable, &Serial), Ok(vec![2, 3, 4, 5, 6]));
        assert_ne!(fs::read(entry).expect("an entry"), *damaged);
    }
}

#[test]
fn what_is_kept_is_private() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.kernels().get(&shift(1)).expect("compiles");
    let mode = |path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode(&fixture.cache), 0o700);
    assert_eq!(mode(&fixture.entries()[0]), 0o600);
    assert_eq!(fs::read_dir(&fixture.cache).expect("the folder").count(), 1, "nothing else is left there");
}

#[test]
fn a_folder_that_others_may_write_to_is_not_used() {
    let Some(fixture) = Fixture::new() else { return };
    fs::create_dir_all(&fixture.cache).expect("made");
    fs::set_permissions(&fixture.cache, fs::Permissions::from_mode(0o777)).expect("ours");
    let executable = fixture.kernels().get(&shift(1)).expect("compiles elsewhere");
    assert!(executable.is_compiled());
    assert_eq!(run_shift(&executable, &Serial), Ok(vec![2, 3, 4, 5, 6]));
    assert_eq!(fixture.entries(), [] as [PathBuf; 0]);
}

/// The number of the file and its user: what tells whether an entry was made again.
fn identity(path: &Path) -> (u64, u32) {
    let data = fs::symlink_metadata(path).expect("an entry");
    (data.ino(), data.uid())
}

#[test]
fn entries_that_others_can_have_written_are_made_again() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.kernels().get(&shift(1)).expect("compiles");
    let [entry] = &fixture.entries()[..] else { panic!("one entry") };
    let own = identity(entry);
    let remade = |what: &str| {
        let before = identity(entry);
        let executable = fixture.kernels().get(&shift(1)).expect("compiles again");
        assert_eq!(run_shift(&executable, &Serial), Ok(vec![2, 3, 4, 5, 6]));
        assert!(identity(entry) != before && identity(entry).1 == own.1, "{what}");
        assert!(fs::symlink_metadata(entry).expect("an entry").is_file(), "{what}");
    };
    fs::set_permissions(entry, fs::Permissions::from_mode(0o606)).expect("ours");
    remade("others may write to it");
    let elsewhere = fixture.cache.with_file_name("elsewhere.so");
    fs::rename(entry, &elsewhere).expect("moved");
    std::os::unix::fs::symlink(&elsewhere, entry).expect("linked");
    remade("it is a link");
    // Only the administrator can give files away.
    if std::os::unix::fs::chown(entry, Some(65534), None).is_ok() {
        remade("it is another user's");
    }
}

#[test]
fn an_entry_under_the_name_of_another_is_made_again() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.kernels().get(&shift(1)).expect("compiles");
    let [one] = &fixture.entries()[..] else { panic!("one entry") };
    fixture.kernels().get(&shift(2)).expect("compiles");
    let other = fixture.entries().into_iter().find(|entry| entry != one).expect("another entry");
    fs::copy(&other, one).expect("copied");
    let executable = fixture.kernels().get(&shift(1)).expect("compiles again");
    assert_eq!(run_shift(&executable, &Serial), Ok(vec![2, 3, 4, 5, 6]));
}

#[test]
fn a_folder_that_others_can_replace_is_not_used() {
    let Some(fixture) = Fixture::new() else { return };
    let above = fixture.cache.with_file_name("public");
    let cache = above.join("kernels");
    fs::create_dir_all(&cache).expect("made");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).expect("ours");
    let used = |mode| {
        fs::set_permissions(&above, fs::Permissions::from_mode(mode)).expect("ours");
        let kernels = Kernels::new(Some(fixture.compiler.clone()), Some(cache.clone()));
        assert!(kernels.get(&shift(1)).expect("compiles").is_compiled());
        fs::read_dir(&cache).expect("a folder").count() > 0
    };
    assert!(!used(0o777));
    assert!(used(0o1777));
}

#[test]
fn a_folder_that_cannot_be_made_is_replaced() {
    let Some(fixture) = Fixture::new() else { return };
    fs::create_dir_all(&fixture.cache).expect("made");
    let file = fixture.cache.join("file");
    fs::write(&file, "").expect("written");
    let kernels = Kernels::new(Some(fixture.compiler.clone()), Some(file.join("kernels")));
    assert!(kernels.get(&shift(1)).expect("compiles elsewhere").is_compiled());
}

#[test]
fn many_may_ask_for_one_kernel_at_the_same_time() {
    let Some(fixture) = Fixture::new() else { return };
    // Two tables stand for two processes.
    let tables = [fixture.kernels(), fixture.kernels()];
    std::thread::scope(|scope| {
        for asker in 0..6 {
            let table = &tables[asker % 2];
            scope.spawn(move || {
                let executable = table.get(&shift(7)).expect("compiles");
                assert_eq!(run_shift(&executable, &Serial), Ok(vec![8, 9, 10, 11, 12]));
            });
        }
    });
    assert_eq!(fixture.entries().len(), 1);
}

#[test]
fn without_a_compiler_kernels_are_interpreted() {
    let kernels = Kernels::new(None, None);
    let executable = kernels.get(&shift(1)).expect("interpreted");
    assert!(!executable.is_compiled());
    assert_eq!(run_shift(&executable, &Serial), Ok(vec![2, 3, 4, 5, 6]));
    assert_eq!(Compiler::from_command("no-such-compiler-anywhere"), None);
}

/// Notes what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{value:?}"));
            }
        }
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().expect("no test panics with it").push(text.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn with_a_compiler_that_fails_kernels_are_interpreted_after_one_warning_that_quotes_it() {
    let Some(fixture) = Fixture::new() else { return };
    let command = format!("{} --no-such-option", fixture.compiler.program().display());
    let kernels = Kernels::new(Compiler::from_command(&command), Some(fixture.cache.clone()));
    let log = Log::default();
    // While there is but one subscriber, another test's thread that has none decides for all whether the warning is of
    // interest.
    let _second = tracing::Dispatch::new(log.clone());
    tracing::subscriber::with_default(log.clone(), || {
        for by in 1..3 {
            let executable = kernels.get(&shift(by)).expect("interpreted");
            assert!(!executable.is_compiled());
            assert_eq!(run_shift(&executable, &Serial), Ok((1..6).map(|x| x + by).collect()));
        }
    });
    let said = log.0.lock().expect("no test panics with it");
    assert!(matches!(&said[..], [one] if one.starts_with("WARN") && one.contains("no-such-option")), "{said:?}");
}

#[test]
fn with_a_compiler_that_makes_nothing_kernels_are_interpreted() {
    let Some(compiler) = Compiler::from_command("true") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let executable = Kernels::new(Some(compiler), Some(folder.path().join("kernels"))).get(&shift(1));
    assert_eq!(run_shift(&executable.expect("interpreted"), &Serial), Ok(vec![2, 3, 4, 5, 6]));
}

#[test]
fn a_kernel_that_breaks_the_rules_is_not_compiled() {
    let mut kernel = shift(1);
    kernel.body = Statement::Break;
    let error = Kernels::new(None, None).get(&kernel).expect_err("ill formed");
    assert!(matches!(error, KernelError::IllFormed(_)));
}

/// A team that notes how many chunks it ran.
struct Counting(usize, AtomicUsize);

impl Team for Counting {
    fn size(&self) -> usize {
        self.0
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        self.1.fetch_add(chunks, Ordering::Relaxed);
        (0..chunks).rev().for_each(body);
    }
}

#[test]
fn the_chunks_of_a_threads_loop_are_the_teams() {
    let Some(fixture) = Fixture::new() else { return };
    let executable = fixture.kernels().get(&shift(1)).expect("compiles");
    for (size, chunks) in [(1, 1), (3, 3), (5, 5), (100, 5)] {
        let team = Counting(size, AtomicUsize::new(0));
        assert_eq!(run_shift(&executable, &team), Ok(vec![2, 3, 4, 5, 6]));
        assert_eq!(team.1.into_inner(), chunks);
    }
    assert_eq!(run_shift(&executable, &Scoped { threads: 4 }), Ok(vec![2, 3, 4, 5, 6]));
}

#[test]
fn a_team_that_leaves_chunks_out_is_an_error() {
    struct Lazy;
    impl Team for Lazy {
        fn size(&self) -> usize {
            4
        }
        fn run(&self, _chunks: usize, body: &(dyn Fn(usize) + Sync)) {
            body(0);
            body(0);
            body(1000);
        }
    }
    let Some(fixture) = Fixture::new() else { return };
    let executable = fixture.kernels().get(&shift(1)).expect("compiles");
    assert_eq!(run_shift(&executable, &Lazy), Err(KernelError::Team { kernel: "shift".into() }));
}

#[test]
fn a_team_that_runs_chunks_twice_does_no_harm() {
    struct Eager;
    impl Team for Eager {
        fn size(&self) -> usize {
            3
        }
        fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
            (0..chunks).chain(0..chunks).for_each(body);
        }
    }
    let Some(fixture) = Fixture::new() else { return };
    let y = Buffer::new("y", I64, 1, Access::Update);
    let i = Variable::index("i");
    let add = Statement::store(&y, [i.value()], 1).reduce(Reduction::Sum);
    let kernel = Kernel {
        name: "count".into(),
        body: Statement::for_each(&i, y.low(0), y.high(0), add).with_kind(LoopKind::Threads),
        parameters: vec![Parameter::Buffer(y)],
    };
    let executable = fixture.kernels().get(&kernel).expect("compiles");
    let mut elements = [0_i64; 5];
    // SAFETY: each iteration has an element of its own.
    unsafe { executable.call(&mut [View::dense_mut(&mut elements, &[5]).expect("fits").into()], &Eager) }
        .expect("runs");
    assert_eq!(elements, [1; 5]);
}

#[test]
fn a_team_that_panics_does_so_for_the_caller() {
    struct Panicking;
    impl Team for Panicking {
        fn size(&self) -> usize {
            4
        }
        fn run(&self, _chunks: usize, _body: &(dyn Fn(usize) + Sync)) {
            panic!("the team left");
        }
    }
    let Some(fixture) = Fixture::new() else { return };
    let executable = fixture.kernels().get(&shift(1)).expect("compiles");
    let panic = std::panic::catch_unwind(|| run_shift(&executable, &Panicking)).expect_err("a panic");
    assert_eq!(panic.downcast_ref(), Some(&"the team left"));
}

#[test]
fn threads_add_up_the_sums_of_their_chunks() {
    let Some(fixture) = Fixture::new() else { return };
    let (x, a) = (Buffer::new("x", I64, 1, Access::Read), Buffer::new("a", I64, 0, Access::Update));
    let i = Variable::index("i");
    let larger = |a: Formula, b: Formula| a.clone().compare(BinaryOperator::Less, b.clone()).select(b, a);
    let largest = Reduction::custom("largest", Special::Least, larger).expect("a reduction");
    let reductions = [
        (Reduction::Sum, 10 + 5050),
        (Reduction::Maximum, 100),
        (Reduction::Minimum, 1),
        (Reduction::Product, 0),
        (Reduction::Or, 1),
        (Reduction::And, 1),
        (largest, 100),
    ];
    for ((reduction, expected), kind) in
        reductions.into_iter().flat_map(|case| [LoopKind::Threads, LoopKind::Vector].map(|kind| (case, kind)))
    {
        let body = Statement::store(&a, [], x.load([i.value()])).reduce(reduction);
        let kernel = Kernel {
            name: "sum".into(),
            body: Statement::for_each(&i, x.low(0), x.high(0), body).with_kind(kind),
            parameters: vec![Parameter::Buffer(x.clone()), Parameter::Buffer(a.clone())],
        };
        let executable = fixture.kernels().get(&kernel).expect("compiles");
        let (elements, mut sum) = ((1..=100).collect::<Vec<i64>>(), [10_i64]);
        let mut arguments = [
            View::dense(&elements, &[100]).expect("fits").into(),
            View::dense_mut(&mut sum, &[]).expect("fits").into(),
        ];
        // SAFETY: the loop is over the elements of `x`.
        unsafe { executable.call(&mut arguments, &Scoped { threads: 3 }) }.expect("runs");
        // 100! has more than 64 factors of two.
        assert_eq!(sum, [expected]);
    }
}

#[test]
fn dividing_by_zero_in_a_loop_of_any_kind_ends_the_kernel_with_an_error() {
    let Some(fixture) = Fixture::new() else { return };
    let mut kernel = shift(0);
    let [Parameter::Buffer(x), Parameter::Buffer(y)] = &kernel.parameters[..] else { panic!("two buffers") };
    let i = Variable::index("i");
    let value = Expression::index(1) / (x.load([i.value()]) - 3);
    let each = Statement::for_each(&i, 0, 5, Statement::store(y, [i.value()], value));
    for kind in [LoopKind::Serial, LoopKind::Threads, LoopKind::Vector] {
        kernel.body = each.clone().with_kind(kind);
        let executable = fixture.kernels().get(&kernel).expect("compiles");
        let error = Err(KernelError::DivisionByZero { kernel: "shift".into() });
        assert_eq!(run_shift(&executable, &Scoped { threads: 2 }), error);
    }
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    let Some(fixture) = Fixture::new() else { return };
    for high in [i64::MAX, i64::MAX / 8] {
        let t = Buffer::new("t", F64, 1, Access::Update);
        let body = Statement::Sequence(vec![Statement::allocate(&t, [(0.into(), high.into())])]);
        let kernel = Kernel { name: "large".into(), parameters: vec![], body };
        let executable = fixture.kernels().get(&kernel).expect("compiles");
        // SAFETY: there is no access.
        let result = unsafe { executable.call(&mut [], &Serial) };
        assert_eq!(result, Err(KernelError::OutOfMemory { kernel: "large".into() }));
    }
}

/// Each function, for each type that has it, on numbers where it is defined.
#[test]
fn functions_are_those_of_the_interpreter() {
    let Some(fixture) = Fixture::new() else { return };
    for element in ElementType::ALL {
        let input = Buffer::new("input", element, 1, Access::Read);
        let mut output = Vec::new();
        let mut statements = Vec::new();
        for &function in Intrinsic::ALL {
            let argument = input.load([i64::from(function == Intrinsic::Acosh).into()]);
            let arguments = vec![argument; function.arguments()];
            let result = Buffer::new(function.name(), element, 0, Access::Update);
            let store = Statement::store(&result, [], Expression::call(function, arguments));
            let parameters = vec![Parameter::Buffer(input.clone()), Parameter::Buffer(result.clone())];
            if verify(&Kernel { name: "f".into(), parameters, body: store.clone() }).is_ok() {
                statements.push(store);
                output.push(result);
            }
        }
        let mut parameters = vec![Parameter::Buffer(input)];
        parameters.extend(output.iter().cloned().map(Parameter::Buffer));
        let kernel = Kernel { name: "functions".into(), parameters, body: Statement::Sequence(statements) };
        let run = |executable: &Executable| match element {
            ElementType::Bool => run_functions(executable, [true, true], &output),
            ElementType::U8 => run_functions(executable, [250_u8, 2], &output),
            ElementType::I8 => run_functions(executable, [-128_i8, 2], &output),
            ElementType::U16 => run_functions(executable, [65_000_u16, 2], &output),
            ElementType::I16 => run_functions(executable, [-300_i16, 2], &output),
            ElementType::U32 => run_functions(executable, [4_000_000_000_u32, 2], &output),
            ElementType::I32 => run_functions(executable, [-3_i32, 2], &output),
            ElementType::U64 => run_functions(executable, [u64::MAX - 4096, 2], &output),
            ElementType::I64 => run_functions(executable, [-3_i64, 2], &output),
            F32 => run_functions(executable, [0.4_f32, 1.5], &output),
            F64 => run_functions(executable, [0.4_f64, 1.5], &output),
            ElementType::C32 => {
                run_functions(executable, [num_complex::Complex::new(0.4_f32, -0.3), Default::default()], &output)
            }
            ElementType::C64 => {
                run_functions(executable, [num_complex::Complex::new(0.4_f64, -0.3), Default::default()], &output)
            }
        };
        let compiled = run(&fixture.kernels().get(&kernel).expect("compiles"));
        let interpreted = run(&Executable::interpreted(&kernel).expect("well formed"));
        for ((function, found), expected) in output.iter().zip(compiled).zip(interpreted) {
            assert!((found - expected).norm() < 1e-6, "{} of {element}: {found} {expected}", function.name);
        }
    }
}

fn run_functions<T: maniple_kernel::element::Element>(
    executable: &Executable,
    input: [T; 2],
    output: &[Buffer],
) -> Vec<num_complex::Complex<f64>> {
    let mut results = vec![[input[0]]; output.len()];
    let mut arguments: Vec<Argument<'_>> = vec![View::dense(&input, &[2]).expect("fits").into()];
    arguments.extend(results.iter_mut().map(|result| View::dense_mut(result, &[]).expect("fits").into()));
    // SAFETY: the kernel loads the two elements, and stores one into each result.
    unsafe { executable.call(&mut arguments, &Serial) }.expect("runs");
    drop(arguments);
    let wide = |result: &[T; 1]| match cast(result[0].to_scalar(), ElementType::C64) {
        Scalar::C64(value) => value,
        other => panic!("a cast to complex numbers gave {other:?}"),
    };
    results.iter().map(wide).collect()
}

/// Names of parts of `x` in the source would be those of other buffers if they were put behind its own.
#[test]
fn kernels_compile_whatever_their_buffers_are_called() {
    let Some(fixture) = Fixture::new() else { return };
    for names in [["x", "x_s0", "x_"], ["x", "x_l0", "x_h0"], ["s0_x", "x", "known_s0_x"], ["v_x", "b_x", "outer_v_x"]]
    {
        let operands = names.map(|name| Buffer::new(name, F64, 1, Access::Read).with_contiguous(Some(0)));
        let y = Buffer::new("y", F64, 0, Access::Update);
        let (i, sum) = (Variable::index("i"), Variable::new("x_sum", F64));
        let [a, b, c] = operands.each_ref().map(|buffer| buffer.load([i.value()]));
        let add = Statement::set(&sum, a * b + c).reduce(Reduction::Sum);
        let each = Statement::for_each(&i, operands[0].low(0), operands[0].high(0), add).with_kind(LoopKind::Threads);
        let store = Statement::store(&y, [], sum.value());
        let body = Statement::Sequence(vec![Statement::bind_mutable(&sum, Scalar::F64(0.0)), each, store]);
        let mut parameters: Vec<Parameter> = operands.into_iter().map(Parameter::Buffer).collect();
        parameters.push(Parameter::Buffer(y));
        let executable =
            fixture.kernels().get(&Kernel { name: "named".into(), parameters, body }).expect("well formed");
        assert!(executable.is_compiled(), "{names:?}");
        let (elements, mut sum) = ([1.0, 2.0, 3.0, 4.0], [0.0]);
        let view = || View::dense(&elements, &[4]).expect("fits").into();
        let mut arguments = [view(), view(), view(), View::dense_mut(&mut sum, &[]).expect("fits").into()];
        // SAFETY: the loop is over the elements of operands of the same extent.
        unsafe { executable.call(&mut arguments, &Scoped { threads: 2 }) }.expect("runs");
        assert_eq!(sum, [40.0], "{names:?}");
    }
}

/// A product that is rounded in one place and not in another would leave a difference.
#[test]
fn products_that_cancel_leave_nothing_outside_of_sums() {
    let Some(fixture) = Fixture::new() else { return };
    let mut random = fastrand::Rng::with_seed(4);
    let half: [f64; 64] = std::array::from_fn(|_| random.f64() - 0.5);
    // Twice, so that the compiler does not see that both products are the same.
    let elements = [half, half].concat();
    let (x, y) = (Buffer::new("x", F64, 1, Access::Read), Buffer::new("y", F64, 1, Access::Update));
    let i = Variable::index("i");
    let [a, b, c, d] = [0, 32, 64, 96].map(|offset| x.load([i.value() + offset]));
    let difference = a * b - c * d;
    let store = Statement::store(&y, [i.value()], difference);
    let kernel = Kernel {
        name: "cancel".into(),
        body: Statement::for_each(&i, 0, 32, store).with_kind(LoopKind::Vector),
        parameters: vec![Parameter::Buffer(x), Parameter::Buffer(y)],
    };
    let executable = fixture.kernels().get(&kernel).expect("compiles");
    assert!(executable.is_compiled());
    let mut found = [1.0; 32];
    let mut arguments = [
        View::dense(&elements, &[128]).expect("fits").into(),
        View::dense_mut(&mut found, &[32]).expect("fits").into(),
    ];
    // SAFETY: `y` has 32 elements, and `x` four times as many.
    unsafe { executable.call(&mut arguments, &Serial) }.expect("runs");
    assert_eq!(found, [0.0; 32]);
}
