//! The text of kernels, compared with files; `UPDATE_GOLDENS=1` writes them anew.

use std::{fs, path::Path};

use tandem_codegen::{
    ColumnLayout, Form, GeneratedKernel, HashKey, KernelInput, KernelLanguage, KernelSink, KeyOf, OrderKey, RowColumn,
    Traits, WindowInput, finish, generate, generate_unmatched, windows,
};
use tandem_pipeline::{
    Aggregate, AggregateFunction, Arithmetic, ArithmeticOperator, Comparison, Expr, Failure, FrameBound,
    FrameExclusion, FrameUnit, JoinKind, Overflow, Slot, SortKey, Type, Value, Window, WindowFrame, WindowFunction,
};
use tandem_plan::{
    Action, Body, Domain, Lookup, Origin, Packed, PhysicalProbe, PhysicalStep, Way,
    sink::{GroupKey, PlannedAggregate, WindowPlan},
};

/// What a kernel is made of, as short as can be.
struct Plan {
    slots: Vec<Slot>,
    ranges: Vec<Option<(i64, i64)>>,
    origins: Vec<Origin>,
    lookups: Vec<Lookup>,
    steps: Vec<Action>,
    sink: KernelSink,
}

impl Plan {
    fn body(&self) -> Body {
        let step = |(of, action): (usize, &Action)| PhysicalStep { of, action: action.clone() };
        let domain = |range: &Option<(i64, i64)>| Domain { range: *range, ..Domain::default() };
        Body {
            slots: self.slots.clone(),
            domains: self.ranges.iter().map(domain).collect(),
            origins: self.origins.clone(),
            lookups: self.lookups.clone(),
            steps: self.steps.iter().enumerate().map(step).collect(),
        }
    }

    fn kernel(
        &self,
        columns: &[tandem_column::Result<ColumnLayout>],
        payloads: &[Vec<tandem_column::Result<ColumnLayout>>],
        traits: Traits,
        target: KernelLanguage,
    ) -> tandem_column::Result<GeneratedKernel> {
        generate(KernelInput { body: &self.body(), sink: &self.sink, columns, payloads, traits, target })
    }
}

const PROCESSOR: Traits = Traits { chunked: true, fp64: true, int64_atomics: true, traced: false };
const GPU: Traits = Traits { chunked: false, ..PROCESSOR };

fn slot(name: &str, kind: Type, nullable: bool) -> Slot {
    Slot { name: name.into(), kind, nullable }
}

fn product(left: usize, right: usize, overflow: Overflow) -> Expr {
    Expr::Arithmetic(Box::new(Arithmetic {
        operator: ArithmeticOperator::Multiply,
        left: Expr::Slot(left),
        right: Expr::Slot(right),
        kind: Type::Int64,
        overflow,
        zero: Failure::Error,
    }))
}

fn sum(argument: usize, narrow: bool) -> PlannedAggregate {
    planned(Aggregate::new(AggregateFunction::Sum, Some(argument), Type::Int64), narrow)
}

fn planned(aggregate: Aggregate, narrow: bool) -> PlannedAggregate {
    let (argument, second) = (Type::Null, Type::Null);
    PlannedAggregate {
        aggregate,
        argument,
        second,
        narrow,
        total: false,
        of_states: false,
        counted_by: None,
        dictionary: None,
    }
}

fn code(width: usize) -> tandem_column::Result<ColumnLayout> {
    Ok(ColumnLayout { form: Form::Code(width), nullable: false })
}

/// Ranges of three columns and the sum of a product: SSB 1.1 once its join is a range of dates.
fn one_group(overflow: Overflow) -> Plan {
    Plan {
        slots: vec![
            slot("lo_orderdate", Type::Int32, false),
            slot("lo_quantity", Type::Int32, false),
            slot("lo_extendedprice", Type::Int64, false),
            slot("lo_discount", Type::Int64, false),
            slot("revenue", Type::Int64, false),
        ],
        ranges: match overflow {
            Overflow::Wrap => vec![None, None, Some((90_000, 10_494_950)), Some((0, 10)), Some((0, 104_949_500))],
            // Nothing is known.
            _ => Vec::new(),
        },
        origins: vec![Origin::Column(0), Origin::Column(1), Origin::Column(2), Origin::Column(3), Origin::Computed],
        lookups: Vec::new(),
        steps: vec![
            Action::Between { column: 0, low: 19930101, high: 19931231 },
            Action::Between { column: 1, low: 1, high: 24 },
            Action::Between { column: 3, low: 1, high: 3 },
            Action::Let { first: 4, exprs: vec![product(2, 3, overflow)] },
        ],
        sink: KernelSink::Groups { keys: Vec::new(), groups: 1, aggregates: vec![sum(4, true)] },
    }
}

