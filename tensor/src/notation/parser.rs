//! Words to assignments, by recursive descent.

use super::assignment::Assignment;
use super::error::{NotationError, NotationErrorKind as Kind, is_nearly_function};
use super::expression::{Access, Expression, Literal, Test};
use super::lexer::{Token, Word, words};
use super::made::{Statement, furthest, with_extents};
use super::variable::{IndexVariable, TensorVariable, TextPlace};
use crate::element::ElementType;
use crate::loops::{BinaryOperator, Intrinsic, Reduction};

/// Expressions nested deeper than this are refused, so that no text overflows the stack.
const DEEPEST: usize = 400;

/// Reads an assignment to and from given tensors.
///
/// ```text
/// statement := access ('=' | '+=' | '-=' | '*=' | 'min=' | 'max=') (access '?')* expression
/// expression := conjunction ('or' conjunction)*
/// conjunction := negation ('and' negation)*
/// negation := 'not' negation | comparison
/// comparison := sum (('==' | '!=' | '<' | '<=' | '>' | '>=') sum)*
/// sum := term (('+' | '-') term)*
/// term := factor (('*' | '/') factor)*
/// factor := '-' factor | '(' expression ')' | number | access | call | index variable
/// access := name | name '(' index {',' index} ')' | name_variable | name_{variables}
/// index := variable | variable ('+' | '-') number | variable '(' number ',' number [',' number] ')'
/// call := function '(' expression {',' expression} ')' | type '(' expression ')'
///       | select '(' expression ',' expression ',' expression ')' | (stored | isfill) '(' access ')'
///       | reduce '(' ('+' | '*' | min | max | or | and | any) ',' variable ',' expression ')'
/// ```
///
/// # Errors
///
/// Any [`NotationErrorKind`](super::NotationErrorKind); the message points at the place.
pub fn parse(text: &str, tensors: &[TensorVariable]) -> Result<Assignment, NotationError> {
    read(text, &ParserNames::Tensors(tensors))
}

/// Reads an assignment whose tensors are made on the way: of the given element type, with dimensions as long as the
/// extents of the index variables that they are accessed with, or of which only parts are taken, as far as these reach.
/// Names that are no index variables and stand alone are scalars.
///
/// # Errors
///
/// As for [`parse`].
pub fn parse_with_extents(
    text: &str,
    element: ElementType,
    extents: &[(IndexVariable, i64)],
) -> Result<Assignment, NotationError> {
    read(text, &ParserNames::Extents(element, extents))
}

/// Reads assignments to and from given tensors: one after the other, with `;` or the beginning of a line between them.
/// A line that begins with an operator goes on with the one above.
///
/// # Errors
///
/// As for [`parse`].
pub fn parse_all(text: &str, tensors: &[TensorVariable]) -> Result<Vec<Assignment>, NotationError> {
    read_all(text, &ParserNames::Tensors(tensors))
}

/// The same, with tensors that are made as those of [`parse_with_extents`].
///
/// # Errors
///
/// As for [`parse`].
pub fn parse_all_with_extents(
    text: &str,
    element: ElementType,
    extents: &[(IndexVariable, i64)],
) -> Result<Vec<Assignment>, NotationError> {
    read_all(text, &ParserNames::Extents(element, extents))
}

/// The same with extents that are made up, the same for all index variables but those of parts: what a text says of its
/// tensors before anything is known of extents.
///
/// # Errors
///
/// As for [`parse`].
pub fn sketch_all(
    text: &str,
    element: ElementType,
    variables: &[IndexVariable],
) -> Result<Vec<Assignment>, NotationError> {
    let known = |extent: i64| -> Vec<_> { variables.iter().map(|variable| (variable.clone(), extent)).collect() };
    let extents = known(1);
    let names = ParserNames::Extents(element, &extents);
    let parse = || {
        let statements = statements(text, &names)?;
        let extents = known(furthest(&statements).max(1));
        checked(statements, &ParserNames::Extents(element, &extents))
    };
    parse().map_err(|error: NotationError| error.within(text))
}

