//! How far Arrow's metadata may be believed: Flatbuffers whose tables may point at each other as they like.
//!
//! Arrow verifies nesting (64 tables) and that everything lies within the bytes, but lets up to a million tables and two
//! gigabytes be made of a few bytes that many tables point at. Writers share nothing but the descriptions of tables, so what
//! the tables say together is bounded by the bytes here.

use arrow_ipc::root_as_message_with_opts;
use flatbuffers::VerifierOptions;

/// Fewest bytes of a table: where its description is.
const TABLE: usize = 4;

/// Bytes looked at for each byte there is: descriptions of tables are looked at for every table, and each field of them twice.
const LOOKS: usize = 16;

/// What a small message may take at least.
const SMALL: usize = 4 << 10;

/// Returns the bounds for Arrow's metadata of so many bytes.
pub fn metadata_bounds(bytes: usize) -> VerifierOptions {
    VerifierOptions {
        max_tables: (bytes / TABLE).min(1_000_000),
        max_apparent_size: bytes.saturating_mul(LOOKS).saturating_add(SMALL),
        ..VerifierOptions::default()
    }
}

/// Checks the bytes of a message that holds a schema.
pub(crate) fn check_schema(bytes: &[u8]) -> Result<(), String> {
    // The marker and the length that come first may be missing.
    let message = match bytes.split_first_chunk::<8>() {
        Some((head, message)) if head[..4] == [0xFF; 4] => message,
        _ => bytes,
    };
    root_as_message_with_opts(&metadata_bounds(message.len()), message).map(drop).map_err(|error| one_line(&error))
}

/// Gives what a verifier says in one line, without where it found it.
pub(crate) fn one_line(error: &flatbuffers::InvalidFlatbuffer) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_lowercase()
}
