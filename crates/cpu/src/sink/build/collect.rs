//! What workers collected, as one vector for each column: copied by all workers, each its share.

use std::sync::Arc;

use tandem_column::{Result, Type};

use crate::{
    ParallelTasks, Rows, Values, Vector,
    parallel::{PIECE, cut, each},
    rows::{Chunk, concat_all, in_order},
};

/// Joins the rows of several workers into one vector per column.
pub(super) fn collect(kinds: &[Type], rows: Vec<Rows>, parallel: ParallelTasks<'_>) -> Result<(usize, Vec<Vector>)> {
    let count = rows.iter().map(Rows::count).sum();
    if count <= PIECE {
        return Ok(concat_all(kinds, rows));
    }
    let chunks: Vec<Chunk> = in_order(rows).into_iter().filter(|chunk| chunk.rows > 0).collect();
    let column = |at: usize| chunks.iter().map(|chunk| &chunk.vectors[at]).collect::<Vec<_>>();
    let vectors = (0..kinds.len()).map(|at| join(&column(at), parallel));
    Ok((count, vectors.collect::<Result<Vec<_>>>()?))
}

/// Joins vectors of one type, of which there is at least one.
fn join(vectors: &[&Vector], parallel: ParallelTasks<'_>) -> Result<Vector> {
    let values = match &vectors[0].values {
        Values::Boolean(_) => numbers(vectors, parallel, |values| match values {
            Values::Boolean(values) => Some(values),
            _ => None,
        })?
        .map(Values::Boolean),
        Values::Int(_) => numbers(vectors, parallel, |values| match values {
            Values::Int(values) => Some(values),
            _ => None,
        })?
        .map(Values::Int),
        Values::Wide(_) => numbers(vectors, parallel, |values| match values {
            Values::Wide(values) => Some(values),
            _ => None,
        })?
        .map(Values::Wide),
        Values::Float(_) => numbers(vectors, parallel, |values| match values {
            Values::Float(values) => Some(values),
            _ => None,
        })?
        .map(Values::Float),
        Values::Code { dictionary, .. } => numbers(vectors, parallel, |values| match values {
            Values::Code { codes, dictionary: other } if Arc::ptr_eq(dictionary, other) => Some(codes),
            _ => None,
        })?
        .map(|codes| Values::Code { codes, dictionary: dictionary.clone() }),
        Values::Bytes(_) => None,
    };
    let Some(values) = values else {
        // Text, or codes of several dictionaries.
        let mut all = vectors[0].clone();
        vectors[1..].iter().for_each(|vector| all.append(vector));
        return Ok(all);
    };
    let valid = vectors.iter().any(|vector| vector.valid.is_some()).then(|| {
        let rows = vectors.iter().flat_map(|vector| match &vector.valid {
            Some(valid) => valid.clone(),
            None => vec![1; vector.len()],
        });
        rows.collect()
    });
    Ok(Vector { values, valid })
}

/// Copies the numbers of vectors one after the other, unless one of them has others.
fn numbers<T: Copy + Default + Send + Sync>(
    vectors: &[&Vector],
    parallel: ParallelTasks<'_>,
    read: impl Fn(&Values) -> Option<&Vec<T>>,
) -> Result<Option<Vec<T>>> {
    let Some(parts) = vectors.iter().map(|vector| read(&vector.values)).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let mut all = vec![T::default(); parts.iter().map(|part| part.len()).sum()];
    let slices = cut(&mut all, parts.iter().map(|part| part.len())).into_iter().zip(parts).collect();
    each(parallel, slices, |_, (to, from): (&mut [T], &Vec<T>)| to.copy_from_slice(from))?;
    Ok(Some(all))
}
