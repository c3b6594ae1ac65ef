//! The loops of an assignment.

use std::collections::BTreeMap;
use std::ops::Range;

use super::error::SparseError;
use super::operand::Operand;
use super::places::{Place, Places, Visited};
use super::support::{Support, lattice};
use crate::element::ElementType;
use crate::format::Level;
use crate::loops::{Expression, LoopKind, Names, Reduction, Statement as Step, Variable};
use crate::notation::{self, IndexVariable, Literal};

/// The most operands that one loop merges: there is a case for each set of them.
pub(super) const MOST_MERGED: usize = 6;

/// What is done where all variables of a nest have values.
pub(super) type Inside<'f, 'a> = &'f mut dyn FnMut(&mut Nest<'a>, &Places<'a>) -> Result<Step, SparseError>;

/// What the loops over some variables are for.
#[derive(Clone)]
pub(super) struct Nested<'f> {
    pub(super) variables: &'f [IndexVariable],
    pub(super) value: &'f notation::Expression,
    /// The numbers of the accesses in the value.
    pub(super) accesses: Range<usize>,
    /// Whether iterations in which the value is zero may be left out.
    pub(super) skips_zeros: bool,
    /// Whether iterations of the outermost loop may run at the same time.
    pub(super) is_parallel: bool,
}

/// The making of a kernel's loops.
pub(super) struct Nest<'a> {
    pub(super) names: Names,
    pub(super) operands: Vec<Operand>,
    /// The extents of variables, which are parameters.
    pub(super) extents: BTreeMap<IndexVariable, Variable>,
    /// The values of variables inside of their loops.
    pub(super) known: BTreeMap<IndexVariable, Expression>,
    pub(super) visited: &'a [Visited],
}

