//! Puts Lectern together: settings, sessions, the [`Engine`]. Every shell uses this and nothing below it.

pub mod view;
