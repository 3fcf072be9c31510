//! wip
pub mod index;
pub mod language;
pub mod note;
pub mod path;
pub mod query;
pub mod search;
pub mod text;
pub mod vault;
pub mod window;
