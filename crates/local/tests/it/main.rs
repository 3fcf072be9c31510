//! The real thing: workers, llama.cpp, small random models.

mod broken;
mod cache;
mod calls;
mod fixtures;
mod recovery;
mod replies;
mod starter;
mod support;
mod templates;
