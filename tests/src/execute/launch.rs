//! Launching tasks.

use std::sync::Arc;

use maniple::Argument;
use maniple::space::for_dimension;
use maniple::task::{Codec, ContextCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Affine, AnyPoint, AnyRect, Arrangement, Context, CustomProjection, Error, FieldMask, IndexSpace,
    Launch as TypedLaunch, LayoutConstraint, LogicalRegion, PointSet, Privilege, Projection, RegionError, Requirement,
    Target as DataTarget, TaskLauncher, UpperBound,
};

use super::body::{CallArguments, check_layout, delay, leaf, seed_of};
use super::{Handle, Run, Stop};
use crate::environment::NAMES_OF_MAPPERS;
use crate::program::{Body, Launch, Node, Passed, Pick, Place, Right, Site, Target, Use};
use crate::value::{Word, mix};

impl Right {
    fn privilege(self) -> Privilege {
        match self {
            Self::Read => Privilege::Read,
            Self::Write => Privilege::ReadWrite,
            Self::Discard => Privilege::Discard,
            Self::Reduce(operator) => operator.privilege(),
        }
    }
}

/// Regions listed by the number of the point.
struct Listed(Vec<LogicalRegion>);

impl CustomProjection for Listed {
    fn project(&self, _: UpperBound<'_>, point: AnyPoint, domain: &AnyRect) -> Result<LogicalRegion, RegionError> {
        Ok(self.0[domain.linear(point) as usize % self.0.len()].clone())
    }
}

/// The points of a rectangle as a set.
fn set_of(domain: &AnyRect) -> PointSet {
    for_dimension!(domain.dim(), D => {
        let points = domain.points().filter_map(|point| point.typed::<D>().ok());
        PointSet::from(&IndexSpace::<D>::from_points(points.collect::<Vec<_>>()))
    })
}

impl Run {
    /// Launches a task, and remembers its results.
    pub(super) fn launch(
        self: &Arc<Self>,
        context: &Context,
        launch: &Arc<Launch>,
        site: Site,
    ) -> Result<Handle, Stop> {
        self.hand_results(launch);
        let task = self.typed_launch(launch, site)?;
        let handle = match launch.domain {
            None => Handle::One(context.launch(task)),
            Some(domain) if self.launches_over_sets() => Handle::Many(context.index_launch_over(set_of(&domain), task)),
            Some(domain) => Handle::Many(context.index_launch(domain, task)),
        };
        self.names.futures.insert(launch.name, handle.clone());
        Ok(handle)
    }

    /// Keeps the results of earlier launches that the blocks of a launch use.
    fn hand_results(&self, launch: &Launch) {
        let Body::Blocks { blocks, .. } = &launch.body else { return };
        for statement in blocks.iter().flat_map(|block| &block.0) {
            statement.visit_used(&mut |name| {
                if self.names.futures.get(name).is_ok() {
                    self.names.handed.insert(name, ());
                }
            });
        }
    }

    /// Whether all launches over points are launches over sets of points, which are those of the domain.
    fn launches_over_sets(&self) -> bool {
        self.program.seed % 7 == 3
    }

    fn typed_launch(self: &Arc<Self>, launch: &Arc<Launch>, site: Site) -> Result<TypedLaunch<Word>, Stop> {
        let mut arguments = Vec::new();
        for passed in &launch.arguments {
            arguments.push(match passed {
                Passed::Value(value) => Argument::Value(*value),
                Passed::Future(name) | Passed::PerPoint(name) => match self.names.futures.get(*name)? {
                    Handle::One(future) => Argument::Future(future),
                    Handle::Many(map) => Argument::PerPoint(map),
                    Handle::Unit(_) | Handle::Memory(_) => return Err(Stop(Error::application("a copy has no value"))),
                },
            });
        }
        let define = || match self.mapper_of(mix(site.0.into(), 14)) {
            Some(mapper) => definition(launch, site).mapper(mapper),
            None => definition(launch, site),
        };
        let task = self.names.tasks.get_or_insert(site, || Ok(Arc::new(define())))?;
        let mut launcher = TaskLauncher::new(&task).tag(site.0.into());
        if let Some(mapper) = self.mapper_of(mix(site.0.into(), 13)) {
            launcher = launcher.mapper(mapper);
        }
        for argument in &arguments {
            launcher = launcher.after(argument);
        }
        for (number, wanted) in launch.requirements.iter().enumerate() {
            launcher = launcher.requirement(self.requirement(wanted, launch.domain, (site, number))?);
        }
        let given = CallArguments { run: Arc::clone(self), launch: Arc::clone(launch), arguments };
        Ok(launcher.arguments(given).typed())
    }

