//! The real thing: workers, llama.cpp, small random models.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod ahead;
mod broken;
mod cache;
mod calls;
mod compiler;
mod figures;
mod fixtures;
mod host;
#[cfg(target_os = "linux")]
mod illegal;
#[cfg(feature = "vision")]
mod images;
mod kills;
mod memory;
mod names;
mod placement;
mod recovery;
mod replies;
mod restart;
mod settings;
mod speculation;
mod speed;
mod starter;
mod support;
mod tagged;
mod templates;
mod toolsets;
mod turns;
mod typing;
