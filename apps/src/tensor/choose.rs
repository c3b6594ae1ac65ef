//! The choice of an algorithm, and of the grid of processors that it runs on.

use std::fmt;
use std::sync::Arc;

use maniple_tensor::algorithms::{self, Algorithm, AlgorithmError, CosmaGrid, cosma_grid, in_any_order};
use maniple_tensor::choose::{choose as choose_schedule, on_grid, scheduled};
use maniple_tensor::concrete::{Statement, Substitution};
use maniple_tensor::cost::{Estimate, Rates, explain};
use maniple_tensor::machine::{Grid, Machine};
use maniple_tensor::notation::{Assignment, TensorVariable};
use maniple_tensor::placement::Placement;
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::substitute::{library, library_reason};
use maniple_tensor::traffic::Traffic;

use super::limit::check_tasks;
use super::options::AlgorithmName;
use super::problem::Problem;
use super::tasks::Place;
use crate::error::{Error, Result};

/// How the statement runs.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The name of the algorithm or schedule.
    pub name: String,
    /// The schedule, and where tensors lie.
    pub algorithm: Algorithm,
    /// The grid of processors.
    pub machine: Machine,
    /// The plan: its launches and their places.
    pub plan: Arc<Plan>,
    /// The bytes that move.
    pub traffic: Traffic,
    /// How it runs and why so, in words.
    explanation: String,
}

impl Choice {
    fn new(name: String, algorithm: Algorithm, assignment: &Assignment, rates: &Rates) -> Result<Self> {
        fn usage(error: impl fmt::Display) -> Error {
            Error::Usage(error.to_string())
        }
        let plan = Plan::new(&algorithm.statement).map_err(usage)?;
        let extents: Vec<usize> = algorithm.grid.iter().map(|&extent| extent as usize).collect();
        let machine = Machine::from(Grid::new(extents).map_err(usage)?);
        let traffic = Traffic::of(&plan, &machine, &algorithm.placements).map_err(usage)?;
        let estimate = Estimate::new(&plan, &traffic, &algorithm.placements, rates);
        let explained = explain(&plan, &algorithm.placements, &traffic, &estimate);
        let explanation = format!("{assignment}\n{name}\n{explained}");
        Ok(Self { name, algorithm, machine, plan: Arc::new(plan), traffic, explanation })
    }

    /// The same with some tensors elsewhere.
    fn placed(self, wishes: Wishes<'_>, assignment: &Assignment) -> Result<Self> {
        let mut algorithm = self.algorithm.clone();
        let mut changed = false;
        for (tensor, placement) in &mut algorithm.placements {
            if let Some((_, wanted)) = wishes.places.iter().rev().find(|(name, _)| name == tensor.name()) {
                (*placement, changed) = (wanted.clone(), true);
            }
        }
        if changed { Self::new(self.name, algorithm, assignment, wishes.rates) } else { Ok(self) }
    }

    /// The library that multiplies matrices, and the reason for it, if the leaves are products of floats or complex
    /// numbers.
    #[must_use]
    pub fn library(&self) -> Option<(&'static str, &'static str)> {
        let leaf = self.plan.leaf();
        let multiplies = leaf.substituted.as_ref().is_some_and(|by| by.library == Substitution::GEMM);
        let is_integer = leaf.tensors.iter().any(|tensor| tensor.element().is_integer());
        (multiplies && !is_integer).then(|| (library(), library_reason()))
    }

    /// The explanation, with the library that multiplies matrices.
    #[must_use]
    pub fn explain(&self) -> String {
        let library = self.library().map(|(library, reason)| format!("multiplied by\n  {library}: {reason}\n"));
        format!("{}{}", self.explanation, library.unwrap_or_default())
    }

    /// The cheapest one of at most so many processors, on this grid if one is given.
    fn cheapest(assignment: &Assignment, (processors, rates): (i64, &Rates), grid: Option<&[i64]>) -> Result<Self> {
        let choice = choose_schedule(assignment, processors.max(1) as usize, rates);
        let made;
        let best = match grid {
            None => choice.best(),
            Some(grid) => match choice.candidates().iter().find(|candidate| candidate.algorithm.grid == grid) {
                Some(candidate) => candidate,
                None => {
                    made = on_grid(assignment, grid, rates).ok_or_else(|| {
                        let mut known: Vec<String> =
                            choice.candidates().iter().map(|candidate| grid_text(&candidate.algorithm.grid)).collect();
                        known.sort_unstable();
                        known.dedup();
                        Error::Usage(format!(
                            "--grid {}: of the grids for this statement, worth a look are {}; others need an --algorithm",
                            grid_text(grid),
                            known.join(", ")
                        ))
                    })?;
                    &made
                }
            },
        };
        let (title, others) = (choice.explain(), best.explain());
        Ok(Self {
            name: best.name.clone(),
            algorithm: best.algorithm.clone(),
            machine: best.machine.clone(),
            plan: Arc::new(best.plan.clone()),
            traffic: best.traffic.clone(),
            explanation: if grid.is_none() { title } else { format!("{assignment}\n{}\n{others}", best.name) },
        })
    }
}

