//! The MCP host: servers as child processes, both protocol eras, tools, progress, logs.
//!
//! Invariant: nothing that a server says, does or fails to do is believed, blocks another server, or hangs without
//! an end. Servers are told apart by our own id, never by what they say of themselves.
//!
//! # Why not `rmcp` for stdio
//!
//! A well-kept library beats our own code, unless its gaps force us. Measured on rmcp 3.9.0, they do: a reply that is
//! too long or not UTF-8 is dropped and its call waits for ever; one tool with a bad schema fails the whole list;
//! progress arrives out of order and after the result; its child process takes no group and leaves `npx`'s `node`
//! behind; an early exit has no exit code; the raw messages that the trace shows are not to be had. Each gap sits in
//! the typed message layer or below it, so closing them means to replace the transport, the process and the message
//! types, and to keep only the request table. [`peer`] is that table: one reader, one writer, a map of pending
//! requests, `serde_json::Value` throughout. What is above it ([`handshake`], [`tools`], [`call`]) knows no transport,
//! so that a remote server only needs another way to carry the messages: `http`, whose reasons stand there.
//!
//! # Map
//!
//! | module | job |
//! |---|---|
//! | [`config`] | what a server is: command, arguments, environment, limits |
//! | [`bundle`] | reads and unpacks `.mcpb` |
//! | [`entry`], [`import`], [`export`] | reads and writes the ecosystem's JSON, files and snippets; what would run, before it does |
//! | [`host`] | all servers together, as one [`lectern_core::ToolProvider`] |
//! | `server` | one server's life: start, ready, failed, restarted |
//! | `connection`, `process`, `reaper`, `lookup` | a child process with its pipes, its group and its end |
//! | `peer` | JSON-RPC with one server, whatever carries it |
//! | `pipe`, `wire` | carries it over a child process's pipes, line by line |
//! | `http` | carries it over streamable HTTP, of both eras |
//! | `auth` | signing in to remote servers |
//! | [`probe`] | looks at one server from outside |
//! | `handshake` | agrees on a protocol era |
//! | `tools`, `naming` | the catalog |
//! | `call`, `outcome`, `mask` | one call, from arguments to result |
//! | `exchange`, `listen`, `tasks` | what happens between a request and its result: progress, input, tasks, limits |
//! | `desk`, `requests`, `sampling` | what a server asks of the user and of the model |
//! | `access`, `resources`, `subscription`, `prompts` | the other things that servers have |
//! | `cache` | what a server gave for some time |
//! | [`secrets`], [`placeholder`] | what the host needs of a keyring, and `${…}` in a configuration |
//! | `trust` | what the user approved: servers and tools by their digests; invisible characters |
//! | [`doctor`] | which step of a server's start fails, and how to mend it |
//! | `log`, `traffic` | what a server writes to stderr; every message, both ways |

mod access;
mod auth;
pub mod bundle;
mod cache;
mod call;
pub mod config;
mod connection;
mod desk;
pub mod doctor;
pub mod entry;
mod exchange;
pub mod export;
mod handshake;
pub mod host;
mod http;
pub mod import;
mod listen;
mod log;
mod lookup;
mod mask;
mod naming;
mod outcome;
mod peer;
mod pipe;
pub mod placeholder;
pub mod probe;
mod process;
mod prompts;
#[cfg(unix)]
mod reaper;
mod requests;
mod resources;
mod sampling;
pub mod secrets;
mod server;
pub mod status;
mod subscription;
mod tasks;
mod tools;
mod traffic;
mod trust;
mod wire;

pub use auth::{Browser, BrowserCommand, SystemBrowser};
pub use config::{
    Answers, Endpoint, Grant, HostOptions, Program, Root, Roots, ServerConfig, SignIn, Transport,
};
pub use entry::{Entry, Origin};
pub use host::{Host, UnknownServer};
pub use import::{ConfigError, ImportedServer, ImportedServers, SkippedServer, read_config, read_snippet};
pub use log::{LogFile, LogLine, LogPage};
pub use naming::server_part;
pub use prompts::{
    Completion, CompletionOf, FilledPrompt, Prompt, PromptArgument, PromptMessage, PromptRole,
};
pub use resources::{AccessError, NewsDesk, Resource, ResourceContent, ResourceTemplate, ServerNews};
pub use secrets::{Secrets, SecretsError};
pub use server::{RestartPolicy, SignInError};
pub use status::{Exit, Failure, FailureCode, Reported, ServerState, ServerStatus, StartStep};
pub use subscription::Subscription;
pub use traffic::{TrafficMessage, TrafficPage};
pub use trust::{Approval, ServerPrint, Standing, ToolDefinition, ToolReview, has_invisible, visible};
