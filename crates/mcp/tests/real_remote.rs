//! A server that others wrote, behind an address: `server-everything` over streamable HTTP and over HTTP with SSE.

mod support;

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lectern_core::{ServerId, ToolOutcome};
use lectern_mcp::{ServerConfig, ServerState};
use serde_json::json;
use support::*;

/// The server on a port of its own. Dropping it kills it.
struct Everything {
    child: Child,
    command: PathBuf,
    transport: &'static str,
    port: u16,
}

impl Everything {
    /// None, said loudly, where the package is not installed.
    fn start(transport: &'static str) -> Option<Self> {
        let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients");
        let command = clients.join("node_modules/.bin/mcp-server-everything");
        if !command.exists() {
            eprintln!("\n!!! SKIPPED: it is not installed; run `npm ci` in {}\n", clients.display());
            return None;
        }
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let child = spawn(&command, transport, port);
        Some(Self { child, command, transport, port })
    }

    fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.command, self.transport, self.port);
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(command: &PathBuf, transport: &str, port: u16) -> Child {
    let mut command = Command::new(command);
    command.arg(transport).env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the server starts");
    for _ in 0..3_000 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return child;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    panic!("nothing listens on port {port}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_everything_answers_with_progress_over_both_transports() {
    for (transport, path) in [("streamableHttp", "mcp"), ("sse", "sse")] {
        let Some(server) = Everything::start(transport) else { return };
        let url = format!("http://127.0.0.1:{}/{path}", server.port);
        let host = host_with(ServerConfig::remote("all", url)).await;
        assert_eq!(state(&host, "all"), ServerState::Ready, "{transport}");
        let status = host.status(&ServerId::from("all")).unwrap();
        assert_eq!(status.protocol.as_deref(), Some("2025-11-25"), "{transport}");
        let long =
            start_call(&host, "all__trigger-long-running-operation", json!({"duration": 1, "steps": 4}));
        let echo = call(&host, "all__echo", json!({"message": "meanwhile"})).await;
        assert_eq!((echo.text().as_str(), echo.progress()), ("Echo: meanwhile", vec![]));
        let long = long.finish().await;
        assert_eq!(long.result.outcome, ToolOutcome::Succeeded, "{}", long.text());
        assert_eq!(long.progress(), [1.0, 2.0, 3.0, 4.0], "{transport}");
        host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_fails_its_call_and_a_restarted_one_is_greeted_again() {
    let Some(mut server) = Everything::start("streamableHttp") else { return };
    let host = host_with(ServerConfig::remote("all", format!("http://127.0.0.1:{}/mcp", server.port))).await;
    let mut long =
        start_call(&host, "all__trigger-long-running-operation", json!({"duration": 60, "steps": 120}));
    long.progressed().await;
    server.kill();
    let long = tokio::time::timeout(Duration::from_secs(30), long.finish()).await.expect("an end");
    assert_eq!(long.result.outcome, ToolOutcome::Failed, "{}", long.text());

    server.restart();
    let back = async {
        while call(&host, "all__echo", json!({"message": "back"})).await.text() != "Echo: back" {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), back).await.expect("it is back");

    // It forgets its sessions without a word.
    server.restart();
    let echo = call(&host, "all__echo", json!({"message": "again"})).await;
    assert_eq!(echo.text(), "Echo: again");
    host.close().await;
}
