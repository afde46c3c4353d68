//! Equal parts of a tree run once.
//!
//! Two parts are equal if they are written alike once their columns are numbered in the order in which they are met, so that
//! the two scans of a table that a statement names twice are no difference. The largest equal parts become [`Shared`], where
//! reading the rows of one again is cheaper than making them: groups and windows always, joins where few rows are left of what
//! they read. A filtered scan is read twice rather than kept.

use std::{collections::HashMap, fmt::Write, sync::Arc};

use datafusion::datasource::source_as_provider;
use tandem_pipeline::Expr;

use crate::planning::{
    join_order::Estimator,
    tree::{
        Registry,
        node::{AggregateCall, ColumnId, JoinRows, Node, OrderBy, Shared},
    },
};

/// How many rows a join must read for each that it gives to be kept: a row kept is written and read again, a row that is read
/// from a table costs a look-up or two.
const READ_FOR_KEPT: f64 = 32.0;

/// Makes equal parts of a tree shared. `next` is an id that no shared part has yet.
pub(crate) fn share(registry: &Registry, estimator: &Estimator<'_>, mut node: Node, next: &mut usize) -> Node {
    let mut sharing = Sharing { registry, estimator, times: HashMap::new(), first: HashMap::new(), next };
    if sharing.has_table_twice() {
        sharing.count(&node);
        sharing.replace(&mut node);
    }
    node
}

struct Sharing<'a> {
    registry: &'a Registry,
    estimator: &'a Estimator<'a>,
    /// How often each part occurs, by its text.
    times: HashMap<String, usize>,
    /// The first place of each shared part, and its columns in the order in which they are met.
    first: HashMap<String, (Shared, Vec<ColumnId>)>,
    next: &'a mut usize,
}

impl Sharing<'_> {
    /// Tells whether some table is scanned more than once: otherwise no two parts are equal.
    fn has_table_twice(&self) -> bool {
        let tables: Vec<String> = self.registry.scans.iter().map(|scan| scan.table.to_string()).collect();
        tables.iter().enumerate().any(|(position, table)| tables[..position].contains(table))
    }

    /// Tells whether keeping the rows of a node costs less than making them again.
    fn pays(&self, node: &Node) -> bool {
        match node {
            Node::Aggregate { .. } | Node::GroupingSets { .. } | Node::Window { .. } => true,
            Node::Join(_) => {
                let mut read = 0.0;
                node.walk(&mut |node| {
                    if let Node::Scan { scan, .. } = node {
                        read += self.registry.scans[*scan].stats.rows;
                    }
                });
                self.estimator.rows(node) * READ_FOR_KEPT <= read
            }
            _ => false,
        }
    }

    fn count(&mut self, node: &Node) {
        if matches!(node, Node::Shared(_)) {
            return;
        }
        if self.pays(node) {
            *self.times.entry(Written::new(self.registry, node).text).or_default() += 1;
        }
        node.children().into_iter().for_each(|child| self.count(child));
    }

    fn replace(&mut self, node: &mut Node) {
        if matches!(node, Node::Shared(_)) {
            return;
        }
        if self.pays(node) {
            let Written { text, columns, .. } = Written::new(self.registry, node);
            if self.times.get(&text).is_some_and(|times| *times > 1) {
                self.share(node, text, columns);
                return;
            }
        }
        let mut child = 0;
        while let Some(below) = node.child_mut(child) {
            self.replace(below);
            child += 1;
        }
    }

    fn share(&mut self, node: &mut Node, text: String, columns: Vec<ColumnId>) {
        if let Some((first, known)) = self.first.get(&text) {
            let renamed = columns.into_iter().zip(known.iter().copied()).collect();
            *node = Node::Shared(Box::new(Shared { renamed, ..first.clone() }));
            return;
        }
        let input = std::mem::replace(node, Node::Values { columns: vec![], rows: vec![] });
        let shared = Shared { id: *self.next, input, renamed: vec![] };
        *self.next += 1;
        *node = Node::Shared(Box::new(shared.clone()));
        self.first.insert(text, (shared, columns));
    }
}

/// A part of a tree, written with numbers of its own for columns.
struct Written<'a> {
    registry: &'a Registry,
    text: String,
    /// The columns by their numbers.
    columns: Vec<ColumnId>,
    numbers: HashMap<ColumnId, usize>,
}

impl<'a> Written<'a> {
    fn new(registry: &'a Registry, node: &Node) -> Self {
        let mut written = Written { registry, text: String::new(), columns: vec![], numbers: HashMap::new() };
        written.node(node);
        written
    }

    /// Adds a word.
    fn word(&mut self, word: impl std::fmt::Debug) {
        // Writing to a string does not fail.
        let _ = write!(self.text, "{word:?} ");
    }