/// A sum of products of decimals, some of whose types have more digits than 64 bits hold: TPC-H 1.
fn decimals(known: bool) -> Plan {
    let decimal = |precision, scale| Type::Decimal { precision, scale };
    let arithmetic = |operator, left, right, kind| {
        let (overflow, zero) = (Overflow::Error, Failure::Error);
        Expr::Arithmetic(Box::new(Arithmetic { operator, left, right, kind, overflow, zero }))
    };
    let one = Expr::Literal(Value::Integer(100), decimal(15, 2));
    let discounted = arithmetic(ArithmeticOperator::Subtract, one.clone(), Expr::Slot(1), decimal(16, 2));
    let taxed = arithmetic(ArithmeticOperator::Add, one, Expr::Slot(2), decimal(16, 2));
    let price = arithmetic(ArithmeticOperator::Multiply, Expr::Slot(0), discounted, decimal(32, 4));
    let charge = arithmetic(ArithmeticOperator::Multiply, price, taxed, decimal(38, 6));
    let ranges = vec![Some((90_000, 10_494_950)), Some((0, 10)), Some((0, 8)), Some((0, 113_345_460_000))];
    Plan {
        slots: vec![
            slot("l_extendedprice", decimal(15, 2), false),
            slot("l_discount", decimal(15, 2), false),
            slot("l_tax", decimal(15, 2), true),
            slot("charge", decimal(38, 6), true),
        ],
        ranges: if known { ranges } else { Vec::new() },
        origins: vec![Origin::Column(0), Origin::Column(1), Origin::Column(2), Origin::Computed],
        lookups: Vec::new(),
        steps: vec![Action::Let { first: 3, exprs: vec![charge] }],
        sink: KernelSink::Groups { keys: Vec::new(), groups: 1, aggregates: vec![sum(3, false)] },
    }
}

/// What a text with few different values tells by its words.
fn words() -> Plan {
    let like =
        Expr::Like { input: Box::new(Expr::Slot(0)), pattern: "PROMO%".into(), escape: None, ignore_case: false };
    Plan {
        slots: vec![slot("p_type", Type::String, true)],
        ranges: Vec::new(),
        origins: vec![Origin::Column(0)],
        lookups: Vec::new(),
        steps: vec![Action::Filter(like)],
        sink: KernelSink::Groups { keys: Vec::new(), groups: 1, aggregates: Vec::new() },
    }
}

/// Groups by two keys, with aggregates of every kind that is finished on the device; without floats, by hash.
fn finishing(hashed: bool) -> Plan {
    let decimal = |precision, scale| Type::Decimal { precision, scale };
    let aggregate = |function, argument, kind, overflow, narrow| {
        planned(Aggregate { overflow, ..Aggregate::new(function, argument, kind) }, narrow)
    };
    use AggregateFunction as F;
    let mut aggregates = vec![
        aggregate(F::CountRows, None, Type::Int64, Overflow::Error, false),
        aggregate(F::Sum, Some(2), decimal(25, 2), Overflow::Error, true),
        aggregate(F::Average, Some(2), decimal(19, 6), Overflow::Null, false),
        aggregate(F::Max, Some(2), decimal(15, 2), Overflow::Error, false),
        aggregate(F::Sum, Some(3), decimal(38, 4), Overflow::Error, false),
    ];
    if !hashed {
        aggregates.push(aggregate(F::Average, Some(4), Type::Float32, Overflow::Error, false));
        aggregates.push(aggregate(F::Min, Some(4), Type::Float64, Overflow::Error, false));
    }
    let keys = [(0, 10, 7, true), (1, -3, 5, false)];
    let keys = keys.map(|(slot, min, size, nullable)| GroupKey { slot, min, size, nullable });
    let hash_keys = [(KeyOf::Place(keys[0]), 3), (KeyOf::Place(GroupKey { size: 1 << 40, ..keys[1] }), 40)];
    let hash_keys = HashKey::lay_out(&hash_keys);
    Plan {
        slots: vec![
            slot("brand", Type::Int32, true),
            slot("year", Type::Int64, false),
            slot("price", decimal(15, 2), true),
            slot("charge", decimal(38, 4), false),
            slot("weight", Type::Float64, false),
        ],
        ranges: vec![None, None, Some((-500, 1_000_000)), None, None],
        origins: (0..5).map(Origin::Column).collect(),
        lookups: Vec::new(),
        steps: Vec::new(),
        sink: match hashed {
            true => KernelSink::Hashed { keys: hash_keys, aggregates },
            false => KernelSink::Groups { keys: keys.to_vec(), groups: 35, aggregates },
        },
    }
}

