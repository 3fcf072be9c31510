use super::*;
use crate::config::{Endpoint, Transport};

fn read(text: &str) -> ImportedServers {
    read_config(text).unwrap()
}

fn configs(imported: &ImportedServers) -> Vec<ServerConfig> {
    imported.servers.iter().map(|server| server.config.clone()).collect()
}

fn skipped(imported: &ImportedServers) -> Vec<(&str, &str)> {
    imported.skipped.iter().map(|skipped| (skipped.name.as_str(), skipped.reason.as_str())).collect()
}

fn pasted(text: &str) -> ServerConfig {
    let imported = read_snippet(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!((imported.servers.len(), imported.skipped.len()), (1, 0), "{text}: {imported:?}");
    imported.servers[0].config.clone()
}

#[test]
fn the_usual_shape_is_read() {
    let imported = read(
        r#"{"mcpServers": {
            "notes": {"command": "npx", "args": ["-y", "x@1", 8080], "env": {"A": "1", "B": 2, "C": null},
                      "cwd": "${HOME}/notes", "disabled": true, "timeout": 90, "trusted": true},
            "far": {"type": "http", "url": "https://example.invalid/mcp", "headers": {"X-Home": "${HOME}"}},
            "odd": {"args": []}, "odder": 5
        }}"#,
    );
    let mut notes = ServerConfig::new("notes", "npx", ["-y", "x@1", "8080"]);
    let program = notes.program_mut().unwrap();
    program.env = [("A".into(), "1".into()), ("B".into(), "2".into())].into();
    program.cwd = Some("${HOME}/notes".into());
    notes.disabled = true;
    notes.timeout_s = Some(90);
    let headers = [("X-Home".into(), "${HOME}".into())].into();
    let url = "https://example.invalid/mcp".into();
    let far = ServerConfig::of("far", Transport::Http(Endpoint { url, headers, ..Endpoint::default() }));
    assert_eq!(configs(&imported), [notes, far]);
    assert_eq!(skipped(&imported), [("odd", "neither a command nor an address"), ("odder", "not an object")]);
    assert_eq!(imported.servers[0].entry.get("trusted"), None);
}

#[test]
fn the_shape_of_vs_code_is_read_with_comments_and_inputs() {
    let imported = read(
        r#"{
            // a comment with "quotes"
            "servers": { /* two, really */
                "a": {"type": "stdio", "command": "a", "args": ["http://x//y", "${env:HOME}", "${NO:-d}",],},
                "b": {"command": "b", "env": {"KEY": "${input:key}", "AT": "${input:place}"}},
            },
            "inputs": [
                {"type": "promptString", "id": "key", "description": "The key", "password": true},
                {"type": "pickString", "id": "place", "options": ["eu", {"label": "US", "value": "us"}], "default": "eu"},
                {"type": "promptString"}, 7,
            ],
        }"#,
    );
    let b = imported.servers[1].config.clone();
    assert_eq!(
        imported.servers[0].config,
        ServerConfig::new("a", "a", ["http://x//y", "${env:HOME}", "${NO:-d}"])
    );
    let asked = inputs::of_server(&b, &imported.inputs);
    assert_eq!(asked.iter().map(|input| input.id.as_str()).collect::<Vec<_>>(), ["key", "place"]);
    assert_eq!((asked[0].description.as_str(), asked[0].password), ("The key", true));
    assert_eq!(
        (asked[1].options.as_slice(), asked[1].default.as_deref()),
        (&["eu".to_owned(), "us".into()][..], Some("eu"))
    );
    assert_eq!(inputs::read(&[asked[1].to_value()]), [asked[1].clone()]);
}

