//! `lectern-desktop`: the window of Lectern.
//!
//! Invariant: thin. Everything the window does, the command line can do too, through the same `Engine`.
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod asking;
mod bridge;
mod commands;
mod drops;
mod links;
mod shell;
mod start;
mod window;

use std::process::ExitCode;

fn main() -> ExitCode {
    let start = match start::read(std::env::args_os()) {
        Ok(start) => start,
        Err(code) => return code,
    };
    start::mend_rendering();
    match window::run(start) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            start::complain(&format!("the window could not be opened: {error}"));
            ExitCode::FAILURE
        }
    }
}