/// Reads an expression of given tensors, without checking it.
///
/// # Errors
///
/// The errors of texts.
pub fn parse_expression(text: &str, tensors: &[TensorVariable]) -> Result<Expression, NotationError> {
    let parse = || {
        let names = ParserNames::OfPart(tensors);
        let mut parser = Parser::new(text, &names)?;
        let expression = parser.expression()?;
        match parser.peek().word {
            Word::End => Ok(expression),
            _ => parser.unexpected("an operator or the end"),
        }
    };
    parse().map_err(|error: NotationError| error.within(text))
}

fn read(text: &str, names: &ParserNames<'_>) -> Result<Assignment, NotationError> {
    let parse = || {
        let mut parser = Parser::new(text, names)?;
        let statement = parser.statement()?;
        if parser.peek().word != Word::End {
            return parser.unexpected("an operator or the end");
        }
        let read = checked(vec![statement], names)?.pop();
        read.map_or_else(|| parser.unexpected("a statement"), Ok)
    };
    parse().map_err(|error: NotationError| error.within(text))
}

fn read_all(text: &str, names: &ParserNames<'_>) -> Result<Vec<Assignment>, NotationError> {
    let parse = || checked(statements(text, names)?, names);
    parse().map_err(|error: NotationError| error.within(text))
}

/// The statements of a text, which are not checked yet.
fn statements(text: &str, names: &ParserNames<'_>) -> Parsed<Vec<Statement>> {
    let mut parser = Parser::new(text, names)?;
    let mut statements = Vec::new();
    loop {
        while parser.eat(';') {}
        if parser.peek().word == Word::End && !statements.is_empty() {
            return Ok(statements);
        }
        let end = parser.peek().place;
        if let Some(before) = parser.next.checked_sub(1).map(|last| parser.words[last])
            && before.word != Word::Symbol(';')
            && !is_on_new_line(text, before.place, end)
        {
            return parser.unexpected("an operator, ';' or the end");
        }
        statements.push(parser.statement()?);
    }
}

/// Checks statements, whose tensors get extents by all accesses if none are given.
fn checked(statements: Vec<Statement>, names: &ParserNames<'_>) -> Parsed<Vec<Assignment>> {
    let statements = match names {
        ParserNames::Tensors(_) | ParserNames::OfPart(_) => statements,
        ParserNames::Extents(element, extents) => with_extents(&statements, *element, extents)?,
    };
    statements
        .into_iter()
        .map(|Statement { left, accumulation, masks, right }| Assignment::masked(left, accumulation, &masks, right))
        .collect()
}

/// Whether a line ends between two places.
fn is_on_new_line(text: &str, before: TextPlace, after: TextPlace) -> bool {
    matches!((before.0, after.0), (Some(before), Some(after)) if text[before.end..after.start].contains('\n'))
}

/// The meaning of names.
enum ParserNames<'a> {
    Tensors(&'a [TensorVariable]),
    /// The same in a part of a statement, where names that stand alone and are no tensors are index variables.
    OfPart(&'a [TensorVariable]),
    /// Names with extents are index variables, and others tensors, whose own extents follow from all accesses.
    Extents(ElementType, &'a [(IndexVariable, i64)]),
}

impl ParserNames<'_> {
    /// The tensor called `name`, as it is accessed with `variables`.
    fn tensor(
        &self,
        name: &str,
        place: TextPlace,
        variables: &[IndexVariable],
    ) -> Result<TensorVariable, NotationError> {
        match self {
            Self::Tensors(tensors) | Self::OfPart(tensors) => self.declared(name).ok_or_else(|| {
                let known: Vec<_> = tensors.iter().map(TensorVariable::name).collect();
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                Kind::UnknownTensor { name: name.into(), known }.at(place)
            }),
            Self::Extents(element, _) => {
                let mut bases = variables.iter().map(|variable| (variable.base().name(), variable.place));
                match bases.find(|(base, _)| self.extent(base).is_none()) {
                    Some((unknown, place)) => Err(Kind::UnknownVariable(unknown.into()).at(place)),
                    None => Ok(TensorVariable::new(name, *element, vec![0; variables.len()])),
                }
            }
        }
    }

    fn declared(&self, name: &str) -> Option<TensorVariable> {
        match self {
            Self::Tensors(tensors) | Self::OfPart(tensors) => {
                tensors.iter().find(|tensor| tensor.name() == name).cloned()
            }
            Self::Extents(..) => None,
        }
    }

    fn extent(&self, name: &str) -> Option<i64> {
        match self {
            Self::Tensors(_) | Self::OfPart(_) => None,
            Self::Extents(_, extents) => {
                extents.iter().find(|(variable, _)| variable.name() == name).map(|(_, extent)| *extent)
            }
        }
    }
}

struct Parser<'a> {
    words: Vec<Token<'a>>,
    next: usize,
    depth: usize,
    names: &'a ParserNames<'a>,
}

