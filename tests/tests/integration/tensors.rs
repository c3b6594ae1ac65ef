//! Tensor algebra on the runtime: whatever the algorithm, the grid and the number of nodes, the result is that of the
//! definition.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple::machine::{Affinity, MemoryKind, ProcessorId, ProcessorKind};
use maniple::mapper::{DefaultMapper, Mapper};
use maniple::{Machine, Result, Runtime};
use maniple_tensor::algorithms::*;
use maniple_tensor::concrete::Statement;
use maniple_tensor::distributed::{Computation, DistributedError, Tensor, TensorMapper, compute};
use maniple_tensor::element::{Element, ElementType, Scalar};
use maniple_tensor::format::{Format, FormatError, Level};
use maniple_tensor::notation::{Assignment, DenseArray, IndexVariable, TensorVariable, evaluate, parse_with_extents};
use maniple_tensor::plan::Plan;
use maniple_tests::nodes::{Nodes, on_nodes};

fn assignment(text: &str, element: ElementType, extents: &[i64]) -> Assignment {
    let names = ["i", "j", "k", "l"].map(IndexVariable::new);
    let extents: Vec<_> = names.into_iter().zip(extents.iter().copied()).collect();
    parse_with_extents(text, element, &extents).unwrap()
}

fn operands(assignment: &Assignment) -> BTreeMap<String, DenseArray> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut array = |tensor: &TensorVariable| {
        DenseArray::from_fn(tensor.element(), tensor.dimensions(), |_| {
            let value = random.i32(-9..10);
            match tensor.element() {
                ElementType::I64 => Scalar::I64(value.into()),
                ElementType::F64 => Scalar::F64(value.into()),
                other => panic!("no test has elements of type {other}"),
            }
        })
    };
    assignment.tensors().iter().map(|tensor| (tensor.name().to_owned(), array(tensor))).collect()
}

