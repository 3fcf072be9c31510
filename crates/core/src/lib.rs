//! Lectern: core.
