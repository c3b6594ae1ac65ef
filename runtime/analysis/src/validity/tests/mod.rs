//! The analysis against a model that carries operations out in their order, on a machine that does so in any order that
//! the plan allows.

mod choosing;
mod machine;
mod plan;
mod program;
mod random;
mod world;

use proptest::prelude::*;

use machine::Machine;
pub(super) use machine::Memory;
use plan::Operator;
use program::{Command, Kind, Program, Start, Style, Wanted};
use world::World;

fn wanted() -> impl Strategy<Value = Wanted> {
    let kinds = [
        (3, Kind::Read),
        (2, Kind::Write),
        (1, Kind::Discard),
        (3, Kind::Reduce(Operator::Sum)),
        (1, Kind::Reduce(Operator::Product)),
    ];
    let kind = proptest::strategy::Union::new_weighted(kinds.map(|(weight, kind)| (weight, Just(kind))).to_vec());
    (any::<u8>(), any::<u8>(), kind).prop_map(|(region, fields, kind)| Wanted { region, fields, kind })
}

fn command(failures: bool) -> impl Strategy<Value = Command> {
    let style = prop_oneof![Just(Style::Together), Just(Style::Each), Just(Style::Leaf)];
    let fails = || prop::bool::weighted(if failures { 0.1 } else { 0.0 });
    let operation = (prop::collection::vec(wanted(), 1..4), style, fails());
    let bytes = || (any::<u8>(), any::<u8>());
    prop_oneof![
        12 => operation.prop_map(|(accesses, style, fails)| Command::Operation { accesses, style, fails }),
        4 => (any::<u8>(), fails()).prop_map(|(which, fails)| Command::Again { which, fails }),
        1 => bytes().prop_map(|(region, fields)| Command::Fill { region, fields }),
        u32::from(failures) => bytes().prop_map(|(region, fields)| Command::Lose { region, fields }),
        1 => bytes().prop_map(|(partition, fields)| Command::Refine { partition, fields }),
        1 => any::<u8>().prop_map(|instances| Command::Forget { instances }),
        1 => Just(Command::Retire),
        1 => Just(Command::Advance),
    ]
}

fn start() -> impl Strategy<Value = Start> {
    let to_buffers = any::<bool>();
    let contributing = to_buffers.prop_map(|to_buffers| Start::Contributing { to_buffers });
    prop_oneof![2 => Just(Start::Fresh), 1 => Just(Start::Inherited), 1 => contributing]
}

fn check(
    commands: &[Command],
    (is_grid, start): (bool, Start),
    (seed, prunes, keeps_apart, pace): (u64, bool, bool, u64),
) {
    let mut program = Program::new(World::new(is_grid), Machine::new(seed, prunes, keeps_apart, pace), start);
    commands.iter().for_each(|command| program.run(command));
    program.finish();
}

proptest! {
    #[test]
    fn every_order_that_the_plan_allows_gives_the_values_of_program_order(
        commands in prop::collection::vec(command(false), 1..40),
        world in (any::<bool>(), start()),
        machine in (any::<u64>(), any::<bool>(), any::<bool>(), 0..4_u64),
    ) {
        check(&commands, world, machine);
    }

    #[test]
    fn an_operation_fails_exactly_if_values_that_it_needs_were_never_made(
        commands in prop::collection::vec(command(true), 1..40),
        world in (any::<bool>(), start()),
        machine in (any::<u64>(), any::<bool>(), any::<bool>(), 0..4_u64),
    ) {
        check(&commands, world, machine);
    }
}

/// The last operation's first access has the products applied, which are elsewhere; its second access adds to a buffer
/// that is pending since the first operation.
#[test]
fn what_an_operation_applies_is_not_what_it_is_about_to_add_to() {
    let reduce = |region, fields, operator| Wanted { region, fields, kind: Kind::Reduce(operator) };
    let together = |accesses| Command::Operation { accesses, style: Style::Together, fails: false };
    let commands = [
        together(vec![reduce(188, 29, Operator::Sum)]),
        Command::Lose { region: 50, fields: 0 },
        together(vec![Wanted { region: 81, fields: 0, kind: Kind::Read }, reduce(98, 47, Operator::Product)]),
        together(vec![reduce(66, 7, Operator::Sum), reduce(188, 0, Operator::Sum)]),
    ];
    check(&commands, (false, Start::Fresh), (1181694773913182451, false, false, 0));
}
