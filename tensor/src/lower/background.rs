//! Values of workspaces where no operand has an entry.

use std::collections::BTreeMap;

use crate::concrete::{Statement, StatementNode};
use crate::element::Scalar;
use crate::notation::{Access, Backgrounds, Expression, Presence, Reduction, Term, has_entries, is_among};

/// Values that workspaces have where no operand in levels has an entry, as far as that is known.
pub(super) fn backgrounds(statement: &Statement) -> BTreeMap<String, Scalar> {
    fn collect(node: &StatementNode, statement: &Statement, found: &mut BTreeMap<String, Scalar>) {
        match node {
            StatementNode::Forall(_, body) => collect(body, statement, found),
            StatementNode::Assign { .. } => {}
            StatementNode::Where { workspace, consumer, producer } => {
                collect(producer, statement, found);
                let sites = producer.sites();
                if let Some(site) = sites.iter().find(|site| site.target.tensor == *workspace) {
                    let element = |access: &Access| match found.get(access.tensor.name()) {
                        Some(value) => Some(Term::absent(*value)),
                        None => has_entries(&access.tensor).then(|| Term::absent(access.tensor.fill())),
                    };
                    let is_checked = |divisor: &Expression| is_among(divisor, &statement.divisors);
                    let of = Backgrounds { element: &element, is_checked: &is_checked }.of(site.value);
                    let of = of.filter(|term| term.presence == Presence::Absent).map(|term| term.value);
                    let identity = |operator: Reduction| operator.identity(workspace.element());
                    let value = of.filter(|of| site.operator.is_none_or(|operator| identity(operator) == Some(*of)));
                    if let Some(value) = value {
                        found.insert(workspace.name().to_owned(), value);
                    }
                }
                collect(consumer, statement, found);
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(&statement.body, statement, &mut found);
    found
}
