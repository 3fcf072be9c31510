//! The server as a process over stdio, in both eras of the protocol.
//! Invariant: what a host sees. Nothing of the crate is called; only lines of JSON go in and out.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use tempfile::TempDir;

mod support;
use support::client::{Client, Era};
use support::{second_vault, write};

const ERAS: [Era; 5] = [
    Era::Initialize("2024-11-05"),
    Era::Initialize("2025-03-26"),
    Era::Initialize("2025-06-18"),
    Era::Initialize("2025-11-25"),
    Era::Discover,
];

#[tokio::test(flavor = "multi_thread")]
async fn every_revision_of_the_protocol_is_spoken() {
    for era in ERAS {
        let folder = second_vault();
        let mut client = Client::connect(folder.path(), era).await;
        let reply = client.call("search_notes", json!({"query": "What does Erik not like to eat?"})).await;
        let text = reply.text();
        assert!(
            text.starts_with("[1] Erik (People/Erik.md)\nBirthday 2 November. Cannot stand coriander."),
            "{text}"
        );
        let modern = era == Era::Discover;
        assert_eq!(reply.0["result"].get("resultType").is_some(), modern, "{era:?}: {}", reply.0);
        assert_eq!(client.close().await, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_describe_themselves_and_keep_to_it() {
    let folder = second_vault();
    let mut client = Client::connect(folder.path(), Era::Initialize("2025-11-25")).await;
    let tools = client.request("tools/list", json!({})).await["result"]["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_notes", "search_notes", "read_note", "create_note", "append_note"]);
    let calls = [
        ("list_notes", json!({"limit": 2})),
        ("search_notes", json!({"query": "bees"})),
        ("read_note", json!({"path": "Erik"})),
        ("create_note", json!({"path": "New/Note", "content": "# New\n\ntext"})),
        ("append_note", json!({"path": "New/Note.md", "content": "more"})),
    ];
    for (name, arguments) in calls {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        for key in ["title", "description", "inputSchema", "outputSchema", "annotations"] {
            assert!(!tool[key].is_null(), "{name} has no {key}");
        }
        let writes = matches!(name, "create_note" | "append_note");
        assert_eq!(tool["annotations"]["readOnlyHint"], !writes, "{name}");
        assert_conforms(&tool["inputSchema"], &arguments, name);
        let reply = client.call(name, arguments).await;
        assert!(!reply.is_error(), "{name}: {}", reply.0);
        assert_conforms(&tool["outputSchema"], reply.structured(), name);
    }
}

/// The part of JSON Schema that the tools use.
fn assert_conforms(schema: &Value, value: &Value, at: &str) {
    let right = match schema["type"].as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("{at}: unknown type {other}"),
    };
    assert!(right, "{at}: {value} is no {}", schema["type"]);
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(name.as_str().unwrap()).is_some(), "{at}: {name} is missing in {value}");
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        let property = &schema["properties"][name];
        assert!(property.is_object(), "{at}: {name} is not in the schema");
        assert_conforms(property, inner, &format!("{at}.{name}"));
    }
    for inner in value.as_array().into_iter().flatten() {
        assert_conforms(&schema["items"], inner, at);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_have_the_documented_text() {
    let folder = second_vault();
    let mut client = Client::connect(folder.path(), Era::Discover).await;
    let call = async |client: &mut Client, tool: &str, arguments: Value| {
        let reply = client.call(tool, arguments).await;
        (reply.text().to_owned(), reply.is_error())
    };
    assert_eq!(
        call(&mut client, "search_notes", json!({"query": "xylophone"})).await,
        ("No notes match.".into(), false)
    );
    assert_eq!(
        call(&mut client, "list_notes", json!({"folder": "Cuisine"})).await,
        ("- Cuisine/Marché.md\n- Cuisine/Soupe de poisson.md".into(), false)
    );
    let (listed, _) = call(&mut client, "list_notes", json!({"limit": 1})).await;
    assert!(listed.starts_with("- Allemand/Stammtisch.md\n(12 more;"), "{listed}");
    let erik = "# Erik\n\nBirthday 2 November. Cannot stand coriander. His sister Ragnhild keeps bees near Tromsø and \
                sends a jar each Christmas.\n\nOwes me a bilge pump.\n";
    assert_eq!(call(&mut client, "read_note", json!({"path": "People/Erik.md"})).await, (erik.into(), false));
    let new = json!({"path": "中文/购物", "content": "- 牛奶"});
    assert_eq!(call(&mut client, "create_note", new.clone()).await, ("Created 中文/购物.md".into(), false));
    let (again, failed) = call(&mut client, "create_note", new).await;
    assert!(failed && again.contains("`中文/购物.md`"), "{again}");
    let more = json!({"path": "中文/购物.md", "content": "- 面包"});
    assert_eq!(call(&mut client, "append_note", more).await, ("Appended to 中文/购物.md".into(), false));
    assert_eq!(std::fs::read_to_string(folder.path().join("中文/购物.md")).unwrap(), "- 牛奶\n- 面包\n");
    let (missing, failed) = call(&mut client, "read_note", json!({"path": "People/Erich.md"})).await;
    assert!(
        failed && missing == "There is no note `People/Erich.md`; similar names: `People/Erik.md`.",
        "{missing}"
    );
    let (wrong, failed) = call(&mut client, "search_notes", json!({"q": "x"})).await;
    assert!(failed && wrong.contains("search_notes") && wrong.contains("`query`"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_note_says_where_to_read_on() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Long.md", &"one line of it\n".repeat(1_000));
    let mut client = Client::connect(folder.path(), Era::Discover).await;
    let first = client.call("read_note", json!({"path": "Long"})).await;
    let next = first.structured()["nextOffset"].as_u64().unwrap();
    let last = first.text().lines().last().unwrap();
    assert_eq!(last, format!("[cut here: line {next} of 1000 is next; read on with offset {next}]"));
    let second = client.call("read_note", json!({"path": "Long", "offset": next})).await;
    assert_eq!(second.structured()["startLine"], next);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_resources_are_paged_without_gaps() {
    let folder = tempfile::tempdir().unwrap();
    (0..450).for_each(|n| write(folder.path(), &format!("Folder {}/Né {n}.md", n % 7), "text"));
    for era in [Era::Initialize("2025-11-25"), Era::Discover] {
        let mut client = Client::connect(folder.path(), era).await;
        let mut uris = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
            let page = client.request("resources/list", params).await["result"].clone();
            uris.extend(
                page["resources"].as_array().unwrap().iter().map(|r| r["uri"].as_str().unwrap().to_owned()),
            );
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(uris.len(), 450);
        uris.sort();
        uris.dedup();
        assert_eq!(uris.len(), 450);
        assert!(uris.iter().all(|uri| uri.starts_with("note:///Folder%20") && uri.is_ascii()));
        let read = client.request("resources/read", json!({"uri": uris[3]})).await;
        assert_eq!(read["result"]["contents"][0]["text"], "text", "{read}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_leads_nowhere_is_an_error() {
    let folder = second_vault();
    let mut client = Client::connect(folder.path(), Era::Initialize("2025-06-18")).await;
    for uri in [
        "note:///missing.md",
        "note:///../x.md",
        "note:///%2e%2e/x.md",
        "file:///etc/passwd",
        "note://host/x",
    ] {
        let reply = client.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(reply["error"]["code"], -32002, "{uri}: {reply}");
    }
    let templates = client.request("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "note:///{+path}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_the_same_time_are_each_answered() {
    let folder = second_vault();
    let mut client = Client::connect(folder.path(), Era::Discover).await;
    let mut waiting = Vec::new();
    for n in 0..60 {
        let arguments = match n % 3 {
            0 => json!({"name": "search_notes", "arguments": {"query": "bilge pump"}}),
            1 => {
                json!({"name": "append_note", "arguments": {"path": "Ideas/Attic.md", "content": format!("idea {n}")}})
            }
            _ => json!({"name": "read_note", "arguments": {"path": "Erik"}}),
        };
        waiting.push(client.send("tools/call", arguments).await);
    }
    for id in waiting.into_iter().rev() {
        let reply = client.reply_to(id).await;
        assert_eq!(reply["result"]["isError"], false, "{reply}");
    }
    let text = std::fs::read_to_string(folder.path().join("Ideas/Attic.md")).unwrap();
    assert_eq!(text.matches("idea ").count(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_on_the_disk_are_noticed_in_both_eras() {
    for era in [Era::Initialize("2025-11-25"), Era::Discover] {
        let folder = second_vault();
        let mut client = Client::connect(folder.path(), era).await;
        assert_eq!(
            client.call("search_notes", json!({"query": "marmalade"})).await.text(),
            "No notes match."
        );
        let uri = "note:///People/Erik.md";
        if era == Era::Discover {
            let wanted =
                json!({"notifications": {"resourcesListChanged": true, "resourceSubscriptions": [uri]}});
            client.send("subscriptions/listen", wanted).await;
            client.notification("notifications/subscriptions/acknowledged").await;
        } else {
            client.request("resources/subscribe", json!({"uri": uri})).await;
        }
        write(folder.path(), "New/Marmalade.md", "Seville oranges for the marmalade come in January.");
        client.notification("notifications/resources/list_changed").await;
        let found = client.call("search_notes", json!({"query": "marmalade"})).await;
        assert!(found.text().contains("Seville oranges"), "{}", found.text());
        write(folder.path(), "People/Erik.md", "# Erik\n\nNow likes coriander.\n");
        let updated = client.notification("notifications/resources/updated").await;
        assert_eq!(updated["params"]["uri"], uri);
        std::fs::rename(folder.path().join("New"), folder.path().join("Old")).unwrap();
        client.notification("notifications/resources/list_changed").await;
        let found = client.call("search_notes", json!({"query": "marmalade"})).await;
        assert!(found.text().contains("(Old/Marmalade.md)"), "{}", found.text());
        std::fs::remove_dir_all(folder.path().join("Old")).unwrap();
        client.notification("notifications/resources/list_changed").await;
        assert_eq!(
            client.call("search_notes", json!({"query": "marmalade"})).await.text(),
            "No notes match."
        );
    }
}

fn many_notes(count: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..count {
        let text = format!(
            "# Note {n}\n\nThis note is about topic{} and was written on day {n}.\n\n## More\n\n- item one of {n}\n- the code is K{n}Q\n",
            n % 50
        );
        write(folder.path(), &format!("Folder {}/Note {n}.md", n % 40), &text);
    }
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_notes_are_searched_with_progress() {
    let folder = many_notes(2_000);
    let mut client = Client::connect(folder.path(), Era::Initialize("2025-11-25")).await;
    // The session is open and lists at once, whatever the index does.
    let listed = client.call("list_notes", json!({"limit": 1})).await;
    assert_eq!(listed.structured()["total"], 2_000);
    let params = json!({"name": "search_notes", "arguments": {"query": "Which note has the code K1234Q?"}, "_meta": {"progressToken": "p"}});
    let reply = client.request("tools/call", params).await;
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[1] Note 1234 (Folder 34/Note 1234.md)"), "{text}");
    assert!(reply["result"]["structuredContent"].get("indexing").is_none(), "{reply}");
    let mut before = -1.0;
    for report in client.notified.iter().filter(|message| message["method"] == "notifications/progress") {
        assert_eq!(report["params"]["progressToken"], "p");
        let progress = report["params"]["progress"].as_f64().unwrap();
        assert!(progress > before && progress <= 2_000.0, "{report}");
        assert_eq!(report["params"]["total"], 2_000.0);
        before = progress;
    }
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_is_not_answered_and_the_next_one_is() {
    let folder = many_notes(1_500);
    let mut client = Client::connect(folder.path(), Era::Initialize("2025-06-18")).await;
    let cancelled =
        client.send("tools/call", json!({"name": "search_notes", "arguments": {"query": "topic7"}})).await;
    client.notify("notifications/cancelled", json!({"requestId": cancelled})).await;
    let reply = client.call("list_notes", json!({"limit": 1})).await;
    assert!(!reply.is_error());
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_clients_do_not_end_the_session() {
    let folder = second_vault();
    let mut client = Client::start(folder.path(), Era::Initialize("2025-06-18"));
    client.line("this is no JSON").await;
    client.notify("notifications/cancelled", json!({"requestId": 9})).await;
    client.line(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#).await;
    let early = client.request("tools/list", json!({})).await;
    assert!(early["error"].is_object(), "{early}");
    let about = json!({"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let reply = client.request("initialize", about).await;
    assert_eq!(reply["result"]["protocolVersion"], "2025-11-25", "{reply}");
    client.line("").await;
    client.line("[1, 2").await;
    let unknown = client.request("no/such", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let wrong = client.request("tools/call", json!({"arguments": 3})).await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    let tool = client.request("tools/call", json!({"name": "rm_rf"})).await;
    assert_eq!(tool["error"]["code"], -32602, "{tool}");
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_falls_back_to_initialize_is_served() {
    let folder = second_vault();
    let mut client = Client::connect(folder.path(), Era::Discover).await;
    client.notify("notifications/cancelled", json!({"requestId": 1})).await;
    let about = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let reply = client.request("initialize", about).await;
    assert_eq!(reply["result"]["protocolVersion"], "2025-11-25", "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_nobody_knows_is_refused_by_name() {
    let folder = second_vault();
    let mut client = Client::start(folder.path(), Era::Initialize(""));
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2031-01-01", "io.modelcontextprotocol/clientCapabilities": {}});
    let reply = client.request("server/discover", json!({"_meta": meta})).await;
    assert!(reply["error"]["data"]["supported"].as_array().is_some(), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_not_there_ends_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::start(&folder.path().join("missing"), Era::Discover);
    assert_eq!(client.ended().await, Some(1));
}
