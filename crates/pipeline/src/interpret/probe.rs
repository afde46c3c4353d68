//! Joins: each row against the rows of a build.

use hashbrown::HashMap;
use tandem_column::Result;

use super::{BuildRows, Evaluator, Row};
use crate::{JoinKind, Probe, Slot, Value};

/// Joins rows with a build. `slots` are those before the probe, `scope` what the residual sees.
pub(super) fn probe(
    evaluator: &Evaluator<'_>,
    probe: &Probe,
    build: &BuildRows,
    rows: Vec<Row>,
    slots: &[Slot],
    scope: &[Slot],
) -> Result<Vec<Row>> {
    let comparable = |key: &[Value]| probe.null_equals_null || !key.iter().any(Value::is_null);
    let mut index: HashMap<&[Value], Vec<usize>> = HashMap::new();
    for (position, key) in build.keys.iter().enumerate().filter(|(_, key)| comparable(key)) {
        index.entry(key).or_default().push(position);
    }
    let payload = |position: usize| probe.adds.iter().map(move |add| build.payload[position][*add].clone());
    let passes = |row: &Row, position: usize| -> Result<bool> {
        let Some(residual) = &probe.residual else { return Ok(true) };
        let pair: Row = row.iter().chain(&build.payload[position]).cloned().collect();
        Ok(evaluator.evaluate(residual, &pair, scope)?.is_true())
    };

    let mut matched = vec![false; build.payload.len()];
    let mut output = Vec::new();
    for row in rows {
        let key = probe.keys.iter().map(|key| evaluator.evaluate(key, &row, slots)).collect::<Result<Row>>()?;
        let mut pairs = Vec::new();
        if comparable(&key) {
            for position in index.get(&key[..]).into_iter().flatten() {
                if passes(&row, *position)? {
                    pairs.push(*position);
                    matched[*position] = true;
                }
            }
        }
        let mut unknown = false;
        if probe.null_aware && pairs.is_empty() {
            let null_here = key.iter().any(Value::is_null);
            for (position, other) in build.keys.iter().enumerate() {
                if (null_here || other.iter().any(Value::is_null)) && passes(&row, position)? {
                    unknown = true;
                    break;
                }
            }
        }
        let emit_pairs = |output: &mut Vec<Row>| {
            for position in &pairs {
                output.push(row.iter().cloned().chain(payload(*position)).collect());
            }
        };
        match probe.kind {
            JoinKind::Inner | JoinKind::Right => emit_pairs(&mut output),
            JoinKind::Left | JoinKind::Full if pairs.is_empty() => {
                let nulls = probe.adds.iter().map(|_| Value::Null);
                output.push(row.iter().cloned().chain(nulls).collect());
            }
            JoinKind::Left | JoinKind::Full => emit_pairs(&mut output),
            JoinKind::Semi if !pairs.is_empty() => output.push(row),
            JoinKind::Anti if pairs.is_empty() && !unknown => output.push(row),
            JoinKind::Semi | JoinKind::Anti => {}
            JoinKind::Mark => {
                let mark = if unknown { Value::Null } else { Value::Boolean(!pairs.is_empty()) };
                output.push(row.into_iter().chain([mark]).collect());
            }
            JoinKind::RightSemi | JoinKind::RightAnti => {}
        }
    }

    let wanted = match probe.kind {
        JoinKind::Right | JoinKind::Full | JoinKind::RightAnti => false,
        JoinKind::RightSemi => true,
        _ => return Ok(output),
    };
    for position in (0..matched.len()).filter(|position| matched[*position] == wanted) {
        output.push(slots.iter().map(|_| Value::Null).chain(payload(position)).collect());
    }
    Ok(output)
}