fn finishing_columns() -> Vec<tandem_column::Result<ColumnLayout>> {
    let forms = [(Form::Code(1), true), (Form::Code(8), false), (Form::Code(4), true), (Form::Wide, false)];
    let layout = |(form, nullable)| Ok(ColumnLayout { form, nullable });
    forms.into_iter().chain([(Form::Float64, false)]).map(layout).collect()
}

/// Returns the kernels that make rows of groups.
fn finished(plan: &Plan, traits: Traits) -> String {
    let (columns, target) = (finishing_columns(), KernelLanguage::OpenCl);
    let counted = plan.kernel(&columns, &[], traits, target).expect("a kernel");
    let finished = finish(&plan.body(), &plan.sink, &counted.output, traits, target).expect("a kernel");
    finished.text[finished.body..].to_string()
}

fn one_group_layouts() -> Vec<tandem_column::Result<ColumnLayout>> {
    vec![code(2), code(1), code(4), code(1)]
}

/// A build with a text column, by a source column's value.
fn by_column(column: usize) -> Lookup {
    let payload = vec![slot("payload", Type::String, false); 3];
    Lookup { way: Way::Column { column, min: 1 }, codes: None, payload, unique: true, empty: false, null_key: false }
}

/// Two joins by dense keys, one of them with a condition, and groups by both payloads: SSB 2.1, with a nullable key and
/// a general filter.
fn groups() -> Plan {
    Plan {
        slots: vec![
            slot("lo_suppkey", Type::Int32, false),
            slot("lo_partkey", Type::Int32, false),
            slot("lo_revenue", Type::Int64, true),
            slot("p_brand1", Type::String, false),
            slot("s_region", Type::String, true),
        ],
        ranges: Vec::new(),
        origins: vec![
            Origin::Column(0),
            Origin::Column(1),
            Origin::Column(2),
            Origin::Payload { lookup: 0, payload: 0 },
            Origin::Payload { lookup: 1, payload: 2 },
        ],
        lookups: vec![by_column(1), by_column(0)],
        steps: vec![
            Action::Member { column: 0, set: 0 },
            Action::Member { column: 1, set: 1 },
            Action::Filter(Expr::Compare(
                Comparison::Greater,
                Box::new(Expr::Slot(2)),
                Box::new(Expr::Literal(Value::Integer(100), Type::Int64)),
            )),
        ],
        sink: KernelSink::Groups {
            keys: vec![
                GroupKey { slot: 3, min: 0, size: 1000, nullable: false },
                GroupKey { slot: 4, min: 0, size: 6, nullable: true },
            ],
            groups: 6000,
            aggregates: vec![sum(2, false)],
        },
    }
}

