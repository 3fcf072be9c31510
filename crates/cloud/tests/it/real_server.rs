//! A turn of five steps against a real OpenAI-compatible server: llama.cpp behind llama-cpp-python's, with a small model
//! of random weights that its own grammar holds to the tool.
//!
//! Invariant: nothing of ours is on the other side. The test needs a Python with `llama-cpp-python[server]`, which takes
//! minutes to compile; `LECTERN_OPENAI_PYTHON` names it.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lectern_cloud::{Credentials, OpenAiConfig, OpenAiModel, OpenAiOptions, address};
use lectern_core::{
    ChatRequest, Delta, FinishReason, Message, Part, Sampling, ToolCall, ToolChoice, ToolOutcome, ToolResult,
};
use serde_json::{Value, json};

use crate::endpoint::limits;
use crate::support::{all, info, says, text_of, tool, user};

struct Real {
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn start(python: &Path) -> Real {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("random.gguf");
    std::fs::write(&model, lectern_test_gguf::Recipe::default().bytes()).unwrap();
    let port = free_port();
    let child = Command::new(python)
        .args(["-m", "llama_cpp.server", "--chat_format", "chatml-function-calling", "--n_ctx", "4096"])
        .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--model_alias", "random-one", "--model"])
        .arg(&model)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Real { child, url: format!("http://127.0.0.1:{port}"), _folder: folder }
}

fn model(real: &Real, name: &str) -> OpenAiModel {
    let base = address(&real.url).unwrap();
    OpenAiModel::new(OpenAiConfig {
        info: info(name),
        model: name.to_owned(),
        options: OpenAiOptions::of(&base),
        base,
        credentials: Credentials::None,
        limits: limits(),
    })
    .unwrap()
}

/// The one call that the deltas tell.
fn call_of(deltas: &[Result<Delta, lectern_core::ModelError>]) -> ToolCall {
    let mut found = None;
    let mut text = String::new();
    for delta in deltas {
        match delta {
            Ok(Delta::ToolCallStarted { id, tool, provider_data, .. }) => {
                assert!(found.is_none(), "{deltas:?}");
                found = Some((id.clone(), tool.clone(), provider_data.clone()));
            }
            Ok(Delta::ToolCallArguments { fragment, .. }) => text.push_str(fragment),
            _ => {}
        }
    }
    let (id, tool, provider_data) = found.unwrap();
    let arguments: Value = serde_json::from_str(&text).unwrap();
    ToolCall { id, tool, arguments: arguments.as_object().unwrap().clone(), malformed: None, provider_data }
}

#[tokio::test]
#[ignore = "needs llama-cpp-python[server]; LECTERN_OPENAI_PYTHON names its Python"]
async fn five_steps_against_llama_cpp() {
    let python = std::env::var_os("LECTERN_OPENAI_PYTHON").unwrap();
    let real = start(Path::new(&python)).await;
    let random = model(&real, "random-one");
    let begun = Instant::now();
    let listed = loop {
        match random.models().await {
            Ok(listed) => break listed,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(180), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(listed[0].id, "random-one");
    let schema =
        json!({"type": "object", "properties": {"path": {"enum": ["a.md", "b.md"]}}, "required": ["path"]});
    let mut messages = vec![user("Read my notes.")];
    for step in 0..4 {
        let request = ChatRequest {
            messages: messages.clone(),
            tools: vec![tool("read", schema.clone())],
            tool_choice: ToolChoice::Tool("read".into()),
            sampling: Sampling { max_tokens: Some(64), ..Sampling::default() },
            ..ChatRequest::default()
        };
        let deltas = all(&random, request).await;
        assert_eq!(deltas.last(), Some(&Ok(Delta::Finished(FinishReason::ToolCalls))), "{step}: {deltas:?}");
        let call = call_of(&deltas);
        assert_eq!(call.tool.as_str(), "read");
        let path = call.arguments["path"].as_str().unwrap();
        assert!(["a.md", "b.md"].contains(&path), "{path}");
        let result = ToolResult::of(&call, ToolOutcome::Succeeded, format!("what stands in {path}, ü"));
        messages.push(says(vec![Part::ToolCall(call)], "random-one"));
        messages.push(Message::Tool(result));
    }
    let last = ChatRequest {
        messages,
        sampling: Sampling { max_tokens: Some(12), ..Sampling::default() },
        ..ChatRequest::default()
    };
    let deltas = all(&random, last).await;
    assert!(!text_of(&deltas).is_empty(), "{deltas:?}");
    let end = deltas.last().unwrap().as_ref().unwrap();
    assert!(matches!(end, Delta::Finished(FinishReason::Length | FinishReason::Stop)), "{deltas:?}");
}
