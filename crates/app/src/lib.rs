//! Lectern: app.