    /// The mapper that is named by chance, if any.
    pub(super) fn mapper_of(&self, chance: u64) -> Option<&'static str> {
        NAMES_OF_MAPPERS.get((chance % 6) as usize).copied().filter(|_| self.names_mappers)
    }

    fn requirement(&self, wanted: &Use, domain: Option<AnyRect>, key: (Site, usize)) -> Result<Requirement, Stop> {
        let place = |node| Place { region: wanted.region, node };
        let the_same = |make: &dyn Fn() -> Result<Projection, Stop>| self.projection(key, wanted, make);
        let listed = |nodes: &[Node]| {
            the_same(&|| {
                let regions = nodes.iter().map(|&node| self.logical(place(node))).collect::<Result<_, _>>()?;
                Ok(Projection::Custom(Arc::new(Listed(regions))))
            })
        };
        let target = match &wanted.target {
            Target::Node(node) => DataTarget::Region(self.logical(place(*node))?, None),
            Target::Listed(bound, nodes) => DataTarget::Region(self.logical(place(*bound))?, Some(listed(nodes)?)),
            Target::Piece(name, pick) => {
                let partitioning = self.names.partitions.get(*name)?;
                let region = self.names.regions.get(wanted.region)?.with_space(partitioning.parent().clone());
                let partition = region.partition(&partitioning)?;
                let projection = match pick {
                    Pick::Identity => Projection::Identity,
                    Pick::Linearized => Projection::Linearized,
                    Pick::Linear(factor, offset, around) => {
                        let affine = linear(partitioning.colors().dim(), *factor, *offset);
                        // Made anew each time, and the same all the same.
                        Projection::Affine(if *around { affine.around() } else { affine })
                    }
                    Pick::Affine(factor, offset) => {
                        let (factor, offset, colors) = (*factor as u64, *offset as u64, partitioning.colors());
                        let color = move |point: AnyPoint| {
                            let number = domain.map_or(0, |domain| domain.linear(point));
                            colors.delinear((factor * number + offset) % colors.volume().max(1))
                        };
                        the_same(&|| Ok(Projection::Color(Arc::new(color))))?
                    }
                    Pick::Listed(nodes) => listed(nodes)?,
                };
                DataTarget::Partition(partition, projection)
            }
        };
        let fields = wanted.fields.iter().map(|&field| self.field(wanted.region, field));
        Ok(Requirement::new(target, fields.collect::<Result<FieldMask, _>>()?, wanted.right.privilege()))
    }

    /// The function that a requirement has had before, if it is the same: two functions that do the same are not equal.
    fn projection(
        &self,
        key: (Site, usize),
        wanted: &Use,
        make: &dyn Fn() -> Result<Projection, Stop>,
    ) -> Result<Projection, Stop> {
        if let Ok((known, projection)) = self.names.projections.get(key)
            && known == *wanted
        {
            return Ok(projection);
        }
        let projection = make()?;
        self.names.projections.insert(key, (wanted.clone(), projection.clone()));
        Ok(projection)
    }
}

/// The task of all launches of a site: one or two variants that do the same, some of which want data in a certain
/// layout, and fail in another.
fn definition(launch: &Launch, site: Site) -> TaskDefinition {
    let name = format!("task{}", site.0);
    let seed = mix(site.0.into(), 11);
    let wanted = |seed: u64| {
        let arrangements = [Arrangement::StructOfArrays, Arrangement::ArrayOfStructs, Arrangement::Blocked(4)];
        seed.is_multiple_of(3).then(|| arrangements[(seed / 3 % 3) as usize])
    };
    let options = |arrangement| TaskOptions {
        layout: LayoutConstraint { arrangement, ..LayoutConstraint::default() },
        ..TaskOptions::default()
    };
    match &launch.body {
        Body::Leaf => {
            // Single requirements want others than the rest.
            let count = launch.requirements.len();
            let variant = |definition: TaskDefinition, arrangement: Option<Arrangement>, seed: u64| {
                let of = |number: usize| wanted(mix(seed, number as u64)).filter(|_| seed.is_multiple_of(2));
                let layouts: Vec<_> = (0..count).map(|number| of(number).or(arrangement)).collect();
                let wanted: Vec<_> = (0..count).filter_map(|number| Some((number, of(number)?))).collect();
                let definition = definition.leaf(options(arrangement), move |call| {
                    check_layout(call, &layouts)?;
                    leaf(call)
                });
                wanted.into_iter().fold(definition, |definition, (number, arrangement)| {
                    definition.layout_of(number, options(Some(arrangement)).layout)
                })
            };
            let definition =
                variant(TaskDefinition::new(&name), wanted(seed), mix(seed, 13)).codec(Codec::of::<Word>());
            if seed.is_multiple_of(2) { variant(definition, wanted(mix(seed, 12)), mix(seed, 14)) } else { definition }
        }
        Body::Blocks { inner, .. } => {
            let options = TaskOptions { inner: *inner, ..options(wanted(seed)) };
            TaskDefinition::new(&name).with_context(options, with_blocks).codec(Codec::of::<Word>())
        }
    }
}

/// The body of tasks that launch.
async fn with_blocks(call: ContextCall) -> Result<Value, Error> {
    let given: &CallArguments = call.arguments()?;
    let (number, digest) = given.start(call.domain(), call.point())?;
    delay(&given.run, seed_of(&given.launch, call.point()));
    let Body::Blocks { blocks, .. } = &given.launch.body else {
        return Err(Error::application("a leaf task ran as one with a context"));
    };
    let block = &blocks[number % blocks.len()];
    let context = match given.run.mapper_of(seed_of(&given.launch, call.point())) {
        Some(mapper) => call.context().with_mapper(mapper)?,
        None => call.context().clone(),
    };
    let digest = super::statement::run_block(&given.run, &context, block, digest).await?;
    given.end(number)?;
    Ok(Value::new(mix(digest, 4)))
}

/// `factor * point + offset` in each of some dimensions.
fn linear(dim: usize, factor: i64, offset: i64) -> Affine {
    fn of<const D: usize>(factor: i64, offset: i64) -> Affine {
        let mut matrix = [[0; D]; D];
        (0..D).for_each(|d| matrix[d][d] = factor);
        Affine::new(matrix, [offset; D])
    }
    match dim {
        1 => of::<1>(factor, offset),
        2 => of::<2>(factor, offset),
        3 => of::<3>(factor, offset),
        _ => of::<4>(factor, offset),
    }
}