#[test]
fn other_places_of_the_list_are_found() {
    for text in [
        r#"{"mcp": {"servers": {"s": {"command": "x"}}}}"#,
        r#"{"mcp.servers": {"s": {"command": "x"}}, "editor.fontSize": 12}"#,
        r#"{"mcp": {"s": {"type": "local", "command": ["x"]}}}"#,
        r#"{"context_servers": {"s": {"command": {"path": "x", "args": []}}}}"#,
        r#"{"servers": [{"name": "s", "command": "x"}]}"#,
        r#"{"s": {"command": "x"}}"#,
        "\u{feff}{\"mcpServers\": {\"s\": {\"command\": \"x\"}}}",
        "// first\r\n{'mcpServers': {s: {command: 'x',},},}",
    ] {
        assert_eq!(configs(&read(text)), [ServerConfig::new("s", "x", [""; 0])], "{text}");
    }
    assert_eq!(read(r#"{"mcpServers": {}}"#), ImportedServers::default());
}

#[test]
fn other_files_are_refused() {
    for text in ["{}", "[]", "null", "\"text\"", "", "  \n", r#"{"name": "x", "version": "1"}"#] {
        assert_eq!(read_config(text), Err(ConfigError::NoServers), "{text}");
    }
    for text in ["{\"mcpServers\": {", "{]", "{\"a\": \"\\x\"}", "<?xml version='1.0'?>"] {
        assert!(matches!(read_config(text), Err(ConfigError::NotJson(_))), "{text}");
    }
    assert!(matches!(read_config(&"[".repeat(100_000)), Err(ConfigError::NotJson(_))));
    assert_eq!(read_config(&" ".repeat(11 << 20)), Err(ConfigError::TooLong));
    let many: Vec<String> = (0..1_001).map(|n| format!(r#""s{n}": {{"command": "x"}}"#)).collect();
    assert!(matches!(read_config(&format!("{{{}}}", many.join(","))), Err(ConfigError::TooMany(_))));
}

#[test]
fn names_are_cleaned_and_twins_are_told() {
    let imported = read(
        "{\"mcpServers\": {\"a\": {\"command\": \"1\"}, \"a\": {\"command\": \"2\"}, \" a\u{200b} \": {\"command\": \"3\"},
          \"日本語 🗒\": {\"command\": \"4\"}, \"\": {\"command\": \"npx\", \"args\": [\"-y\", \"mcp-server-time\"]},
          \"x}${y\": {\"command\": \"5\"}, \"\u{202e}\u{0}\": 1}}",
    );
    let ids: Vec<String> = imported.servers.iter().map(|server| server.config.id.0.clone()).collect();
    assert_eq!(ids, ["a", "日本語 🗒", "time", "x___y"]);
    assert_eq!(configs(&imported)[0].program().unwrap().command, "1");
    let twin = "there is another server called `a` in it";
    assert_eq!(skipped(&imported), [("a", twin), ("a", twin), ("(no name)", "not an object")]);
    let long = format!(r#"{{"mcpServers": {{"{}": {{"command": "x"}}}}}}"#, "ä".repeat(500));
    assert_eq!(read(&long).servers[0].config.id.0.chars().count(), 64);
}

#[test]
fn parts_of_a_file_are_read() {
    for text in [
        r#"{"command": "npx", "args": ["-y", "@me/server-time@1.2"]}"#,
        r#""time": {"command": "npx", "args": ["-y", "@me/server-time@1.2"]}"#,
        r#""time": {"command": "npx", "args": ["-y", "@me/server-time@1.2"]},"#,
        r#"time: {"command": "npx", "args": ["-y", "@me/server-time@1.2"]}"#,
        r#""mcpServers": {"time": {"command": "npx", "args": ["-y", "@me/server-time@1.2"]}}"#,
        r#""mcpServers": {"time": {"command": "npx", "args": ["-y", "@me/server-time@1.2"]}}}"#,
        r#"{"mcpServers": {"time": {"command": "npx", "args": ["-y", "@me/server-time@1.2"]}"#,
        "```json\n{\"mcpServers\": {\"time\": {\"command\": \"npx\", \"args\": [\"-y\", \"@me/server-time@1.2\"]}}}\n```",
        "npx -y @me/server-time@1.2",
        "$ npx -y @me/server-time@1.2",
        "npx \\\n  -y \\\n  '@me/server-time@1.2'",
        "claude mcp add time -- npx -y @me/server-time@1.2",
        "claude mcp add time npx -y @me/server-time@1.2",
        "claude mcp add -s user time -- npx -y @me/server-time@1.2",
        "codex mcp add time -- npx -y @me/server-time@1.2",
        r#"claude mcp add-json time '{"command": "npx", "args": ["-y", "@me/server-time@1.2"]}'"#,
        r#"code --add-mcp '{"name": "time", "command": "npx", "args": ["-y", "@me/server-time@1.2"]}'"#,
        "vscode:mcp/install?%7B%22name%22%3A%22time%22%2C%22command%22%3A%22npx%22%2C%22args%22%3A%5B%22-y%22%2C%22%40me%2Fserver-time%401.2%22%5D%7D",
        "cursor://anysphere.cursor-deeplink/mcp/install?name=time&config=eyJjb21tYW5kIjoibnB4IiwiYXJncyI6WyIteSIsIkBtZS9zZXJ2ZXItdGltZUAxLjIiXX0%3D",
    ] {
        assert_eq!(pasted(text), ServerConfig::new("time", "npx", ["-y", "@me/server-time@1.2"]), "{text}");
    }
}

#[test]
fn variables_and_headers_of_command_lines_are_read() {
    let local =
        pasted("claude mcp add db --env URL=postgres://h/x --env DEBUG=1 -- uvx mcp-db --flag=1 -e x");
    let program = local.program().unwrap();
    assert_eq!(
        (local.id.as_str(), program.args.as_slice()),
        ("db", ["mcp-db", "--flag=1", "-e", "x"].map(String::from).as_slice())
    );
    assert_eq!(program.env["URL"], "postgres://h/x");
    let before = pasted("API_KEY=abc uvx mcp-server-fetch");
    assert_eq!((before.id.as_str(), before.program().unwrap().env["API_KEY"].as_str()), ("fetch", "abc"));
    let far = pasted(
        "claude mcp add --transport http linear https://mcp.linear.app/mcp --header 'Authorization: Bearer x:y'",
    );
    let Transport::Http(endpoint) = &far.transport else { panic!("it is remote") };
    assert_eq!((far.id.as_str(), endpoint.url.as_str()), ("linear", "https://mcp.linear.app/mcp"));
    assert_eq!(endpoint.headers.get("Authorization").map(String::as_str), Some("Bearer x:y"));
    assert_eq!(pasted("https://mcp.linear.app/sse").id.as_str(), "linear");
}

#[test]
fn prose_and_shell_programs_are_refused() {
    for text in [
        "",
        "hello there",
        "just add the time server",
        "npx -y x | sh",
        "npx x && rm -rf /",
        "npx 'open",
        "a\nb",
        "ftp://x/y",
    ] {
        assert!(read_snippet(text).is_err(), "{text}");
    }
}

#[test]
fn servers_without_a_name_are_called_after_what_they_run() {
    for (line, name) in [
        ("npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /home", "filesystem"),
        ("uvx --from git+https://github.com/x/mcp-notes.git notes", "notes"),
        ("uvx mcp-server-git==1.0", "git"),
        ("uv --directory /srv/weather run weather.py", "weather"),
        ("docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server", "github"),
        ("node /srv/my-server/dist/index.js", "my-server"),
        ("python -m mcp_server_time", "time"),
        ("/usr/local/bin/notes-mcp --stdio", "notes"),
        ("npx @sentry/mcp", "sentry"),
        ("npx -y tavily-mcp@latest", "tavily"),
    ] {
        assert_eq!(pasted(line).id.as_str(), name, "{line}");
    }
}
