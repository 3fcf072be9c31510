//! What can be typed after `lectern`.
//!
//! Invariant: only shapes; nothing is read, started or printed here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Ask your notes, with a model that runs on this computer.
#[derive(Debug, Parser)]
#[command(name = "lectern", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// Where conversations, settings and models are kept [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR", env = "LECTERN_HOME", hide_env_values = true)]
    pub home: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ask one question and print the answer
    Ask(Ask),
    /// Talk in the terminal; /x ends it
    Chat(Chat),
    /// Serve models and tools over HTTP to other programs on this computer
    Serve(Box<crate::serve::Serve>),
    /// The models that can answer
    #[command(subcommand)]
    Models(crate::models::Models),
    /// The MCP servers: list, add, import, look into
    #[command(subcommand)]
    Mcp(crate::mcp::Mcp),
    /// Serve a folder of Markdown notes as an MCP server on standard input and output
    Vault(Vault),
    /// Who decided what about which call, and what came of it
    Audit(crate::audit::Audit),
    /// Check the home, the model and the servers
    Doctor(Doctor),
    /// For those who work on Lectern
    #[command(subcommand)]
    Debug(Debug),
}

/// Which model, servers and permissions a turn uses.
#[derive(Debug, Args, Default)]
pub struct Use {
    /// A model by its id, a GGUF file, or PROVIDER/MODEL
    #[arg(long, value_name = "ID|PATH")]
    pub model: Option<String>,
    /// Ask the model's provider at this address in place of its own
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// A folder of notes, in place of the vaults in the settings; can be given more than once
    #[arg(long, value_name = "DIR")]
    pub vault: Vec<PathBuf>,
    /// A file of `mcpServers`; its servers are used in place of those in the settings
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    /// Run without asking: all, server:ID, tool:NAME or a tool's name; can be given more than once
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// Run every tool without asking
    #[arg(long)]
    pub yes: bool,
    /// What is done when a server asks something; without it a person at the terminal is asked, and nobody declines.
    /// --yes does not answer questions
    #[arg(long, value_name = "HOW")]
    pub elicitation: Option<crate::question::Elicitation>,
    /// Continue this conversation
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,
    /// Model calls in one turn at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max_steps: Option<u32>,
    #[command(flatten)]
    pub generation: crate::generation::Generation,
}

/// Ask one question and print the answer.
#[derive(Debug, Args)]
pub struct Ask {
    #[command(flatten)]
    pub with: Use,
    /// Print each event as one line of JSON
    #[arg(long)]
    pub json: bool,
    /// An image, or a PDF for a remote model, that goes along; can be given more than once
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// The question; `-` reads it from standard input
    pub text: String,
}

/// Talk in the terminal.
#[derive(Debug, Args)]
pub struct Chat {
    #[command(flatten)]
    pub with: Use,
}

/// Which servers to start.
#[derive(Debug, Args, Default)]
pub struct Servers {
    /// A folder of notes, in place of the vaults in the settings; can be given more than once
    #[arg(long, value_name = "DIR")]
    pub vault: Vec<PathBuf>,
    /// A file of `mcpServers`; its servers are used in place of those in the settings
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
}

/// Serve a folder of notes.
#[derive(Debug, Args)]
pub struct Vault {
    /// The folder
    pub folder: PathBuf,
}

/// Check everything.
#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    pub with: Servers,
}

/// For those who work on Lectern.
#[derive(Debug, Subcommand)]
pub enum Debug {
    /// Read replies as a model's chat format would: lines of {"text": …} to content, reasoning and tool calls
    Parse(Parse),
    /// Check arguments: lines of {"schema": …, "arguments": …} to {"valid": …, "errors": […]}
    Validate,
    /// Read a recorded answer of a remote model on standard input and print what it says as one JSON object
    Decode(Decode),
    /// Print a protocol message that was too long for its event, whole
    Message {
        /// What the event has in `full`
        id: String,
    },
    /// Ask fixed questions about a vault and count the right answers
    Score(Score),
}

/// Read a recorded answer of a remote model.
#[derive(Debug, Args)]
pub struct Decode {
    /// Whose answer it is
    #[arg(long, value_enum)]
    pub provider: ProviderName,
    /// Read it in pieces of N bytes, as a network may cut it [default: at once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk: Option<u32>,
}

/// Kinds of remote models.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum ProviderName {
    /// Vertex AI or Google's developer API
    Gemini,
    /// An OpenAI-compatible endpoint
    Openai,
}

/// Read replies as a model's chat format would.
#[derive(Debug, Args)]
pub struct Parse {
    /// A chat template
    #[arg(long, value_name = "FILE", required_unless_present = "model", conflicts_with = "model")]
    pub template: Option<PathBuf>,
    /// A GGUF file whose template is used
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// A JSON list of tools: {"name", "description", "parameters"} or OpenAI's {"type": "function", "function": …}
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    /// The texts may be cut off
    #[arg(long)]
    pub partial: bool,
}

/// Ask fixed questions about a vault and count the right answers.
#[derive(Debug, Args)]
pub struct Score {
    /// Lines of {"id", "lang", "question", "kind", "path", "quote", "tools"}
    #[arg(long, value_name = "FILE")]
    pub questions: PathBuf,
    /// The notes [default: the sample vault]; a copy is used
    #[arg(long, value_name = "DIR")]
    pub vault: Option<PathBuf>,
    /// A model by its id, or a GGUF file
    #[arg(long, value_name = "ID|PATH")]
    pub model: Option<String>,
    /// Only questions whose id begins so
    #[arg(long, value_name = "PREFIX")]
    pub only: Option<String>,
    /// Fail when fewer are right, or when an answer names a note that there is not
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub floor: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }
}
