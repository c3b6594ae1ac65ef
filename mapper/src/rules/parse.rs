//! Reading mapping files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use maniple_realm::layout::{Arrangement, DimensionOrder, MAX_ALIGN};
use maniple_realm::machine::{MemoryId, NodeId, ProcessorId};
use toml::de::DeTable;

use super::data::{DataRule, MappingRules, Memory, Order, Processors, Share, Steal, TaskRule};
use super::error::{MappingFileError, Mistake};
use super::pattern::Names;
use super::reader::{RuleTable, RuleValue};
use crate::{Extent, Keep};

type Result<T, E = MappingFileError> = std::result::Result<T, E>;

/// The keys with which a `[[task]]` decides something.
pub(super) const TASK_DECISIONS: &[&str] = &[
    "processors",
    "deal",
    "variant",
    "pinned",
    "priority",
    "copy_priority",
    "window",
    "validity",
    "virtual",
    "slice",
    "sharding",
    "spread",
    "migrate",
    "steal",
];

/// The keys with which a `[[data]]` decides something.
pub(super) const DATA_DECISIONS: &[&str] =
    &["memory", "extent", "reuse", "columns", "arrangement", "order", "align", "reduction", "keep"];

impl MappingRules {
    /// Reads the text of a mapping file.
    ///
    /// # Errors
    /// The mistake in the text, with its place.
    pub fn parse(text: &str) -> Result<Self> {
        let syntax = |error: toml::de::Error| {
            let byte = error.span().map_or(0, |span| span.start);
            MappingFileError::at(text, byte, Mistake::Syntax(error.message().replace('\n', ", ")))
        };
        let parsed = DeTable::parse(text).map_err(syntax)?;
        let mut file = RuleTable::new(text, "the file", parsed.span(), parsed.get_ref());
        let mut rules = Self::default();
        for rule in file.take("task").into_iter().flat_map(RuleValue::each) {
            rules.tasks.push(task(rule.table("[[task]]")?)?);
        }
        for rule in file.take("data").into_iter().flat_map(RuleValue::each) {
            rules.data.push(data(rule.table("[[data]]")?)?);
        }
        if let Some(copies) = file.take("copies") {
            let mut copies = copies.table("[copies]")?;
            rules.copies_from = copies.take("from").map_or(Ok(Vec::new()), memories)?;
            copies.check_all_taken()?;
        }
        if let Some(operations) = file.take("operations") {
            let mut operations = operations.table("[operations]")?;
            rules.at_once = operations.take("at_once").map(at_least_one).transpose()?;
            operations.check_all_taken()?;
        }
        if let Some(tunables) = file.take("tunables") {
            for (name, value) in tunables.table("[tunables]")?.take_all() {
                rules.tunables.insert(name.to_owned(), value.integer("a whole number")?);
            }
        }
        file.check_all_taken()?;
        Ok(rules)
    }

    /// Reads a mapping file.
    ///
    /// # Errors
    /// If it cannot be read; or what is wrong with it, and where.
    pub fn read(file: impl AsRef<Path>) -> Result<Self> {
        let file = file.as_ref();
        let unreadable = |error| MappingFileError::unreadable(file, &error);
        let mut text = String::new();
        let read = File::open(file).and_then(|source| source.take(LONGEST + 1).read_to_string(&mut text));
        read.map_err(unreadable)?;
        if text.len() as u64 > LONGEST {
            let reason = format!("it has more than {} MiB; a mapping file has some lines", LONGEST >> 20);
            return Err(unreadable(io::Error::other(reason)));
        }
        Self::parse(&text).map_err(|error| MappingFileError { file: Some(file.to_owned()), ..error })
    }
}

/// Longer files are no mapping files.
const LONGEST: u64 = 4 << 20;

