//! Measures many servers at once: `swarm N SERVER [ARGS...]`
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::time::Instant;

use lectern_core::ToolProvider;
use lectern_mcp::{Host, HostOptions, ServerConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let count: usize = args.next().ok_or("how many")?.parse()?;
    let command: Vec<String> = args.collect();
    let (program, arguments) = command.split_first().ok_or("a server")?;
    for count in [1, count] {
        let before = resident_kib()?;
        let began = Instant::now();
        let configs = (0..count)
            .map(|n| ServerConfig::new(format!("s{n}"), program.clone(), arguments.iter().cloned()));
        let host = Host::start(configs, HostOptions::default());
        host.settled().await;
        let ready = began.elapsed();
        let ready_servers =
            host.statuses().iter().filter(|s| s.state == lectern_mcp::ServerState::Ready).count();
        let each = resident_kib()?.saturating_sub(before) / count as u64;
        println!(
            "{count}: {ready_servers} ready after {ready:?}, {} tools, {each} KiB each",
            host.tools().len()
        );
        let began = Instant::now();
        host.close().await;
        println!("closed after {:?}", began.elapsed());
    }
    Ok(())
}

/// Memory of this process.
fn resident_kib() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().next().ok_or("no number")?.parse()?)
}
