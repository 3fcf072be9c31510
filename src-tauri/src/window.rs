//! The window: one, with its page, its place on the screen, and its end.
//!
//! Invariant: the page shows only what is embedded, and closing the window leaves no process behind.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tauri::plugin::TauriPlugin;
use tauri::{AppHandle, Manager, RunEvent, Url, WebviewUrl, WebviewWindowBuilder, WindowEvent, Wry};
use tauri_plugin_window_state::StateFlags;

use crate::asking::Asking;
use crate::commands;
use crate::drops::Drops;
use crate::links;
use crate::shell::Shell;
use crate::start::Start;

/// The only window; the capability names it.
pub const MAIN: &str = "main";

/// Opens the window and returns when it is closed and everything behind it has ended.
pub fn run(start: Start) -> tauri::Result<()> {
    let context = tauri::generate_context!();
    let identifier = context.config().identifier.clone();
    let development = context.config().build.dev_url.clone().filter(|_| tauri::is_dev());
    let app = tauri::Builder::default()
        .plugin(one_per_home(&identifier, start.home.as_deref()))
        .plugin(stay_at_home(development))
        .plugin(tauri_plugin_dialog::init())
        .plugin(remember_place(start.home.as_deref()))
        .manage(Arc::new(Shell::new(start.home.clone())))
        .manage(Drops::default())
        .manage(Asking::default())
        .invoke_handler(commands::all())
        .setup(move |app| {
            open(app.handle(), start.home.as_deref())?;
            begin(app.handle());
            Ok(())
        })
        .build(context)?;
    app.run(|app, event| {
        if let RunEvent::ExitRequested { code: None, api, .. } = event {
            api.prevent_exit();
            leave(app);
        }
    });
    Ok(())
}

fn open(app: &AppHandle, home: Option<&Path>) -> tauri::Result<()> {
    let mut window = WebviewWindowBuilder::new(app, MAIN, WebviewUrl::default())
        .title("Lectern")
        .inner_size(1240.0, 820.0)
        .min_inner_size(640.0, 480.0)
        .zoom_hotkeys_enabled(true)
        .on_document_title_changed(|window, title| {
            let _ = window.set_title(&title);
        });
    if let Some(home) = home {
        // What the page remembers (colours, widths) belongs to the home, too.
        window = window.data_directory(absolute(home).join("window"));
    }
    let window = window.build()?;
    let handle = app.clone();
    window.on_window_event(move |event| {
        if let WindowEvent::DragDrop(event) = event {
            handle.state::<Drops>().hear(event);
        }
    });
    Ok(())
}

/// The engine opens while the window already shows, and the local API with it.
fn begin(app: &AppHandle) {
    let shell = Arc::clone(&app.state::<Arc<Shell>>());
    tauri::async_runtime::spawn(async move {
        if let Err(problem) = shell.api().await {
            tracing::error!(code = problem.code, "{problem}");
        }
    });
    end_on_signal(app.clone());
}

/// Ends servers and worker, then the process.
fn leave(app: &AppHandle) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        let shell = Arc::clone(&app.state::<Arc<Shell>>());
        shell.shut_down().await;
        app.exit(0);
    });
}

/// A terminal's Ctrl+C and a session's end close the window the same way as a person does.
fn end_on_signal(app: AppHandle) {
    #[cfg(unix)]
    tauri::async_runtime::spawn(async move {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()))
        else {
            return;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        leave(&app);
    });
    #[cfg(not(unix))]
    drop(app);
}

/// A second start with the same home brings the first window to the front.
fn one_per_home(identifier: &str, home: Option<&Path>) -> TauriPlugin<Wry> {
    let name = match home {
        None => identifier.to_owned(),
        Some(home) => {
            let mut hasher = DefaultHasher::new();
            absolute(home).hash(&mut hasher);
            format!("{identifier}.home{:016x}", hasher.finish())
        }
    };
    tauri_plugin_single_instance::Builder::new()
        .callback(|app, _arguments, _folder| {
            if let Some(window) = app.get_webview_window(MAIN) {
                let _ = window.unminimize();
                let _ = window.set_focus();
            }
        })
        .dbus_id(name)
        .build()
}

/// By default a page may go anywhere; this one may not.
fn stay_at_home(development: Option<Url>) -> TauriPlugin<Wry> {
    tauri::plugin::Builder::new("stay-at-home")
        .on_navigation(move |_, url| links::navigable(url, development.as_ref()))
        .build()
}

fn remember_place(home: Option<&Path>) -> TauriPlugin<Wry> {
    let plugin = tauri_plugin_window_state::Builder::default()
        .with_state_flags(StateFlags::SIZE | StateFlags::POSITION | StateFlags::MAXIMIZED);
    match home {
        Some(home) => plugin.with_filename(absolute(home).join("window.json").to_string_lossy()),
        None => plugin,
    }
    .build()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
