//! Writes servers in the shape that other hosts read.
//!
//! Invariant: no secret leaves in clear, and nothing of what only its owner may say (trust, approval).

use serde_json::{Map, Value, json};

use crate::config::ServerConfig;
use crate::entry::{Entry, OWN, write_entry};
use crate::import::{Input, inputs_of, without_secrets};
use crate::placeholder::{Reference, mapped, references};

/// Whose shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// `mcpServers`, as Claude Desktop, Cursor and `.mcp.json` have it.
    #[default]
    McpServers,
    /// `servers` and `inputs`, as VS Code has it.
    VsCode,
}

/// The file. `entries` are configurations with the JSON they were read from; `inputs` are described where known.
pub fn export<'a>(
    entries: impl IntoIterator<Item = (&'a ServerConfig, Entry)>,
    inputs: &[Input],
    shape: Shape,
) -> Value {
    let mut servers = Map::new();
    let mut asked: Vec<Input> = Vec::new();
    for (config, mut entry) in entries {
        let (mut config, _) = without_secrets(config);
        config.trusted = false;
        if let Some(Value::Object(own)) = entry.get_mut(OWN) {
            own.retain(|name, _| {
                ["signIn", "toolTimeouts", "totalTimeout", "maxConcurrent", "resultBudget"]
                    .contains(&name.as_str())
            });
        }
        if shape == Shape::VsCode {
            config = secrets_as_inputs(&config);
            for input in inputs_of(&config, inputs) {
                if !asked.iter().any(|known| known.id == input.id) {
                    asked.push(input);
                }
            }
        }
        write_entry(&config, &mut entry);
        if shape == Shape::VsCode && config.program().is_some() {
            entry.entry("type").or_insert_with(|| "stdio".into());
        }
        servers.insert(config.id.0.clone(), Value::Object(entry));
    }
    match shape {
        Shape::McpServers => json!({"mcpServers": servers}),
        Shape::VsCode => {
            let inputs: Vec<Value> = asked.iter().map(Input::to_value).collect();
            json!({"servers": servers, "inputs": inputs})
        }
    }
}

/// VS Code knows no `${secret:…}`; it asks.
fn secrets_as_inputs(config: &ServerConfig) -> ServerConfig {
    let mut config = config.clone();
    for reference in references(&config) {
        if let Reference::Secret(name) = reference {
            let (ours, theirs) = (format!("${{secret:{name}}}"), format!("${{input:{name}}}"));
            config = mapped(&config, &|text| text.replace(&ours, &theirs));
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Origin, read_entry};

    fn entry() -> Entry {
        let entry = json!({
            "command": "npx", "args": ["-y", "x", "--api-key=abcdefgh"], "alwaysAllow": [],
            "env": {"GITHUB_TOKEN": "ghp_0123456789abcdef", "PLACE": "${input:place}", "SAFE": "${secret:safe}", "N": "1"},
            OWN: {"trusted": true, "approved": "hash", "maxConcurrent": 2},
        });
        entry.as_object().cloned().unwrap()
    }

    #[test]
    fn secrets_leave_as_references_only() {
        let config = read_entry("gh", &entry(), Origin::Settings).unwrap();
        let file = export([(&config, entry())], &[], Shape::McpServers);
        let server = &file["mcpServers"]["gh"];
        assert_eq!(server["args"], json!(["-y", "x", "--api-key=${secret:gh/api-key}"]));
        assert_eq!(server["env"]["GITHUB_TOKEN"], "${secret:gh/GITHUB_TOKEN}");
        assert_eq!(server["env"]["N"], "1");
        assert_eq!(server["alwaysAllow"], json!([]));
        assert_eq!(server[OWN], json!({"maxConcurrent": 2}));
    }

    #[test]
    fn vs_code_is_given_inputs() {
        let config = read_entry("gh", &entry(), Origin::Settings).unwrap();
        let place = Input { description: "Where".into(), password: false, ..Input::unknown("place") };
        let file = export([(&config, entry())], &[place], Shape::VsCode);
        assert_eq!(file["servers"]["gh"]["type"], "stdio");
        assert_eq!(file["servers"]["gh"]["env"]["SAFE"], "${input:safe}");
        let ids: Vec<&str> =
            file["inputs"].as_array().unwrap().iter().map(|input| input["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["gh/GITHUB_TOKEN", "gh/api-key", "place", "safe"]);
        assert_eq!(file["inputs"][2], json!({"id": "place", "type": "promptString", "description": "Where"}));
        assert_eq!(file["inputs"][3]["password"], true);
        assert!(!file.to_string().contains("ghp_"));
    }
}
