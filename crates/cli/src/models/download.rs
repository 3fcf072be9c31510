//! `lectern models download` and `downloads`.
//!
//! Invariant: Ctrl-C leaves a download that goes on later, and says how.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use lectern_app::units::bytes;
use lectern_app::view::{AppNews, DownloadRequest, DownloadState, DownloadView, Problem, RepositoryView};
use lectern_app::{Engine, News};
use serde_json::json;

use super::words::{self, line};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{aside, complain, data, one_line};

/// What to download.
#[derive(Debug, Args)]
pub struct Target {
    /// owner/name, owner/name:Q4_K_M, an address of Hugging Face, or the address of a GGUF file
    pub target: String,
    /// The file in the repository [default: the usual one, or what fits this machine]
    #[arg(long, value_name = "NAME")]
    pub file: Option<String>,
    /// The folder [default: Lectern's own]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<String>,
    /// Only list what there is
    #[arg(long, conflicts_with_all = ["file", "dir"])]
    pub list: bool,
    /// Print JSON: each change of the download as a line
    #[arg(long)]
    pub json: bool,
}

/// What to do with the downloads.
#[derive(Debug, Args)]
pub struct Downloads {
    #[command(subcommand)]
    pub what: Option<What>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum What {
    /// List them
    List,
    /// Stop one, in whichever process it runs; what is here stays
    Pause {
        /// Its id
        id: String,
    },
    /// Go on with one, and wait for it
    Resume {
        /// Its id
        id: String,
    },
    /// Stop one, and delete what is here of it
    Cancel {
        /// Its id
        id: String,
    },
}

/// Lines for who does not look at a terminal come this often at most.
const LINES: Duration = Duration::from_secs(10);

/// Downloads and waits.
pub async fn download(engine: &Engine, target: Target) -> Result<Exit, Problem> {
    if target.list {
        let repository = engine.list_repository(&target.target).await?;
        if target.json {
            words::json(&repository)
        } else {
            print_list(&repository)
        }
        return Ok(Exit::Done);
    }
    let news = engine.subscribe();
    let request = DownloadRequest { target: target.target, file: target.file, folder: target.dir };
    let interrupts = Interrupts::listen();
    let stop = interrupts.next();
    let begun = tokio::select! {
        begun = engine.start_download(request) => begun?,
        () = stop.cancelled() => return Ok(Exit::Cancelled),
    };
    follow(engine, news, begun, &interrupts, target.json).await
}

/// Looks at the downloads, or changes one.
pub async fn downloads(engine: &Engine, asked: Downloads) -> Result<Exit, Problem> {
    match asked.what.unwrap_or(What::List) {
        What::List => {
            let all = engine.downloads();
            if asked.json {
                words::json(&json!({"downloads": all}));
            } else {
                all.iter().for_each(|download| line(&in_words(download)));
            }
        }
        What::Pause { id } => {
            let paused = engine.pause_download(&id).await?;
            if asked.json { words::json(&paused) } else { line(&in_words(&paused)) }
        }
        What::Resume { id } => {
            let news = engine.subscribe();
            // Who lists them first finds what earlier runs left.
            let resumed = engine.resume_download(&id).await?;
            return follow(engine, news, resumed, &Interrupts::listen(), asked.json).await;
        }
        What::Cancel { id } => {
            engine.cancel_download(&id).await?;
            if asked.json {
                words::json(&json!({"cancelled": id}));
            } else {
                line(&format!("{id} is cancelled; what was here of it is deleted"));
            }
        }
    }
    Ok(Exit::Done)
}

/// Shows a download until it ends or is interrupted.
async fn follow(
    engine: &Engine,
    mut news: News,
    begun: DownloadView,
    interrupts: &Interrupts,
    as_json: bool,
) -> Result<Exit, Problem> {
    let mut screen = Screen::new(as_json);
    let stop = interrupts.next();
    let mut now = begun;
    loop {
        let over = match &now.state {
            DownloadState::Done { .. } | DownloadState::Failed { .. } | DownloadState::Paused => true,
            DownloadState::Queued | DownloadState::Running | DownloadState::Checking => false,
        };
        if over {
            return Ok(screen.end(&now));
        }
        screen.show(&now);
        tokio::select! {
            heard = news.next() => match heard {
                Some(AppNews::DownloadChanged { download }) if download.id == now.id => now = *download,
                Some(AppNews::DownloadsChanged { downloads }) => {
                    now = downloads.into_iter().find(|download| download.id == now.id).unwrap_or(now);
                }
                Some(_) => {}
                None => return Ok(Exit::Failed),
            },
            () = stop.cancelled() => {
                let paused = engine.pause_download(&now.id).await?;
                screen.end(&paused);
                return Ok(Exit::Cancelled);
            }
        }
    }
}

/// Where progress is shown.
struct Screen {
    json: bool,
    /// Whether a line of progress can be overwritten.
    terminal: bool,
    said: Option<Instant>,
    said_percent: u64,
    notice: Option<String>,
}

impl Screen {
    fn new(json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let terminal = !json && !dumb && std::io::stderr().is_terminal();
        Self { json, terminal, said: None, said_percent: 0, notice: None }
    }

