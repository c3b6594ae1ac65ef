//! Several iterations of a loop at once, where each is a loop that reduces: one loop does them all, with a scalar for
//! each.
//!
//! For `for j unroll 2 { sum = 0; for k { sum += B[j, k] * c[k] }; a[j] += sum }`, it is
//!
//! ```text
//! for j2 {
//!     sum0 = 0; sum1 = 0;
//!     for k { sum0 += B[2 * j2, k] * c[k]; sum1 += B[2 * j2 + 1, k] * c[k] };
//!     a[2 * j2] += sum0; ...
//! }
//! ```
//!
//! and the last iterations one by one. What all have in common is loaded once, several streams of memory are under way,
//! and no addition waits for the one before.

use super::leaf::Lowering;
use crate::concrete::{Loop, StatementNode};
use crate::element::Scalar;
use crate::loops::{Expression, LoopKind, Statement as Step, Variable};

/// The most iterations of a loop that are taken together: more streams and sums than there are registers gain nothing,
/// and each is compiled.
const MOST_TOGETHER: u32 = 32;

/// The parts of an iteration: what is before its loop, the loop, and what is after it.
struct Iteration {
    before: Vec<Step>,
    variable: Variable,
    head: (Expression, Expression, LoopKind, u32),
    body: Step,
    after: Vec<Step>,
}

impl Lowering<'_> {
    /// The loop, if its iterations can be taken together. They are independent, as all of one loop are.
    pub(super) fn jammed(&mut self, outer: &Loop, body: &StatementNode) -> Option<Step> {
        let StatementNode::Forall(inner, inside) = body else { return None };
        if outer.unroll < 2 || !matches!(**inside, StatementNode::Assign { .. }) {
            return None;
        }
        let factor = i64::from(outer.unroll.min(MOST_TOGETHER));
        let high = self.high(&outer.variable);
        let (blocks, rest) = match &high {
            Expression::Constant(Scalar::I64(high)) => {
                let blocks = high.max(&0) / factor;
                (blocks.into(), Some((blocks * factor).into()).filter(|_| blocks * factor < *high))
            }
            other => {
                let blocks = other.clone().maximum(0).floor_divide(factor);
                (blocks.clone(), Some(blocks * factor))
            }
        };
        let block = Variable::index(self.names.fresh(outer.variable.name()));
        let iterations: Vec<Iteration> = (0..factor)
            .map(|number| {
                let value = block.value() * factor + number;
                self.inside_of(outer, value, |lowering| {
                    let entry = lowering.enter(Some(&outer.variable));
                    let reduced = lowering.promoted(inner, inside)?;
                    take_apart(entry.wrap(reduced))
                })
            })
            .collect::<Option<_>>()?;
        // A head that depends on the iteration has names of its own.
        if iterations.iter().any(|iteration| iteration.head != iterations[0].head) {
            return None;
        }
        let rest = rest.map_or_else(Step::nothing, |low| self.iterations(outer, body, low, high));
        let (variable, (low, end, kind, unroll)) = (iterations[0].variable.clone(), iterations[0].head.clone());
        let (mut steps, mut bodies, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for iteration in iterations {
            steps.extend(iteration.before);
            after.extend(iteration.after);
            let own = (iteration.variable != variable).then(|| Step::bind(&iteration.variable, variable.value()));
            bodies.push(Step::Sequence(own.into_iter().chain([iteration.body]).collect()));
        }
        steps.push(Step::for_each(&variable, low, end, Step::Sequence(bodies)).with_kind(kind).with_unroll(unroll));
        steps.extend(after);
        Some(Step::sequence([Step::for_each(&block, 0, blocks, Step::sequence(steps)), rest]))
    }
}

/// The parts of an iteration, if there is one loop in it, and no condition.
fn take_apart(step: Step) -> Option<Iteration> {
    // All names in it are its own.
    fn flat(step: Step, into: &mut Vec<Step>) {
        match step {
            Step::Sequence(steps) => steps.into_iter().for_each(|step| flat(step, into)),
            other => into.push(other),
        }
    }
    let mut steps = Vec::new();
    flat(step, &mut steps);
    let mut steps = steps.into_iter();
    let mut before = Vec::new();
    for step in steps.by_ref() {
        match step {
            Step::Let { .. } => before.push(step),
            Step::For { variable, low, high, kind: kind @ (LoopKind::Serial | LoopKind::Vector), unroll, body } => {
                let after: Vec<Step> = steps.collect();
                let stores = after.iter().all(|step| matches!(step, Step::Store { .. }));
                let head = (low, high, kind, unroll);
                return stores.then_some(Iteration { before, variable, head, body: *body, after });
            }
            _ => return None,
        }
    }
    None
}
