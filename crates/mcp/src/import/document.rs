//! Finds the servers in a file, whatever host wrote it.
//!
//! Invariant: reading starts nothing. Comments, commas too many and a byte order mark are borne; a name that comes twice
//! is noticed, since most parsers would quietly take the last.

use jsonc_parser::ast::{Object, Value as Node};
use jsonc_parser::{ParseOptions, parse_to_ast};
use serde_json::Value;

use super::ConfigError;

/// Bytes of a file.
const LONGEST: usize = 10 << 20;
/// Servers of a file.
const MOST: usize = 1_000;

/// What a file holds, in its order.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// Names and entries; a name may come twice.
    pub(super) servers: Vec<(String, Value)>,
    /// VS Code's `inputs`.
    pub(super) inputs: Vec<Value>,
}

/// Reads a whole file, or one server without its name (the name is then empty).
pub(super) fn read(text: &str) -> Result<Document, ConfigError> {
    if text.len() > LONGEST {
        return Err(ConfigError::TooLong);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let options = ParseOptions { allow_non_finite_numbers: false, ..ParseOptions::default() };
    let parsed = parse_to_ast(text, &jsonc_parser::CollectOptions::default(), &options)
        .map_err(|error| ConfigError::NotJson(error.to_string()))?;
    let Some(Node::Object(root)) = parsed.value else { return Err(ConfigError::NoServers) };
    let mut document = Document::default();
    let found = collect(&root, &mut document);
    if document.servers.len() > MOST {
        return Err(ConfigError::TooMany(MOST));
    }
    if found { Ok(document) } else { Err(ConfigError::NoServers) }
}

/// Whether there was a list of servers, an empty one counts.
fn collect(root: &Object<'_>, document: &mut Document) -> bool {
    let mut found = false;
    for prop in &root.properties {
        match (prop.name.as_str(), &prop.value) {
            ("mcpServers" | "mcp_servers" | "servers" | "context_servers" | "mcp.servers", list) => {
                found |= take(list, document);
            }
            ("inputs", Node::Array(inputs)) => {
                document.inputs.extend(inputs.elements.iter().cloned().map(Value::from));
            }
            // VS Code's settings.json keeps them one level deeper, some hosts directly under `mcp`.
            ("mcp", Node::Object(inner)) => {
                found |= collect(inner, document) || take_if_servers(inner, document)
            }
            _ => {}
        }
    }
    if found {
        return true;
    }
    if is_server(root) {
        document.servers.push((String::new(), Value::from(Node::Object(root.clone()))));
        return true;
    }
    take_if_servers(root, document)
}

fn take(list: &Node<'_>, document: &mut Document) -> bool {
    match list {
        Node::Object(servers) => {
            let servers = servers.properties.iter();
            document
                .servers
                .extend(servers.map(|prop| (prop.name.as_str().to_owned(), Value::from(prop.value.clone()))));
            true
        }
        Node::Array(servers) => {
            document.servers.extend(servers.elements.iter().cloned().map(|node| {
                let value = Value::from(node);
                (value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(), value)
            }));
            true
        }
        Node::StringLit(_) | Node::NumberLit(_) | Node::BooleanLit(_) | Node::NullKeyword(_) => false,
    }
}

/// Names with servers, without anything around them.
fn take_if_servers(object: &Object<'_>, document: &mut Document) -> bool {
    let all =
        object.properties.iter().all(|prop| matches!(&prop.value, Node::Object(inner) if is_server(inner)));
    if object.properties.is_empty() || !all {
        return false;
    }
    take(&Node::Object(object.clone()), document)
}

fn is_server(object: &Object<'_>) -> bool {
    ["command", "url", "serverUrl", "httpUrl"].iter().any(|key| object.get(key).is_some())
}
