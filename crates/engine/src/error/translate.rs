//! One sentence for each error of the libraries below us.
//!
//! Errors arrive as chains ("External error: Arrow error: …\ncaused by\n…"). We walk to the cause that matters, keep its
//! fact, and say what to do. A [`ErrorContext`] adds what the chain lacks: the statement, the tables that exist, the files
//! that were read, the memory limit.

use std::error::Error as StdError;
use std::io;

use arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::object_store;
use datafusion::sql::sqlparser::parser::ParserError;
use parquet::errors::ParquetError;

use crate::Error;
use crate::error::names::suggestion;
use crate::error::wording::{
    division_by_zero, excerpt, file_error, full_disk, invalid_cast, lower, missing, overflow, quoted_between, sentence,
    unknown_format, unknown_table, unreadable,
};

/// What is known around an error.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorContext {
    /// The statement's text.
    pub(crate) sql: String,
    /// The names of all tables.
    pub(crate) tables: Vec<String>,
    /// The files the statement reads.
    pub(crate) files: Vec<String>,
    /// The file the statement writes.
    pub(crate) target: Option<String>,
    /// The session's memory limit in bytes.
    pub(crate) memory_limit: Option<usize>,
}

impl ErrorContext {
    /// Turns an error of DataFusion, or whatever it carries, into a sentence.
    pub(crate) fn translate(&self, error: &DataFusionError) -> Error {
        match error {
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => self.translate(inner),
            DataFusionError::Shared(inner) => self.translate(inner),
            DataFusionError::Collection(errors) => match errors.first() {
                Some(first) => self.translate(first),
                None => Error::internal("the statement failed without a reason; please report this as a bug"),
            },
            DataFusionError::External(inner) => self.any(inner.as_ref()),
            DataFusionError::ArrowError(inner, _) => self.arrow(inner),
            DataFusionError::ParquetError(inner) => self.parquet(inner),
            DataFusionError::ObjectStore(inner) => self.store(inner),
            DataFusionError::IoError(inner) => self.io(inner),
            DataFusionError::SQL(inner, _) => self.syntax(inner),
            DataFusionError::SchemaError(inner, _) => self.schema(inner),
            DataFusionError::ResourcesExhausted(message) => self.exhausted(message),
            DataFusionError::NotImplemented(message) => {
                let message = sentence(message);
                let what = message.strip_prefix("Unsupported SQL statement: ").unwrap_or(&message);
                Error::unsupported(format!("not supported: {what}"))
            }
            DataFusionError::Internal(message) => {
                // DataFusion's checks of user input that it reports as its own faults.
                self.known(message).unwrap_or_else(|| {
                    Error::internal(format!("internal error, please report it as a bug: {}", sentence(message)))
                })
            }
            DataFusionError::Plan(message) | DataFusionError::Execution(message) => self.message(message),
            DataFusionError::Configuration(message) => self.setting(message),
            DataFusionError::ExecutionJoin(inner) if inner.is_cancelled() => Error::cancelled(),
            DataFusionError::ExecutionJoin(inner) => {
                let text = sentence(&inner.to_string());
                Error::internal(format!("a task of the host engine panicked; please report this as a bug: {text}"))
            }
            other => self.message(&other.strip_backtrace()),
        }
    }

