//! How the statements of a program run, as the user wishes or as is cheapest.

use std::collections::BTreeMap;

use super::named::named;
use super::wishes::{AlgorithmName, ChooseError, Wishes, grid_text};
use super::{Candidate, choose, on_grid, scheduled};
use crate::concrete::{Statement, Substitution};
use crate::cost::Rates;
use crate::machine::Machine;
use crate::notation::{Assignment, TensorVariable};
use crate::placement::Placement;
use crate::schedule::Schedule;
use crate::substitute::{library, library_reason};

/// The way in which a statement runs, and the reason.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The schedule, with what it costs.
    pub candidate: Candidate,
    /// The same in words.
    explanation: String,
}

impl Chosen {
    fn new(candidate: Candidate, assignment: &Assignment) -> Self {
        let explanation = format!("{assignment}\n{}\n{}", candidate.name, candidate.explain());
        Self { candidate, explanation }
    }

    /// The cheapest one of at most so many processors, on this grid if one is given.
    fn cheapest(
        assignment: &Assignment,
        processors: i64,
        rates: &Rates,
        grid: Option<&[i64]>,
    ) -> Result<Self, ChooseError> {
        let choice = choose(assignment, processors.max(1) as usize, rates);
        let Some(grid) = grid else {
            return Ok(Self { candidate: choice.best().clone(), explanation: choice.explain() });
        };
        let known = choice.candidates().iter().find(|candidate| candidate.algorithm.grid == grid).cloned();
        let candidate = known.or_else(|| on_grid(assignment, grid, rates)).ok_or_else(|| {
            let mut known: Vec<String> =
                choice.candidates().iter().map(|candidate| grid_text(&candidate.algorithm.grid)).collect();
            known.sort_unstable();
            known.dedup();
            ChooseError::Grid { statement: assignment.to_string(), grid: grid.to_vec(), known }
        })?;
        Ok(Self::new(candidate, assignment))
    }

    /// The same with some tensors elsewhere.
    fn placed(self, wishes: Wishes<'_>, assignment: &Assignment) -> Result<Self, ChooseError> {
        let mut algorithm = self.candidate.algorithm.clone();
        let mut changed = false;
        for (tensor, placement) in &mut algorithm.placements {
            if let Some((_, wanted)) = wishes.places.iter().rev().find(|(name, _)| name == tensor.name()) {
                (*placement, changed) = (wanted.clone(), true);
            }
        }
        if !changed {
            return Ok(self);
        }
        Ok(Self::new(Candidate::new(self.candidate.name, algorithm, wishes.rates)?, assignment))
    }

    /// The library that multiplies matrices, and the reason for it, if the leaves are products of floats or complex
    /// numbers.
    fn library(&self) -> Option<(&'static str, &'static str)> {
        let leaf = self.candidate.plan.leaf();
        let multiplies = leaf.substituted.as_ref().is_some_and(|by| by.library == Substitution::GEMM);
        let is_integer = leaf.tensors.iter().any(|tensor| tensor.element().is_integer());
        (multiplies && !is_integer).then(|| (library(), library_reason()))
    }
}

/// The ways in which the statements of a program run, one after the other.
#[derive(Clone, Debug)]
pub struct Choices(Vec<Chosen>);

