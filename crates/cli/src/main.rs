//! The `lectern` command.
fn main() {}
