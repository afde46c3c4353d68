//! Emits parts of the tree that stand in several places: each is emitted where it is met first, and read in the others.
//!
//! A part is read as rows, or as a build by some keys; which columns its readers want is known only after all of them were
//! met. So a tree with such parts is emitted twice: the first run only collects the columns.

use tandem_pipeline::Expr;

use super::{Emitter, Stream, dedup};
use crate::planning::tree::{
    node::{ColumnId, Node, Shared},
    substitute,
};

/// What is read of a shared part, in all its places; columns are those of its input.
pub(super) struct SharedReads {
    id: usize,
    /// The keys of a build, or none for rows.
    keys: Option<Vec<Expr>>,
    /// Rows' columns, or a build's payload.
    columns: Vec<ColumnId>,
    /// The pipeline that makes them, once it is there, with the columns that it gives and their rows.
    made: Option<(usize, Vec<ColumnId>, f64)>,
}

impl Emitter<'_> {
    /// Finds what is read of a shared part in some way, and adds the columns that this place reads.
    fn share(&mut self, id: usize, keys: Option<&[Expr]>, columns: &[ColumnId]) -> usize {
        let found = self.shares.iter().position(|share| share.id == id && share.keys.as_deref() == keys);
        let position = found.unwrap_or_else(|| {
            self.shares.push(SharedReads { id, keys: keys.map(<[Expr]>::to_vec), columns: vec![], made: None });
            self.shares.len() - 1
        });
        let share = &mut self.shares[position];
        for column in columns {
            if !share.columns.contains(column) {
                share.columns.push(*column);
            }
        }
        position
    }

    /// Emits rows of a shared part, in the first place that is met, and reads them.
    pub(super) fn shared(&mut self, shared: &Shared, need: &[ColumnId]) -> Result<Stream, String> {
        let need = dedup(need);
        let inner: Vec<ColumnId> = need.iter().map(|column| shared.inner(*column)).collect();
        let position = self.share(shared.id, None, &inner);
        let (pipeline, columns, rows) = match self.shares[position].made.clone() {
            Some(made) => made,
            None => {
                let columns = self.shares[position].columns.clone();
                let mut stream = self.stream(&shared.input, &columns)?;
                if let Stream::Open(open) = stream {
                    stream = self.materialize(open, &columns)?;
                }
                let Stream::Sunk { pipeline, columns, rows } = stream else {
                    return Err("rows that are shared end a pipeline".to_string());
                };
                if self.known {
                    self.shares[position].made = Some((pipeline, columns.clone(), rows));
                }
                (pipeline, columns, rows)
            }
        };
        Ok(Stream::Sunk { pipeline, columns: columns.iter().map(|inner| shared.here(*inner)).collect(), rows })
    }

    /// Emits the building side of a join; returns its pipeline and the columns of its payload.
    pub(super) fn build(
        &mut self,
        node: &Node,
        keys: &[&Expr],
        payload: &[ColumnId],
    ) -> Result<(usize, Vec<ColumnId>), String> {
        let Node::Shared(shared) = node else {
            return Ok((self.build_once(node, keys, payload)?, payload.to_vec()));
        };
        let inner_keys: Vec<Expr> =
            keys.iter().map(|key| substitute(key, &|column| Expr::Slot(shared.inner(column)))).collect();
        let inner: Vec<ColumnId> = payload.iter().map(|column| shared.inner(*column)).collect();
        let position = self.share(shared.id, Some(&inner_keys), &inner);
        let (pipeline, held, _) = match self.shares[position].made.clone() {
            Some(made) => made,
            None => {
                let held = self.shares[position].columns.clone();
                let input_keys: Vec<&Expr> = inner_keys.iter().collect();
                let pipeline = self.build_once(&shared.input, &input_keys, &held)?;
                let made = (pipeline, held, self.estimates[pipeline]);
                if self.known {
                    self.shares[position].made = Some(made.clone());
                }
                made
            }
        };
        Ok((pipeline, held.iter().map(|inner| shared.here(*inner)).collect()))
    }
}
