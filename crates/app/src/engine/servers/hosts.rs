//! Where other hosts on this machine keep their servers.
//!
//! Invariant: files are looked at when the user asks, never by themselves, and never written.

use std::path::{Path, PathBuf};

use crate::engine::Engine;
use crate::view::{FoundHost, KnownHost};

const ALL: [KnownHost; 3] = [KnownHost::ClaudeDesktop, KnownHost::Cursor, KnownHost::Vscode];

impl Engine {
    /// The hosts on this machine that have servers.
    pub fn known_hosts(&self) -> Vec<FoundHost> {
        let Ok(folders) = Folders::of_system() else { return Vec::new() };
        ALL.into_iter().filter_map(|host| found(host, &folders)).collect()
    }
}

/// The file of a host, if it has one with servers in it.
pub(super) fn file_of(host: KnownHost) -> Option<PathBuf> {
    found(host, &Folders::of_system().ok()?).map(|found| found.path.into())
}

fn found(host: KnownHost, folders: &Folders) -> Option<FoundHost> {
    folders.files(host).into_iter().find_map(|path| {
        let servers = count(&path).filter(|count| *count > 0)?;
        Some(FoundHost { host, path: path.display().to_string(), servers })
    })
}

fn count(path: &Path) -> Option<u32> {
    let read = lectern_mcp::read_config(&super::sources::read_text(path).ok()?).ok()?;
    u32::try_from(read.servers.len() + read.skipped.len()).ok()
}

/// Where programs keep what their users chose.
struct Folders {
    home: PathBuf,
    config: PathBuf,
}

impl Folders {
    fn of_system() -> Result<Self, etcetera::HomeDirError> {
        let home = etcetera::home_dir()?;
        let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = if cfg!(windows) {
            named("APPDATA").unwrap_or_else(|| home.join("AppData").join("Roaming"))
        } else if cfg!(target_os = "macos") {
            home.join("Library").join("Application Support")
        } else {
            named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
        };
        Ok(Self { home, config })
    }

    fn files(&self, host: KnownHost) -> Vec<PathBuf> {
        match host {
            KnownHost::ClaudeDesktop => vec![self.config.join("Claude").join("claude_desktop_config.json")],
            KnownHost::Cursor => vec![self.home.join(".cursor").join("mcp.json")],
            KnownHost::Vscode => {
                let user = self.config.join("Code").join("User");
                vec![user.join("mcp.json"), user.join("settings.json")]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_is_found_where_it_keeps_its_servers() {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders { home: folder.path().join("home"), config: folder.path().join("config") };
        for host in ALL {
            assert_eq!(found(host, &folders), None);
        }
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
        };
        write(
            "config/Claude/claude_desktop_config.json",
            r#"{"mcpServers": {"a": {"command": "x"}, "b": 1}}"#,
        );
        write("home/.cursor/mcp.json", r#"{"mcpServers": {}}"#);
        write("config/Code/User/mcp.json", "broken");
        write(
            "config/Code/User/settings.json",
            "{// mine\n\"mcp\": {\"servers\": {\"c\": {\"url\": \"https://h\"}}}}",
        );
        assert_eq!(found(KnownHost::ClaudeDesktop, &folders).unwrap().servers, 2);
        assert_eq!(found(KnownHost::Cursor, &folders), None);
        assert!(found(KnownHost::Vscode, &folders).unwrap().path.ends_with("settings.json"));
    }
}
