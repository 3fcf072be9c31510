//! Lectern's window, driven as a person would: by what is seen, through WebKit's own driver.
//!
//! Invariant: waits are for something to appear, with a deadline that only a broken app reaches.

use std::future::Future;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fantoccini::error::CmdError;
use fantoccini::{Client, ClientBuilder, Locator, elements::Element};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

use crate::display::Display;
use crate::drag::Drag;
use crate::process::{Group, Process, descendants};
use crate::{program, results};

/// Loading a model and answering takes seconds; a machine that also compiles needs longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A test that is killed takes its group's leader along; this makes the leader take the whole group along.
const WHOLE_GROUP: &str = r#"trap 'trap - TERM; kill 0' TERM; "$@" & wait"#;

/// Windows are opened one after the other; two at once only slow each other down.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// What a window is started with.
pub struct Setting {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Setting {
    /// A person who has never started Lectern.
    pub fn fresh() -> Self {
        let folder = tempfile::Builder::new().prefix("lectern-window-").tempdir().expect("a folder");
        for name in ["home", "config", "data", "cache", "state", "bin"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let runtime = folder.path().join("runtime");
        std::fs::create_dir(&runtime).expect("a folder");
        std::fs::set_permissions(&runtime, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .expect("private");
        Self { folder, variables: Vec::new() }
    }

    /// With one more variable in the environment.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lectern's home.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A folder that is first in `PATH`.
    pub fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let at = |name: &str| self.folder.path().join(name);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("LECTERN_HOME", self.home())
            .env("XDG_CONFIG_HOME", at("config"))
            .env("XDG_DATA_HOME", at("data"))
            .env("XDG_CACHE_HOME", at("cache"))
            .env("XDG_STATE_HOME", at("state"))
            .env("XDG_RUNTIME_DIR", at("runtime"))
            .env("PATH", format!("{}:{path}", self.bin().display()))
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .env("GDK_BACKEND", "x11")
            .env("NO_AT_BRIDGE", "1")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// An open window.
pub struct Window {
    client: Client,
    // Dropped in this order: the app, its display, its folder, the turn of the next test.
    driver: Group,
    display: Display,
    setting: Setting,
    _turn: MutexGuard<'static, ()>,
}

impl Window {
    /// Opens the window.
    pub async fn open(setting: Setting) -> Self {
        let turn = ONE_AT_A_TIME.lock().await;
        Self::open_in_turn(setting, turn).await
    }

    async fn open_in_turn(setting: Setting, turn: MutexGuard<'static, ()>) -> Self {
        let display = Display::start();
        let port = free_port();
        let mut command = setting.command("sh");
        command.env("DISPLAY", &display.name).args(["-c", WHOLE_GROUP, "sh"]);
        command.args(["dbus-run-session", "--", "WebKitWebDriver", "--host=127.0.0.1"]);
        let driver =
            Group::start(command.arg(format!("--port={port}"))).expect("dbus-run-session is installed");
        let client = connect(port).await;
        let window = Self { client, driver, display, setting, _turn: turn };
        window.see("body").await;
        window
    }

    /// Ends the app as a crash of the machine would, and opens it again with the same home.
    pub async fn reopen(self) -> Self {
        let Self { driver, display, setting, _turn, .. } = self;
        drop((driver, display));
        Self::open_in_turn(setting, _turn).await
    }

    /// Lectern's home.
    pub fn home(&self) -> PathBuf {
        self.setting.home()
    }

    /// The app's process.
    pub fn app(&self) -> Process {
        let path = program("lectern-desktop");
        let own = |process: &Process| {
            std::fs::read_link(format!("/proc/{}/exe", process.id)).is_ok_and(|exe| exe == path)
        };
        let children = descendants(self.driver.id());
        let app = children.iter().find(|process| {
            own(process) && !process.command.contains("__") && !process.command.contains(" vault ")
        });
        app.unwrap_or_else(|| panic!("the app does not run: {children:?}")).clone()
    }

    /// Holds a file over the window, as one does who drags it there.
    pub fn drag(&self, file: &Path) -> Drag {
        Drag::over(&self.display.name, "Lectern", file)
    }

    /// Clicks the window's close button.
    pub fn close(&self) {
        assert!(self.display.close_window("Lectern"), "there is no window");
    }

    /// The first element of a CSS selector, as soon as it is visible.
    pub async fn see(&self, css: &str) -> Element {
        self.until(&format!("`{css}` is visible"), || async {
            let element = self.client.find(Locator::Css(css)).await.ok()?;
            element.is_displayed().await.ok()?.then_some(element)
        })
        .await
    }

    /// Waits until no element of the selector is there.
    pub async fn see_no(&self, css: &str) {
        self.until(&format!("`{css}` is gone"), || async { (self.count(css).await == 0).then_some(()) })
            .await;
    }

    /// Waits until one of the elements holds the text.
    pub async fn see_text(&self, css: &str, text: &str) {
        self.until(&format!("`{css}` says {text:?}"), || async {
            self.texts(css).await.iter().any(|found| found.contains(text)).then_some(())
        })
        .await;
    }

    /// The visible texts of all elements of the selector.
    pub async fn texts(&self, css: &str) -> Vec<String> {
        let script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)";
        let texts = self.run(script, vec![json!(css)]).await;
        texts.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    }

    /// How many elements there are.
    pub async fn count(&self, css: &str) -> usize {
        self.client.find_all(Locator::Css(css)).await.map_or(0, |all| all.len())
    }

    /// Clicks the first element of the selector, once it is visible.
    pub async fn click(&self, css: &str) {
        let element = self.see(css).await;
        in_time(&format!("click `{css}`"), element.click()).await;
    }

    /// Clicks the one element of the selector that says this: what else floats there is another one's.
    pub async fn press(&self, css: &str, text: &str) {
        let find = || async {
            for element in self.client.find_all(Locator::Css(css)).await.ok()? {
                if element.text().await.is_ok_and(|says| says == text) {
                    return Some(element);
                }
            }
            None
        };
        let found = self.until(&format!("`{css}` says {text:?}"), find).await;
        in_time(&format!("click {text:?}"), found.click()).await;
    }

    /// Types into a field, key by key.
    pub async fn type_into(&self, css: &str, text: &str) {
        let element = self.see(css).await;
        in_time(&format!("type into `{css}`"), element.send_keys(text)).await;
    }

    /// Runs a script in the page, which sees `arguments`.
    pub async fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        in_time(script, self.client.execute(script, arguments)).await
    }

    /// Runs a script that ends by calling its last argument.
    pub async fn run_async(&self, script: &str, arguments: Vec<Value>) -> Value {
        in_time(script, self.client.execute_async(script, arguments)).await
    }

    /// The window at another size.
    pub async fn resize(&self, width: u32, height: u32) {
        in_time("resize", self.client.set_window_size(width, height)).await;
    }

    /// Loads the page anew, as WebKit does after its process crashed.
    pub async fn reload(&self) {
        in_time("load the page anew", self.client.refresh()).await;
        self.see("body").await;
    }

    /// Saves what is seen, for people to look at.
    pub async fn picture(&self, name: &str) {
        // Motion takes up to 180 ms; this only makes the picture better, nothing waits for it.
        tokio::time::sleep(Duration::from_millis(400)).await;
        self.display.picture("Lectern", &results().join(format!("{name}.png")));
    }

    /// Polls until there is an answer; on giving up, leaves a picture and the page's text behind.
    pub async fn until<T, F: Future<Output = Option<T>>>(
        &self,
        what: &str,
        mut look: impl FnMut() -> F,
    ) -> T {
        let begin = Instant::now();
        loop {
            // A driver that no longer answers is given up as well.
            if let Ok(Some(found)) = tokio::time::timeout(PATIENCE, look()).await {
                return found;
            }
            if begin.elapsed() > PATIENCE {
                let says = tokio::time::timeout(PATIENCE / 4, self.last_words()).await;
                panic!("waited in vain until {what}; the page says: {says:?}");
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }
}

impl Window {
    /// What is seen when a test gives up: a picture, and the page's text.
    async fn last_words(&self) -> Option<String> {
        let name = std::thread::current().name().unwrap_or("test").replace("::", "-");
        self.display.picture("Lectern", &results().join(format!("gave-up-{name}.png")));
        let text = self.client.execute("return document.body.innerText", vec![]).await.ok()?;
        text.as_str().map(str::to_owned)
    }
}

/// The driver's answer. It hangs when the page's process hangs; a test must not.
async fn in_time<T>(what: &str, asked: impl Future<Output = Result<T, CmdError>>) -> T {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => panic!("{what}: {error}"),
        Err(_) => panic!("{what}: the driver does not answer"),
    }
}

async fn connect(port: u16) -> Client {
    let begin = Instant::now();
    loop {
        let mut capabilities = Map::new();
        let options = json!({ "binary": program("lectern-desktop"), "args": [] });
        capabilities.insert("webkitgtk:browserOptions".to_owned(), options);
        let mut builder = ClientBuilder::new(HttpConnector::new());
        match builder.capabilities(capabilities).connect(&format!("http://127.0.0.1:{port}")).await {
            Ok(client) => return client,
            Err(error) if begin.elapsed() > Duration::from_secs(60) => {
                panic!("the window did not open: {error}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its number").port()
}

/// Writes an executable script.
pub fn write_script(path: &Path, text: &str) {
    std::fs::write(path, text).expect("the script is written");
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("made executable");
}
