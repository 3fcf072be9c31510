//! The model library: where models come from, and what this machine can carry.
//!
//! Invariant: knows neither a window nor llama.cpp. Names, sizes and texts that come from elsewhere are untrusted.

pub mod advice;
pub mod curated;
pub mod downloads;
mod fault;
pub mod folders;
mod hub;
pub mod machine;
pub mod name;
mod record;
mod sink;
mod speed;
pub mod target;
mod transfer;
pub mod trash;
pub mod units;
mod web;

pub use downloads::{Download, DownloadOptions, Downloads, State};
pub use fault::Fault;
pub use hub::{Offer, Offers, RemoteFile, USUAL};
pub use sink::sha256_of_file;
pub use transfer::{Reserve, Retry};
pub use url::Url;
pub use web::{Token, WebOptions};
