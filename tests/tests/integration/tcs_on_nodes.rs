//! Tensors in `.tcs` files that all nodes read and write, each its own part.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use maniple::{FieldValue, Result};
use maniple_files::Number;
use maniple_files::tcs::{TcsHeader, Width};
use maniple_tensor::distributed::{Computation, DistributedError, TcsFile, Tensor, Writers, assemble};
use maniple_tensor::element::{Complex, Element};
use maniple_tensor::lower::Output;
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse;
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::tcs_files::{Case, skewed};

/// Checks that what nodes have loaded of a file is what they store.
fn goes_round<T: Element + FieldValue + Number>(nodes: usize, case: &Case<T>, width: Width) {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from.tcs"), folder.path().join("to.tcs"));
    let bytes = case.file(width);
    fs::write(&from, &bytes).unwrap();
    let done = on_nodes(Nodes::new(nodes), async |cx, _| {
        let file = TcsFile::open(&from).unwrap();
        let (tensor, loaded) = Tensor::load(cx, &case.variable("B"), &file).await?;
        assert_eq!((loaded.pieces % nodes, loaded.bytes.len()), (0, nodes));
        let written = tensor.store(cx, &to, width).await?;
        let of_part = |part| file.header().section(part).length * file.header().size(part);
        assert_eq!(written.bytes.iter().sum::<u64>(), file.header().parts().map(of_part).sum::<u64>());
        Ok(())
    });
    done.into_iter().for_each(|result| result.unwrap());
    assert!(fs::read(&to).unwrap() == bytes, "{:?} as {} {:?} on {nodes}", case.extents, case.levels, case.order);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "what was aside has gone");
}

#[test]
fn a_stored_file_is_the_file_that_was_loaded_in_every_format_and_type() {
    for nodes in [1, 2, 4] {
        for (extents, levels, order, count) in [
            (&[23, 17][..], "ds", &[0, 1][..], 90),
            (&[23, 17], "ss", &[1, 0], 90),
            (&[9, 7], "sd", &[0, 1], 12),
            (&[9, 7], "dd", &[1, 0], 40),
            (&[40], "s", &[0], 11),
            (&[40], "d", &[0], 11),
            (&[7, 5, 6], "sss", &[2, 0, 1], 60),
            (&[7, 5, 6], "dsd", &[0, 1, 2], 30),
            (&[3, 2, 4, 3], "dsds", &[0, 2, 1, 3], 25),
            // Few entries, or none, and extents of nothing.
            (&[23, 17], "ds", &[0, 1], 1),
            (&[23, 17], "ss", &[0, 1], 0),
            (&[0, 4], "ds", &[0, 1], 0),
            (&[4, 0], "sd", &[0, 1], 0),
            (&[1 << 40, 1 << 40], "ss", &[0, 1], 30),
        ] {
            let case = Case::random(extents, (levels, order), count, |number| number as f64 / 2.0);
            let width = if count % 2 == 0 || extents[0] > 1 << 30 { Width::Eight } else { Width::Four };
            goes_round(nodes, &case, width);
        }
        let format = ("ds", &[0, 1][..]);
        goes_round(nodes, &Case::random(&[9, 8], format, 20, |number| number as i16), Width::Eight);
        goes_round(nodes, &Case::random(&[9, 8], format, 20, |number| number as u8), Width::Four);
        goes_round(nodes, &Case::random(&[9, 8], format, 20, |number| number % 2 == 0), Width::Four);
        goes_round(nodes, &Case::random(&[9, 8], format, 20, |number| number as f32), Width::Eight);
        goes_round(nodes, &Case::random(&[9, 8], format, 20, |number| Complex::new(number as f32, 1.0)), Width::Four);
    }
}