impl<'a> Nest<'a> {
    /// Loops over variables, around what `inside` gives.
    pub(super) fn loops(
        &mut self,
        nested: &Nested<'_>,
        places: &Places<'a>,
        inside: Inside<'_, 'a>,
    ) -> Result<Step, SparseError> {
        let Some((variable, inner)) = nested.variables.split_first() else { return inside(self, places) };
        let mut iterated = places.compressed(variable);
        iterated.retain(|access| nested.accesses.contains(access));
        if iterated.len() > MOST_MERGED {
            let (operands, most) = (iterated.len(), MOST_MERGED);
            return Err(SparseError::Merge { variable: variable.name().to_owned(), operands, most });
        }
        let support = match nested.skips_zeros {
            true => Support::of(nested.value, places, &iterated, &mut nested.accesses.start.clone()),
            false => Support::Always,
        };
        let inner = Nested { variables: inner, is_parallel: false, ..nested.clone() };
        let mut body = |nest: &mut Self, value: Expression, places: &Places<'a>| {
            let outer = nest.known.insert(variable.clone(), value);
            let mut inner = |nest: &mut Self, places: &Places<'a>| nest.loops(&inner, places, &mut *inside);
            let step = nest.advance(nested.accesses.clone(), places, &mut inner);
            match outer {
                Some(outer) => nest.known.insert(variable.clone(), outer),
                None => nest.known.remove(variable),
            };
            step
        };
        if support == Support::Never {
            return Ok(Step::nothing());
        }
        let kind = if nested.is_parallel { LoopKind::Threads } else { LoopKind::Serial };
        match (iterated.is_empty(), support.holds(&[])) {
            (true, _) => {
                let at = self.names.index(variable.name());
                let step = body(self, at.value(), places)?;
                Ok(Step::for_each(&at, 0, self.extents[variable].value(), step).with_kind(kind))
            }
            (false, true) => self.everywhere(variable, &iterated, places, &mut body),
            (false, false) => self.merged(variable, (&iterated, &support, kind), places, &mut body),
        }
    }

    /// A loop over all coordinates, at some of which operands have elements.
    fn everywhere(
        &mut self,
        variable: &IndexVariable,
        iterated: &[usize],
        places: &Places<'a>,
        body: &mut dyn FnMut(&mut Self, Expression, &Places<'a>) -> Result<Step, SparseError>,
    ) -> Result<Step, SparseError> {
        let at = self.names.index(variable.name());
        let (mut before, mut inside) = (Vec::new(), Vec::new());
        let mut found = Vec::new();
        for &access in iterated {
            let (level, low, high) = self.segment(places, access);
            let (cursor, end) = (self.names.index("p"), self.names.index("end"));
            let here = self.names.index("here");
            let coordinate = self.operands[self.visited[access].operand].coordinate(level, cursor.value());
            before.extend([Step::bind_mutable(&cursor, low), Step::bind(&end, high)]);
            let is_here = cursor.value().less(end.value()).and(coordinate.equal(at.value()));
            inside.push(Step::bind(&here, is_here.select(1, 0)));
            found.push((access, level, cursor, here));
        }
        inside.push(self.cases(&found, at.value(), places, body)?);
        inside.extend(found.iter().map(|(.., cursor, here)| Step::set(cursor, cursor.value() + here.value())));
        before.push(Step::for_each(&at, 0, self.extents[variable].value(), Step::Sequence(inside)));
        Ok(Step::Sequence(before))
    }

    /// What is done at a coordinate, in cases of which operands have an element there.
    fn cases(
        &mut self,
        found: &[(usize, usize, Variable, Variable)],
        at: Expression,
        places: &Places<'a>,
        body: &mut dyn FnMut(&mut Self, Expression, &Places<'a>) -> Result<Step, SparseError>,
    ) -> Result<Step, SparseError> {
        let Some(((access, level, cursor, here), others)) = found.split_first() else { return body(self, at, places) };
        let there = places.with(*access, Place::Level(level + 1, cursor.value()));
        let then = self.cases(others, at.clone(), &there, body)?;
        let otherwise = self.cases(others, at, &places.with(*access, Place::Absent), body)?;
        Ok(Step::choose(here.value().equal(1), then, otherwise))
    }

    /// Loops over the coordinates at which operands have elements: one for each point of the merge lattice.
    fn merged(
        &mut self,
        variable: &IndexVariable,
        (iterated, support, kind): (&[usize], &Support, LoopKind),
        places: &Places<'a>,
        body: &mut dyn FnMut(&mut Self, Expression, &Places<'a>) -> Result<Step, SparseError>,
    ) -> Result<Step, SparseError> {
        let points = lattice(support, iterated);
        if let ([point], [access]) = (&points[..], iterated)
            && point[..] == [*access]
        {
            let (level, low, high) = self.segment(places, *access);
            return self.alone(variable, (*access, level), (low, high, kind), places, body);
        }
        let mut steps = Vec::new();
        let mut cursors = BTreeMap::new();
        for &access in iterated {
            let (level, low, high) = self.segment(places, access);
            let (cursor, end) = (self.names.index("p"), self.names.index("end"));
            steps.extend([Step::bind_mutable(&cursor, low), Step::bind(&end, high)]);
            cursors.insert(access, (level, cursor, end));
        }
        for (number, point) in points.iter().enumerate() {
            let exhausted = iterated.iter().filter(|access| !point.contains(access));
            let places = exhausted.fold(places.clone(), |places, &access| places.with(access, Place::Absent));
            if let [access] = point[..] {
                let (level, cursor, end) = &cursors[&access];
                steps.push(self.alone(
                    variable,
                    (access, *level),
                    (cursor.value(), end.value(), LoopKind::Serial),
                    &places,
                    body,
                )?);
                continue;
            }
            let mut inside = Vec::new();
            let mut coordinates = BTreeMap::new();
            for access in point {
                let (level, cursor, _) = &cursors[access];
                let coordinate = self.names.index(variable.name());
                let value = self.operands[self.visited[*access].operand].coordinate(*level, cursor.value());
                inside.push(Step::bind(&coordinate, value));
                coordinates.insert(*access, coordinate);
            }
            let least = coordinates.values().map(Variable::value).reduce(|one, other| one.minimum(other));
            let at = self.names.index(variable.name());
            inside.extend(least.map(|least| Step::bind(&at, least)));
            // Of the points from here on, the first whose operands all have an element here.
            let mut cases = Step::nothing();
            for case in points[number..].iter().rev().filter(|case| case.iter().all(|access| point.contains(access))) {
                let absent = point.iter().filter(|access| !case.contains(access));
                let places = absent.fold(places.clone(), |places, &access| places.with(access, Place::Absent));
                let there = case.iter().fold(places, |places, access| {
                    let (level, cursor, _) = &cursors[access];
                    places.with(*access, Place::Level(level + 1, cursor.value()))
                });
                let then = body(self, at.value(), &there)?;
                let is_here = |access: &usize| coordinates[access].value().equal(at.value());
                let all_here = case.iter().map(is_here).reduce(Expression::and);
                cases = all_here.map_or(then.clone(), |here| Step::choose(here, then, cases));
            }
            inside.push(cases);
            for access in point {
                let is_here = coordinates[access].value().equal(at.value());
                let cursor = &cursors[access].1;
                inside.push(Step::set(cursor, cursor.value() + is_here.select(1, 0)));
            }
            let is_left = |access: &usize| cursors[access].1.value().less(cursors[access].2.value());
            let all_left = point.iter().map(is_left).reduce(Expression::and);
            steps.extend(all_left.map(|left| Step::repeat_while(left, Step::Sequence(inside))));
        }
        Ok(Step::Sequence(steps))
    }

    /// A loop over the elements of one operand.
    fn alone(
        &mut self,
        variable: &IndexVariable,
        (access, level): (usize, usize),
        (low, high, kind): (Expression, Expression, LoopKind),
        places: &Places<'a>,
        body: &mut dyn FnMut(&mut Self, Expression, &Places<'a>) -> Result<Step, SparseError>,
    ) -> Result<Step, SparseError> {
        let (position, at) = (self.names.index("p"), self.names.index(variable.name()));
        let coordinate = self.operands[self.visited[access].operand].coordinate(level, position.value());
        let there = places.with(access, Place::Level(level + 1, position.value()));
        let step = body(self, at.value(), &there)?;
        let step = Step::Sequence(vec![Step::bind(&at, coordinate), step]);
        Ok(Step::for_each(&position, low, high, step).with_kind(kind))
    }

    /// The level of an access that is compressed and next, with the positions of its children there.
    fn segment(&self, places: &Places<'a>, access: usize) -> (usize, Expression, Expression) {
        let Some((level, _, above)) = places.next(access) else { unreachable!("only compressed levels are iterated") };
        let (low, high) = self.operands[self.visited[access].operand].segment(level, above.clone());
        (level, low, high)
    }

    /// Brings accesses as far as the values of variables that are known: through dense levels at once, through compressed ones whose variable an earlier level had by a search.
    fn advance(
        &mut self,
        accesses: Range<usize>,
        places: &Places<'a>,
        inside: Inside<'_, 'a>,
    ) -> Result<Step, SparseError> {
        let mut places = places.clone();
        for access in accesses.clone() {
            while let Some((level, kind, above)) = places.next(access) {
                let Some(at) = self.known.get(self.visited[access].variable(level)).cloned() else { break };
                if kind != Level::Dense {
                    return self.search((access, level, at), accesses, &places, inside);
                }
                let extent = self.operands[self.visited[access].operand].extent(level);
                let position = match above {
                    Expression::Constant(_) => at,
                    above => above.clone() * extent + at,
                };
                places = places.with(access, Place::Level(level + 1, position));
            }
        }
        inside(self, &places)
    }

    /// Finds a coordinate below a position of an access by bisection.
    fn search(
        &mut self,
        (access, level, at): (usize, usize, Expression),
        accesses: Range<usize>,
        places: &Places<'a>,
        inside: Inside<'_, 'a>,
    ) -> Result<Step, SparseError> {
        let (_, low, high) = self.segment(places, access);
        let (first, last, middle) = (self.names.index("p"), self.names.index("q"), self.names.index("middle"));
        let end = self.names.index("end");
        let coordinate = |nest: &Self, position: &Variable| {
            nest.operands[nest.visited[access].operand].coordinate(level, position.value())
        };
        let halve = Step::Sequence(vec![
            Step::bind(&middle, first.value() + (last.value() - first.value()).floor_divide(2)),
            Step::choose(
                coordinate(self, &middle).less(at.clone()),
                Step::set(&first, middle.value() + 1),
                Step::set(&last, middle.value()),
            ),
        ]);
        let is_there = first.value().less(end.value()).and(coordinate(self, &first).equal(at));
        let there = places.with(access, Place::Level(level + 1, first.value()));
        let then = self.advance(accesses.clone(), &there, &mut *inside)?;
        let otherwise = self.advance(accesses, &places.with(access, Place::Absent), inside)?;
        Ok(Step::Sequence(vec![
            Step::bind_mutable(&first, low),
            Step::bind(&end, high),
            Step::bind_mutable(&last, end.value()),
            Step::repeat_while(first.value().less(last.value()), halve),
            Step::choose(is_there, then, otherwise),
        ]))
    }

    /// The value of an expression whose first access has the number `first`; what has to be done before is added to `before`.
    pub(super) fn value(
        &mut self,
        expression: &notation::Expression,
        places: &Places<'a>,
        (first, before): (&mut usize, &mut Vec<Step>),
    ) -> Result<Expression, SparseError> {
        use notation::Expression as From;
        let mut number = *first;
        if let (Support::Never, Some(zero)) = (
            Support::of(expression, places, &[], &mut number),
            self.element().and_then(|element| Reduction::Sum.identity(element)),
        ) {
            *first = number;
            return Ok(Expression::Constant(zero));
        }
        Ok(match expression {
            From::Literal(Literal::Typed(scalar), _) => Expression::Constant(*scalar),
            From::Literal(Literal::Integer(value), _) => Expression::index(*value),
            From::Literal(Literal::Real(value), _) => Expression::constant(*value),
            From::Index(variable) => self.known[variable].clone(),
            From::Access(_) => {
                let access = *first;
                *first += 1;
                match places.at(access) {
                    Place::Absent => Expression::Constant(self.visited[access].fill()),
                    Place::Level(_, position) => {
                        self.operands[self.visited[access].operand].values.load([position.clone()])
                    }
                }
            }
            From::Negate(operand) => -self.value(operand, places, (first, before))?,
            From::Cast(element, operand, _) => self.value(operand, places, (first, before))?.cast(*element),
            From::Binary(operator, left, right) => {
                let left = self.value(left, places, (&mut *first, &mut *before))?;
                left.binary(*operator, self.value(right, places, (first, before))?)
            }
            From::Call(function, arguments, _) => {
                let values = arguments.iter().map(|argument| self.value(argument, places, (&mut *first, &mut *before)));
                Expression::call(*function, values.collect::<Result<Vec<_>, _>>()?)
            }
            From::Reduce(reduction, variable, operand) => {
                let begins = *first;
                *first = number;
                self.reduced((*reduction, variable, operand), places, (begins..number, before))?
            }
        })
    }

    /// A reduction, by a loop of its own before its value is used.
    fn reduced(
        &mut self,
        (reduction, variable, operand): (Reduction, &IndexVariable, &notation::Expression),
        places: &Places<'a>,
        (accesses, before): (Range<usize>, &mut Vec<Step>),
    ) -> Result<Expression, SparseError> {
        let element = self.element().unwrap_or(ElementType::F64);
        let begins = accesses.start;
        let total = Variable::new(self.names.fresh("sum"), element);
        let identity =
            reduction.identity(element).map_or_else(|| Expression::index(0).cast(element), Expression::Constant);
        let nested = Nested {
            variables: std::slice::from_ref(variable),
            value: operand,
            accesses,
            skips_zeros: reduction == Reduction::Sum,
            is_parallel: false,
        };
        let step = self.loops(&nested, places, &mut |nest, places| {
            let (mut first, mut inside) = (begins, Vec::new());
            let value = nest.value(operand, places, (&mut first, &mut inside))?;
            inside.push(Step::set(&total, value).reduce(reduction));
            Ok(Step::Sequence(inside))
        })?;
        before.extend([Step::bind_mutable(&total, identity), step]);
        Ok(total.value())
    }

    /// The type that is computed in.
    fn element(&self) -> Option<ElementType> {
        self.operands.first().map(|operand| operand.values.element)
    }
}
