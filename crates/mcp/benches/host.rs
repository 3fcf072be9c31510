//! Measures what the host costs: the start and the memory of a hundred servers, and the overhead of a call over a bare
//! rmcp client. Prints figures; asserts nothing, for a machine may be busy.
#![expect(clippy::print_stdout, reason = "figures for people")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use lectern_core::{
    CallContext, ConversationId, Nobody, ToolCall, ToolCallId, ToolOutcome, ToolProvider, TurnId,
};
use lectern_mcp::{Host, HostOptions, ServerConfig, ServerState};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const SERVERS: usize = 100;
const TOOLS: usize = 50;
/// Tools that the fixture has by itself.
static OWN_TOOLS: OnceLock<usize> = OnceLock::new();
const CALLS: usize = 3_000;
/// How often all servers are started, with the host and without, in turn.
const ROUNDS: usize = 5;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let binary = lectern_fixture_server::binary().display().to_string();
    let host = Host::start([ServerConfig::new("s", binary, [""; 0])], HostOptions::default());
    host.settled().await;
    let _ = OWN_TOOLS.set(host.tools().len());
    host.close().await;
    starts().await?;
    calls().await
}

fn arguments() -> Vec<String> {
    let more = TOOLS.saturating_sub(*OWN_TOOLS.get().unwrap_or(&0));
    ["--mode", "legacy", "--tools", &more.to_string()].map(str::to_owned).to_vec()
}

fn config(number: usize) -> ServerConfig {
    let binary = lectern_fixture_server::binary().display().to_string();
    ServerConfig::new(format!("s{number}"), binary, arguments())
}

async fn started(servers: usize) -> Outcome<(Host, Duration)> {
    let start = Instant::now();
    let host = Host::start((0..servers).map(config), HostOptions::default());
    host.settled().await;
    let took = start.elapsed();
    let broken = host.statuses().into_iter().find(|status| status.state != ServerState::Ready);
    match broken {
        None if host.tools().len() == servers * TOOLS => Ok((host, took)),
        None => Err(format!("{} tools instead of {}", host.tools().len(), servers * TOOLS).into()),
        Some(status) => Err(format!("{}: {:?}", status.id, status.state).into()),
    }
}

async fn starts() -> Outcome<()> {
    // The first start pays for what is done once: the reaper, the spawning thread, warm files.
    started(1).await?.0.close().await;
    let mut alone = Vec::new();
    for _ in 0..10 {
        let (host, took) = started(1).await?;
        alone.push(took);
        host.close().await;
    }
    let one = median(&mut alone);
    let before = memory_kb()?;
    let (host, first) = started(SERVERS).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let each = (memory_kb()? - before) / SERVERS as f64;
    host.close().await;
    let (mut cheapest, mut bare, mut hundred) = (Vec::new(), Vec::new(), vec![first]);
    for _ in 0..ROUNDS {
        cheapest.push(tokio::task::spawn_blocking(|| bare_starts(|_| {})).await?);
        bare.push(tokio::task::spawn_blocking(|| bare_starts(guarded)).await?);
        let (host, took) = started(SERVERS).await?;
        hundred.push(took);
        host.close().await;
    }
    let (cheapest, bare, hundred) = (median(&mut cheapest), median(&mut bare), median(&mut hundred));
    let cores = std::thread::available_parallelism()?;
    println!("{SERVERS} servers with {TOOLS} tools each, {cores} cores, medians of {ROUNDS} rounds");
    println!("  one server alone, ready after          {:>9.1} ms", ms(one));
    println!("  the same {SERVERS} processes without a host  {:>9.1} ms", ms(cheapest));
    println!("  the same, so that they end with the app {:>8.1} ms (the cost of starting them)", ms(bare));
    println!("  all ready after                        {:>9.1} ms", ms(hundred));
    println!("  beyond the cost of starting            {:>9.1} ms", ms(hundred.saturating_sub(bare)));
    let most = one * 2 + bare;
    let verdict = if hundred <= most { "within" } else { "OVER" };
    println!("  twice one, plus the cost of starting   {:>9.1} ms: {verdict}", ms(most));
    println!("  idle memory of the host                {each:>9.1} kB a server");
    Ok(())
}

