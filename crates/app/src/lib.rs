//! Puts Lectern together: settings, sessions, the [`Engine`]. Every shell uses this and nothing below it.

pub mod durable;
pub mod home;
mod problem;
pub mod prompt;
pub mod rules;
pub mod sample;
pub mod settings;
pub mod starter;
pub mod vaults;
pub mod view;
