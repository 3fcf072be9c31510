//! Names of tools and arguments as a model can write them, and back.
//!
//! A name stands in tags, in quotes, before brackets or after a dot, as each format wants it, and llama.cpp's parsers and
//! grammars fold names into names of rules: `a_b` and `a-b` are one rule, and of such tools only one can be called.
//! What a format cannot write, and what would fall on the rule of another, gets an alias. Messages of other rooms hold
//! true names only. Invariant: pure; two names of a request never share an alias, and an alias that is not forced by a
//! collision depends on its name alone, so that the history is rendered alike in each step.

mod arguments;

use std::collections::{BTreeSet, HashMap, HashSet};

use lectern_core::{Message, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use arguments::Renamed;

/// The longest name that every format takes.
const LONGEST: usize = 64;
/// Letters of the digest in an alias.
const DIGEST: usize = 8;
/// Rules of llama.cpp that a tool's rule would fall on.
const TAKEN: [&str; 4] = ["call", "calls", "call-root", "choice"];

/// How arguments are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Writing {
    /// As one JSON object: every name can stand there.
    #[default]
    Json,
    /// Each by itself, between tags of its own or the like.
    Apart,
    /// As keywords of Python.
    Pythonic,
}

/// The names of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Of names that are not their own alias.
    aliases: HashMap<String, String>,
    /// From aliases to names.
    back: HashMap<String, String>,
    /// Of tools, by their true names, with arguments that are not their own alias.
    arguments: HashMap<String, Renamed>,
}

impl Names {
    /// The names of the tools that are offered and of those that were called.
    pub(crate) fn new(tools: &[ToolSpec], messages: &[Message], writing: Writing) -> Self {
        let offered = tools.iter().map(|tool| tool.name.as_str());
        // In an order of their own: a call is not to change what the history was written with.
        let all: BTreeSet<&str> = messages.iter().flat_map(called).chain(offered).collect();
        let mut out = Self::of(&all.into_iter().collect::<Vec<_>>());
        for tool in tools {
            if let Some(renamed) = Renamed::new(&tool.input_schema, writing) {
                out.arguments.entry(tool.name.0.clone()).or_insert(renamed);
            }
        }
        out
    }

    fn of(names: &[&str]) -> Self {
        let taken = Rules(TAKEN.map(str::to_owned).into());
        let aliases = aliases_of(names, taken, is_plain);
        let back = aliases.iter().map(|(name, alias)| (alias.clone(), name.clone())).collect();
        Self { aliases, back, arguments: HashMap::new() }
    }

    /// A tool's name as the model is told it.
    pub(crate) fn alias<'a>(&'a self, name: &'a str) -> &'a str {
        self.aliases.get(name).map_or(name, String::as_str)
    }

    /// The tool that a model means.
    pub(crate) fn tool<'a>(&'a self, alias: &'a str) -> &'a str {
        self.back.get(alias).map_or(alias, String::as_str)
    }

    /// The schema of a tool's arguments as the model is told it.
    pub(crate) fn schema(&self, tool: &str, schema: &Value) -> Value {
        let mut out = schema.clone();
        if let Some(renamed) = self.arguments.get(tool) {
            renamed.rename_schema(&mut out);
        }
        out
    }

    /// Arguments of a tool as the model writes them.
    pub(crate) fn written(&self, tool: &str, arguments: &Map<String, Value>) -> Map<String, Value> {
        self.arguments.get(tool).map_or_else(|| arguments.clone(), |renamed| renamed.written(arguments))
    }

    /// Arguments of a tool as the model wrote them, by their true names.
    pub(crate) fn read(&self, tool: &str, arguments: Map<String, Value>) -> Map<String, Value> {
        match self.arguments.get(tool) {
            Some(renamed) => renamed.read(arguments),
            None => arguments,
        }
    }

    /// Whether a tool has arguments that the model knows by other names.
    pub(crate) fn renames(&self, tool: &str) -> bool {
        self.arguments.contains_key(tool)
    }

    /// A text of the worker with true names in place of aliases between backquotes.
    pub(crate) fn in_text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (alias, name) in &self.back {
            out = out.replace(&format!("`{alias}`"), &format!("`{name}`"));
        }
        out
    }
}

fn called(message: &Message) -> Vec<&str> {
    match message {
        Message::Assistant(reply) => reply.tool_calls().map(|call| call.tool.as_str()).collect(),
        Message::User(_) | Message::Tool(_) => Vec::new(),
    }
}

/// Whether every format can write a name.
fn is_plain(name: &str) -> bool {
    let first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let inside = |letter: char| first(letter) || letter.is_ascii_digit() || letter == '-';
    name.len() <= LONGEST && name.starts_with(first) && name.chars().all(inside)
}

/// What can be written of a name, and a digest of the whole.
fn alias(name: &str, salt: u32) -> String {
    let mut digest = Sha256::new().chain_update(name);
    if salt > 0 {
        digest.update(salt.to_le_bytes());
    }
    let digest: String =
        digest.finalize().iter().map(|byte| format!("{byte:02x}")).take(DIGEST / 2).collect();
    let mut out = String::new();
    for letter in name.chars() {
        let letter = if letter.is_ascii_alphanumeric() { letter } else { '_' };
        if letter != '_' || !out.ends_with('_') {
            out.push(letter);
        }
        if out.len() == LONGEST - DIGEST - 2 {
            break;
        }
    }
    // The rule of an argument is named so.
    while out.contains("_arg_") {
        out = out.replace("_arg_", "_arg");
    }
    let kept = out.trim_matches('_');
    match kept.chars().next() {
        None => format!("tool_{digest}"),
        Some(first) if first.is_ascii_alphabetic() => format!("{kept}_{digest}"),
        Some(_) => format!("_{kept}_{digest}"),
    }
}

/// The rules of grammars and parsers that names fall on.
#[derive(Debug, Default)]
struct Rules(BTreeSet<String>);

impl Rules {
    /// Takes the rules of a name. False when one of them belongs to another.
    fn take(&mut self, name: &str) -> bool {
        let rule = crate::grammar::rule_name(name);
        let of_other = rule.match_indices("-arg-").any(|(at, _)| self.0.contains(&rule[..at]))
            || rule.strip_suffix("-schema").is_some_and(|other| self.0.contains(other));
        let start = format!("{rule}-arg-");
        let holds_other = self.0.contains(&format!("{rule}-schema"))
            || self.0.range(start.clone()..).next().is_some_and(|other| other.starts_with(&start));
        !of_other && !holds_other && self.0.insert(rule)
    }
}

/// Aliases for those names that are not plain or fall on the rules of others. The first ones keep theirs.
fn aliases_of(names: &[&str], mut rules: Rules, is_plain: impl Fn(&str) -> bool) -> HashMap<String, String> {
    let mut seen = HashSet::new();
    let once = names.iter().copied().filter(|name| seen.insert(*name)).collect::<Vec<_>>();
    let others: Vec<&str> = once.into_iter().filter(|name| !(is_plain(name) && rules.take(name))).collect();
    let mut free = |name: &str| {
        // Somebody may have chosen a name that is the alias of another.
        let mut tries = (0_u32..).map(|salt| alias(name, salt));
        tries.find(|alias| !seen.contains(alias.as_str()) && rules.take(alias))
    };
    others.into_iter().filter_map(|name| Some((name.to_owned(), free(name)?))).collect()
}

#[cfg(test)]
mod tests;