fn task(mut table: RuleTable<'_>) -> Result<TaskRule> {
    let names = table.take("name").map_or(Ok(Names::default()), names)?;
    let tag = table.take("tag").map(|tag| tag.integer("a whole number of at least 0")).transpose()?;
    let nodes = table.take("node").map_or(Ok(Vec::new()), nodes)?;
    let processors = table.take("processors").map(processors).transpose()?;
    let deal = table.take("deal").map(RuleValue::word).transpose()?;
    let variant = table.take("variant").map(RuleValue::string).transpose()?;
    let pinned = table.take("pinned").map(RuleValue::bool).transpose()?;
    let priority = table.take("priority").map(|priority| priority.integer("a whole number of 32 bits")).transpose()?;
    let copy_priority =
        table.take("copy_priority").map(|priority| priority.integer("a whole number of 32 bits")).transpose()?;
    let window = table.take("window").map(at_least_one).transpose()?;
    let validity = table.take("validity").map(RuleValue::word).transpose()?;
    let is_virtual = table.take("virtual").map(RuleValue::bool).transpose()?;
    let slice = table.take("slice").map(at_least_one).transpose()?;
    let sharding = table.take("sharding");
    let spread = table.take("spread").map(spread).transpose()?;
    let migrate = table.take("migrate").map(share).transpose()?;
    let steal = table.take("steal");
    table.check_all_taken()?;
    if let (Some(sharding), false) = (sharding, nodes.is_empty()) {
        return Err(sharding.decision_from("node", "all nodes have to deal a launch alike"));
    }
    if let (Some(steal), Some(_)) = (steal, tag) {
        return Err(steal.decision_from("tag", "of a task that may be stolen only the name is told"));
    }
    let sharding = sharding.map(|value| match share(value)? {
        Share::Stay => {
            Err(value.wrong("\"blocks\", \"cycles\", a node, or a list of nodes: on many nodes nothing can just stay"))
        }
        share => Ok(share),
    });
    let (sharding, steal) = (sharding.transpose()?, steal.map(self::steal).transpose()?);
    let rule = TaskRule {
        names,
        tag,
        nodes,
        processors,
        deal,
        variant,
        pinned,
        priority,
        copy_priority,
        window,
        validity,
        is_virtual,
        slice,
        sharding,
        spread,
        migrate,
        steal,
    };
    match rule.decides_nothing() {
        true => Err(table.mistake(Mistake::DecidesNothing { known: TASK_DECISIONS.to_vec() })),
        false => Ok(rule),
    }
}

fn data(mut table: RuleTable<'_>) -> Result<DataRule> {
    let mut of_names = |key| table.take(key).map_or(Ok(Names::default()), names);
    let (tasks, regions) = (of_names("task")?, of_names("region")?);
    let (partitions, fields) = (of_names("partition")?, of_names("field")?);
    let number = |value: RuleValue<'_>| value.integer("a whole number of at least 0");
    let rule = DataRule {
        tasks,
        nodes: table.take("node").map_or(Ok(Vec::new()), nodes)?,
        processor: table.take("processor").map(RuleValue::word).transpose()?,
        regions,
        partitions,
        fields,
        requirement: table.take("requirement").map(number).transpose()?,
        privilege: table.take("privilege").map(RuleValue::word).transpose()?,
        min_bytes: table.take("min_bytes").map(RuleValue::bytes).transpose()?,
        max_bytes: table.take("max_bytes").map(RuleValue::bytes).transpose()?,
        memories: table.take("memory").map_or(Ok(Vec::new()), memories)?,
        extent: table.take("extent").map(extent).transpose()?,
        reuse: table.take("reuse").map(RuleValue::word).transpose()?,
        columns: table.take("columns").map(RuleValue::word).transpose()?,
        arrangement: table.take("arrangement").map(arrangement).transpose()?,
        order: table.take("order").map(order).transpose()?,
        align: table.take("align").map(align).transpose()?,
        reduction: table.take("reduction").map(RuleValue::word).transpose()?,
        keep: table.take("keep").map(keep).transpose()?,
    };
    table.check_all_taken()?;
    match rule.decides_nothing() {
        true => Err(table.mistake(Mistake::DecidesNothing { known: DATA_DECISIONS.to_vec() })),
        false => Ok(rule),
    }
}

/// The elements of a list, of which there has to be one; of another value, that alone.
fn several<T>(value: RuleValue<'_>, expected: &str, each: impl Fn(RuleValue<'_>) -> Result<T>) -> Result<Vec<T>> {
    let all = value.each().map(each).collect::<Result<Vec<T>>>()?;
    if all.is_empty() { Err(value.wrong(format!("{expected}, and not an empty list"))) } else { Ok(all) }
}

fn names(value: RuleValue<'_>) -> Result<Names> {
    const EXPECTED: &str = "a name or a list of names, in which a * stands for any letters";
    let name = |value: RuleValue<'_>| value.as_str().map(str::to_owned).ok_or_else(|| value.wrong(EXPECTED));
    several(value, EXPECTED, name).map(Names::of)
}

fn nodes(value: RuleValue<'_>) -> Result<Vec<NodeId>> {
    const EXPECTED: &str = "the number of a node, or a list of such";
    several(value, EXPECTED, |value| value.integer(EXPECTED).map(NodeId))
}

fn at_least_one(value: RuleValue<'_>) -> Result<u64> {
    const EXPECTED: &str = "a whole number of at least 1";
    match value.integer(EXPECTED)? {
        0 => Err(value.wrong(EXPECTED)),
        number => Ok(number),
    }
}

fn processors(value: RuleValue<'_>) -> Result<Processors> {
    if value.as_str().is_some() {
        return value.word().map(Processors::Kind);
    }
    const EXPECTED: &str =
        "a kind of processor, \"cpu\" or \"gpu\", the number of a processor, or a list of such numbers";
    several(value, EXPECTED, |value| value.integer(EXPECTED).map(ProcessorId)).map(Processors::These)
}

