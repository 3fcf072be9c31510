//! The tools of a request.

use serde_json::Value;
use utoipa::ToSchema;

use super::message::CallKind;

/// Something that the model may call.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RequestTool {
    /// A function of the client. One that has the name of a server's tool, and neither a description nor parameters, is
    /// that tool.
    Function {
        /// The function.
        function: FunctionTool,
        /// Taken and not used.
        cache_control: Option<Value>,
    },
    /// Tools of one of the user's servers, which are run here.
    Mcp {
        /// The server's name in the settings.
        #[schema(example = "notes")]
        server_label: String,
        /// The tools that may be called; all when it is left out.
        allowed_tools: Option<Vec<String>>,
        /// Taken and not used: what needs consent is for the user to say.
        require_approval: Option<Value>,
        /// Taken and not used.
        server_description: Option<Value>,
    },
}

/// A function.
#[derive(ToSchema)]
pub struct FunctionTool {
    /// Its name.
    #[schema(pattern = "^[a-zA-Z0-9_-]+$", max_length = 64)]
    name: String,
    /// What it does, for the model.
    description: Option<String>,
    /// A JSON Schema of an object.
    #[schema(value_type = Option<Object>)]
    parameters: Option<Value>,
    /// Taken and not used.
    strict: Option<bool>,
}

/// Whether the model may, must or must not call. A call of the user's servers is forced once, at the beginning.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum ToolChoice {
    Word(ToolChoiceWord),
    Tools(ChosenTools),
}

/// In a word.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoiceWord {
    None,
    Auto,
    Required,
}

/// One tool, or some of them.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChosenTools {
    /// This tool has to be called.
    Function {
        /// The tool.
        function: FunctionName,
    },
    /// Only these may be called.
    AllowedTools {
        /// The tools.
        allowed_tools: AllowedTools,
    },
}

/// A tool by its name.
#[derive(ToSchema)]
pub struct FunctionName {
    /// Its name.
    name: String,
}

/// A part of the tools.
#[derive(ToSchema)]
pub struct AllowedTools {
    /// Whether one of them has to be called.
    mode: AllowedMode,
    /// The tools.
    tools: Vec<AllowedTool>,
}

/// Whether a tool has to be called.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AllowedMode {
    Auto,
    Required,
}

/// A tool that may be called.
#[derive(ToSchema)]
pub struct AllowedTool {
    /// What it is.
    r#type: Option<CallKind>,
    /// Its name.
    function: FunctionName,
}
