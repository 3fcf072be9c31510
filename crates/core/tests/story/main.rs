//! Turns as stories: script, act, wait, assert whole values.

mod app;
mod endings;
mod tools;