    /// Turns any error into a sentence, by what it is or by the first cause that we know.
    fn any(&self, error: &(dyn StdError + 'static)) -> Error {
        let mut cause = Some(error);
        while let Some(current) = cause {
            if let Some(inner) = current.downcast_ref::<Error>() {
                return inner.clone();
            } else if let Some(inner) = current.downcast_ref::<DataFusionError>() {
                return self.translate(inner);
            } else if let Some(inner) = current.downcast_ref::<ArrowError>() {
                return self.arrow(inner);
            } else if let Some(inner) = current.downcast_ref::<ParquetError>() {
                return self.parquet(inner);
            } else if let Some(inner) = current.downcast_ref::<object_store::Error>() {
                return self.store(inner);
            } else if let Some(inner) = current.downcast_ref::<io::Error>() {
                return self.io(inner);
            }
            cause = current.source();
        }
        self.message(&error.to_string())
    }

    /// Turns an Arrow error into a sentence.
    pub(crate) fn arrow(&self, error: &ArrowError) -> Error {
        match error {
            ArrowError::DivideByZero => division_by_zero(),
            ArrowError::ExternalError(inner) => self.any(inner.as_ref()),
            ArrowError::IoError(_, inner) => self.io(inner),
            ArrowError::ArithmeticOverflow(message) => overflow(message),
            ArrowError::CastError(message) | ArrowError::ParseError(message) => invalid_cast(message),
            ArrowError::InvalidArgumentError(message) | ArrowError::ComputeError(message) => self.message(message),
            ArrowError::NotYetImplemented(message) => {
                Error::unsupported(format!("not supported: {}", sentence(message)))
            }
            ArrowError::MemoryError(message) => self.exhausted(message),
            ArrowError::ParquetError(message) => self.corrupt("Parquet", message),
            ArrowError::CsvError(message) => self.corrupt("CSV", message),
            ArrowError::JsonError(message) => self.corrupt("JSON", message),
            ArrowError::IpcError(message) => self.corrupt("Arrow", message),
            other => self.message(&other.to_string()),
        }
    }

    fn parquet(&self, error: &ParquetError) -> Error {
        match error {
            ParquetError::External(inner) => self.any(inner.as_ref()),
            ParquetError::ArrowError(message) => self.message(message),
            ParquetError::NYI(message) => {
                Error::unsupported(format!("not supported in Parquet: {}", sentence(message)))
            }
            ParquetError::General(message) | ParquetError::EOF(message) => self.corrupt("Parquet", message),
            other => self.corrupt("Parquet", &other.to_string()),
        }
    }

    fn store(&self, error: &object_store::Error) -> Error {
        match error {
            object_store::Error::NotFound { path, .. } => missing(path),
            object_store::Error::PermissionDenied { path, .. } => unreadable(path),
            object_store::Error::AlreadyExists { path, .. } => {
                Error::input(format!("the file already exists; choose another name or remove it: {path}"))
            }
            other => {
                let mut cause: Option<&(dyn StdError + 'static)> = other.source();
                while let Some(current) = cause {
                    if let Some(inner) = current.downcast_ref::<io::Error>() {
                        return self.io(inner);
                    }
                    cause = current.source();
                }
                self.message(&other.to_string())
            }
        }
    }

    /// Turns an input or output error into a sentence; the file is the one the statement writes, else reads.
    pub(crate) fn io(&self, error: &io::Error) -> Error {
        if let Some(inner) = error.get_ref()
            && (inner.is::<Error>() || inner.is::<DataFusionError>() || inner.is::<object_store::Error>())
        {
            return self.any(inner);
        }
        let file = self.target.clone().or_else(|| (!self.files.is_empty()).then(|| self.files.join(", ")));
        file_error(error, file.as_deref())
    }

    fn schema(&self, error: &SchemaError) -> Error {
        match error {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let wanted = field.flat_name();
                let mut names: Vec<String> = Vec::new();
                for valid in valid_fields {
                    // Qualifiers only help if the user wrote one or a name occurs twice.
                    let twice = valid_fields.iter().filter(|other| other.name == valid.name).count() > 1;
                    let name = if field.relation.is_some() || twice { valid.flat_name() } else { valid.name.clone() };
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                let case = names.iter().find(|name| **name != wanted && name.to_lowercase() == wanted.to_lowercase());
                match case {
                    Some(name) => Error::input(format!(
                        "unknown column '{wanted}'; names with capital letters need quotes: \"{}\"",
                        name.replace('.', "\".\"")
                    )),
                    None => Error::input(format!(
                        "unknown column '{wanted}'; {}",
                        suggestion(&wanted, &names, "columns here")
                    )),
                }
            }
            SchemaError::AmbiguousReference { field } => Error::input(format!(
                "the column name '{}' is ambiguous; write the table's name before it, as in t.{}",
                field.name, field.name
            )),
            SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
                Error::input(format!("the column name '{name}' occurs twice; rename one with AS"))
            }
        }
    }

    fn exhausted(&self, message: &str) -> Error {
        if message.contains("disk") {
            return Error::exhausted(
                "the temporary files of the statement outgrew their limit; \
                 raise datafusion.runtime.max_temp_directory_size or make the query smaller",
            );
        }
        match self.memory_limit {
            Some(limit) => Error::exhausted(format!(
                "the statement needs more than the memory limit of {} MB; raise --memory-limit or make it smaller",
                limit >> 20
            )),
            None => Error::exhausted(format!("out of memory: {}", sentence(message))),
        }
    }

    fn corrupt(&self, format: &str, message: &str) -> Error {
        let message = sentence(message);
        let what = match self.files.as_slice() {
            [] => format!("the {format} data"),
            [file] => format!("the {format} file '{file}'"),
            files => format!("one of the files {}", files.join(", ")),
        };
        let reason = if message.contains("Invalid Parquet file") || message.contains("corrupt footer") {
            "is not a Parquet file; check that the path and the extension are right".to_string()
        } else {
            format!("is damaged or not what its name says; write or copy it again ({message})")
        };
        Error::input(format!("{what} {reason}"))
    }

    fn syntax(&self, error: &ParserError) -> Error {
        let message = match error {
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => sentence(message)
                .replace("found: EOF", "found the end of the statement")
                .replace("Expected: ", "expected "),
            ParserError::RecursionLimitExceeded => {
                return Error::input("the statement is nested too deeply; split it with WITH or views");
            }
        };
        let Some((text, position)) = message.split_once(" at Line: ") else {
            return Error::input(format!("syntax error: {}", lower(&message)));
        };
        let mut numbers = position.split(", Column: ").map(|number| number.trim().parse::<usize>());
        let (Some(Ok(line)), Some(Ok(column))) = (numbers.next(), numbers.next()) else {
            return Error::input(format!("syntax error: {}", lower(text)));
        };
        let near = self.sql.lines().nth(line.saturating_sub(1)).map(|line| excerpt(line, column)).unwrap_or_default();
        let near = if near.is_empty() { near } else { format!(", at '{near}'") };
        Error::input(format!("syntax error in line {line}, column {column}{near}: {}", lower(text)))
    }

    fn setting(&self, message: &str) -> Error {
        let message = sentence(message);
        if let Some(name) = message.strip_prefix("There is no registered file format with ext ") {
            return unknown_format(name);
        }
        match message.to_lowercase().contains("could not find config") {
            true => Error::input(format!("unknown setting; SHOW ALL lists them: {}", lower(&message))),
            false => Error::input(format!("invalid setting: {}", lower(&message))),
        }
    }

    /// Turns a message that has no type of its own into a sentence.
    fn message(&self, message: &str) -> Error {
        self.known(message).unwrap_or_else(|| Error::input(lower(&sentence(message))))
    }

    /// Recognises messages that stand for one of the errors every user meets.
    fn known(&self, message: &str) -> Option<Error> {
        let message = sentence(message);
        let lowered = message.to_lowercase();
        if lowered.contains("divide by zero") || lowered.contains("division by zero") {
            return Some(division_by_zero());
        }
        if lowered.contains("overflow") {
            return Some(overflow(&message));
        }
        if lowered.contains("too large to store in a decimal") || lowered.contains("too small to store in a decimal") {
            return Some(Error::input(format!(
                "decimal overflow; cast to a DECIMAL of more digits or to DOUBLE: {}",
                message.trim_end_matches('.')
            )));
        }
        if lowered.starts_with("cannot cast")
            || lowered.contains("can't cast value")
            || lowered.contains("error parsing")
        {
            return Some(invalid_cast(&message));
        }
        if let Some(name) = quoted_between(&message, "table '", "' not found") {
            let short = name.strip_prefix("datafusion.").unwrap_or(name);
            return Some(unknown_table(short.strip_prefix("public.").unwrap_or(short), &self.tables));
        }
        if let Some(name) = quoted_between(&message, "table function '", "' not found") {
            return Some(Error::input(format!(
                "unknown table function '{name}'; files are read as in FROM 'file.csv'"
            )));
        }
        if let Some(name) = quoted_between(&message, "View '", "' doesn't exist") {
            return Some(Error::input(format!("unknown view '{name}'; {}", suggestion(name, &self.tables, "tables"))));
        }
        if let Some(call) = quoted_between(&message, "No function matches the given name and argument types '", "'") {
            return Some(Error::input(format!(
                "the function does not take arguments of these types; cast them, as in CAST(x AS DOUBLE): {call}"
            )));
        }
        if let Some(types) = message.strip_prefix("Cannot coerce arithmetic expression ") {
            let types = types.trim_end_matches(" to valid types");
            return Some(Error::input(format!("the operator does not take these types; cast one side: {types}")));
        }
        if let Some(name) = message.strip_prefix("There is no registered file format with ext ") {
            return Some(unknown_format(name));
        }
        if let Some(name) = quoted_between(&message, "Table '", "' doesn't exist") {
            return Some(unknown_table(name, &self.tables));
        }
        if let Some(name) = message.strip_prefix("No table named '") {
            return Some(unknown_table(name.trim_end_matches('\''), &self.tables));
        }
        if let Some(name) = quoted_between(&message, "Table '", "' already exists") {
            return Some(Error::input(format!(
                "the table '{name}' already exists; drop it first or use CREATE OR REPLACE"
            )));
        }
        if let Some(rest) = message.strip_prefix("Invalid function '") {
            let name = rest.split('\'').next().unwrap_or_default();
            let near = quoted_between(rest, "Did you mean '", "'").map(|near| format!("; did you mean '{near}'?"));
            return Some(Error::input(format!("unknown function '{name}'{}", near.unwrap_or_default())));
        }
        if message.starts_with("Projections require unique expression names") {
            let expression = quoted_between(&message, "the expression \"", "\" at position").unwrap_or_default();
            // What follows AS may be the type of a cast.
            let alias = expression.rsplit_once(" AS ").map(|(_, alias)| alias).filter(|alias| !alias.contains(')'));
            let name = alias.unwrap_or(expression);
            return Some(Error::input(format!("the column name '{name}' occurs twice; rename one with AS")));
        }
        if message.starts_with("The context currently only supports a single SQL statement") {
            return Some(Error::input("one statement at a time; separate statements with semicolons and split them"));
        }
        if message.starts_with("No SQL statements were provided") {
            return Some(Error::input("the statement is empty"));
        }
        if lowered.contains("while finalizing writes") {
            // The writer keeps the cause to itself; a full disk is the usual one.
            let target = self.target.as_deref().map(|target| format!(": {target}")).unwrap_or_default();
            return Some(Error::exhausted(format!(
                "writing failed, most likely because the disk is full; free some space or write elsewhere{target}"
            )));
        }
        if lowered.contains("no space left") || lowered.contains("storage full") {
            return Some(full_disk(self.target.as_deref()));
        }
        None
    }
}
