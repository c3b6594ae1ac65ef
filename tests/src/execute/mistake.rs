//! Mistakes on purpose: each stands for a fault that the runtime could have, and the comparison must notice every one.

use std::str::FromStr;

use crate::program::{Action, Block, Passed, Statement};

/// The mistake that the executor makes on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mistake {
    /// Nothing.
    #[default]
    None,
    /// Some values are written wrong.
    WrongValue,
    /// Some results of tasks are wrong.
    WrongResult,
    /// Some values are seen wrong through inline mappings.
    WrongLook,
    /// Some contributions are lost.
    LostContribution,
    /// Fills are left out.
    LostFill,
    /// Launches are carried out after the launch or fill that follows, as if nothing ordered them.
    LateLaunch,
    /// Tasks that must fail do not.
    SwallowedFault,
    /// Statements that must be refused are not.
    MissedRefusal,
    /// A region has memory when all must have been given back.
    Leak,
    /// Some tasks never end.
    Hang,
}

impl Mistake {
    /// All that can be made.
    pub const ALL: [Self; 10] = [
        Self::WrongValue,
        Self::WrongResult,
        Self::WrongLook,
        Self::LostContribution,
        Self::LostFill,
        Self::LateLaunch,
        Self::SwallowedFault,
        Self::MissedRefusal,
        Self::Leak,
        Self::Hang,
    ];

    /// The statements of a block in the order in which they are carried out.
    pub(super) fn order(self, block: &Block) -> Vec<&Statement> {
        let mut order: Vec<&Statement> = block.0.iter().collect();
        if self == Self::LateLaunch {
            for second in 1..order.len() {
                if can_go_first(order[second], order[second - 1]) {
                    order.swap(second - 1, second);
                }
            }
        }
        order
    }
}

impl FromStr for Mistake {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mistake| format!("{mistake:?}") == name);
        found.ok_or_else(|| format!("expected one of {:?}", Self::ALL))
    }
}

/// Whether a statement can go before a launch without naming what is not there.
fn can_go_first(statement: &Statement, before: &Statement) -> bool {
    let Action::Launch(first) = &before.action else { return false };
    let needs =
        |passed: &Passed| matches!(passed, Passed::Future(name) | Passed::PerPoint(name) if *name == first.name);
    match &statement.action {
        Action::Fill(..) | Action::Invalidate(..) => true,
        Action::Launch(second) => !second.arguments.iter().any(needs),
        _ => false,
    }
}