    fn number(&mut self, column: ColumnId) -> usize {
        *self.numbers.entry(column).or_insert_with(|| {
            self.columns.push(column);
            self.columns.len() - 1
        })
    }

    /// Gives a column a number, unless it has one.
    fn meet(&mut self, column: ColumnId) {
        self.number(column);
    }

    fn column(&mut self, column: ColumnId) {
        let number = self.number(column);
        self.word(number);
    }

    fn columns_of(&mut self, columns: &[ColumnId]) {
        self.word(columns.len());
        columns.iter().for_each(|column| self.column(*column));
    }

    fn expr(&mut self, expr: &Expr) {
        expr.slots().into_iter().for_each(|column| self.meet(column));
        let mapped = expr.map_slots(&|column| self.numbers[&column]);
        self.word(mapped);
    }

    fn exprs<'e>(&mut self, exprs: impl ExactSizeIterator<Item = &'e Expr>) {
        self.word(exprs.len());
        exprs.for_each(|expr| self.expr(expr));
    }

    fn order(&mut self, keys: &[OrderBy]) {
        self.word(keys.len());
        for key in keys {
            self.column(key.column);
            self.word((key.descending, key.nulls_first));
        }
    }

    fn aggregates(&mut self, calls: &[AggregateCall]) {
        self.word(calls.len());
        for call in calls {
            self.word((call.function, &call.parameter, call.distinct, &call.kind, call.overflow));
            self.columns_of(call.argument.as_slice());
            self.columns_of(call.second.as_slice());
            self.order(&call.order);
            self.columns_of(call.filter.as_slice());
            self.column(call.output);
        }
    }

    fn node(&mut self, node: &Node) {
        self.word(std::mem::discriminant(node));
        // What is below comes first, so that its columns have numbers.
        node.children().into_iter().for_each(|child| self.node(child));
        match node {
            Node::Scan { scan, filters } => self.scan(*scan, filters),
            Node::Input { input } => self.word(input),
            Node::Values { columns, rows } => {
                self.columns_of(columns);
                self.word(rows);
            }
            Node::Filter { predicates, .. } => self.exprs(predicates.iter()),
            Node::Let { columns, .. } => {
                self.exprs(columns.iter().map(|(_, expr)| expr));
                columns.iter().for_each(|(column, _)| self.column(*column));
            }
            Node::Join(join) => {
                let kind = match join.kind {
                    JoinRows::Mark(mark) => {
                        self.column(mark);
                        JoinRows::Mark(0)
                    }
                    kind => kind,
                };
                self.word((kind, join.null_equals_null, join.null_aware, join.swap));
                self.exprs(join.on.iter().map(|(left, _)| left));
                self.exprs(join.on.iter().map(|(_, right)| right));
                self.exprs(join.residual.as_slice().iter());
            }
            Node::Aggregate { keys, aggregates, .. } => {
                self.columns_of(keys);
                self.aggregates(aggregates);
            }
            Node::GroupingSets { sets, .. } => {
                self.columns_of(&sets.keys);
                self.word(&sets.sets);
                self.columns_of(&sets.outputs);
                self.column(sets.number);
                self.aggregates(&sets.aggregates);
            }
            Node::Sort { keys, skip, fetch, .. } => {
                self.order(keys);
                self.word((skip, fetch));
            }
            Node::Limit { skip, fetch, .. } => self.word((skip, fetch)),
            Node::Window { window, .. } => {
                self.columns_of(&window.partition);
                self.order(&window.order);
                self.word(window.fetch);
                for call in &window.functions {
                    call.window.function.visit_slots(&mut |column| self.meet(column));
                    let function = call.window.function.map_slots(&|column| self.numbers[&column]);
                    self.word((function, &call.window.kind));
                    self.column(call.output);
                }
            }
            Node::Union { inputs, columns } => {
                inputs.iter().for_each(|(_, from)| self.columns_of(from));
                self.columns_of(columns);
            }
            Node::Shared(shared) => {
                self.word(shared.id);
                shared.renamed.iter().for_each(|(here, _)| self.column(*here));
            }
        }
    }

    /// Writes a scan: tables are the same if their provider is.
    fn scan(&mut self, scan: usize, filters: &[Expr]) {
        let info = &self.registry.scans[scan];
        match source_as_provider(&info.source) {
            Ok(provider) => self.word((info.table.to_string(), Arc::as_ptr(&provider).cast::<()>())),
            // Nothing is known of it, so it equals no other.
            Err(_) => self.word(scan),
        }
        (info.first..info.first + info.stats.fields.len()).for_each(|column| self.meet(column));
        self.exprs(filters.iter());
    }
}