/// A full join by keys in order, a computed value and groups by the build's text.
fn joined() -> Plan {
    let packing = vec![Packed { min: 1, span: 6_000_000, shift: 0 }];
    let way = Way::Sorted { packing, keyed: 1_500_000 };
    let payload = vec![slot("o_orderpriority", Type::String, false), slot("o_shippriority", Type::Int64, false)];
    let probe = PhysicalProbe {
        lookup: 0,
        kind: JoinKind::Full,
        keys: vec![Expr::Slot(0)],
        residual: None,
        narrowing: None,
        first: 2,
        null_equals_null: false,
        null_aware: false,
    };
    Plan {
        slots: vec![
            slot("l_orderkey", Type::Int64, true),
            slot("l_quantity", Type::Int64, true),
            slot("o_orderpriority", Type::String, true),
            slot("o_shippriority", Type::Int64, true),
            slot("product", Type::Int64, true),
        ],
        ranges: Vec::new(),
        origins: vec![
            Origin::Column(0),
            Origin::Column(1),
            Origin::Payload { lookup: 0, payload: 0 },
            Origin::Payload { lookup: 0, payload: 1 },
            Origin::Computed,
        ],
        lookups: vec![Lookup { way, codes: None, payload, unique: true, empty: false, null_key: false }],
        steps: vec![
            Action::Between { column: 1, low: 1, high: 24 },
            Action::Probe(probe),
            Action::Let { first: 4, exprs: vec![product(1, 3, Overflow::Wrap)] },
        ],
        sink: KernelSink::Groups {
            keys: vec![GroupKey { slot: 2, min: 0, size: 6, nullable: true }],
            groups: 6,
            aggregates: vec![sum(4, false)],
        },
    }
}

#[test]
fn kernels_read_as_the_plan() {
    let wide = || vec![code(2), code(4), Ok(ColumnLayout { form: Form::Code(4), nullable: true })];
    let payloads = || {
        let nullable = Ok(ColumnLayout { form: Form::Code(1), nullable: true });
        vec![vec![code(2)], vec![code(1), code(1), nullable]]
    };
    let kernel = |plan: &Plan, columns: &[_], payloads: &[Vec<_>], traits, target| {
        let kernel = plan.kernel(columns, payloads, traits, target).expect("a kernel can be generated");
        kernel.text[kernel.body..].to_string()
    };
    let simple = one_group_layouts();
    golden("one-group", &kernel(&one_group(Overflow::Wrap), &simple, &[], PROCESSOR, KernelLanguage::OpenCl));
    golden("one-group-checked", &kernel(&one_group(Overflow::Error), &simple, &[], PROCESSOR, KernelLanguage::OpenCl));
    golden("groups", &kernel(&groups(), &wide(), &payloads(), GPU, KernelLanguage::OpenCl));
    let mut few = groups();
    if let KernelSink::Groups { keys, groups, .. } = &mut few.sink {
        keys[0].size = 10;
        *groups = 60;
    }
    golden("few-groups", &kernel(&few, &wide(), &payloads(), GPU, KernelLanguage::OpenCl));
    let mut rows = groups();
    let values = vec![Expr::Slot(3), Expr::Slot(2), product(2, 2, Overflow::Null), Expr::Slot(2)];
    let order = vec![OrderKey { value: 3, descending: true, nulls_first: false, longest: None }];
    rows.sink = KernelSink::Rows { values, order };
    golden("rows", &kernel(&rows, &wide(), &payloads(), PROCESSOR, KernelLanguage::OpenCl));
    let nullable = |width| Ok(ColumnLayout { form: Form::Code(width), nullable: true });
    let columns = [code(4), code(1), nullable(1)];
    golden("decimals", &kernel(&decimals(true), &columns, &[], PROCESSOR, KernelLanguage::OpenCl));
    golden("decimals-wide", &kernel(&decimals(false), &columns, &[], PROCESSOR, KernelLanguage::OpenCl));
    golden("words", &kernel(&words(), &[nullable(2)], &[], PROCESSOR, KernelLanguage::OpenCl));
    let (columns, payloads_of) = ([code(4), code(1)], [vec![code(1), code(1)]]);
    golden("merge", &kernel(&joined(), &columns, &payloads_of, PROCESSOR, KernelLanguage::OpenCl));
    let (plan, traits, target) = (joined(), PROCESSOR, KernelLanguage::OpenCl);
    let (body, sink) = (&plan.body(), &plan.sink);
    let input = KernelInput { body, sink, columns: &columns, payloads: &payloads_of, traits, target };
    let unmatched = generate_unmatched(input, 1).expect("a kernel can be generated");
    golden("unmatched", &unmatched.text[unmatched.body..]);
    let poor = Traits { fp64: false, int64_atomics: false, ..GPU };
    golden("finish", &finished(&finishing(false), GPU));
    golden("finish-hashed", &finished(&finishing(true), PROCESSOR));
    golden("window", &window_functions(GPU, KernelLanguage::OpenCl));
    assert_eq!(window_functions(GPU, KernelLanguage::Cuda), window_functions(GPU, KernelLanguage::OpenCl));
    golden("words-of-groups", &kernel(&finishing(true), &finishing_columns(), &[], poor, KernelLanguage::OpenCl));
    // One body for all targets.
    let cuda = kernel(&groups(), &wide(), &payloads(), GPU, KernelLanguage::Cuda);
    assert_eq!(cuda, kernel(&groups(), &wide(), &payloads(), GPU, KernelLanguage::OpenCl));
}