/// What a process that must not outlive the app nor take its terminal costs more: a session of its own and a word to
/// the system before the program runs, for which the starting process has to be forked (`posix_spawn` does neither).
fn guarded(command: &mut Command) {
    // SAFETY: both calls are safe between fork and exec. No signal is asked for: here the starting thread ends before
    // its child.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, 0);
            Ok(())
        });
    }
}

/// Starts all processes at once by hand, and waits until each has listed its tools: the least that it can take.
fn bare_starts(prepare: fn(&mut Command)) -> Duration {
    let binary = lectern_fixture_server::binary();
    let start = Instant::now();
    let threads: Vec<_> = (0..SERVERS)
        .map(|_| {
            std::thread::spawn(move || {
                let mut command = Command::new(binary);
                command.args(arguments()).stdin(Stdio::piped()).stdout(Stdio::piped());
                prepare(&mut command);
                let mut child = command.spawn().expect("fixture-server");
                let mut input = child.stdin.take().expect("a pipe");
                let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
                let mut line = String::new();
                for method in ["server/discover", "initialize", "tools/list"] {
                    let params = json!({"protocolVersion": "2025-11-25"});
                    writeln!(
                        input,
                        "{}",
                        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
                    )
                    .expect("it reads");
                    line.clear();
                    output.read_line(&mut line).expect("it answers");
                }
                assert!(serde_json::from_str::<Value>(&line).is_ok_and(|reply| reply["result"].is_object()));
                (child, input)
            })
        })
        .collect();
    let children: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    let took = start.elapsed();
    for (mut child, input) in children {
        drop(input);
        let _ = child.wait();
    }
    took
}

/// What this process holds in memory, in kB.
fn memory_kb() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

async fn calls() -> Outcome<()> {
    let (host, _) = started(1).await?;
    let mut command = tokio::process::Command::new(lectern_fixture_server::binary());
    command.args(arguments());
    let client = ().serve(TokioChildProcess::new(command)?).await?;
    println!("a call of `echo`, {CALLS} times each in turn, and with 20 kB of text");
    for text in ["hi".to_owned(), "x".repeat(20_000)] {
        for _ in 0..200 {
            ours(&host, &text).await?;
            theirs(&client, &text).await?;
        }
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for _ in 0..CALLS {
            own.push(ours(&host, &text).await?);
            other.push(theirs(&client, &text).await?);
        }
        let (own, other) = (median(&mut own), median(&mut other));
        println!(
            "  {:>6} bytes: host {:>7.1} µs, rmcp {:>7.1} µs (medians), ratio {:.2}",
            text.len(),
            own.as_secs_f64() * 1e6,
            other.as_secs_f64() * 1e6,
            own.as_secs_f64() / other.as_secs_f64()
        );
    }
    client.cancel().await?;
    host.close().await;
    Ok(())
}

async fn ours(host: &Host, text: &str) -> Outcome<Duration> {
    let mut arguments = serde_json::Map::new();
    arguments.insert("text".into(), text.into());
    let start = Instant::now();
    let call = ToolCall {
        id: ToolCallId::from("c"),
        tool: "s0__echo".into(),
        arguments,
        malformed: None,
        provider_data: None,
    };
    let (news, received) = tokio::sync::mpsc::unbounded_channel();
    let context = CallContext {
        conversation: ConversationId::from("c"),
        turn: TurnId::from("t"),
        cancel: CancellationToken::new(),
        news,
        ask: Arc::new(Nobody),
    };
    let result = host.call(call, context).await;
    let took = start.elapsed();
    drop(received);
    match result.outcome {
        ToolOutcome::Succeeded => Ok(took),
        ToolOutcome::Failed | ToolOutcome::Denied | ToolOutcome::Cancelled => Err(result.text().into()),
    }
}

async fn theirs(client: &RunningService<RoleClient, ()>, text: &str) -> Outcome<Duration> {
    let mut arguments = serde_json::Map::new();
    arguments.insert("text".into(), text.into());
    let start = Instant::now();
    let mut params = CallToolRequestParams::new("echo");
    params.arguments = Some(arguments);
    let result = client.call_tool(params).await?;
    let took = start.elapsed();
    if result.is_error == Some(true) { Err("a failed call".into()) } else { Ok(took) }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