type Parsed<T> = Result<T, NotationError>;

impl<'a> Parser<'a> {
    fn new(text: &'a str, names: &'a ParserNames<'a>) -> Parsed<Self> {
        Ok(Self { words: words(text)?, next: 0, depth: 0, names })
    }

    fn peek(&self) -> Token<'a> {
        self.words[self.next]
    }

    fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        // The last word is the end, which stays.
        self.next = (self.next + 1).min(self.words.len() - 1);
        token
    }

    fn eat(&mut self, symbol: char) -> bool {
        let found = self.peek().word == Word::Symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: char, expected: &'static str) -> Parsed<TextPlace> {
        let place = self.peek().place;
        if self.eat(symbol) { Ok(place) } else { self.unexpected(expected) }
    }

    fn unexpected<T>(&self, expected: &'static str) -> Parsed<T> {
        let Token { word, place } = self.peek();
        Err(Kind::Syntax { expected, found: word.to_string() }.at(place))
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let Token { word: Word::Name(name), place } = self.peek() else {
            return self.unexpected("the name of a result");
        };
        self.advance();
        let left = self.access(name, place)?;
        let accumulation = match self.peek().word {
            Word::Accumulate(operator) => Some(operator),
            _ => None,
        };
        match accumulation {
            Some(_) => _ = self.advance(),
            None => _ = self.expect('=', "'=' or '+='")?,
        }
        let mut right = self.expression()?;
        let mut masks = Vec::new();
        while self.eat('?') {
            let place = right.place();
            let Expression::Access(mask) = right else {
                return Err(Kind::NoElement { asking: "what is before '?'", example: "M(i,j)" }.at(place));
            };
            masks.push(mask);
            right = self.expression()?;
        }
        let (accumulation, right) = match accumulation {
            Some("-") => (Some(Reduction::Sum), Expression::Negate(Box::new(right))),
            other => (other.and_then(Reduction::named), right),
        };
        Ok(Statement { left, accumulation, masks, right })
    }

    /// One level deeper: long chains of operators become deep trees as well.
    fn deeper(&mut self, place: TextPlace) -> Parsed<()> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(Kind::TooDeep(DEEPEST).at(place)) } else { Ok(()) }
    }

    fn expression(&mut self) -> Parsed<Expression> {
        self.operators(0)
    }

    /// Operands between operators that bind at least so tightly, and associate to the left.
    fn operators(&mut self, least: u8) -> Parsed<Expression> {
        let (depth, Token { word, place }) = (self.depth, self.peek());
        self.deeper(place)?;
        let is_not = word == Word::Name("not") && least <= COMPARISONS && self.names.declared("not").is_none();
        let mut left = if is_not {
            // Whether it is zero.
            self.advance();
            let zero = Expression::Literal(Literal::Integer(0), place);
            Expression::Binary(BinaryOperator::Equal, Box::new(self.operators(COMPARISONS)?), Box::new(zero))
        } else {
            self.factor()?
        };
        while let Some((operator, precedence, is_turned)) = operator(self.peek().word)
            && precedence >= least
        {
            let place = self.advance().place;
            self.deeper(place)?;
            let right = self.operators(precedence + 1)?;
            let (first, second) = if is_turned { (right, left) } else { (left, right) };
            left = Expression::Binary(operator, Box::new(first), Box::new(second));
        }
        self.depth = depth;
        Ok(left)
    }

    fn factor(&mut self) -> Parsed<Expression> {
        let Token { word, place } = self.peek();
        match word {
            Word::Symbol('-') => {
                self.advance();
                self.deeper(place)?;
                self.deeper(place)?;
                Ok(Expression::Negate(Box::new(self.factor()?)))
            }
            Word::Symbol('(') => {
                self.advance();
                // What is in parentheses takes more of the stack than a chain of operators.
                self.depth += 2;
                self.deeper(place)?;
                let inner = self.expression()?;
                self.expect(')', "an operator or ')'")?;
                Ok(inner)
            }
            Word::Integer(digits) => {
                self.advance();
                let value = digits.parse().map_err(|_| Kind::NumberTooLarge(digits.into()).at(place))?;
                Ok(Expression::Literal(Literal::Integer(value), place))
            }
            Word::Real(digits) => {
                self.advance();
                match digits.parse::<f64>() {
                    Ok(value) if value.is_finite() => Ok(Expression::Literal(Literal::Real(value), place)),
                    _ => Err(Kind::NumberTooLarge(digits.into()).at(place)),
                }
            }
            Word::Name(name) => {
                self.advance();
                self.named(name, place)
            }
            _ => self.unexpected("a number, a tensor, a function or '('"),
        }
    }

    /// A name: of a tensor, a function, a type or an index variable.
    fn named(&mut self, name: &'a str, place: TextPlace) -> Parsed<Expression> {
        let open = self.peek().word == Word::Symbol('(');
        if open && self.names.declared(name).is_none() {
            if name == "reduce" {
                return self.reduce();
            }
            if name == "select" {
                let (arguments, end) = self.arguments()?;
                let found = arguments.len();
                let operands = <[Expression; 3]>::try_from(arguments)
                    .map_err(|_| Kind::SelectArity { found }.at(place.join(end)))?;
                return Ok(Expression::Select(Box::new(operands), place.join(end)));
            }
            if let Some(test) = Test::named(name) {
                self.advance();
                let operand = self.expression()?;
                let end = self.expect(')', "')': one element is asked for")?;
                let Expression::Access(access) = operand else {
                    let example = "B(i,j)";
                    return Err(Kind::NoElement { asking: test.name(), example }.at(operand.place()));
                };
                return Ok(Expression::Test(test, Access { place: place.join(end), ..access }));
            }
            if let Some(intrinsic) = Intrinsic::named(name) {
                let (arguments, end) = self.arguments()?;
                return Ok(Expression::Call(intrinsic, arguments, place.join(end)));
            }
            if let Some(element) = element_named(name) {
                self.advance();
                let operand = Box::new(self.expression()?);
                let end = self.expect(')', "')': a cast has one operand")?;
                return Ok(Expression::Cast(element, operand, place.join(end)));
            }
            // Where tensors are declared, what is called nearly as a function is meant to be one.
            let is_declared = !matches!(self.names, ParserNames::Extents(..));
            if self.is_call() || is_declared && is_nearly_function(name) {
                return Err(Kind::UnknownFunction { name: name.into() }.at(place));
            }
        }
        let subscript = self.split_subscript(name).is_some() || self.peek().word == Word::Symbol('{');
        let index = match self.names {
            // Numbers, which print so.
            ParserNames::Tensors(_) | ParserNames::OfPart(_) if matches!(name, "inf" | "NaN") => false,
            // Whether it has an extent is checked with the whole assignment.
            ParserNames::Tensors(_) => self.names.declared(name).is_none() && is_used_as_index(&self.words, name),
            ParserNames::OfPart(_) => self.names.declared(name).is_none(),
            ParserNames::Extents(..) => self.names.extent(name).is_some(),
        };
        if !open && !subscript && index {
            return Ok(Expression::Index(IndexVariable::new(name).at(place)));
        }
        if !open && self.names.declared(name).is_none() {
            // As numbers print that are none.
            match name {
                "inf" => return Ok(Expression::Literal(Literal::Real(f64::INFINITY), place)),
                "NaN" => return Ok(Expression::Literal(Literal::Real(f64::NAN), place)),
                _ => {}
            }
        }
        Ok(Expression::Access(self.access(name, place)?))
    }

    /// Whether what is in the parentheses that follow are no index variables, nor parts of dimensions or shifts, but
    /// operands of a function.
    fn is_call(&self) -> bool {
        let word = |place: usize| self.words.get(place).map_or(Word::End, |token| token.word);
        let mut place = self.next + 1;
        loop {
            if !matches!(word(place), Word::Name(_)) {
                return matches!(word(place), Word::Integer(_) | Word::Real(_) | Word::Symbol('-' | '(' | ')'));
            }
            place += 1;
            match (word(place), word(place + 1)) {
                (Word::Symbol('+' | '-'), Word::Integer(_)) => place += 2,
                // Parts of dimensions are given by numbers; a sign before one is told when it is read.
                (Word::Symbol('('), Word::Integer(_) | Word::Symbol('-')) => {
                    while !matches!(word(place), Word::Symbol(')') | Word::End) {
                        place += 1;
                    }
                    place += 1;
                }
                (Word::Symbol('('), _) => return true,
                _ => {}
            }
            match word(place) {
                Word::Symbol(',') => place += 1,
                Word::Symbol('+' | '-' | '*' | '/') | Word::Compare(_) | Word::Name("and" | "or") => return true,
                _ => return false,
            }
        }
    }

    fn arguments(&mut self) -> Parsed<(Vec<Expression>, TextPlace)> {
        self.expect('(', "'('")?;
        let mut arguments = vec![self.expression()?];
        while self.eat(',') {
            arguments.push(self.expression()?);
        }
        Ok((arguments, self.expect(')', "an operator, ',' or ')'")?))
    }

    fn reduce(&mut self) -> Parsed<Expression> {
        self.expect('(', "'('")?;
        let word = self.peek().word;
        let name = if let Word::Symbol(_) = word { word.to_string().replace('\'', "") } else { word.to_string() };
        let Some(reduction) = Reduction::named(&name) else {
            return self.unexpected("one of +, *, min, max, or, and, any");
        };
        self.advance();
        self.expect(',', "','")?;
        let variable = self.variable()?;
        self.expect(',', "','")?;
        let operand = Box::new(self.expression()?);
        self.expect(')', "an operator or ')'")?;
        Ok(Expression::Reduce(reduction, variable, operand))
    }

    fn variable(&mut self) -> Parsed<IndexVariable> {
        let Token { word: Word::Name(name), place } = self.peek() else { return self.unexpected("an index variable") };
        self.advance();
        Ok(IndexVariable::new(name).at(place))
    }

    /// An index variable, or a part or shift of one.
    fn index(&mut self) -> Parsed<IndexVariable> {
        let variable = self.variable()?;
        let start = variable.place;
        let sign = match self.peek().word {
            Word::Symbol('+') => 1,
            Word::Symbol('-') => -1,
            Word::Symbol('(') => {
                self.advance();
                let low = self.integer(OF_PART)?;
                self.expect(',', "',': a part is i(low,high) or i(low,high,step)")?;
                let high = self.integer(OF_PART)?;
                let step = if self.eat(',') { self.integer(OF_PART)? } else { 1 };
                let end = self.expect(')', "')': a part is i(low,high) or i(low,high,step)")?;
                return Ok(variable.within(low, high, step).at(start.join(end)));
            }
            _ => return Ok(variable),
        };
        self.advance();
        let end = self.peek().place;
        let by = self.integer("a whole number: a shift is i+1 or i-1")?;
        Ok(variable.shifted(sign * by).at(start.join(end)))
    }

    fn integer(&mut self, expected: &'static str) -> Parsed<i64> {
        let Token { word: Word::Integer(digits), place } = self.peek() else {
            return self.unexpected(expected);
        };
        self.advance();
        digits.parse().map_err(|_| Kind::NumberTooLarge(digits.into()).at(place))
    }

    fn variables(&mut self, close: char) -> Parsed<(Vec<IndexVariable>, TextPlace)> {
        let mut variables = vec![self.index()?];
        loop {
            let Token { word, place } = self.advance();
            match word {
                Word::Symbol(',') => variables.push(self.index()?),
                Word::Symbol(symbol) if symbol == close => return Ok((variables, place)),
                _ => {
                    let expected = if close == ')' { "',' or ')'" } else { "',' or '}'" };
                    return Err(Kind::Syntax { expected, found: word.to_string() }.at(place));
                }
            }
        }
    }

    /// The rest of an access to the tensor `name`.
    fn access(&mut self, name: &'a str, place: TextPlace) -> Parsed<Access> {
        let (name, variables, end) = if self.eat('(') {
            let (variables, end) = self.variables(')')?;
            (name, variables, end)
        } else if self.peek().word == Word::Symbol('{') && name.ends_with('_') {
            self.advance();
            let (variables, end) = self.variables('}')?;
            (&name[..name.len() - 1], variables, end)
        } else if let Some((tensor, variable)) = self.split_subscript(name) {
            let variable = IndexVariable::new(variable).at(place);
            (tensor, vec![variable], place)
        } else {
            (name, Vec::new(), place)
        };
        let tensor = self.names.tensor(name, place, &variables)?;
        Ok(Access { tensor, variables, place: place.join(end) })
    }

    /// `a_i` as `a` and `i`, if there is no tensor called `a_i`, but one called `a`; without declared tensors, if `i`
    /// has an extent.
    fn split_subscript(&self, name: &'a str) -> Option<(&'a str, &'a str)> {
        let (tensor, variable) = name.rsplit_once('_')?;
        let splits = match self.names {
            ParserNames::Tensors(_) | ParserNames::OfPart(_) => {
                self.names.declared(name).is_none() && self.names.declared(tensor).is_some()
            }
            ParserNames::Extents(..) => self.names.extent(variable).is_some(),
        };
        (splits && !tensor.is_empty() && !variable.is_empty()).then_some((tensor, variable))
    }
}