/// The options of the command line that the choice follows.
#[derive(Clone, Copy, Debug)]
pub struct Wishes<'a> {
    /// How fast processors are.
    pub rates: &'a Rates,
    /// The algorithm.
    pub algorithm: Option<AlgorithmName>,
    /// The grid.
    pub grid: Option<&'a Grid>,
    /// SUMMA's chunk.
    pub chunk: Option<i64>,
    /// The placements of tensors, by name.
    pub places: &'a [(String, Placement)],
    /// How many processors the job has.
    pub processors: i64,
}

/// How the statements of a program run, one after the other.
#[derive(Clone, Debug)]
pub struct Choices(pub Vec<Choice>);

impl Choices {
    /// The names of the choices of all statements.
    #[must_use]
    pub fn name(&self) -> String {
        self.0.iter().map(|choice| choice.name.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// The largest grid, and that of the last statement among those.
    #[must_use]
    pub fn grid(&self) -> &[i64] {
        let grids = self.0.iter().map(|choice| &choice.algorithm.grid[..]);
        grids.max_by_key(|grid| grid.iter().product::<i64>()).unwrap_or(&[])
    }

    /// The library that multiplies matrices, and the reason for it, if a statement uses one.
    #[must_use]
    pub fn library(&self) -> Option<(&'static str, &'static str)> {
        self.0.iter().find_map(Choice::library)
    }

    /// The place of a tensor at the beginning.
    pub(super) fn place(&self, tensor: &TensorVariable) -> Option<Place> {
        self.0.iter().find_map(|choice| {
            let mut placements = choice.algorithm.placements.iter();
            placements.find(|(known, _)| known == tensor).map(|(_, placement)| Place {
                tensor: tensor.name().to_owned(),
                placement: placement.clone(),
                machine: choice.machine.clone(),
            })
        })
    }

    /// Checks that they can run.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are too many tasks.
    pub fn check(&self) -> Result<()> {
        self.0.iter().try_for_each(|choice| check_tasks(&choice.plan))
    }

    /// How each statement runs, and why so.
    #[must_use]
    pub fn explain(&self) -> String {
        self.0.iter().map(Choice::explain).collect::<Vec<_>>().join("\n")
    }
}

/// For each statement the algorithm asked for, or else the one that is expected to take the least time. Of several
/// statements, the algorithm and the grid are for those that they fit.
///
/// # Errors
/// [`Error::Usage`] if the algorithm does not fit any statement, or the grid.
pub fn choose(problem: &Problem, wishes: Wishes<'_>) -> Result<Choices> {
    let statements = problem.divided.statements();
    let choose = |(number, statement): (usize, &Assignment)| match problem.schedules.get(&(number + 1)) {
        Some(schedule) => by_schedule(statement, schedule, wishes.rates),
        None => choose_one(statement, wishes),
    };
    let wished: Vec<Result<Choice>> = statements.iter().enumerate().map(choose).collect();
    let is_given = |number: &usize| problem.schedules.contains_key(&(number + 1));
    let none_fits = wished.iter().enumerate().all(|(number, wished)| is_given(&number) || wished.is_err());
    let said = [
        ("--algorithm", wishes.algorithm.is_some()),
        ("--grid", wishes.grid.is_some()),
        ("--chunk", wishes.chunk.is_some()),
    ];
    if let Some((option, _)) = said.into_iter().find(|(_, is_said)| *is_said)
        && (0..statements.len()).all(|number| is_given(&number))
    {
        return Err(Error::Usage(format!("--schedule says how all statements run: leave {option} out")));
    }
    let processors = wishes.grid.map_or(wishes.processors, |grid| grid.size() as i64);
    let free = Wishes { algorithm: None, grid: None, chunk: None, processors, ..wishes };
    let choices = wished.into_iter().enumerate().map(|(number, wished)| {
        let choice = match wished {
            Err(_) if !none_fits && !is_given(&number) => choose_one(&statements[number], free),
            wished => wished,
        }?;
        choice.placed(wishes, &statements[number])
    });
    choices.collect::<Result<_>>().map(Choices)
}

fn by_schedule(assignment: &Assignment, schedule: &Schedule, rates: &Rates) -> Result<Choice> {
    let algorithm = scheduled(&Statement::new(assignment), schedule);
    let algorithm = algorithm.map_err(|error| Error::Usage(format!("--schedule: {error}")))?;
    Choice::new("the given schedule".to_owned(), algorithm, assignment, rates)
}

fn choose_one(assignment: &Assignment, wishes: Wishes<'_>) -> Result<Choice> {
    if wishes.chunk.is_some() && wishes.algorithm != Some(AlgorithmName::Summa) {
        return Err(Error::Usage("--chunk is for --algorithm summa alone".to_owned()));
    }
    match (wishes.algorithm, wishes.grid) {
        (Some(AlgorithmName::None), Some(_)) => {
            Err(Error::Usage("--grid is for several processors: --algorithm none uses one".to_owned()))
        }
        (Some(AlgorithmName::None), None) => Choice::cheapest(assignment, (1, wishes.rates), None),
        (Some(name), _) => {
            let (name, algorithm) = named(name, &Statement::new(assignment), wishes)?;
            Choice::new(name, algorithm, assignment, wishes.rates)
        }
        (None, Some(grid)) => Choice::cheapest(assignment, (grid.size() as i64, wishes.rates), Some(&extents_of(grid))),
        (None, None) => Choice::cheapest(assignment, (wishes.processors, wishes.rates), None),
    }
}

fn named(name: AlgorithmName, statement: &Statement, wishes: Wishes<'_>) -> Result<(String, Algorithm)> {
    use AlgorithmName::{Cannon, Cosma, Innerprod, Johnson, Mttkrp, Pumma, Solomonik, Summa, Ttm, Ttv};
    let processors = wishes.processors;
    // Extents of the loops, in the order of the statement: those of the result, then those of the sum.
    let extents: Vec<i64> =
        statement.spine().iter().map(|outer| statement.extent(&outer.variable).unwrap_or(1)).collect();
    let matched =
        |make: &dyn Fn(&Statement) -> std::result::Result<Algorithm, AlgorithmError>| in_any_order(statement, make);
    let (text, algorithm) = match name {
        Cannon => ("Cannon's algorithm".to_owned(), {
            let grid = plane(&extents, wishes)?;
            matched(&|of| algorithms::cannon(of, grid))
        }),
        Pumma => ("PUMMA".to_owned(), {
            let grid = plane(&extents, wishes)?;
            matched(&|of| algorithms::pumma(of, grid))
        }),
        Summa => {
            let grid = plane(&extents, wishes)?;
            let sum = extents.get(2).copied().unwrap_or(1);
            let chunk = wishes.chunk.unwrap_or_else(|| tile(sum, grid[0].max(grid[1])));
            (format!("SUMMA in chunks of {chunk}"), matched(&|of| algorithms::summa(of, grid, chunk)))
        }
        Johnson => ("Johnson's algorithm".to_owned(), {
            let grid = cuboid(&extents, wishes)?;
            matched(&|of| algorithms::johnson(of, grid))
        }),
        Solomonik => {
            let (processors, copies) = match wishes.grid {
                Some(_) => {
                    let [rows, columns, layers] = cuboid(&extents, wishes)?;
                    if rows != columns {
                        let grid = grid_text(&[rows, columns, layers]);
                        return Err(Error::Usage(format!(
                            "--grid {grid}: the 2.5D algorithm takes square layers, such as 2x2x1 or 2x2x2"
                        )));
                    }
                    (rows * columns * layers, layers)
                }
                None => layers(processors),
            };
            ("the 2.5D algorithm".to_owned(), matched(&|of| algorithms::solomonik(of, processors, copies)))
        }
        Cosma => {
            let cut = match wishes.grid {
                Some(_) => CosmaGrid { grid: cuboid(&extents, wishes)?, steps: [1; 3] },
                None => match extents[..] {
                    [m, n, k] => cosma_grid([m, n, k], processors, 1, None),
                    _ => CosmaGrid { grid: [1; 3], steps: [1; 3] },
                },
            };
            ("COSMA".to_owned(), matched(&|of| algorithms::cosma(of, cut)))
        }
        Ttv => ("TTV: nothing moves".to_owned(), {
            let grid = plane(&extents, wishes)?;
            matched(&|of| algorithms::ttv(of, grid))
        }),
        Innerprod => {
            let grid = wishes.grid.map_or_else(|| vec![processors], extents_of);
            (
                "inner product: one number for each processor moves".to_owned(),
                matched(&|of| algorithms::innerprod(of, &grid)),
            )
        }
        Ttm => ("TTM: nothing moves".to_owned(), {
            let processors = line(wishes)?;
            matched(&|of| algorithms::ttm(of, processors))
        }),
        Mttkrp => {
            // The sum is over the second and third dimension of the first operand.
            let of_tensor = match extents[..] {
                [i, _, j, k] => vec![i, j, k],
                _ => extents,
            };
            let grid = cuboid(&of_tensor, wishes)?;
            ("MTTKRP: the largest tensor stays where it is".to_owned(), matched(&|of| algorithms::mttkrp(of, grid)))
        }
        AlgorithmName::None => return Err(Error::Usage("no algorithm is named".to_owned())),
    };
    let algorithm = algorithm.map_err(|error| Error::Usage(error.to_string()))?;
    Ok((text, algorithm))
}

/// A grid in text.
#[must_use]
pub fn grid_text(grid: &[i64]) -> String {
    let extents: Vec<String> = grid.iter().map(ToString::to_string).collect();
    if extents.is_empty() { "1".to_owned() } else { extents.join("x") }
}

fn extents_of(grid: &Grid) -> Vec<i64> {
    grid.extents().iter().map(|&extent| extent as i64).collect()
}

/// A block of so many pieces.
fn tile(extent: i64, pieces: i64) -> i64 {
    ((extent as u64).div_ceil(pieces.max(1) as u64) as i64).max(1)
}

fn given<const D: usize>(wishes: Wishes<'_>) -> Result<Option<[i64; D]>> {
    let Some(grid) = wishes.grid else { return Ok(None) };
    let extents: Result<[i64; D], _> = extents_of(grid).try_into();
    extents.map(Some).map_err(|_| {
        Error::Usage(format!(
            "--grid {grid} has {}: this algorithm takes a grid of {D}, such as {}",
            crate::report::counted(grid.rank(), "dimension", "dimensions"),
            ["4", "2x2", "2x2x2"][D - 1],
        ))
    })
}

fn line(wishes: Wishes<'_>) -> Result<i64> {
    Ok(given::<1>(wishes)?.map_or(wishes.processors, |[extent]| extent))
}

fn plane(extents: &[i64], wishes: Wishes<'_>) -> Result<[i64; 2]> {
    let processors = wishes.processors;
    let (rows, columns) = (extents.first().copied().unwrap_or(1), extents.get(1).copied().unwrap_or(1));
    let best = || {
        let grids = divisors(processors).map(|height| [height, processors / height]);
        let around = |grid: &[i64; 2]| tile(rows, grid[0]) + tile(columns, grid[1]);
        grids.min_by_key(around).unwrap_or([processors, 1])
    };
    Ok(given(wishes)?.unwrap_or_else(best))
}

fn cuboid(extents: &[i64], wishes: Wishes<'_>) -> Result<[i64; 3]> {
    let processors = wishes.processors;
    let extent = |dimension: usize| extents.get(dimension).copied().unwrap_or(1);
    let best = || {
        let grids = divisors(processors).flat_map(|height| {
            let rest = processors / height;
            divisors(rest).map(move |width| [height, width, rest / width])
        });
        let surface = |grid: &[i64; 3]| {
            let [a, b, c] = [0, 1, 2].map(|dimension| i128::from(tile(extent(dimension), grid[dimension])));
            a * b + b * c + a * c
        };
        grids.min_by_key(surface).unwrap_or([processors, 1, 1])
    };
    Ok(given(wishes)?.unwrap_or_else(best))
}

fn divisors(number: i64) -> impl Iterator<Item = i64> {
    (1..=number).filter(move |divisor| number % divisor == 0)
}

/// As many processors as the 2.5D algorithm can use, and how many layers then: as many as there can be.
fn layers(processors: i64) -> (i64, i64) {
    let fits = |used: i64, copies: i64| {
        let side = (used / copies).isqrt();
        used % copies == 0 && side * side == used / copies && side % copies == 0
    };
    let pairs = (1..=processors).flat_map(|used| (1..=used).map(move |copies| (used, copies)));
    pairs.filter(|&(used, copies)| fits(used, copies)).max().unwrap_or((1, 1))
}