impl Choices {
    /// Takes for each statement the schedule that is given, by its number from 1, or the algorithm that is wished for,
    /// or else the one that is expected to take the least time. Of several statements, the algorithm and the grid are
    /// for those that they fit.
    ///
    /// # Errors
    ///
    /// [`ChooseError`] if the algorithm does not fit any statement, or the grid.
    pub fn of(
        statements: &[Assignment],
        schedules: &BTreeMap<usize, Schedule>,
        wishes: Wishes<'_>,
    ) -> Result<Self, ChooseError> {
        let choose = |(number, statement): (usize, &Assignment)| match schedules.get(&(number + 1)) {
            Some(schedule) => {
                let algorithm = scheduled(&Statement::new(statement), schedule)?;
                let candidate = Candidate::new("the given schedule".to_owned(), algorithm, wishes.rates)?;
                Ok(Chosen::new(candidate, statement))
            }
            None => choose_one(statement, wishes),
        };
        let wished: Vec<Result<Chosen, ChooseError>> = statements.iter().enumerate().map(choose).collect();
        let is_given = |number: &usize| schedules.contains_key(&(number + 1));
        let none_fits = wished.iter().enumerate().all(|(number, wished)| is_given(&number) || wished.is_err());
        let said = [
            ("algorithm", wishes.algorithm.is_some()),
            ("grid", wishes.grid.is_some()),
            ("chunk", wishes.chunk.is_some()),
        ];
        if let Some((wish, _)) = said.into_iter().find(|(_, is_said)| *is_said)
            && (0..statements.len()).all(|number| is_given(&number))
        {
            return Err(ChooseError::Scheduled(wish));
        }
        let processors = wishes.grid.map_or(wishes.processors, |grid| grid.iter().product());
        let free = Wishes { algorithm: None, grid: None, chunk: None, processors, ..wishes };
        let choices = wished.into_iter().zip(statements).enumerate().map(|(number, (wished, statement))| {
            let choice = match wished {
                Err(_) if !none_fits && !is_given(&number) => choose_one(statement, free),
                wished => wished,
            }?;
            choice.placed(wishes, statement)
        });
        choices.collect::<Result<_, _>>().map(Self)
    }

    /// The ways of all statements.
    pub fn all(&self) -> impl Iterator<Item = &Candidate> {
        self.0.iter().map(|chosen| &chosen.candidate)
    }

    /// The names of the choices of all statements.
    #[must_use]
    pub fn name(&self) -> String {
        self.all().map(|candidate| candidate.name.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// The largest grid, and that of the last statement among those.
    #[must_use]
    pub fn grid(&self) -> &[i64] {
        let grids = self.all().map(|candidate| &candidate.algorithm.grid[..]);
        grids.max_by_key(|grid| grid.iter().product::<i64>()).unwrap_or(&[])
    }

    /// The library that multiplies matrices, and the reason for it, if a statement uses one.
    #[must_use]
    pub fn library(&self) -> Option<(&'static str, &'static str)> {
        self.0.iter().find_map(Chosen::library)
    }

    /// The place of a tensor at the beginning.
    #[must_use]
    pub fn place(&self, tensor: &TensorVariable) -> Option<(&Placement, &Machine)> {
        self.all().find_map(|candidate| {
            let mut placements = candidate.algorithm.placements.iter();
            placements.find(|(known, _)| known == tensor).map(|(_, placement)| (placement, &candidate.machine))
        })
    }

    /// Explains how each statement runs, and why so, with the library that multiplies matrices.
    #[must_use]
    pub fn explain(&self) -> String {
        let explained = self.0.iter().map(|chosen| {
            let library = chosen.library().map(|(name, reason)| format!("multiplied by\n  {name}: {reason}\n"));
            format!("{}{}", chosen.explanation, library.unwrap_or_default())
        });
        explained.collect::<Vec<_>>().join("\n")
    }
}

fn choose_one(assignment: &Assignment, wishes: Wishes<'_>) -> Result<Chosen, ChooseError> {
    if wishes.chunk.is_some() && wishes.algorithm != Some(AlgorithmName::Summa) {
        return Err(ChooseError::Chunk);
    }
    match (wishes.algorithm, wishes.grid) {
        (Some(AlgorithmName::None), Some(_)) => Err(ChooseError::Alone),
        (Some(AlgorithmName::None), None) => Chosen::cheapest(assignment, 1, wishes.rates, None),
        (Some(name), _) => {
            let (name, algorithm) = named(name, &Statement::new(assignment), wishes)?;
            Ok(Chosen::new(Candidate::new(name, algorithm, wishes.rates)?, assignment))
        }
        (None, Some(grid)) => Chosen::cheapest(assignment, grid.iter().product(), wishes.rates, Some(grid)),
        (None, None) => Chosen::cheapest(assignment, wishes.processors, wishes.rates, None),
    }
}
