//! A progress bar for statements over a second, on standard error, on a terminal only.

use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tandem_engine::Report;

use crate::terminal;

/// How long a statement runs before it shows progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the bar is redrawn.
const REDRAW: Duration = Duration::from_millis(100);

/// A bar that appears when it is needed and vanishes when dropped.
pub struct Bar {
    stop: Option<(Sender<Arc<Report>>, JoinHandle<()>)>,
}

impl Bar {
    /// Starts the wait for the first second; does nothing where there is no terminal.
    pub fn start() -> Self {
        if !terminal::stderr_is_terminal() {
            return Bar { stop: None };
        }
        let (sender, receiver) = mpsc::channel::<Arc<Report>>();
        let thread = std::thread::spawn(move || {
            let mut report: Option<Arc<Report>> = None;
            let mut bar: Option<ProgressBar> = None;
            let mut wait = PATIENCE;
            loop {
                match receiver.recv_timeout(wait) {
                    Ok(now) => report = Some(now),
                    Err(RecvTimeoutError::Timeout) => {
                        wait = REDRAW;
                        draw(bar.get_or_insert_with(new_bar), report.as_deref());
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        });
        Bar { stop: Some((sender, thread)) }
    }

    /// Says whose rows are counted from now on.
    pub fn follow(&self, report: Arc<Report>) {
        if let Some((sender, _)) = &self.stop {
            // The thread ends only after this sender is dropped.
            let _ = sender.send(report);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.stop.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_elapsed(PATIENCE);
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar
}

fn draw(bar: &ProgressBar, report: Option<&Report>) {
    let progress = report.map(Report::progress).unwrap_or_default();
    let (done, total) = (progress.rows_done, progress.rows_total);
    if total > 0 {
        if bar.length() != Some(total) {
            bar.set_style(style("{elapsed_precise} [{bar:40}] {percent:>3} %  {human_pos} of {human_len} rows"));
            bar.set_length(total);
        }
        bar.set_position(done);
    } else {
        bar.tick();
    }
}

/// Makes a style from a template of ours.
pub fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are constants").progress_chars("█▉▊▋▌▍▎▏ ")
}
