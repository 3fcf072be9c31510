//! Lectern: mcp.
