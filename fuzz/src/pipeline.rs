//! The text form of queries: what is well-formed is printed and read again as the same, as text and as protobuf, and
//! then run.

use tandem_pipeline::{Query, parse, proto, verify};

use crate::{commands, sound};

/// The text of a query.
pub(crate) fn pipeline(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some(query) = sound(parse(text)) else { return };
    if sound(verify(&query)).is_some() {
        round_trip(&query);
        commands::run_query(&query);
    }
}

/// Checks that a well-formed query survives printing and writing.
pub(crate) fn round_trip(query: &Query) {
    let text = query.to_string();
    let read = parse(&text).unwrap_or_else(|error| panic!("printed text cannot be read: {error}\n{text}"));
    assert!(read == *query, "printed text is read as something else:\n{text}\n{read}");
    let read =
        proto::read(&proto::write(query)).unwrap_or_else(|error| panic!("a message is refused: {error}\n{text}"));
    assert!(read == *query, "a message is read as something else:\n{text}\n{read}");
    for pipeline in &query.pipelines {
        assert!(pipeline.describe(query).len() >= 2);
    }
}