#[test]
fn each_node_reads_its_own_ranges_of_bytes_and_all_read_equally_many() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("skewed.tcs");
    fs::write(&path, skewed().file(Width::Eight)).unwrap();
    for nodes in [1, 2, 4] {
        let done = on_nodes(Nodes::new(nodes), async |cx, runtime| {
            let file = TcsFile::open(&path).unwrap();
            let before = runtime.statistics().tasks;
            let (_, loaded) = Tensor::load(cx, &skewed().variable("B"), &file).await?;
            let tasks = cx.per_node(runtime.statistics().tasks - before).all().await?;
            Ok((file.bytes(), loaded, tasks))
        });
        for result in done {
            let (bytes, loaded, tasks) = result.unwrap();
            let share = bytes as f64 / nodes as f64;
            for read in &loaded.bytes {
                assert!((0.95..1.05).contains(&(*read as f64 / share)), "{loaded:?} of {bytes} on {nodes}");
            }
            // A task for each end of a piece, and one for each piece.
            assert_eq!(tasks.iter().sum::<u64>(), 2 * loaded.pieces as u64);
            assert!(loaded.probes < 40 * loaded.pieces as u64, "{loaded:?}");
        }
    }
}

#[test]
fn no_node_needs_memory_for_the_whole_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("skewed.tcs"), folder.path().join("copy.tcs"));
    let bytes = skewed().file(Width::Eight);
    fs::write(&path, &bytes).unwrap();
    let on = |nodes: usize, memory: u64| {
        on_nodes(Nodes::new(nodes).with_memory(memory), async |cx, _| {
            let (tensor, _) = Tensor::load(cx, &skewed().variable("B"), &TcsFile::open(&path).unwrap()).await?;
            Ok(tensor.store(cx, &copy, Width::Eight).await?)
        })
    };
    // In memory, numbers of 4 bytes and elements of 8.
    let whole = bytes.len() as u64 * 3 / 4;
    assert!(on(1, whole / 2).into_iter().all(|result| matches!(result, Err(maniple::Error::OutOfMemory { .. }))));
    for result in on(4, whole / 2) {
        result.unwrap();
    }
    assert!(fs::read(&copy).unwrap() == bytes);
    // Nor where nodes write one after the other, each what is its share, put together.
    let written = on_nodes(Nodes::new(4).with_memory(whole / 3 * 2), async |cx, _| {
        let (tensor, _) = Tensor::load(cx, &skewed().variable("B"), &TcsFile::open(&path).unwrap()).await?;
        Ok(tensor.store_by(cx, &copy, Width::Four, Writers::InTurn).await?)
    });
    for result in written {
        assert!(result.unwrap().bytes.iter().all(|bytes| *bytes > 0));
    }
    assert!(fs::read(&copy).unwrap() == skewed().file(Width::Four));
}

#[test]
fn nothing_of_the_pieces_stays_beside_the_tensor_that_was_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("skewed.tcs");
    let bytes = skewed().file(Width::Eight);
    fs::write(&path, &bytes).unwrap();
    // In memory, numbers of 4 bytes and elements of 8.
    let whole = bytes.len() as u64 * 3 / 4;
    for nodes in [1, 2, 4] {
        let used = on_nodes(Nodes::new(nodes), async |cx, runtime| {
            let (tensor, _) = Tensor::load(cx, &skewed().variable("B"), &TcsFile::open(&path).unwrap()).await?;
            cx.execution_fence().await?;
            let used = |runtime: &maniple::Runtime| runtime.memories().iter().map(|memory| memory.used).sum::<u64>();
            let loaded = used(runtime);
            tensor.destroy(cx)?;
            cx.execution_fence().await?;
            Ok((loaded, used(runtime)))
        });
        let used: Vec<(u64, u64)> = used.into_iter().map(|used| used.unwrap()).collect();
        for (loaded, _) in &used {
            assert!(*loaded >= whole / nodes as u64 * 9 / 10 && *loaded <= whole, "{used:?} of {whole} on {nodes}");
        }
        assert!(used.iter().all(|(_, left)| *left < whole / 100), "{used:?} on {nodes}");
    }
}

/// The messages that a program gets that loads a file on two nodes.
fn heard(path: &Path, case: &Case<f64>) -> Vec<String> {
    let done = on_nodes(Nodes::new(2), async |cx, _| {
        let file = TcsFile::open(path).unwrap();
        match Tensor::load(cx, &case.variable("B"), &file).await {
            Ok(_) => Ok("loaded".to_owned()),
            Err(error @ DistributedError::File { is_input: true, .. }) => Ok(error.to_string()),
            Err(other) => Err(other.into()),
        }
    });
    done.into_iter().map(|result| result.unwrap()).collect()
}

