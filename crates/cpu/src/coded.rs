//! A build by text, laid out once more by the codes of the dictionary that the rows to be joined have.

use std::{rc::Rc, sync::Arc};

use tandem_column::{Dictionary, Error, Result};
use tandem_plan::{Build, KeyIndex, RunOrder, Set};

use crate::{
    Values, Vector,
    arrange::EntryOrder,
    frame::fetch,
    kernel::RowRun,
    lookup::{Asked, find},
};

/// Lays a build by one key of text out by the codes of a dictionary; `existence` says that only whether there is an entry is asked.
pub(crate) fn by_code(build: &Build, dictionary: &Arc<Dictionary>, existence: bool) -> Result<Build> {
    if !matches!(build.index, KeyIndex::Hash(_)) {
        return Err(Error::internal("a build by text is a hash table"));
    }
    let count = dictionary.len();
    let words = Values::Code { codes: (0..count as u32).collect(), dictionary: dictionary.clone() };
    let asked = Asked { null_equals_null: false, first: existence || build.is_unique() };
    let found = find(build, &[Rc::new(Vector::new(words))], count, asked);
    let mut set = Set::new(0, count);
    let known = || found.iter().enumerate().filter(|(_, (start, end))| start < end);
    known().for_each(|(code, _)| set.insert(code as i64));
    let (index, order) = if existence {
        (KeyIndex::Unique(Arc::new(set)), EntryOrder::Each(Vec::new()))
    } else if build.is_unique() {
        let (places, rows) = known().map(|(code, (start, _))| (code as u32, *start)).unzip();
        (KeyIndex::Unique(Arc::new(set)), EntryOrder::Some { rows, places, entries: count, bounds: Vec::new() })
    } else {
        let mut starts = Vec::with_capacity(count + 1);
        let mut entries = Vec::with_capacity(build.stored);
        for (start, end) in &found {
            starts.push(entries.len() as u32);
            entries.extend(*start..*end);
        }
        starts.push(entries.len() as u32);
        (KeyIndex::Dense { set: Arc::new(set), starts }, EntryOrder::Each(entries))
    };
    let mut coded = Build::new(build.rows, build.null_key, index, order.entries());
    coded.coded = true;
    if let (Some(searched), EntryOrder::Each(entries), false) = (&build.order, &order, existence) {
        coded.order = Some(reorder(searched, entries));
    }
    let payload = build.payload.iter().filter(|_| !existence);
    for column in payload {
        let values = fetch(column, RowRun::Run { start: 0, count: column.rows });
        let (column, range) = values.arrange(&column.kind, &order)?;
        coded.push(Arc::new(column), range);
    }
    Ok(coded)
}

/// Returns the order within keys of some entries, those of a key in their order.
fn reorder(order: &RunOrder, entries: &[u32]) -> RunOrder {
    let pick = |values: &[i64]| match values.is_empty() {
        true => Vec::new(),
        false => entries.iter().map(|entry| values[*entry as usize]).collect(),
    };
    let RunOrder { columns, exact, .. } = order;
    let (highest, lowest) = (pick(&order.highest), pick(&order.lowest));
    RunOrder { columns: *columns, values: pick(&order.values), exact: *exact, highest, lowest }
}
