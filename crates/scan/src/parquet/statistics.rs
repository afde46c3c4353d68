//! What row-group statistics say of a column, as far as it can be relied on.

use std::sync::{Arc, OnceLock};

use parquet::{
    basic::Type as PhysicalType,
    file::{metadata::ColumnChunkMetaData, statistics::Statistics},
};
use tandem_column::Type;
use tandem_pipeline::Value;

use super::{
    ParquetFile,
    footer::Storage,
    number::{Physical, big_endian},
};

/// Smallest and largest value of a chunk, nulls aside. Text bounds may be cut: they are bounds, not values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bounds {
    /// Nothing is known.
    Unknown,
    /// All rows are null.
    Empty,
    Int(i64, i64),
    Text(Vec<u8>, Vec<u8>),
}

/// Reads the bounds of a column in a row group.
pub(crate) fn bounds(file: &ParquetFile, group: usize, column: usize) -> Bounds {
    let leaf = &file.leaves[column];
    let Some(chunk) = file.metadata.row_group(group).columns().get(leaf.index) else { return Bounds::Unknown };
    let Some(statistics) = chunk.statistics() else { return Bounds::Unknown };
    if leaf.optional && statistics.null_count_opt() == Some(chunk.num_values() as u64) {
        return Bounds::Empty;
    }
    match leaf.storage {
        Storage::Integer(physical) => integers(statistics, physical),
        Storage::Bytes(_) => text(chunk, statistics, &file.fields[column].kind),
        _ => Bounds::Unknown,
    }
}

/// Returns the bounds of a column of one value.
pub(crate) fn bounds_of(value: &Value) -> Bounds {
    match value {
        Value::Null => Bounds::Empty,
        Value::Integer(value) => i64::try_from(*value).map_or(Bounds::Unknown, |value| Bounds::Int(value, value)),
        Value::String(text) => Bounds::Text(text.as_bytes().to_vec(), text.as_bytes().to_vec()),
        _ => Bounds::Unknown,
    }
}

fn integers(statistics: &Statistics, physical: Physical) -> Bounds {
    // The deprecated fields were compared as signed numbers.
    let signed_order = statistics.is_min_max_deprecated();
    let read = |bytes: &[u8]| -> Option<i64> {
        match physical {
            Physical::Int32 => bytes.try_into().ok().map(|bytes| i32::from_le_bytes(bytes).into()),
            Physical::UInt32 if signed_order => None,
            Physical::UInt32 => bytes.try_into().ok().map(|bytes| u32::from_le_bytes(bytes).into()),
            Physical::Int64 => bytes.try_into().ok().map(i64::from_le_bytes),
            Physical::UInt64 => None,
            Physical::Fixed(width) if !signed_order && bytes.len() == width => i64::try_from(big_endian(bytes)).ok(),
            Physical::Fixed(_) => None,
        }
    };
    match (statistics.min_bytes_opt().and_then(read), statistics.max_bytes_opt().and_then(read)) {
        (Some(low), Some(high)) if low <= high => Bounds::Int(low, high),
        _ => Bounds::Unknown,
    }
}

fn text(chunk: &ColumnChunkMetaData, statistics: &Statistics, kind: &Type) -> Bounds {
    let ordered = !statistics.is_min_max_deprecated()
        && matches!(kind, Type::String | Type::Binary)
        && chunk.column_type() == PhysicalType::BYTE_ARRAY;
    match (statistics.min_bytes_opt(), statistics.max_bytes_opt()) {
        (Some(low), Some(high)) if ordered && low <= high => Bounds::Text(low.to_vec(), high.to_vec()),
        _ => Bounds::Unknown,
    }
}

/// What the row groups of a file say of a column, together.
#[derive(Clone, Copy)]
struct Stated {
    /// Where its values lie; nothing if there are none.
    range: Option<(i64, i64)>,
    /// All row groups say it.
    known: bool,
    nulls: usize,
}

/// What is said of the columns of a file: counted once, however often it is asked for.
pub(super) struct Ranges(Vec<OnceLock<Stated>>);

impl Ranges {
    pub(super) fn new(columns: usize) -> Ranges {
        Ranges((0..columns).map(|_| OnceLock::new()).collect())
    }

    /// Returns how many columns were counted.
    #[cfg(test)]
    pub(super) fn counted(&self) -> usize {
        self.0.iter().filter(|column| column.get().is_some()).count()
    }
}

/// Returns the range of a column over all row groups of all files, if statistics give it, and the nulls counted.
///
/// Where a null count is missing, all rows of that chunk count: a reader may then rely on "no nulls" only if it is true.
pub(crate) fn range_of(files: &[Arc<ParquetFile>], column: usize) -> (Option<(i64, i64)>, usize) {
    let start = Stated { range: None, known: true, nulls: 0 };
    let all = files.iter().fold(start, |all, file| {
        let own = file.ranges.0[column].get_or_init(|| stated(file, column));
        let range = [all.range, own.range].into_iter().flatten().reduce(union);
        Stated { range, known: all.known && own.known, nulls: all.nulls + own.nulls }
    });
    (all.range.filter(|_| all.known), all.nulls)
}

fn union((low, high): (i64, i64), (l, h): (i64, i64)) -> (i64, i64) {
    (low.min(l), high.max(h))
}

/// Goes through the row groups of a file.
fn stated(file: &ParquetFile, column: usize) -> Stated {
    let mut all = Stated { range: None, known: true, nulls: 0 };
    let leaf = &file.leaves[column];
    for group in 0..file.groups() {
        let rows = file.group_rows(group);
        let chunk = file.metadata.row_group(group).columns().get(leaf.index);
        let counted = chunk.and_then(|chunk| chunk.statistics()).and_then(Statistics::null_count_opt);
        all.nulls += match (leaf.optional, counted) {
            (false, _) => 0,
            (true, Some(count)) => usize::try_from(count).unwrap_or(rows).min(rows),
            (true, None) => rows,
        };
        if rows == 0 {
            continue;
        }
        match bounds(file, group, column) {
            Bounds::Int(low, high) => {
                all.range = Some(all.range.map_or((low, high), |range| union(range, (low, high))))
            }
            Bounds::Empty => {}
            _ => all.known = false,
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};

    use super::*;
    use crate::parquet::Int96;

    #[test]
    fn row_groups_are_gone_through_once() {
        let column = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let (a, b) = (column(vec![Some(3), Some(7), None, Some(-1)]), column(vec![Some(1); 4]));
        let batch = RecordBatch::try_from_iter([("a", a), ("b", b)]).expect("columns of one length");
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1)).build();
        let output = file.reopen().expect("it is there");
        let mut writer = ArrowWriter::try_new(output, batch.schema(), Some(properties)).expect("a schema");
        writer.write(&batch).expect("rows");
        writer.close().expect("a whole file");
        let files = [Arc::new(ParquetFile::open(file.path(), Int96::Nanoseconds).expect("a good file"))];
        assert_eq!((files[0].groups(), files[0].ranges.counted()), (4, 0));
        // Every task of a load asks.
        for _ in 0..3 {
            assert_eq!(range_of(&files, 0), (Some((-1, 7)), 1));
            assert_eq!(files[0].ranges.counted(), 1);
        }
        assert_eq!(range_of(&[files[0].clone(), files[0].clone()], 1), (Some((1, 1)), 0));
        assert_eq!(files[0].ranges.counted(), 2);
    }
}