#[test]
fn damaged_files_are_told_alike_on_all_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.tcs");
    let case = Case::random(&[40, 30], ("ds", &[0, 1]), 300, |number| number as f64);
    let bytes = case.file(Width::Eight);
    let header = TcsHeader::read(&bytes).unwrap();
    let parts: Vec<_> = header.parts().collect();
    for (part, expected) in parts.iter().zip(["of level 1", "idx of level 1", "val is damaged"]) {
        let section = header.section(*part);
        for place in [0, section.length / 2, section.length - 1] {
            let mut damaged = bytes.clone();
            damaged[(section.offset + place * header.size(*part)) as usize] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let told = heard(&path, &case);
            assert!(told[0].starts_with(path.to_str().unwrap()) && told[0].contains(expected), "{told:?}");
            assert_eq!(told[0], told[1]);
        }
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(heard(&path, &case), ["loaded", "loaded"]);
    let other = Case { extents: vec![40, 31], ..case };
    let done = on_nodes(Nodes::new(1), async |cx, _| {
        let error = Tensor::load(cx, &other.variable("B"), &TcsFile::open(&path).unwrap()).await.unwrap_err();
        Ok(error.to_string())
    });
    assert!(done[0].as_ref().unwrap().starts_with("B has f64 elements with extents [40, 31]"), "{done:?}");
}

#[test]
fn nodes_with_different_files_hear_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |node: usize| folder.path().join(format!("{node}.tcs"));
    let case = |count| Case::random(&[40, 30], ("ds", &[0, 1]), count, |number| number as f64);
    for node in 0..3 {
        fs::write(path(node), case(if node == 2 { 31 } else { 30 }).file(Width::Eight)).unwrap();
    }
    let done = on_nodes(Nodes::new(3), async |cx, runtime| {
        let file = TcsFile::open(&path(runtime.node())).unwrap();
        Ok(Tensor::load(cx, &case(30).variable("B"), &file).await.unwrap_err().to_string())
    });
    for told in done {
        assert!(told.unwrap().contains("it is not the same on node 2 as on node 0"));
    }
}

#[test]
fn a_file_that_cannot_be_written_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let (path, taken) = (folder.path().join("b.tcs"), folder.path().join("taken.tcs"));
    let case = Case::random(&[40, 30], ("ds", &[0, 1]), 300, |number| number as f64);
    fs::write(&path, case.file(Width::Eight)).unwrap();
    fs::create_dir(&taken).unwrap();
    let missing = folder.path().join("no folder").join("c.tcs");
    let done = on_nodes(Nodes::new(2), async |cx, _| {
        let (tensor, _) = Tensor::load(cx, &case.variable("B"), &TcsFile::open(&path).unwrap()).await?;
        for to in [&taken, &missing] {
            let error = tensor.store(cx, to, Width::Eight).await.unwrap_err();
            let is_output = matches!(&error, DistributedError::File { is_input: false, .. });
            assert!(is_output && error.to_string().starts_with(to.to_str().unwrap()), "{error}");
        }
        // What has the name is replaced, and others' files beside it stay.
        fs::write(folder.path().join(".b.tcs.0.part"), "another's").unwrap();
        cx.execution_fence().await?;
        Ok(tensor.store(cx, &path, Width::Eight).await?)
    });
    done.into_iter().for_each(|result| _ = result.unwrap());
    assert!(fs::read(&path).unwrap() == case.file(Width::Eight));
    assert_eq!(fs::read(folder.path().join(".b.tcs.0.part")).unwrap(), b"another's");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

