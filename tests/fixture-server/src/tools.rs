//! The server's tools, well-behaved and other.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Server;

/// The good tools.
pub fn all(grown: bool, extra: usize) -> Vec<Value> {
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    let tool = |name: &str, properties: Value| {
        json!({"name": name, "description": format!("The tool {name}."),
               "inputSchema": {"type": "object", "properties": properties}})
    };
    let sum = json!({"type": "object", "properties": {"sum": number}, "required": ["sum"]});
    let mut add = tool("add", json!({"a": number, "b": number}));
    add["outputSchema"] = sum.clone();
    add["annotations"] = json!({"readOnlyHint": true, "title": "Add two numbers"});
    let mut broken = tool("broken-promise", json!({}));
    broken["outputSchema"] = sum;
    let mut tools = vec![
        tool("echo", json!({"text": text})),
        add,
        broken,
        tool("slow", json!({"steps": number, "delay_ms": number})),
        tool("log", json!({"lines": number})),
        tool("big", json!({"characters": number})),
        tool("huge", json!({"bytes": number})),
        tool("ask", json!({"method": text})),
        tool("die", json!({"code": number})),
    ];
    for name in [
        "fail",
        "storm",
        "wait",
        "torn",
        "deep",
        "hollow",
        "bytes",
        "env",
        "media",
        "cites",
        "structured-only",
        "input",
        "task",
        "grow",
        "rewrite",
        "rpc-error",
        "cancelled",
    ] {
        tools.push(tool(name, json!({})));
    }
    if grown {
        tools.push(tool("grown", json!({})));
    }
    tools.extend((0..extra).map(|n| tool(&format!("extra-{n}"), json!({"text": text}))));
    tools
}

/// Tools that a host must leave out, and some that are only odd.
pub fn bad() -> Vec<Value> {
    let object = json!({"type": "object"});
    vec![
        json!({"name": "boolean-schema", "inputSchema": true}),
        json!({"name": "text-schema", "inputSchema": "object"}),
        json!({"name": "invalid-schema", "inputSchema": {"type": "object", "properties": {"a": {"type": "nothing"}}}}),
        json!({"inputSchema": object}),
        json!(17),
        json!({"name": "odd-icons", "inputSchema": object, "icons": [{"mimeType": "image/png"}]}),
        json!({"name": "odd-hints", "inputSchema": object, "annotations": {"readOnlyHint": "yes"}}),
        json!({"name": "odd.name/with spaces and é", "inputSchema": object}),
        json!({"name": "long-".repeat(30), "inputSchema": object}),
    ]
}

/// Runs one call, on a thread of its own.
pub fn call(server: &Arc<Server>, id: &Value, params: &Value) {
    let arguments = &params["arguments"];
    let number = |name: &str, default: u64| arguments[name].as_u64().unwrap_or(default);
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    match params["name"].as_str().unwrap_or_default() {
        "echo" => {
            server.result(id, text(format!("Echo: {}", arguments["text"].as_str().unwrap_or_default())))
        }
        "add" => {
            let sum = arguments["a"].as_f64().unwrap_or(0.0) + arguments["b"].as_f64().unwrap_or(0.0);
            let mut result = text(sum.to_string());
            result["structuredContent"] = json!({"sum": sum});
            server.result(id, result);
        }
        "fail" => {
            let mut result = text("no such file: /x".into());
            result["isError"] = json!(true);
            server.result(id, result);
        }
        "slow" => {
            let steps = number("steps", 3);
            for step in 1..=steps {
                std::thread::sleep(Duration::from_millis(number("delay_ms", 50)));
                progress(server, params, step as f64, Some(steps as f64), Some(&format!("step {step}")));
            }
            server.result(id, text(format!("{steps} steps done")));
        }
        "storm" => storm(server, id, params),
        "wait" => wait(server, id),
        "die" => {
            eprintln!("fatal: told to die");
            std::process::exit(i32::try_from(number("code", 9)).unwrap_or(9));
        }
        "huge" => server.result(id, text("x".repeat(number("bytes", 20 << 20) as usize))),
        "torn" => {
            server.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[\n").as_bytes())
        }
        "bytes" => {
            server.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"").as_bytes());
            server.raw(b"caf\xe9\"}]}}\n");
        }
        "deep" => {
            let nested = "[".repeat(5_000) + &"]".repeat(5_000);
            server.raw(
                format!("{{\"jsonrpc\":\"2.0\",\"result\":{{\"content\":{nested}}},\"id\":{id}}}\n")
                    .as_bytes(),
            );
        }
        "hollow" => server.send(&json!({"jsonrpc": "2.0", "id": id})),
        "env" => {
            let env: serde_json::Map<String, Value> = std::env::vars().map(|(k, v)| (k, v.into())).collect();
            server.result(id, text(Value::Object(env).to_string()));
        }
        "ask" => ask(server, id, arguments["method"].as_str().unwrap_or("ping")),
        "log" => {
            for n in 0..number("lines", 3) {
                eprintln!("stderr line {n}");
            }
            server.send(&json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "warning", "logger": "fixture", "data": {"note": "logged"}}}));
            std::thread::sleep(Duration::from_millis(100));
            server.result(id, text("logged".into()));
        }
        "media" => server.result(id, media()),
        "big" => server.result(id, text("y".repeat(number("characters", 100_000) as usize))),
        "cites" => server.result(id, cites()),
        "broken-promise" => {
            let mut result = text("lots".into());
            result["structuredContent"] = json!({"sum": "lots"});
            server.result(id, result);
        }
        "structured-only" => server.result(id, json!({"content": [], "structuredContent": {"answer": 42}})),
        "input" => server.result(
            id,
            json!({"resultType": "input_required", "requestState": "s",
                   "inputRequests": {"q": {"method": "elicitation/create", "params": {"message": "name?"}}}}),
        ),
        "task" => {
            server.result(id, json!({"resultType": "task", "task": {"taskId": "t1", "status": "working"}}))
        }
        "grow" => {
            server.state().grown = true;
            tell_changed(server, "tools");
            server.result(id, text("grown".into()));
        }
        "rewrite" => {
            server.state().echo = arguments["text"].as_str().map(str::to_owned);
            tell_changed(server, "tools");
            server.result(id, text("rewritten".into()));
        }
        "publish" => {
            server.state().beside.resources += 1;
            for what in ["resources", "prompts"] {
                tell_changed(server, what);
            }
            server.result(id, text("published".into()));
        }
        "listed" => {
            let listed = server.state().beside.listed;
            server.result(id, text(listed.to_string()));
        }
        "rpc-error" => server.error(id, -32602, "the argument is wrong"),
        "cancelled" => {
            let cancelled = server.state().cancelled.clone();
            server.result(id, text(Value::Array(cancelled).to_string()));
        }
        name => server.error(id, -32602, &format!("Unknown tool: {name}")),
    }
}

