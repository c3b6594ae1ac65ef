//! Loops that libraries compute.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType::{F64, I64};
use maniple_tensor::element::Scalar;
use maniple_tensor::kernel::{Serial, Team, View};
use maniple_tensor::notation::{
    Access, Assignment, DenseArray, Expression, IndexVariable, TensorVariable, evaluate, parse,
};
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::substitute::{
    LeafFunction, LeafLibrary, LeafViews, Nest, RegisterError, SubstituteError, register,
};

/// How often [`Copies`] was called.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Copies, transposed or not: `A(i,j) = B(j,i)`.
#[derive(Debug)]
struct Copies(&'static str);

#[derive(Debug)]
struct Copy {
    target: Access,
    of: Access,
}

impl LeafLibrary for Copies {
    fn name(&self) -> &str {
        self.0
    }

    fn computes(&self) -> &str {
        "copies"
    }

    fn find(&self, nest: &Nest<'_>) -> Result<Arc<dyn LeafFunction>, String> {
        match nest.assignment()? {
            (target, None, Expression::Access(of))
                if target.variables.iter().all(|variable| nest.is_range(variable)) =>
            {
                Ok(Arc::new(Copy { target: target.clone(), of: of.clone() }))
            }
            (target, _, value) => Err(format!("{target} = {value}")),
        }
    }
}

impl LeafFunction for Copy {
    fn call(&self, views: &mut LeafViews<'_, '_>, _: &dyn Team) -> Result<(), SubstituteError> {
        CALLS.fetch_add(1, Ordering::Relaxed);
        let (mut result, operands) = views.split(&self.target)?;
        let operand = operands.view(&self.of)?;
        let bounds =
            |view: &View<'_>, dimension: usize| view.dimensions()[dimension].low..view.dimensions()[dimension].high;
        for i in bounds(&result, 0) {
            for j in bounds(&result, 1) {
                let at = |name: &IndexVariable| if *name == self.target.variables[0] { i } else { j };
                let point: Vec<i64> = self.of.variables.iter().map(at).collect();
                let element: i64 = operand.get(&point).expect("the operand has what the loops read");
                assert!(result.set(&[i, j], element), "the result has what the loops write");
            }
        }
        Ok(())
    }
}

fn copy(text: &str) -> Assignment {
    parse(text, &["A", "B"].map(|name| TensorVariable::new(name, I64, [7, 7]))).expect("an assignment")
}

#[test]
fn a_registered_library_computes_the_leaves_of_schedules_that_name_it() {
    register(Arc::new(Copies("Copies"))).expect("it is new");
    assert_eq!(register(Arc::new(Copies("Copies"))), Err(RegisterError::Taken("Copies".to_owned())));
    let assignment = copy("A(i,j) = B(j,i)");
    let schedule = "divide(i, io, ii, 3); distribute(io); substitute({ii, j}, Copies)";
    let schedule: Schedule = schedule.parse().expect("a schedule");
    assert_eq!(schedule.to_string().parse(), Ok(schedule.clone()));
    let statement = schedule.apply(&Statement::new(&assignment)).expect("it is legal");
    let plan = Plan::new(&statement).expect("a plan");
    let operands =
        BTreeMap::from([("B".to_owned(), DenseArray::from_fn(I64, &[7, 7], |at| Scalar::I64(at[0] * 10 + at[1])))]);
    let before = CALLS.load(Ordering::Relaxed);
    let found = plan.run_with(&operands, &mut |values, arguments| {
        assert!(plan.substitute(values, arguments, &Serial)?);
        Ok(())
    });
    assert_eq!(found.expect("it runs").0, evaluate(&assignment, &operands).expect("an answer"));
    assert_eq!(CALLS.load(Ordering::Relaxed) - before, 3, "once for each point");
}

#[test]
fn what_a_library_does_not_compute_is_refused() {
    register(Arc::new(Copies("Refusing"))).expect("it is new");
    let refused = |assignment: &Assignment, schedule: &str| {
        let schedule: Schedule = schedule.parse().expect("a schedule");
        schedule.apply(&Statement::new(assignment)).expect_err("it is refused").to_string()
    };
    let sum = refused(&copy("A(i,j) += B(j,i)"), "substitute({i, j}, Refusing)");
    assert!(sum.contains("Refusing does not compute A(i,j) = B(j,i); it computes copies"), "{sum}");
    let unknown = refused(&copy("A(i,j) = B(j,i)"), "substitute({i, j}, Cublas)");
    assert!(unknown.contains("no library named Cublas is registered, only Gemm"), "{unknown}");
    let rows = "csr".parse().expect("a format");
    let tensors = [
        TensorVariable::new("y", F64, [7]),
        TensorVariable::new("A", F64, [7, 7]).stored(rows),
        TensorVariable::new("x", F64, [7]),
    ];
    let sparse = parse("y(i) = A(i,j) * x(j)", &tensors).expect("an assignment");
    let sparse = refused(&sparse, "substitute({i, j}, Gemm)");
    assert!(sparse.contains("Gemm does not compute loops over what A stores as"), "{sparse}");
    assert_eq!(register(Arc::new(Copies("two words"))), Err(RegisterError::NoName("two words".to_owned())));
}