/// Returns the kernels of window functions of every kind: the first rows by rank of each brand.
fn window_functions(traits: Traits, target: KernelLanguage) -> String {
    let plan = finishing(false);
    let bound = |at: Option<i64>| at.map_or(FrameBound::Unbounded, FrameBound::At);
    let frame = |unit, start, end| WindowFrame {
        unit,
        start: bound(start),
        end: bound(end),
        exclusion: FrameExclusion::NoOthers,
    };
    let aggregate = |function, argument, kind: &Type, frame| Window {
        function: WindowFunction::Aggregate { aggregate: Aggregate::new(function, argument, kind.clone()), frame },
        kind: kind.clone(),
    };
    let function = |function, kind| Window { function, kind };
    let (price, total) = (Type::Decimal { precision: 15, scale: 2 }, Type::Decimal { precision: 25, scale: 2 });
    let near = frame(FrameUnit::Rows, Some(-100), Some(0));
    let years = frame(FrameUnit::Range, Some(-2), Some(2));
    let functions = vec![
        function(WindowFunction::Rank, Type::UInt64),
        function(WindowFunction::CumeDist, Type::Float64),
        function(WindowFunction::Lag { slot: 2, offset: 1, default: None, ignore_nulls: true }, price.clone()),
        function(
            WindowFunction::Nth { slot: 3, place: -1, frame: years, ignore_nulls: false },
            plan.slots[3].kind.clone(),
        ),
        aggregate(AggregateFunction::CountRows, None, &Type::Int64, frame(FrameUnit::Groups, Some(-1), None)),
        aggregate(AggregateFunction::Sum, Some(2), &total, near),
        aggregate(AggregateFunction::Max, Some(2), &price, near),
        aggregate(AggregateFunction::Average, Some(4), &Type::Float64, years),
    ];
    let nullable = [true, false, true];
    let columns: Vec<RowColumn> = nullable.map(|nullable| RowColumn::Numbers { nullable }).into_iter().collect();
    let columns = [columns, vec![RowColumn::Wide { nullable: false }, RowColumn::Numbers { nullable: false }]].concat();
    let window = WindowPlan {
        partition: vec![0],
        order: vec![SortKey { slot: 1, descending: true, nulls_first: false }],
        functions,
        fetch: Some(3),
        output: vec![0],
        collected: (0..5).collect(),
        read: (1..5).collect(),
        kinds: plan.slots.iter().map(|slot| slot.kind.clone()).collect(),
        numbering: None,
    };
    let input = WindowInput { plan: &window, body: &plan.body(), columns: &columns, traits, target };
    let kernels = windows(input).expect("kernels can be generated");
    let texts = kernels.contributions.iter().chain([&kernels.functions]);
    texts.map(|kernel| &kernel.text[kernel.body..]).collect::<Vec<_>>().join("\n")
}

#[test]
fn other_literals_give_the_same_text() {
    let mut other = groups();
    let Some(Action::Filter(Expr::Compare(_, _, literal))) = other.steps.last_mut() else { panic!("a filter") };
    **literal = Expr::Literal(Value::Integer(7), Type::Int64);
    let columns = [code(2), code(4), code(4)];
    let payloads = [vec![code(2)], vec![code(1), code(1), code(1)]];
    let text = |plan: &Plan| plan.kernel(&columns, &payloads, GPU, KernelLanguage::OpenCl).expect("a kernel").text;
    assert_eq!(text(&groups()), text(&other));
}

