//! What those who work on Lectern want to see: how replies are read, how arguments are checked.

use std::path::Path;

use lectern_cloud::Provider;
use lectern_core::{MessageId, Store, validate};
use lectern_local::TextParser;
use serde_json::{Value, json};

use crate::entry;
use crate::home::Home;
use crate::problem::of_store;
use crate::vaults::reason;
use crate::view::Problem;

/// Where a chat template comes from.
#[derive(Clone, Copy, Debug)]
pub enum TemplateSource<'a> {
    /// A Jinja file.
    Template(&'a Path),
    /// A GGUF file.
    Model(&'a Path),
}

/// A recorded answer of a provider, read in pieces of `chunk` bytes (0: at once) as if it came from the network.
pub fn decode(provider: RemoteProvider, body: &[u8], chunk: usize) -> Value {
    let provider = match provider {
        RemoteProvider::Gemini => Provider::Gemini,
        RemoteProvider::Openai => Provider::OpenAi,
    };
    serde_json::to_value(lectern_cloud::recorded(provider, body, chunk)).unwrap_or_default()
}

/// Whose answers can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteProvider {
    /// Gemini, at Vertex AI or the developer API.
    Gemini,
    /// An OpenAI-compatible endpoint.
    Openai,
}

/// Reads replies as the chat format of a template would.
pub struct Parser(Format);

enum Format {
    /// A template; a worker reads, so that a reply that crashes llama.cpp costs one line.
    Template(Box<TextParser>),
    /// A model without a template: calls are read out of the text.
    Free(Vec<Value>),
}

impl Parser {
    /// Reads the template and the tools: a JSON list of `{"name", "description", "parameters"}`, in OpenAI's wrapping
    /// or without, or as MCP lists them.
    pub fn open(source: TemplateSource<'_>, tools: Option<&Path>) -> Result<Self, Problem> {
        let tools = tools.map(read_tools).transpose()?.unwrap_or_default();
        let template = match source {
            TemplateSource::Template(path) => Some(read("bad_template", path)?),
            TemplateSource::Model(path) => {
                let info = lectern_local::read_info(path);
                info.map_err(|error| Problem::from_error("bad_model_file", &error))?.template
            }
        };
        let Some(template) = template else { return Ok(Self(Format::Free(tools))) };
        let executable = std::env::current_exe().map_err(|error| {
            Problem::new("no_executable", format!("find Lectern's own executable: {error}"))
        })?;
        let parser = TextParser::new(entry::worker_command(&executable), template, tools);
        Ok(Self(Format::Template(Box::new(parser))))
    }

    /// One reply: `{"content", "reasoning", "tool_calls"}`. With `partial` it is the beginning of one.
    pub async fn parse(&mut self, text: &str, partial: bool) -> Result<Value, String> {
        let parsed = match &mut self.0 {
            Format::Template(parser) => parser.parse(text, partial).await,
            Format::Free(tools) => lectern_local::parse_text(None, tools, text, partial),
        };
        parsed
            .map_err(|error| error.to_string())
            .and_then(|parsed| serde_json::to_value(parsed).map_err(|error| error.to_string()))
    }
}

fn read(code: &str, path: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(path)
        .map_err(|error| Problem::new(code, format!("{}: {}", path.display(), reason(&error))))
}

fn read_tools(path: &Path) -> Result<Vec<Value>, Problem> {
    let problem = |reason: String| {
        Problem::new("bad_tools", format!("{}: {reason}", path.display()))
            .hint(r#"The file is a JSON list of {"name", "description", "parameters"}."#)
    };
    let read: Value =
        serde_json::from_str(&read("bad_tools", path)?).map_err(|error| problem(error.to_string()))?;
    let list =
        read.get("tools").unwrap_or(&read).as_array().ok_or_else(|| problem("not a list".to_owned()))?;
    list.iter()
        .map(|tool| openai_tool(tool).ok_or_else(|| problem(format!("a tool without a name: {tool}"))))
        .collect()
}

/// The shape that chat templates expect.
fn openai_tool(tool: &Value) -> Option<Value> {
    let function = tool.get("function").unwrap_or(tool);
    let name = function.get("name")?.as_str()?;
    let field = |names: &[&str]| names.iter().find_map(|name| function.get(*name)).cloned();
    let description = field(&["description"]).unwrap_or_else(|| "".into());
    let parameters = field(&["parameters", "inputSchema", "input_schema"]);
    let parameters = parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let function = json!({"name": name, "description": description, "parameters": parameters});
    Some(json!({"type": "function", "function": function}))
}

/// Checks arguments against a schema: `{"valid", "errors": [{"path", "expected", "got"}]}`.
pub fn validate(schema: &Value, arguments: &Value) -> Result<Value, String> {
    let errors = validate::validate(schema, arguments).map_err(|fault| fault.to_string())?;
    Ok(json!({ "valid": errors.is_empty(), "errors": errors }))
}

/// A protocol message that was too long for its event, whole; by the id in the event's `full`. No engine is needed.
pub fn long_message(home: &Home, id: &MessageId) -> Result<Value, Problem> {
    let store = Store::open(&home.store()).map_err(|error| of_store(&error))?;
    let found = store.long_message(id).map_err(|error| of_store(&error))?;
    found.ok_or_else(|| unknown_message(id))
}

/// There is no such message, or it went with its conversation.
pub(crate) fn unknown_message(id: &MessageId) -> Problem {
    Problem::new("unknown_message", format!("there is no message `{id}`"))
        .hint("Its id stands in the `full` of a `tool_wire` event; it goes with its conversation.")
}
