//! What the server has beside its tools.

use serde_json::{Value, json};

use crate::Server;

/// Resources of one page.
const PAGE: usize = 2;

/// Resources and a prompt, or neither.
#[derive(Clone, Copy, Default)]
pub struct Beside {
    declared: bool,
    never: bool,
    pub resources: usize,
    /// How often the first page of the resources was asked for.
    pub listed: usize,
}

impl Beside {
    pub fn of(text: &str) -> Option<Self> {
        if text == "never" {
            return Some(Self { declared: true, never: true, ..Self::default() });
        }
        Some(Self { declared: true, resources: text.parse().ok()?, ..Self::default() })
    }

    /// Tools that are only there with resources.
    pub fn tools(self) -> Vec<Value> {
        let object = json!({"type": "object"});
        let names = if self.declared { vec!["publish", "listed"] } else { Vec::new() };
        names.into_iter().map(|name| json!({"name": name, "inputSchema": object})).collect()
    }

    pub fn capabilities(self) -> Value {
        let mut all = json!({"tools": {"listChanged": true}, "logging": {}});
        if self.declared {
            all["resources"] = json!({"listChanged": true});
            all["prompts"] = json!({"listChanged": true});
        }
        all
    }
}

pub fn list(server: &Server, method: &str, id: &Value, params: &Value) {
    let from: usize = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let beside = {
        let mut state = server.state();
        state.beside.listed += usize::from(method == "resources/list" && from == 0);
        state.beside
    };
    match method {
        _ if !beside.declared => server.error(id, -32601, "Method not found"),
        _ if beside.never => {}
        "resources/list" => {
            let to = (from + PAGE).min(beside.resources);
            let one = |n| json!({"uri": format!("x:///{n}"), "name": format!("resource {n}")});
            let mut result = json!({"resources": (from..to).map(one).collect::<Vec<_>>()});
            if to < beside.resources {
                result["nextCursor"] = json!(to.to_string());
            }
            server.result(id, result);
        }
        // One without a name is none.
        "prompts/list" => server.result(id, json!({"prompts": [{"name": "greet"}, {"title": "nobody"}]})),
        _ => server.result(id, json!({"resourceTemplates": []})),
    }
}
