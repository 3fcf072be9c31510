//! Authorization for remote servers.

mod browser;

pub use browser::{Browser, BrowserCommand, SystemBrowser};
