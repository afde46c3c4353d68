//! Joins by text whose rows have a dictionary: each of its values is looked up once, rows go on by their codes.
//!
//! A build by text is a hash table, whatever its own rows have: which dictionary the rows that look it up have is known only
//! when they are planned. Then the build is laid out once more, as an array by their codes ([`crate::Selector::by_code`]), and the
//! probe is one by an integer, on the CPU as on devices: a filter on codes, or a place of the array.

use std::sync::Arc;

use tandem_column::{Dictionary, Table};
use tandem_pipeline::{Expr, JoinKind, Probe};

use crate::{Build, KeyIndex, Keys, Origin, Selector};

/// Rows for each value that is looked up, at least: a look-up of a value costs what one of a row does, and fewer rows may come than
/// are expected.
const ROWS_PER_VALUE: usize = 4;
/// Bytes of the array, at most: its memory is not reserved, as that of sets of codes is not.
const MOST_BYTES: usize = 32 << 20;

/// What is known of the rows that look a build up.
pub(crate) struct Asked<'a> {
    pub(crate) table: &'a Table,
    /// About how many come.
    pub(crate) rows: usize,
    pub(crate) origins: &'a [Origin],
    /// Collisions of hashes are tested.
    pub(crate) collide: bool,
}

impl Asked<'_> {
    /// Returns the build by the codes of the probe's key, with the source column that has them; `None` if it has none, or if
    /// that would not pay.
    pub(crate) fn by_code(&self, probe: &Probe, build: &Build, selector: &dyn Selector) -> Option<(Arc<Build>, usize)> {
        let [Expr::Slot(key)] = probe.keys.as_slice() else { return None };
        let (KeyIndex::Hash(table), Origin::Column(column)) = (&build.index, self.origins[*key]) else { return None };
        // Entries that no code leads to would be lost, as would those of null.
        let lost = probe.kind.emits_build_rows() || probe.null_equals_null && build.null_key;
        if lost || self.collide || !matches!(&table.keys, Keys::Columns { columns, .. } if columns.len() == 1) {
            return None;
        }
        let dictionary = self.dictionary(column)?;
        let existence =
            matches!(probe.kind, JoinKind::Semi | JoinKind::Anti | JoinKind::Mark) && probe.residual.is_none();
        let entries = if existence || build.is_unique() { dictionary.len() } else { build.rows };
        let bytes = build.byte_len() / build.rows.max(1) * entries + dictionary.len() * size_of::<u32>();
        let pays = dictionary.len().max(entries) <= self.rows / ROWS_PER_VALUE;
        if !pays || !existence && bytes > MOST_BYTES {
            return None;
        }
        // What fails here is left to the rows.
        let coded = selector.by_code(build, dictionary, existence).ok()?;
        Some((Arc::new(coded), column))
    }

    /// Returns the dictionary that all parts share, if there is one.
    fn dictionary(&self, column: usize) -> Option<&Arc<Dictionary>> {
        let mut dictionaries = self.table.parts.iter().map(|part| part.columns[column].dictionary());
        let first = dictionaries.next()??;
        dictionaries.all(|other| other.is_some_and(|other| Arc::ptr_eq(first, other))).then_some(first)
    }
}
