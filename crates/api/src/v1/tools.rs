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
    /// What it says about calling.
    pub choice: Choice,
    /// Those of the tools that have a name and nothing else: where a server has a tool of this name, that one is meant.
    pub bare: HashSet<ToolName>,
    /// The user's servers that the client asks for.
    pub servers: Vec<WantedServer>,
}

/// `tool_choice`.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Where it stands in the request.
    at: String,
    /// Whether the model must, may or must not call.
    pub choice: ToolChoice,
    /// The tools that it names, and where.
    named: Vec<(String, ToolName)>,
    /// The only tools that may be called; all when none.
    pub allowed: Option<HashSet<ToolName>>,
}

impl Choice {
    fn of(at: String, choice: ToolChoice) -> Self {
        Self { at, choice, ..Self::default() }
    }

    /// Whether this tool may be called.
    pub fn allows(&self, tool: &ToolName) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(tool))
    }
}

impl Offered {
    /// Holds `tool_choice` to the tools that are there: the client's, and these of the user's servers.
    pub fn settle(&mut self, servers: &[ToolSpec]) -> Result<(), ApiError> {
        let there: HashSet<&ToolName> = self.tools.iter().chain(servers).map(|spec| &spec.name).collect();
        if let Some((at, name)) = self.choice.named.iter().find(|(_, name)| !there.contains(name)) {
            let message = format!("there is no tool `{}` among `tools`", shortened(name.as_str()));
            return Err(ApiError::invalid("invalid_value", at.clone(), message));
        }
        let choice = &self.choice;
        self.tools.retain(|spec| choice.allows(&spec.name));
        let nothing = self.tools.is_empty() && !servers.iter().any(|spec| choice.allows(&spec.name));
        if nothing && matches!(choice.choice, ToolChoice::Required | ToolChoice::Tool(_)) {
            let message = "`tool_choice` asks for a call, and there are no `tools`";
            return Err(ApiError::invalid("invalid_value", choice.at.clone(), message));
        }
        Ok(())
    }
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
    Ok(Offered { tools, choice: choose(fields)?, bare, servers })
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

/// `tool_choice`, as it is written; whether there are such tools is settled later.
fn choose(fields: &mut Fields) -> Result<Choice, ApiError> {
    let at = fields.at("tool_choice");
    match fields.value("tool_choice") {
        None => Ok(Choice::of(at, ToolChoice::Auto)),
        Some(Value::String(word)) => match word.as_str() {
            "none" => Ok(Choice::of(at, ToolChoice::None)),
            "auto" => Ok(Choice::of(at, ToolChoice::Auto)),
            "required" => Ok(Choice::of(at, ToolChoice::Required)),
            other => Err(not_one_of(at, other, &["none", "auto", "required"])),
        },
        Some(value @ Value::Object(_)) => chosen(at.clone(), Fields::of(at, value)?),
        Some(other) => Err(wrong_type(at, "a string or an object", &other)),
    }
}

/// One tool by its name, or a part of the tools.
fn chosen(at: String, mut fields: Fields) -> Result<Choice, ApiError> {
    let kind = fields.word("type", &["function", "allowed_tools"])?;
    let choice = match kind.ok_or_else(|| missing(fields.at("type")))? {
        "function" => {
            let (param, name) = named(fields.required_object("function")?)?;
            let choice = Choice::of(at, ToolChoice::Tool(name.clone()));
            Choice { named: vec![(param, name)], ..choice }
        }
        _ => allowed(at, fields.required_object("allowed_tools")?)?,
    };
    fields.end()?;
    Ok(choice)
}

fn allowed(choice_at: String, mut fields: Fields) -> Result<Choice, ApiError> {
    let mode = fields.word("mode", &["auto", "required"])?.ok_or_else(|| missing(fields.at("mode")))?;
    let at = fields.at("tools");
    let items = fields.list("tools")?.ok_or_else(|| missing(at.clone()))?;
    let mut all = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let mut one = Fields::of(format!("{at}[{index}]"), item)?;
        one.word("type", &["function"])?;
        all.push(named(one.required_object("function")?)?);
        one.end()?;
    }
    fields.end()?;
    let choice = if mode == "required" { ToolChoice::Required } else { ToolChoice::Auto };
    let names = all.iter().map(|(_, name)| name.clone()).collect();
    Ok(Choice { at: choice_at, choice, named: all, allowed: Some(names) })
}

/// A name, and where it stands.
fn named(mut function: Fields) -> Result<(String, ToolName), ApiError> {
    let name = function.required_string("name")?;
    let at = function.at("name");
    function.end()?;
    Ok((at, ToolName(name)))
}