/// A description of the numbers of a part of a dimension.
const OF_PART: &str = "a whole number: a part is i(low,high) or i(low,high,step), from 0 on, with a step of at least 1";

/// How tightly comparisons bind.
const COMPARISONS: u8 = 2;

/// The operator that a word is, how tightly it binds, and whether its operands change places: the greater of two is the
/// one that the other is less than.
fn operator(word: Word<'_>) -> Option<(BinaryOperator, u8, bool)> {
    Some(match word {
        Word::Name("or") => (BinaryOperator::Or, 0, false),
        Word::Name("and") => (BinaryOperator::And, 1, false),
        Word::Compare("==") => (BinaryOperator::Equal, COMPARISONS, false),
        Word::Compare("!=") => (BinaryOperator::NotEqual, COMPARISONS, false),
        Word::Compare("<") => (BinaryOperator::Less, COMPARISONS, false),
        Word::Compare("<=") => (BinaryOperator::LessEqual, COMPARISONS, false),
        Word::Compare(">") => (BinaryOperator::Less, COMPARISONS, true),
        Word::Compare(_) => (BinaryOperator::LessEqual, COMPARISONS, true),
        Word::Symbol('+') => (BinaryOperator::Add, 3, false),
        Word::Symbol('-') => (BinaryOperator::Subtract, 3, false),
        Word::Symbol('*') => (BinaryOperator::Multiply, 4, false),
        Word::Symbol('/') => (BinaryOperator::Divide, 4, false),
        _ => return None,
    })
}

/// Whether `name` is among the variables of an access anywhere in the text.
fn is_used_as_index(words: &[Token<'_>], name: &str) -> bool {
    let ends = |word| matches!(word, Word::Symbol(',' | ')' | '}'));
    let begins = |word| matches!(word, Word::Symbol('(' | ',' | '{'));
    words.windows(3).any(|around| begins(around[0].word) && around[1].word == Word::Name(name) && ends(around[2].word))
}

fn element_named(name: &str) -> Option<ElementType> {
    ElementType::ALL.into_iter().find(|element| element.name() == name)
}
