//! A worker on its own, for the tests of this crate. Lectern's executables are their own workers.

fn main() -> std::process::ExitCode {
    lectern_local::worker_main()
}
