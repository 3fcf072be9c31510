//! Lectern: vault.
