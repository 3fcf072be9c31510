//! Lectern: local.
