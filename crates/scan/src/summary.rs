//! Statistics of loaded columns, for as long as the same pieces are loaded again.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tandem_column::{Column, ColumnStatistics, Field, Result};
use tandem_runtime::{Cancel, Runtime};

use crate::assemble;

/// Tables of at most this many rows get all statistics (uniqueness, order, value sets): reading them again costs little.
pub(crate) const DETAILED_ROWS: usize = 4 << 20;

/// So many summaries are kept; beyond, those of columns that are gone are dropped, or all.
const SUMMARIES: usize = 1 << 14;

/// What is known of columns, by a name for each.
pub(crate) struct Summaries<K>(Mutex<HashMap<K, Known>>);

impl<K> Default for Summaries<K> {
    fn default() -> Self {
        Summaries(Mutex::default())
    }
}

/// What is known of a loaded column.
struct Known {
    pieces: Vec<Weak<Column>>,
    statistics: ColumnStatistics,
    /// Its values were looked at, not only its blocks.
    detailed: bool,
}

impl<K: Hash + Eq + Clone> Summaries<K> {
    /// Returns the statistics of columns, from what is known or from their pieces. Tables of up to `detailed` rows get all.
    pub(crate) fn of(
        &self,
        names: &[K],
        fields: &[Field],
        pieces: &[Vec<Arc<Column>>],
        detailed: usize,
        runtime: &Runtime,
        cancel: &Cancel,
    ) -> Result<Arc<[ColumnStatistics]>> {
        let found: Vec<Mutex<ColumnStatistics>> = names.iter().map(|_| Mutex::default()).collect();
        let (mut unknown, mut again) = (Vec::new(), Vec::new());
        {
            let known = self.0.lock();
            for (position, name) in names.iter().enumerate() {
                match known.get(name) {
                    Some(known) if same(&known.pieces, &pieces[position]) => {
                        *found[position].lock() = known.statistics.clone();
                        if !known.detailed {
                            again.push(position);
                        }
                    }
                    _ => unknown.push(position),
                }
            }
        }
        runtime.parallel(unknown.len(), cancel, |task| {
            let position = unknown[task];
            *found[position].lock() = assemble::summarise(&fields[position], &pieces[position], detailed);
            Ok(())
        })?;
        // Looking at every value pays for columns that are read more than once.
        for &position in &again {
            let mut statistics = found[position].lock();
            assemble::add_values(&mut statistics, &pieces[position], runtime, cancel)?;
        }
        let found: Vec<ColumnStatistics> = found.into_iter().map(Mutex::into_inner).collect();
        let mut known = self.0.lock();
        for &position in unknown.iter().chain(&again) {
            let (pieces, statistics) = (&pieces[position], found[position].clone());
            let detailed = statistics.values.is_some() || again.contains(&position);
            let pieces = pieces.iter().map(Arc::downgrade).collect();
            known.insert(names[position].clone(), Known { pieces, statistics, detailed });
        }
        if known.len() > SUMMARIES {
            known.retain(|_, known| known.pieces.iter().all(|piece| piece.strong_count() > 0));
            if known.len() > SUMMARIES / 2 {
                known.clear();
            }
        }
        Ok(found.into())
    }
}

fn same(weak: &[Weak<Column>], pieces: &[Arc<Column>]) -> bool {
    weak.len() == pieces.len() && weak.iter().zip(pieces).all(|(weak, piece)| weak.as_ptr() == Arc::as_ptr(piece))
}
