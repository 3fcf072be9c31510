//! Looks at a server: `probe [--call TOOL JSON]... [--repeat N] -- COMMAND ARGS...`
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::time::{Duration, Instant};

use lectern_core::{
    CallContext, ConversationId, ToolCall, ToolCallId, ToolName, ToolProvider, ToolResult, TurnId,
};
use lectern_mcp::{Host, HostOptions, ServerConfig, ServerState};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).peekable();
    let (mut calls, mut repeat) = (Vec::new(), 1_u32);
    let mut url = None;
    while let Some(flag) = args.next().filter(|flag| flag != "--") {
        if flag.starts_with("http") {
            url = Some(flag);
            continue;
        }
        match flag.as_str() {
            "--call" => calls.push((args.next().ok_or("a tool")?, args.next().ok_or("its arguments")?)),
            "--repeat" => repeat = args.next().ok_or("a number")?.parse()?,
            _ => return Err(format!("no flag {flag}").into()),
        }
    }
    let config = match url {
        Some(url) => ServerConfig::remote("s", url),
        None => ServerConfig::new("s", args.next().ok_or("a command after --")?, args),
    };
    let began = Instant::now();
    let host = Host::start([config], HostOptions::default());
    host.settled().await;
    for status in host.statuses() {
        println!("{:?} {:?} after {:?}", status.reported, status.protocol, began.elapsed());
        println!("{:?}", status.state);
        if let ServerState::Failed(failure) = &status.state {
            println!("{}", failure.detail().unwrap_or_default());
        }
    }
    for tool in host.tools().iter() {
        println!("- {}: {:.80}", tool.name, tool.description.replace('\n', " "));
    }
    for (tool, arguments) in calls {
        let mut times = Vec::new();
        for turn in 0..repeat {
            let began = Instant::now();
            let (result, news) = call(&host, &tool, &arguments).await?;
            times.push(began.elapsed());
            if turn == 0 {
                println!("{:?}: {}\n{:?}\n{news} news", result.outcome, result.text(), result.sources);
            }
        }
        times.sort();
        println!("median {:?} of {repeat}", times.get(times.len() / 2).unwrap_or(&Duration::ZERO));
    }
    host.close().await;
    Ok(())
}

async fn call(host: &Host, tool: &str, arguments: &str) -> Result<(ToolResult, usize), serde_json::Error> {
    let (news, mut received) = mpsc::unbounded_channel();
    let context = CallContext {
        conversation: ConversationId::from("probe"),
        turn: TurnId::from("probe"),
        cancel: CancellationToken::new(),
        news,
        ask: std::sync::Arc::new(lectern_core::Nobody),
    };
    let call = ToolCall {
        id: ToolCallId::from("1"),
        tool: ToolName::from(format!("s__{tool}")),
        arguments: serde_json::from_str(arguments)?,
        malformed: None,
        provider_data: None,
    };
    let result = host.call(call, context).await;
    let mut count = 0;
    while received.recv().await.is_some() {
        count += 1;
    }
    Ok((result, count))
}