#[test]
fn what_a_device_lacks_is_a_reason() {
    let poor = Traits { chunked: false, fp64: false, int64_atomics: false, traced: false };
    let reason = |plan: &Plan, columns: &[_], traits| {
        plan.kernel(columns, &[], traits, KernelLanguage::OpenCl).expect_err("not on this device").message
    };
    // Sums are of words.
    let kernel_of = |plan: &Plan, columns: &[_], traits| {
        plan.kernel(columns, &[], traits, KernelLanguage::OpenCl).expect("a kernel").text
    };
    let text = kernel_of(&one_group(Overflow::Wrap), &one_group_layouts(), poor);
    assert!(!text.contains("#define ATOM64\n") && !text.contains("#define FP64\n"));
    // What does not need what a device lacks is the same text for all.
    let rich = kernel_of(&one_group(Overflow::Wrap), &one_group_layouts(), PROCESSOR);
    assert_eq!(rich, kernel_of(&one_group(Overflow::Wrap), &one_group_layouts(), Traits { chunked: true, ..poor }));
    let mut best = one_group(Overflow::Wrap);
    let KernelSink::Groups { aggregates, .. } = &mut best.sink else { panic!("groups") };
    aggregates[0].aggregate.function = AggregateFunction::Max;
    assert!(kernel_of(&best, &one_group_layouts(), poor).contains("MOST_32(table"));
    best.ranges = Vec::new();
    assert_eq!(
        reason(&best, &one_group_layouts(), poor),
        "the device has no atomic operations on 64 bits, for the smallest or largest value of a large range"
    );
    // A CPU device's work-items have a table each.
    let cpu = Traits { chunked: true, ..poor };
    let (plan, columns) = (one_group(Overflow::Wrap), one_group_layouts());
    plan.kernel(&columns, &[], cpu, KernelLanguage::OpenCl).expect("no need of them");
    let mut floats = one_group(Overflow::Wrap);
    floats.slots[3].kind = Type::Float64;
    floats.slots[2].kind = Type::Float64;
    floats.slots[4].kind = Type::Float64;
    floats.steps = Vec::new();
    let KernelSink::Groups { aggregates, .. } = &mut floats.sink else { panic!("groups") };
    *aggregates = vec![sum(3, false)];
    let float = Ok(ColumnLayout { form: Form::Float64, nullable: false });
    let columns = [code(2), code(1), code(4), float];
    assert_eq!(reason(&floats, &columns, cpu), "the device has no double precision");
    assert_eq!(reason(&floats, &columns, poor), "the device has no atomic operations on 64 bits, for a sum of floats");
}

#[test]
fn names_of_columns_mean_nothing_to_a_compiler() {
    let split = |text: &str| -> (Vec<String>, Vec<String>) {
        let lines = text.lines().map(|line| line.split_once("  // ").unwrap_or((line, "")));
        lines.map(|(code, remark)| (code.to_owned(), remark.to_owned())).unzip()
    };
    let named = |name: &str| {
        let mut plan = one_group(Overflow::Wrap);
        plan.slots.iter_mut().for_each(|slot| slot.name = name.to_owned());
        let (columns, payloads, traits, target) = (one_group_layouts(), &[], PROCESSOR, KernelLanguage::OpenCl);
        let kernel = plan.kernel(&columns, payloads, traits, target).expect("a kernel");
        split(&kernel.text[kernel.body..])
    };
    let (code, remarks_of_plain) = named("plain, name-1.2");
    assert!(remarks_of_plain.iter().any(|remark| remark == "plain, name-1.2"));
    // The trigraph for a backslash, a backslash, and other ends of lines; ends of remarks; what only looks like ASCII.
    let long = "n".repeat(100_000);
    for name in [
        "x??/",
        "x\\",
        "x\\\n",
        "a\nint b;",
        "a\r",
        "\u{2028}",
        "\u{85}",
        "*/ int c; /*",
        "ｘ？？／",
        "%:",
        "\0",
        &long,
    ] {
        let (same, remarks) = named(name);
        assert_eq!(same, code, "{name:?} changes the kernel");
        let plain = |c: char| c.is_ascii_alphanumeric() || "_ .,-".contains(c);
        let own = |remark: &&String| remarks_of_plain.contains(remark);
        for remark in remarks.iter().filter(|remark| !own(remark)) {
            assert!(remark.len() <= 64 && remark.chars().all(plain), "{name:?}: {remark:?}");
        }
    }
}

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(format!("{name}.cl"));
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, text).expect("the file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "the kernel differs from {}; UPDATE_GOLDENS=1 writes it anew", path.display());
}
