//! System tests: shared fixtures.
