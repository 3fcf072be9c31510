//! The client's own tools: what it offers, and what it says about calling them.

use std::collections::HashSet;

use lectern_core::{ServerId, ToolAnnotations, ToolChoice, ToolName, ToolSpec};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::fields::{Fields, missing, not_one_of, shortened, wrong_type};

/// Tools at most (OpenAI's limit).
pub const MOST_TOOLS: usize = 128;

/// Characters of a name at most (OpenAI's limit).
const LONGEST_NAME: usize = 64;

/// What stands for the server of a tool that the client runs itself.
pub const CLIENT: &str = "client";

/// What a client offers.
#[derive(Clone, Debug, Default)]
pub struct Offered {
    /// The tools that may be called.
    pub tools: Vec<ToolSpec>,
    /// Whether the model must, may or must not call.
    pub choice: ToolChoice,
    /// Those of the tools that have a name and nothing else: where a server has a tool of this name, that one is meant.
    pub bare: HashSet<ToolName>,
    /// The user's servers that the client asks for.
    pub servers: Vec<WantedServer>,
}

/// A server of the user that a client asks for: `{"type": "mcp", "server_label": "notes"}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedServer {
    /// Where it stands in the request.
    pub param: String,
    /// Our own name of the server.
    pub server: ServerId,
    /// The tools that may be called, by the server's names or ours; all when none.
    pub allowed: Option<HashSet<String>>,
}

impl WantedServer {
    /// Whether this tool is one of them.
    pub fn covers(&self, spec: &ToolSpec) -> bool {
        let named = |allowed: &HashSet<String>| {
            allowed.contains(spec.name.as_str()) || allowed.contains(&spec.original_name)
        };
        spec.server == self.server && self.allowed.as_ref().is_none_or(named)
    }
}

/// One entry of `tools`.
enum Entry {
    Own { spec: ToolSpec, bare: bool },
    Server(WantedServer),
}

/// `tools` and `tool_choice`.
pub fn offered(fields: &mut Fields) -> Result<Offered, ApiError> {
    let at = fields.at("tools");
    let items = fields.list("tools")?.unwrap_or_default();
    if items.len() > MOST_TOOLS {
        let message = format!("`{at}` can have {MOST_TOOLS} tools, and has {}", items.len());
        return Err(ApiError::invalid("array_above_max_length", at, message));
    }
    let mut names = HashSet::new();
    let mut tools = Vec::with_capacity(items.len());
    let (mut bare, mut servers) = (HashSet::new(), Vec::new());
    for (index, item) in items.into_iter().enumerate() {
        let spec = match entry(Fields::of(format!("{at}[{index}]"), item)?)? {
            Entry::Own { spec, bare: is_bare } => {
                if is_bare {
                    bare.insert(spec.name.clone());
                }
                spec
            }
            Entry::Server(wanted) => {
                servers.push(wanted);
                continue;
            }
        };
        if !names.insert(spec.name.clone()) {
            let message = format!("two tools have the name `{}`", spec.name);
            return Err(ApiError::invalid("invalid_value", format!("{at}[{index}].function.name"), message));
        }
        tools.push(spec);
    }
    let (tools, choice) = choose(fields, tools, !servers.is_empty())?;
    Ok(Offered { tools, choice, bare, servers })
}

/// A name as OpenAI takes it: letters, digits, `_` and `-`.
pub fn check_name(at: &str, name: &str) -> Result<(), ApiError> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(good) {
        return Ok(());
    }
    let message = format!(
        "`{at}` has to be 1 to {LONGEST_NAME} of the characters a-z, A-Z, 0-9, _ and -, and is `{}`",
        shortened(name)
    );
    Err(ApiError::invalid("invalid_value", at, message))
}

fn entry(mut fields: Fields) -> Result<Entry, ApiError> {
    let kind = fields.required_string("type")?;
    if kind == "mcp" {
        return wanted(fields).map(Entry::Server);
    }
    if kind == "custom" {
        return Err(ApiError::unsupported(
            fields.at("type"),
            "tools of free text are not served; use functions",
        ));
    }
    if kind != "function" {
        return Err(not_one_of(fields.at("type"), &kind, &["function", "mcp"]));
    }
    let own = function(fields.required_object("function")?)?;
    fields.ignore(&["cache_control"]);
    fields.end()?;
    Ok(own)
}