/// Runs plans twice on so many nodes, and compares with the definition: small whole numbers, which floats hold exactly.
fn agree(nodes: usize, assignment: &Assignment, statements: &[Statement]) {
    let operands = operands(assignment);
    let expected = evaluate(assignment, &operands).unwrap();
    let plans: Vec<Arc<Plan>> = statements.iter().map(|statement| Arc::new(Plan::new(statement).unwrap())).collect();
    let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
        for plan in &plans {
            let mut tensors = Vec::new();
            for variable in plan.statement.tensors() {
                let tensor = Tensor::new(cx, variable)?;
                tensor.write(cx, &operands[variable.name()])?;
                tensors.push(tensor);
            }
            let tensors: Vec<&Tensor> = tensors.iter().collect();
            for _ in 0..2 {
                let done = compute(cx, plan, &tensors).await?;
                let result = tensors.iter().find(|tensor| tensor.variable() == plan.statement.result()).unwrap();
                assert!(result.read(cx).await? == expected, "on {nodes} nodes:\n{plan}");
                done.await?;
            }
        }
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

/// Sizes that grids divide, do not divide, and are larger than.
const SIZES: [[i64; 3]; 3] = [[8, 12, 16], [7, 11, 13], [2, 3, 1]];

fn products(element: ElementType, nodes: usize) {
    for size in SIZES {
        let assignment = assignment("A(i,j) = B(i,k) * C(k,j)", element, &size);
        let statement = Statement::new(&assignment);
        let mut statements = vec![statement.clone()];
        for grid in [[2, 2], [2, 3], [1, 5]] {
            statements.push(cannon(&statement, grid).unwrap().statement);
            statements.push(pumma(&statement, grid).unwrap().statement);
            statements.push(summa(&statement, grid, 3).unwrap().statement);
        }
        for grid in [[2, 2, 2], [1, 2, 3]] {
            statements.push(johnson(&statement, grid).unwrap().statement);
            statements.push(cosma(&statement, CosmaGrid { grid, steps: [2, 1, 2] }).unwrap().statement);
        }
        statements.push(solomonik(&statement, 8, 2).unwrap().statement);
        agree(nodes, &assignment, &statements);
    }
}

#[test]
fn matrix_products_of_integers_by_all_algorithms() {
    products(ElementType::I64, 1);
}

#[test]
fn matrix_products_of_floats_by_all_algorithms() {
    products(ElementType::F64, 1);
}

#[test]
fn matrix_products_on_several_nodes() {
    products(ElementType::I64, 2);
    products(ElementType::F64, 4);
}

#[test]
fn products_of_higher_order_on_one_node_and_several() {
    for nodes in [1, 2, 4] {
        for extents in [[8, 6, 4, 5], [7, 5, 3, 2]] {
            let of = |text| assignment(text, ElementType::I64, &extents);
            let (by_vector, inner) = (of("A(i,j) = B(i,j,k) * c(k)"), of("a = B(i,j,k) * C(i,j,k)"));
            agree(nodes, &by_vector, &[ttv(&Statement::new(&by_vector), [3, 2]).unwrap().statement]);
            let inner_on = |grid: &[i64]| innerprod(&Statement::new(&inner), grid).unwrap().statement;
            agree(nodes, &inner, &[inner_on(&[3]), inner_on(&[2, 2]), inner_on(&[2, 3, 2])]);
            let by_matrix = of("A(i,j,l) = B(i,j,k) * C(k,l)");
            agree(nodes, &by_matrix, &[ttm(&Statement::new(&by_matrix), 5).unwrap().statement]);
            let khatri_rao = of("A(i,l) = B(i,j,k) * C(j,l) * D(k,l)");
            agree(nodes, &khatri_rao, &[mttkrp(&Statement::new(&khatri_rao), [3, 1, 2]).unwrap().statement]);
        }
    }
}

#[test]
fn what_does_not_fit_a_plan_is_refused() {
    let assignment = assignment("A(i,j) = B(i,k) * C(k,j)", ElementType::I64, &[4, 4, 4]);
    let plan = Arc::new(Plan::new(&Statement::new(&assignment)).unwrap());
    let results = on_nodes(Nodes::new(1), async |cx, _| {
        let new = |name: &str, extents: [i64; 2]| {
            Tensor::new(cx, &TensorVariable::new(name, ElementType::I64, extents)).unwrap()
        };
        let (a, b, c, wide) = (new("A", [4, 4]), new("B", [4, 4]), new("C", [4, 4]), new("C", [4, 5]));
        let missing = compute(cx, &plan, &[&a, &b]).await.unwrap_err().to_string();
        assert_eq!(missing, "the plan uses C, which is not among the tensors given: A, B");
        let shape = compute(cx, &plan, &[&a, &b, &wide]).await.unwrap_err().to_string();
        assert!(shape.contains("extents [4, 4]") && shape.contains("[4, 5]"), "{shape}");
        assert!(c.fill(cx, Scalar::F32(1.0)).unwrap_err().to_string().contains("f32"));
        assert!(c.write(cx, &DenseArray::zeros(ElementType::I64, &[4, 5])).is_err());
        let many = TensorVariable::new("T", ElementType::I64, [1, 1, 1, 1, 1]);
        assert!(matches!(Tensor::new(cx, &many), Err(DistributedError::Order { found: 5, .. })));
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn results_do_not_depend_on_how_tensors_are_stored() {
    let assignment = assignment("A(i,j) = B(i,k,l) * C(l,j,k)", ElementType::I64, &[5, 6, 4, 3]);
    let operands = operands(&assignment);
    let expected = evaluate(&assignment, &operands).unwrap();
    let statement = Statement::new(&assignment).distribute(["j"], ["jo"], ["ji"], &[3]).unwrap();
    let plan = Arc::new(Plan::new(&statement).unwrap());
    let three = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for nodes in [1, 3] {
        let results = on_nodes(Nodes::new(nodes), async |cx, _| {
            for (number, order) in three.iter().enumerate() {
                let mut tensors = Vec::new();
                for variable in plan.statement.tensors() {
                    let modes: Vec<usize> = match variable.name() {
                        "A" => {
                            if number % 2 == 0 {
                                vec![1, 0]
                            } else {
                                vec![0, 1]
                            }
                        }
                        "B" => order.to_vec(),
                        _ => three[(number + 1) % 6].to_vec(),
                    };
                    let format = Format::new(vec![Level::Dense; modes.len()], modes.clone()).unwrap();
                    let tensor = Tensor::stored(cx, variable, &format)?;
                    let stored: Vec<i64> = modes.iter().map(|&mode| variable.dimensions()[mode]).collect();
                    let space = tensor.region().space().space().bounds();
                    assert!(space.hi().coords().iter().zip(&stored).all(|(hi, extent)| hi + 1 == *extent));
                    let array = &operands[variable.name()];
                    let elements: Vec<i64> =
                        array.values().iter().filter_map(|&value| i64::from_scalar(value)).collect();
                    // By each way in, and out again.
                    tensor.write(cx, array)?;
                    assert_eq!(tensor.read_elements::<i64>(cx).await?, elements);
                    tensor.fill(cx, Scalar::I64(0))?;
                    tensor.write_elements(cx, elements.clone())?;
                    assert!(tensor.read(cx).await? == *array);
                    let (extents, copy) = (variable.dimensions().to_vec(), elements.clone());
                    let position =
                        move |at: &[i64]| at.iter().zip(&extents).fold(0, |sum, (index, extent)| sum * extent + index);
                    tensor.generate(cx, &tensor.slabs(3), move |at| copy[position(at) as usize])?;
                    assert_eq!(tensor.read_elements::<i64>(cx).await?, elements);
                    tensors.push(tensor);
                }
                let rows = "xy -> x".parse().unwrap();
                tensors[0].place(cx, &rows, &"3".parse().unwrap())?.await?;
                compute(cx, &plan, &tensors.iter().collect::<Vec<_>>()).await?.await?;
                assert!(tensors[0].read(cx).await? == expected, "{order:?}");
            }
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
    let sparse = Format::new(vec![Level::Dense, Level::Compressed], vec![0, 1]).unwrap();
    let refused = on_nodes(Nodes::new(1), async |cx, _| {
        let error = Tensor::stored(cx, &TensorVariable::new("S", ElementType::F64, [3, 3]), &sparse).unwrap_err();
        assert!(matches!(error, DistributedError::Format(FormatError::Sparse { level: 1, .. })), "{error}");
        Ok(())
    });
    refused.into_iter().for_each(|result| result.unwrap());
}

/// Two processors, each with a memory of its own that has room for so many bytes.
fn two_memories(bytes: u64) -> Machine {
    let mut builder = Machine::builder();
    let near = Affinity { bandwidth_mb_s: 10_000, latency_ns: 100 };
    let memories = [0, 1].map(|_| {
        let (processor, memory) = (builder.processor(ProcessorKind::Cpu), builder.memory(MemoryKind::System, bytes));
        builder.sees(processor, memory, near);
        memory
    });
    builder.copies(memories[0], memories[1], near);
    builder.build().unwrap()
}

#[test]
fn tiles_stay_in_memories_that_have_no_room_for_whole_tensors() {
    let n = 64;
    let assignment = assignment("A(i,j) = B(i,k) * C(k,j)", ElementType::I64, &[n, n, n]);
    let statement = Statement::new(&assignment).distribute(["i"], ["io"], ["ii"], &[2]).unwrap();
    let plan = Arc::new(Plan::new(&statement).unwrap());
    // Half of A, half of B, all of C.
    let matrix = (n * n * 8) as u64;
    let run = |mapper: fn(&Machine, ProcessorId) -> Box<dyn Mapper>| {
        let machine = two_memories(2 * matrix + matrix / 4);
        let runtime = Runtime::builder().machine(machine).workers(2).mapper_for(mapper).build().unwrap();
        runtime.run(async |cx| {
            let tensor = |name: &str| Tensor::new(cx, &TensorVariable::new(name, ElementType::I64, [n, n]));
            let (a, b, c) = (tensor("A")?, tensor("B")?, tensor("C")?);
            b.fill(cx, Scalar::I64(2))?;
            c.fill(cx, Scalar::I64(3))?;
            let product = Computation::new(cx, &plan, &[&a, &b, &c]).await?;
            product.launch(cx)?.await?;
            let before = runtime.statistics().bytes_copied;
            product.launch(cx)?.await?;
            Ok(runtime.statistics().bytes_copied - before)
        })
    };
    assert_eq!(run(|_, _| Box::new(TensorMapper::new())).unwrap(), 0);
    let error = run(|_, _| Box::new(DefaultMapper::new())).unwrap_err().to_string();
    assert!(error.contains("memory"), "{error}");
}

/// `fuse(i, j, f); divide(f, fo, fi, pieces); distribute(fo)`.
fn fused(assignment: &Assignment, pieces: i64) -> Statement {
    let fused = Statement::new(assignment).fuse("i", "j", "f");
    fused.and_then(|fused| fused.divide("f", "fo", "fi", pieces)?.distribute_loops(["fo"])).unwrap()
}

#[test]
fn blocks_of_fused_loops_on_one_node_and_several() {
    for extents in [[10, 10], [3, 7], [7, 2], [1, 9]] {
        let sum = assignment("A(i,j) = B(i,j) + C(i,j)", ElementType::I64, &extents);
        for nodes in [1, 3] {
            agree(nodes, &sum, &[4, 5, 9].map(|pieces| fused(&sum, pieces)));
        }
        let added = assignment("A(i,j) += B(j,i) * c(i)", ElementType::F64, &extents);
        let statements = [fused(&added, 4)];
        let (operands, plan) = (operands(&added), Arc::new(Plan::new(&statements[0]).unwrap()));
        let expected = evaluate(&added, &operands).unwrap();
        // Each piece in an instance of its own, in which its parts lie apart.
        type Make = fn(&Machine, ProcessorId) -> Box<dyn Mapper>;
        let apart: [Make; 2] = [|_, _| Box::new(TensorMapper::new()), |_, _| Box::new(DefaultMapper::piecewise())];
        for mapper in apart {
            let runtime =
                Runtime::builder().machine(two_memories(1 << 20)).workers(2).mapper_for(mapper).build().unwrap();
            let found = runtime.run(async |cx| {
                let mut tensors = Vec::new();
                for variable in plan.statement.tensors() {
                    let tensor = Tensor::new(cx, variable)?;
                    tensor.write(cx, &operands[variable.name()])?;
                    tensors.push(tensor);
                }
                compute(cx, &plan, &tensors.iter().collect::<Vec<_>>()).await?.await?;
                Ok(tensors[0].read(cx).await?)
            });
            assert_eq!(found.unwrap(), expected);
        }
    }
}