    fn show(&mut self, download: &DownloadView) {
        if self.json {
            words::json(download);
            return;
        }
        if download.notice != self.notice {
            self.notice.clone_from(&download.notice);
            if let Some(notice) = &download.notice {
                self.clear();
                aside(notice);
            }
        }
        let text = format!("{}: {}", download.name, words::progress(download));
        if self.terminal {
            let bar = words::percent(download).map(bar).unwrap_or_default();
            let shown = one_line(&format!("{bar}{text}"), 100);
            // There is nowhere else to tell it.
            let _ =
                write!(std::io::stderr().lock(), "\r\x1b[K{shown}").and_then(|()| std::io::stderr().flush());
            return;
        }
        let percent = words::percent(download).unwrap_or(0);
        let due = self.said.is_none_or(|said| said.elapsed() >= LINES) || percent >= self.said_percent + 10;
        if due {
            (self.said, self.said_percent) = (Some(Instant::now()), percent);
            aside(&text);
        }
    }

    fn end(&mut self, download: &DownloadView) -> Exit {
        self.clear();
        if self.json {
            words::json(download);
        }
        match &download.state {
            DownloadState::Failed { problem } => {
                complain(&problem.message, problem.hint.as_deref());
                self.how_to_go_on(download);
                Exit::of_problem(problem)
            }
            DownloadState::Done { model } if !self.json => {
                if let Some(notice) =
                    download.notice.as_ref().filter(|notice| self.notice.as_ref() != Some(*notice))
                {
                    aside(notice);
                }
                let size = bytes(download.done);
                line(&format!("{} is here ({size})", download.path));
                if let Some(id) = model {
                    line(&format!("let it answer: lectern models use {id}"));
                }
                Exit::Done
            }
            DownloadState::Done { .. } => Exit::Done,
            DownloadState::Paused => {
                aside(&format!("paused: {}", words::progress(download)));
                self.how_to_go_on(download);
                Exit::Cancelled
            }
            DownloadState::Queued | DownloadState::Running | DownloadState::Checking => Exit::Failed,
        }
    }

    fn how_to_go_on(&self, download: &DownloadView) {
        if download.done > 0 || matches!(download.state, DownloadState::Paused) {
            aside(&format!("go on: lectern models downloads resume {}", download.id));
        }
    }

    fn clear(&self) {
        if self.terminal {
            // There is nowhere else to tell it.
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// Twenty places.
fn bar(percent: u64) -> String {
    let full = usize::try_from(percent.min(100) / 5).unwrap_or(0);
    format!("[{}{}] ", "#".repeat(full), ".".repeat(20 - full))
}

fn in_words(download: &DownloadView) -> String {
    let state = match &download.state {
        DownloadState::Queued => "waits".to_owned(),
        DownloadState::Running => "runs".to_owned(),
        DownloadState::Paused => "paused".to_owned(),
        DownloadState::Checking => "is checked".to_owned(),
        DownloadState::Done { .. } => "done".to_owned(),
        DownloadState::Failed { problem } => format!("failed: {}", problem.message),
    };
    let notice = download.notice.as_ref().map(|notice| format!(" ({notice})")).unwrap_or_default();
    let progress = words::progress(download);
    format!("{}  {}  {state}, {progress}, from {}{notice}", download.id, download.name, download.host)
}

fn print_list(repository: &RepositoryView) {
    data(&one_line(&format!("{} on {}", repository.target, repository.host), 300));
    for file in &repository.files {
        let mark = if repository.suggested.as_ref() == Some(&file.name) { '*' } else { ' ' };
        let size = file.size.map_or_else(|| "size not known".to_owned(), bytes);
        let parts = if file.parts > 1 { format!(", {} files", file.parts) } else { String::new() };
        let verdict = file.advice.as_ref().map(|advice| words::verdict(advice.verdict));
        let what = verdict.unwrap_or(if file.projector { "for images" } else { "" });
        line(&format!("{mark} {:9} {}  ({size}{parts})", what, file.name));
    }
}