/// Never answers. Over HTTP the end of the connection is what a cancelled request looks like.
fn wait(server: &Server, id: &Value) {
    loop {
        if !server.over_http {
            return;
        }
        if !server.out().is_heard() {
            server.state().cancelled.push(id.clone());
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Tells that a list is another one now; in the modern era only who listens is told.
fn tell_changed(server: &Server, what: &str) {
    if what == "tools" && server.state().ttl.is_some() {
        return;
    }
    let listener = server.state().listener.clone();
    let mut changed = json!({"jsonrpc": "2.0", "method": format!("notifications/{what}/list_changed")});
    if let Some(listener) = &listener {
        changed["params"] = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": listener}});
    }
    if !server.over_http && (!server.is_modern() || listener.is_some()) {
        server.send(&changed);
    }
}

fn progress(server: &Server, params: &Value, done: f64, total: Option<f64>, message: Option<&str>) {
    let token = &params["_meta"]["progressToken"];
    if token.is_null() {
        return;
    }
    let mut news = json!({"progressToken": token, "progress": done});
    if let Some(total) = total {
        news["total"] = json!(total);
    }
    if let Some(message) = message {
        news["message"] = json!(message);
    }
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": news}));
}

/// Two thousand steps, shuffled; and some more after the result.
fn storm(server: &Server, id: &Value, params: &Value) {
    for n in 0..2_000_u64 {
        // 7 and 2,000 have no common divisor: every number comes once.
        let step = (n * 7) % 2_000 + 1;
        progress(server, params, step as f64, Some(2_000.0), None);
    }
    server.result(id, json!({"content": [{"type": "text", "text": "stormed"}]}));
    for n in 0..10 {
        progress(server, params, 3_000.0 + f64::from(n), Some(2_000.0), None);
    }
}

/// Asks the host something and gives back what it said.
fn ask(server: &Server, id: &Value, method: &str) {
    let ours = format!("ask-{id}");
    server.send(&json!({"jsonrpc": "2.0", "id": ours, "method": method, "params": {}}));
    for _ in 0..300 {
        std::thread::sleep(Duration::from_millis(10));
        let answers = server.state().answers.clone();
        if let Some(answer) = answers.iter().find(|answer| answer["id"] == ours.as_str()) {
            return server.result(id, json!({"content": [{"type": "text", "text": answer.to_string()}]}));
        }
    }
    server.error(id, -32000, "the host said nothing");
}

fn media() -> Value {
    json!({"content": [
        {"type": "text", "text": "all kinds"},
        {"type": "image", "data": "aW1hZ2U=", "mimeType": "image/png"},
        {"type": "audio", "data": "c291bmQ=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "note:///a.md", "name": "a.md", "mimeType": "text/markdown"},
        {"type": "resource", "resource": {"uri": "note:///b.md", "mimeType": "text/markdown", "text": "# B"}},
        {"type": "resource", "resource": {"uri": "x:///c", "blob": "AAEC", "mimeType": "application/octet-stream"}},
    ]})
}

fn cites() -> Value {
    let hits = json!([
        {"path": "Travel/Lyon.md", "title": "Lyon", "heading": "Food", "start_line": 10, "end_line": 14},
        {"path": "Home/Boiler.md", "title": "Boiler", "heading": null, "start_line": 1, "end_line": 3},
    ]);
    json!({"content": [{"type": "text", "text": "[1] Lyon (Travel/Lyon.md)"}], "structuredContent": {"hits": hits}})
}