/// Loads the operands of a statement, computes it in the loops of a schedule, and stores the result: gives the file.
fn computed(
    nodes: Nodes,
    text: &str,
    result: (&str, &[i64]),
    operands: &[(&str, &Case<f64>)],
    schedule: &str,
) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let mut variables =
        vec![TensorVariable::new("A", <f64 as Element>::TYPE, result.1.to_vec()).stored(result.0.parse().unwrap())];
    for (name, case) in operands {
        fs::write(folder.path().join(name), case.file(Width::Eight)).unwrap();
        variables.push(case.variable(name));
    }
    let assignment = parse(text, &variables).unwrap();
    let loops = sparse::Computation::new(&assignment).unwrap();
    let statement = Schedule::parse(schedule, &variables).unwrap().apply(loops.statement()).unwrap();
    let plan = Arc::new(plan::Plan::new(&statement).unwrap());
    let to = folder.path().join("A");
    let done = on_nodes(nodes, async |cx, _| -> Result<()> {
        let mut tensors = Vec::new();
        for variable in &variables[1..] {
            let file = TcsFile::open(&folder.path().join(variable.name())).unwrap();
            tensors.push(Tensor::load(cx, variable, &file).await?.0);
        }
        let operands: Vec<&Tensor> = tensors.iter().collect();
        if plan.leaf().output == Output::Entries {
            assemble(cx, &plan, &operands).await?.store(cx, &to, Width::Eight).await?;
            return Ok(());
        }
        let made = Tensor::for_result(cx, &plan, &operands)?;
        let all: Vec<&Tensor> = [&[&made][..], &operands].concat();
        Computation::new(cx, &plan, &all).await?.launch(cx)?.await?;
        made.store(cx, &to, Width::Eight).await?;
        Ok(())
    });
    done.into_iter().for_each(|result| result.unwrap());
    fs::read(to).unwrap()
}

#[test]
fn what_is_loaded_computed_and_stored_is_the_same_file_on_any_nodes() {
    let whole = |number: u64| (number % 9) as f64 - 4.0;
    let rows = Case::random(&[31, 23], ("ds", &[0, 1]), 150, whole);
    let vector = Case::random(&[23], ("d", &[0]), 23, whole);
    let wide = Case::random(&[23, 14], ("ds", &[0, 1]), 90, whole);
    let tensor = Case::random(&[9, 7, 6], ("sss", &[0, 1, 2]), 80, whole);
    let matrix = Case::random(&[4, 6], ("dd", &[0, 1]), 24, whole);
    let by_rows = "distribute(i, io, ii, 4)";
    let (spmv, product) = (&[("B", &rows), ("C", &vector)][..], &[("B", &rows), ("C", &wide)][..]);
    let ttm = &[("B", &tensor), ("C", &matrix)][..];
    for (text, result, operands, schedules) in [
        ("A(i) = B(i,j) * C(j)", ("{D}", &[31][..]), spmv, &[by_rows, "divide(i, io, ii, 8); distribute({io})"][..]),
        ("A(i,j) = B(i,k) * C(k,j)", ("{D,C}", &[31, 14]), product, &[by_rows]),
        ("A(i,j) = B(i,j) * C(j)", ("{D,C}", &[31, 23]), spmv, &[by_rows]),
        ("A(i,j,k) = B(i,j,l) * C(k,l)", ("{D,D,D}", &[9, 7, 4]), ttm, &[by_rows]),
    ] {
        let expected = computed(Nodes::new(1), text, result, operands, schedules[0]);
        assert!(TcsHeader::read(&expected).is_ok() && maniple_files::tcs::Tensor::<f64>::read(&expected).is_ok());
        for schedule in schedules {
            for nodes in [1, 2, 4] {
                assert!(
                    computed(Nodes::new(nodes), text, result, operands, schedule) == expected,
                    "{text} on {nodes}: {schedule}"
                );
            }
        }
    }
}

