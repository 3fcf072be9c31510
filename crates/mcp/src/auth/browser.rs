//! Opens a page in the user's browser.
//!
//! Invariant: no shell ever sees an address, and only `https` (or `http` on this computer) is opened.

use std::process::Stdio;

use futures::future::{BoxFuture, FutureExt};
use url::Url;

use crate::http::reach::is_loopback;

/// Opens pages for the user.
pub trait Browser: std::fmt::Debug + Send + Sync {
    /// Opens a page; returns when it is on its way. The error is a lowercase fragment.
    fn open(&self, url: &str) -> BoxFuture<'static, Result<(), String>>;
}

/// Whether an address may be opened at all.
pub(crate) fn may_be_opened(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.has_host(),
        "http" => is_loopback(url),
        _ => false,
    }
}

/// The system's browser.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemBrowser;

impl Browser for SystemBrowser {
    fn open(&self, url: &str) -> BoxFuture<'static, Result<(), String>> {
        let opened = open::that_detached(url).map_err(|error| format!("no browser could be opened: {error}"));
        std::future::ready(opened).boxed()
    }
}

/// A program that gets the address as its last argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserCommand {
    program: String,
    args: Vec<String>,
}

impl BrowserCommand {
    /// Reads a command line: words, with quotes as in a shell, but nothing else of one. None when there is no word.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = shlex::split(line)?.into_iter();
        Some(Self { program: words.next()?, args: words.collect() })
    }
}

impl Browser for BrowserCommand {
    fn open(&self, url: &str) -> BoxFuture<'static, Result<(), String>> {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.args).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = command.kill_on_drop(true).spawn();
        let started = started.map_err(|error| format!("`{}` could not be started: {error}", self.program));
        async move {
            let mut child = started?;
            // It is not waited for: a browser may stay open. What it says is its own business.
            drop(tokio::spawn(async move { child.wait().await }));
            Ok(())
        }
        .boxed()
    }
}
