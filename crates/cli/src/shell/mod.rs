//! The interactive shell: multi-line editing, history, completion, highlighting.

mod completion;
mod highlight;

use std::{
    borrow::Cow,
    env,
    ffi::OsString,
    fs::{self, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use reedline::{
    ColumnarMenu, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode,
    PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, ValidationResult, Validator,
    default_emacs_keybindings,
};
use tandem_engine::Session;

use crate::{
    command::{self, Flow},
    failure::Failure,
    script,
    statement::{Runner, note},
    terminal,
};
use completion::SqlCompleter;
use highlight::SqlHighlighter;

/// Statements the history keeps.
const HISTORY: usize = 10_000;
const MENU: &str = "completion";

/// Reads and runs statements until the user leaves.
pub fn run(runner: &mut Runner) -> Result<(), Failure> {
    let names = completion::Names::default();
    let mut editor = editor(&names);
    runner.print(&format!(
        "Tandem {} on {} threads. Statements end with a semicolon; .help lists commands.\n",
        env!("CARGO_PKG_VERSION"),
        runner.session.config().threads
    ))?;
    loop {
        names.refresh(runner);
        let text = match editor.read_line(&TandemPrompt) {
            Ok(Signal::Success(text)) => text,
            Ok(Signal::CtrlD) => return Ok(()),
            Ok(_) => continue,
            Err(error) => return Err(Failure::Statement(format!("the terminal cannot be read: {error}"))),
        };
        let outcome = if text.trim_start().starts_with('.') {
            command::run(runner, text.trim())
        } else {
            script::run_text(runner, &text)
        };
        match outcome {
            Ok(Flow::Quit) => return Ok(()),
            Ok(Flow::Continue) => {}
            Err(failure @ (Failure::BrokenPipe | Failure::Ended(_))) => return Err(failure),
            Err(failure) => failure.print(),
        }
    }
}

fn editor(names: &completion::Names) -> Reedline {
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]),
    );
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, ReedlineEvent::Edit(vec![EditCommand::InsertNewline]));
    let menu = ColumnarMenu::default().with_name(MENU).with_columns(4).with_column_padding(2);
    let editor = Reedline::create()
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_completer(Box::new(SqlCompleter::new(names.clone())))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_validator(Box::new(Semicolon))
        .with_highlighter(Box::new(SqlHighlighter))
        .with_ansi_colors(terminal::stdout_color());
    match history() {
        Ok(history) => editor.with_history(Box::new(history)),
        Err(reason) => {
            note(&format!("the history is not kept: {reason}"));
            editor
        }
    }
}

/// Opens the history in the user's state directory, for this user's eyes only: statements may hold secrets.
fn history() -> Result<FileBackedHistory, String> {
    let file = private_file(&state_directory(|name| env::var_os(name))?.join("tandem"), "history")?;
    FileBackedHistory::with_file(HISTORY, file).map_err(|e| e.to_string())
}

/// Returns the user's state directory; a variable that is empty or relative counts as unset.
fn state_directory(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, String> {
    let set = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set("XDG_STATE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local/state")))
        .ok_or_else(|| "neither XDG_STATE_HOME nor HOME names a directory".to_owned())
}

/// Makes a file and its directory that only this user may read; closes them where they were open before.
fn private_file(directory: &Path, name: &str) -> Result<PathBuf, String> {
    let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).map_err(|e| failed(parent, e))?;
    }
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(|e| failed(directory, e))?;
        }
        made => made.map_err(|e| failed(directory, e))?,
    }
    let path = directory.join(name);
    let file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
    let closed = file.and_then(|file| file.set_permissions(Permissions::from_mode(0o600)));
    closed.map_err(|e| failed(&path, e))?;
    Ok(path)
}

/// Holds a statement open until its semicolon.
struct Semicolon;

impl Validator for Semicolon {
    fn validate(&self, line: &str) -> ValidationResult {
        let text = line.trim();
        if text.is_empty() || text.starts_with('.') || Session::is_complete(line) {
            ValidationResult::Complete
        } else {
            ValidationResult::Incomplete
        }
    }
}

struct TandemPrompt;

impl Prompt for TandemPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "tandem".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        "> ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "   ...> ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!("(search: {}) ", search.term).into()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_history_is_for_its_owner_only() {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let directory = place.path().join("state/tandem");
        let mode = |path: &Path| fs::metadata(path).expect("it was made").mode() & 0o777;
        let file = private_file(&directory, "history").expect("the place is writable");
        assert_eq!((mode(&directory), mode(&file)), (0o700, 0o600));
        fs::write(&file, "SELECT 1;").expect("writable");
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).expect("ours");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("ours");
        let file = private_file(&directory, "history").expect("the place is writable");
        assert_eq!((mode(&directory), mode(&file)), (0o700, 0o600));
        assert_eq!(fs::read_to_string(file).expect("readable"), "SELECT 1;");
    }

    #[test]
    fn an_empty_or_relative_variable_counts_as_unset() {
        let with = |state: &'static str| {
            state_directory(move |name| Some(if name == "HOME" { "/somebody" } else { state }.into()))
        };
        assert_eq!(with("/state"), Ok(PathBuf::from("/state")));
        for unset in ["", "state", "./state"] {
            assert_eq!(with(unset), Ok(PathBuf::from("/somebody/.local/state")), "{unset:?}");
        }
        state_directory(|_| Some("relative".into())).expect_err("neither names a directory");
    }
}