/// The cost of running a product with a vector again, in these loops: how many tasks, and how many bytes move between
/// nodes.
fn again(nodes: usize, matrix: &Case<f64>, schedule: &str) -> (u64, u64) {
    let extents: Vec<i64> = matrix.extents.iter().map(|extent| *extent as i64).collect();
    let vector = |name, extent| TensorVariable::new(name, <f64 as Element>::TYPE, [extent]);
    let (a, b, c) = (vector("a", extents[0]), matrix.variable("B"), vector("c", extents[1]));
    let variables = [a.clone(), b.clone(), c.clone()];
    let assignment = parse("a(i) = B(i,j) * c(j)", &variables).unwrap();
    let loops = sparse::Computation::new(&assignment).unwrap();
    let statement = Schedule::parse(schedule, &variables).unwrap().apply(loops.statement()).unwrap();
    let plan = Arc::new(plan::Plan::new(&statement).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.tcs");
    fs::write(&path, matrix.file(Width::Eight)).unwrap();
    let done = on_nodes(Nodes::new(nodes), async |cx, runtime| {
        let (matrix, _) = Tensor::load(cx, &b, &TcsFile::open(&path).unwrap()).await?;
        let (result, operand) = (Tensor::new(cx, &a)?, Tensor::new(cx, &c)?);
        operand.write_elements(cx, vec![1.0; extents[1] as usize])?;
        let computation = Computation::new(cx, &plan, &[&result, &matrix, &operand]).await?;
        computation.launch(cx)?.await?;
        cx.execution_fence().await?;
        let before = runtime.statistics();
        computation.launch(cx)?.await?;
        cx.execution_fence().await?;
        let after = runtime.statistics();
        let tasks = cx.per_node(after.tasks - before.tasks).all().await?;
        let moved = cx.per_node(after.parcel_bytes_sent - before.parcel_bytes_sent).all().await?;
        Ok((tasks.iter().sum::<u64>(), moved.iter().sum::<u64>()))
    });
    let done: Vec<(u64, u64)> = done.into_iter().map(|result| result.unwrap()).collect();
    assert!(done.iter().all(|other| *other == done[0]), "{done:?}");
    done[0]
}

/// The commands of `--split i=4 --split j=3`, with these points and steps.
fn blocks(points: &str, steps: &str) -> String {
    let communicate = if steps.is_empty() { "" } else { "communicate({B, c}, jb)" };
    let order = format!("reorder({{{points}, {steps}{}ii, ji}})", if steps.is_empty() { "" } else { ", " });
    format!("divide(i, ib, ii, 4); divide(j, jb, ji, 3); {order}; distribute({{{points}}}); {communicate}")
}

#[test]
fn blocks_of_the_result_never_leave_the_node_that_owns_them() {
    let matrix = Case::random(&[400, 300], ("ds", &[0, 1]), 9000, |number| number as f64);
    for nodes in [1, 2, 4] {
        // Each combination of blocks is a kernel.
        assert_eq!(again(nodes, &matrix, &blocks("ib", "jb")), (12, 0), "{nodes}");
    }
}

#[test]
fn blocks_of_a_matrix_never_move_where_all_its_variables_are_mapped() {
    let matrix = Case::random(&[400, 300], ("ds", &[0, 1]), 9000, |number| number as f64);
    for nodes in [2, 3] {
        // Contributions to the result move when it is read.
        assert_eq!(again(nodes, &matrix, &blocks("jb, ib", "")), (12, 0), "{nodes}");
    }
}

#[test]
fn blocks_that_were_used_are_given_up_where_memory_is_short() {
    let entries = (0..4000_u64).flat_map(|row| (0..100).map(move |column| (vec![row, 7 * column + row % 7], 1.0)));
    let matrix = Case {
        extents: vec![4000, 700],
        levels: "ds",
        order: vec![0, 1],
        entries: entries.collect::<BTreeMap<_, _>>(),
    };
    let vector =
        Case { extents: vec![700], levels: "d", order: vec![0], entries: (0..700).map(|at| (vec![at], 1.0)).collect() };
    // Numbers of 4 bytes, and elements of 8.
    let whole = 400_000 * 12;
    let schedule = "distribute(i, io, ii, 32)";
    let operands = &[("B", &matrix), ("C", &vector)][..];
    let product = |nodes: Nodes| computed(nodes, "A(i) = B(i,j) * C(j)", ("{D}", &[4000]), operands, schedule);
    // A node has room for its quarter of the file and a part of the blocks of its rows, not for all of these.
    assert!(product(Nodes::new(4).with_memory(whole / 2)) == product(Nodes::new(1)));
}