fn memories(value: RuleValue<'_>) -> Result<Vec<Memory>> {
    const EXPECTED: &str = "a kind of memory, the number of a memory, or a list of such";
    several(value, EXPECTED, |value| match value.as_integer() {
        Some(_) => value.integer(EXPECTED).map(|number| Memory::This(MemoryId(number))),
        None => value.word().map(Memory::Kind),
    })
}

fn share(value: RuleValue<'_>) -> Result<Share> {
    if value.as_integer().is_some() || value.is_list() {
        return nodes(value).map(Share::Nodes);
    }
    value.word()
}

/// Slices of one point each would be many.
fn spread(value: RuleValue<'_>) -> Result<Share> {
    match share(value)? {
        Share::Cycles => {
            Err(value.wrong("\"stay\", \"blocks\", a node, or a list of nodes: a slice has neighbouring points"))
        }
        share => Ok(share),
    }
}

fn steal(value: RuleValue<'_>) -> Result<Steal> {
    match value.as_bool() {
        Some(true) => Ok(Steal::Always),
        Some(false) => Ok(Steal::Never),
        None => value.bytes().map(Steal::UpTo).map_err(|_| {
            value.wrong("`true`, `false`, or the most bytes that may go along, such as 4096 or \"64 KiB\"")
        }),
    }
}

fn extent(value: RuleValue<'_>) -> Result<Extent> {
    match value.as_integer() {
        Some(_) => {
            let levels: u32 = value.integer("\"region\", \"root\", or how many partitions above the region")?;
            Ok(Extent::Ancestor(levels as usize))
        }
        None => value.word(),
    }
}

fn arrangement(value: RuleValue<'_>) -> Result<Arrangement> {
    const EXPECTED: &str =
        "\"struct-of-arrays\", \"array-of-structs\", or the number of points in a block, a power of two";
    match (value.as_str(), value.as_integer()) {
        (_, Some(_)) => match value.integer::<u32>(EXPECTED)? {
            points if points.is_power_of_two() => Ok(Arrangement::Blocked(points)),
            _ => Err(value.wrong(EXPECTED)),
        },
        (Some("struct-of-arrays"), _) => Ok(Arrangement::StructOfArrays),
        (Some("array-of-structs"), _) => Ok(Arrangement::ArrayOfStructs),
        _ => Err(value.wrong(EXPECTED)),
    }
}

fn order(value: RuleValue<'_>) -> Result<Order> {
    const EXPECTED: &str = "\"row-major\", \"column-major\", or the numbers of 1 to 4 dimensions, each once and the slowest first, such as [1, 0]";
    match value.as_str() {
        Some("row-major") => Ok(Order::RowMajor),
        Some("column-major") => Ok(Order::ColumnMajor),
        _ if value.is_list() => {
            let dimensions =
                value.each().map(|value| value.integer::<u8>(EXPECTED).map(usize::from)).collect::<Result<Vec<_>>>()?;
            DimensionOrder::new(&dimensions).map(Order::Dimensions).map_err(|_| value.wrong(EXPECTED))
        }
        _ => Err(value.wrong(EXPECTED)),
    }
}

fn keep(value: RuleValue<'_>) -> Result<Keep> {
    match (value.as_str(), value.as_integer()) {
        (Some("while-used"), _) => Ok(Keep::WhileUsed),
        (_, Some(_)) => value.integer("a whole number of 32 bits").map(Keep::Rank),
        _ => Err(value.wrong(
            "\"while-used\", or the rank of copies, a whole number: those of lower rank go first when a memory is full",
        )),
    }
}

fn align(value: RuleValue<'_>) -> Result<u32> {
    let expected = || format!("a power of two of bytes up to {MAX_ALIGN}");
    match value.integer::<u32>(&expected())? {
        align if align.is_power_of_two() && align as usize <= MAX_ALIGN => Ok(align),
        _ => Err(value.wrong(expected())),
    }
}

impl TaskRule {
    /// Whether the rule has conditions only.
    pub(super) fn decides_nothing(&self) -> bool {
        *self == Self { names: self.names.clone(), tag: self.tag, nodes: self.nodes.clone(), ..Self::default() }
    }
}

impl DataRule {
    /// Whether the rule has conditions only.
    pub(super) fn decides_nothing(&self) -> bool {
        let Self { memories, extent, reuse, columns, arrangement, order, align, reduction, keep, .. } = self;
        let places = memories.is_empty() && extent.is_none() && reuse.is_none() && columns.is_none();
        places && arrangement.is_none() && order.is_none() && align.is_none() && reduction.is_none() && keep.is_none()
    }
}
