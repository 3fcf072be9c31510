//! The core from outside: turns as stories, the store after crashes, arguments against schemas.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod app;
mod audit;
mod endings;
mod events_doc;
mod exposing;
mod fitting;
mod images;
mod manners;
mod pages;
mod properties;
mod questions;
mod rough;
mod store;
mod tools;
mod validate;
