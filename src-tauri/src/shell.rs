//! What the window's commands share: the engine, opened in the background, and the page that listens.
//!
//! Invariant: the window never waits for the engine; a command does, and says why when there is none.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use lectern_api::Switch;
use lectern_app::view::Problem;
use lectern_app::{Engine, EngineOptions, Home};
use lectern_core::Actor;
use tauri::async_runtime::JoinHandle;
use tokio::sync::OnceCell;

/// Servers and the worker get this long to end by themselves; the engine ends them by force before that.
const GOODBYE: Duration = Duration::from_secs(10);

/// The state behind all commands.
pub struct Shell {
    home: Option<PathBuf>,
    engine: OnceCell<Engine>,
    api: OnceCell<Switch>,
    listener: Listener,
    api_listener: Listener,
}

/// The task that tells the page something; there is one page.
type Listener = Mutex<Option<JoinHandle<()>>>;

impl Shell {
    /// A shell whose engine isn't open yet.
    pub fn new(home: Option<PathBuf>) -> Self {
        Self {
            home,
            engine: OnceCell::new(),
            api: OnceCell::new(),
            listener: Mutex::default(),
            api_listener: Mutex::default(),
        }
    }

    /// The engine; opened by whoever asks first. After a failure the next one tries again, so that a person can
    /// mend what was broken and press "try again".
    pub async fn engine(&self) -> Result<&Engine, Problem> {
        self.engine.get_or_try_init(|| open(self.home.clone())).await
    }

    /// The local API, which serves from then on when the user wants it; the engine is opened for it.
    pub async fn api(&self) -> Result<&Switch, Problem> {
        let begun = || async {
            let switch = Switch::new(self.engine().await?.clone())?;
            switch.begin();
            Ok(switch)
        };
        self.api.get_or_try_init(begun).await
    }

    /// Takes over the news; the page that listened before was loaded anew.
    pub fn listen(&self, listener: JoinHandle<()>) {
        take_over(&self.listener, listener);
    }

    /// Takes over what the API tells.
    pub fn listen_to_api(&self, listener: JoinHandle<()>) {
        take_over(&self.api_listener, listener);
    }

    /// Ends the API, servers and worker. Safe to call when the engine never opened.
    pub async fn shut_down(&self) {
        // It has limits of its own for what its clients still read.
        if let Some(api) = self.api.get() {
            api.end().await;
        }
        let end = async {
            // Waits for an engine that is on its way: it may have started servers already.
            if let Ok(engine) = self.engine.get_or_try_init(|| async { Err(()) }).await {
                engine.shutdown().await;
            }
        };
        if tokio::time::timeout(GOODBYE, end).await.is_err() {
            tracing::warn!("the engine did not end in time");
        }
    }
}

fn take_over(current: &Listener, listener: JoinHandle<()>) {
    // A std mutex: nothing awaits while it is held, and nothing in here can panic.
    let mut current = current.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(before) = current.replace(listener) {
        before.abort();
    }
}

/// Reads the disk, so not on a thread that others wait for.
async fn open(home: Option<PathBuf>) -> Result<Engine, Problem> {
    let opened = tauri::async_runtime::spawn_blocking(move || {
        Engine::open(
            Home::open(home.as_deref())?,
            EngineOptions { who: Actor::Window, ..EngineOptions::default() },
        )
    });
    let engine = opened
        .await
        .unwrap_or_else(|error| Err(Problem::new("defect", format!("Lectern could not start: {error}"))))?;
    engine.resume_downloads();
    Ok(engine)
}
