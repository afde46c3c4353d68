//! The interactive shell: multi-line editing, history, completion, highlighting.

mod completion;
mod highlight;

use std::{borrow::Cow, env, fs, path::PathBuf};

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

/// Opens the history in the user's state directory.
fn history() -> Result<FileBackedHistory, String> {
    // A relative one would be another place wherever the shell is started: it counts as not set.
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local/state")))
        .ok_or("neither XDG_STATE_HOME nor HOME is set")?;
    let directory = state.join("tandem");
    fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    FileBackedHistory::with_file(HISTORY, directory.join("history")).map_err(|e| e.to_string())
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
