//! Recognises calls that reach for the app's own files: its settings, its approvals, its log.
//!
//! Invariant: pure; no file is looked at. It reads the arguments as text, so it sees what an honest tool is told to do,
//! by whatever text the model has read. It is no wall against a dishonest server, which needs no arguments.

use serde_json::Value;

use crate::message::JsonObject;

/// Nesting of arguments that is looked into.
const DEEPEST: usize = 64;

/// The app's own files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// `folder/file` as it stands at the end of any way to such a file.
    files: Vec<String>,
    /// The folder itself, with `/`.
    folder: String,
}

impl Guard {
    /// Guards files of a folder; what a name begins counts too (`a.sqlite` also means `a.sqlite-wal`).
    pub fn new<'a>(folder: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let folder = plain(folder);
        let last = folder.rsplit('/').next().unwrap_or_default();
        Self { files: names.into_iter().map(|name| plain(&format!("{last}/{name}"))).collect(), folder }
    }

    /// Whether any text in the arguments names one of the files, or the folder itself.
    pub fn is_reached_by(&self, arguments: &JsonObject) -> bool {
        !self.files.is_empty() && arguments.values().any(|value| self.is_in(value, 0))
    }

    fn is_in(&self, value: &Value, depth: usize) -> bool {
        match value {
            Value::String(text) => self.is_named(text),
            Value::Array(_) | Value::Object(_) if depth > DEEPEST => self.is_named(&value.to_string()),
            Value::Array(items) => items.iter().any(|item| self.is_in(item, depth + 1)),
            Value::Object(fields) => {
                fields.iter().any(|(name, field)| self.is_named(name) || self.is_in(field, depth + 1))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn is_named(&self, text: &str) -> bool {
        let text = plain(text);
        text == self.folder || self.files.iter().any(|file| holds(&text, file))
    }
}

/// Whether `file` stands in `text`, not as the end of a longer name of a folder.
fn holds(text: &str, file: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.match_indices(file).any(|(at, _)| !text[..at].ends_with(goes_on))
}

/// A way to a file in one spelling: `/` between its parts, no `.` and `..`, `%41` read, no difference of case.
fn plain(text: &str) -> String {
    let text = unescaped(text).replace('\\', "/").to_lowercase();
    let text = text.strip_prefix("file://").unwrap_or(&text);
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | "..")) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reached(value: Value) -> bool {
        let guard = Guard::new("/home/me/.local/share/lectern", ["settings.json", "conversations.sqlite"]);
        let Value::Object(arguments) = value else { panic!() };
        guard.is_reached_by(&arguments)
    }

    #[test]
    fn every_way_to_the_files_is_seen() {
        for path in [
            "/home/me/.local/share/lectern/settings.json",
            "~/.local/share/lectern/settings.json",
            "$XDG_DATA_HOME/lectern/settings.json",
            "../lectern/settings.json",
            "lectern/./settings.json",
            "/home/me/.local/share/lectern/sample-vault/../settings.json",
            "/home/me/.local/share//lectern///settings.json",
            r"C:\\Users\\me\\Lectern\\SETTINGS.json",
            "file:///home/me/.local/share/lectern/settings%2Ejson",
            "echo '{}' > ~/.local/share/lectern/settings.json; true",
            "/home/me/.local/share/lectern/conversations.sqlite-wal",
            "/home/me/.local/share/lectern",
            "/home/me/.local/share/lectern/",
        ] {
            assert!(reached(json!({ "path": path })), "{path}");
            assert!(reached(json!({"edits": [{"file": {"to": path}}]})), "{path}");
        }
        assert!(reached(json!({"files": {"lectern/settings.json": "{}"}})), "a name of a field");
    }

    #[test]
    fn other_files_and_talk_about_them_are_let_through() {
        for text in [
            "settings.json",
            "/home/me/project/settings.json",
            "/home/me/selectern/settings.json",
            "/home/me/.local/share/lectern/sample-vault/Travel/Lyon.md",
            "The settings of Lectern are in settings.json.",
            "100 %",
            "",
        ] {
            assert!(!reached(json!({ "path": text })), "{text}");
        }
        let nobody = Guard::default();
        assert!(!nobody.is_reached_by(&JsonObject::from_iter([("path".to_owned(), json!(""))])));
    }
}
