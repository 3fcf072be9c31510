//! The local HTTP API: `/v1` as OpenAI's clients speak it, with the user's servers behind it where they are asked for.
//!
//! Invariant: nobody is served without a key; nothing is done for a client that the user's rules would not let the window
//! do; `/v1` says nothing that a strict client does not understand.
//!
//! ```no_run
//! # async fn example(engine: lectern_app::Engine) -> Result<(), Box<dyn std::error::Error>> {
//! let key = lectern_api::Key::fresh("default");
//! let keys = lectern_api::Keys::new([key.clone()]);
//! let server = lectern_api::Server::start(std::sync::Arc::new(engine), keys, lectern_api::ApiOptions::default()).await?;
//! println!("{} {}", server.url(), key.secret());
//! server.end().await;
//! # Ok(()) }
//! ```

mod approvals;
mod auth;
pub mod backend;
mod body;
mod bounded;
mod cached;
mod document;
mod error;
mod fields;
mod guard;
mod held;
mod limits;
mod metrics;
mod native;
mod options;
mod prefix;
mod router;
mod server;
mod sessions;
mod sse;
mod state;
mod switch;
mod turning;
mod v1;

pub use approvals::{Approvals, Attended};
pub use auth::{Key, Keys, Scope, kept};
pub use backend::{Backend, ModelCard};
pub use error::{ApiError, ErrorKind};
pub use options::{ApiOptions, Limits, PORT};
pub use server::{Server, StartError};
pub use sessions::SessionLimits;
pub use switch::{Following, Switch};