/// As OpenAI writes servers in its newer API, with the user's own name of the server.
fn wanted(mut fields: Fields) -> Result<WantedServer, ApiError> {
    let server = fields.required_string("server_label")?;
    let at = fields.at("allowed_tools");
    let allowed = fields.list("allowed_tools")?.map(|items| {
        let names = items.into_iter().enumerate().map(|(index, item)| match item {
            Value::String(name) => Ok(name),
            other => Err(wrong_type(format!("{at}[{index}]"), "a string", &other)),
        });
        names.collect::<Result<HashSet<_>, _>>()
    });
    let wanted = WantedServer {
        param: fields.at("server_label"),
        server: ServerId(server),
        allowed: allowed.transpose()?,
    };
    fields.ignore(&["require_approval", "server_description"]);
    fields.end()?;
    Ok(wanted)
}

fn function(mut fields: Fields) -> Result<Entry, ApiError> {
    let name = fields.required_string("name")?;
    check_name(&fields.at("name"), &name)?;
    let description = fields.string("description")?;
    fields.boolean("strict")?;
    let at = fields.at("parameters");
    let parameters = fields.value("parameters");
    let bare = parameters.is_none() && description.is_none();
    let input_schema = match parameters {
        None => json!({"type": "object", "properties": {}}),
        Some(schema @ Value::Object(_)) => schema,
        Some(other) => return Err(wrong_type(at, "a JSON Schema, which is an object", &other)),
    };
    fields.end()?;
    let spec = ToolSpec {
        name: ToolName(name.clone()),
        server: ServerId::from(CLIENT),
        original_name: name,
        title: None,
        description: description.unwrap_or_default(),
        input_schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        trusted: false,
    };
    Ok(Entry::Own { spec, bare })
}

fn choose(
    fields: &mut Fields,
    tools: Vec<ToolSpec>,
    servers: bool,
) -> Result<(Vec<ToolSpec>, ToolChoice), ApiError> {
    let at = fields.at("tool_choice");
    let (tools, choice) = match fields.value("tool_choice") {
        None => (tools, ToolChoice::Auto),
        Some(Value::String(word)) => {
            let choice = match word.as_str() {
                "none" => ToolChoice::None,
                "auto" => ToolChoice::Auto,
                "required" => ToolChoice::Required,
                other => return Err(not_one_of(at, other, &["none", "auto", "required"])),
            };
            (tools, choice)
        }
        Some(value @ Value::Object(_)) => chosen(Fields::of(at.clone(), value)?, tools)?,
        Some(other) => return Err(wrong_type(at, "a string or an object", &other)),
    };
    if tools.is_empty() && !servers && matches!(choice, ToolChoice::Required | ToolChoice::Tool(_)) {
        let message = "`tool_choice` asks for a call, and there are no `tools`";
        return Err(ApiError::invalid("invalid_value", at, message));
    }
    Ok((tools, choice))
}

/// One tool by its name, or a part of the tools.
fn chosen(mut fields: Fields, tools: Vec<ToolSpec>) -> Result<(Vec<ToolSpec>, ToolChoice), ApiError> {
    let kinds = ["function", "allowed_tools"];
    let kind = fields.word("type", &kinds)?.ok_or_else(|| missing(fields.at("type")))?;
    let chosen = if kind == "function" {
        let name = named(fields.required_object("function")?, &tools)?;
        (tools, ToolChoice::Tool(name))
    } else {
        allowed(fields.required_object("allowed_tools")?, tools)?
    };
    fields.end()?;
    Ok(chosen)
}

fn allowed(mut fields: Fields, tools: Vec<ToolSpec>) -> Result<(Vec<ToolSpec>, ToolChoice), ApiError> {
    let mode = fields.word("mode", &["auto", "required"])?.ok_or_else(|| missing(fields.at("mode")))?;
    let at = fields.at("tools");
    let items = fields.list("tools")?.ok_or_else(|| missing(at.clone()))?;
    let mut names = HashSet::new();
    for (index, item) in items.into_iter().enumerate() {
        let mut one = Fields::of(format!("{at}[{index}]"), item)?;
        one.word("type", &["function"])?;
        names.insert(named(one.required_object("function")?, &tools)?);
    }
    fields.end()?;
    let choice = if mode == "required" { ToolChoice::Required } else { ToolChoice::Auto };
    Ok((tools.into_iter().filter(|spec| names.contains(&spec.name)).collect(), choice))
}

fn named(mut function: Fields, tools: &[ToolSpec]) -> Result<ToolName, ApiError> {
    let at = function.at("name");
    let name = function.required_string("name")?;
    function.end()?;
    match tools.iter().find(|spec| spec.name.as_str() == name) {
        Some(spec) => Ok(spec.name.clone()),
        None => {
            let message = format!("there is no tool `{}` among `tools`", shortened(&name));
            Err(ApiError::invalid("invalid_value", at, message))
        }
    }
}
