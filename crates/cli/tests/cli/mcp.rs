//! Servers in the settings: added, imported, exported, removed. None of it starts anything.

use std::fs;

use serde_json::{Value, json};

use crate::lectern::{Lectern, Ran};

fn settings(lectern: &Lectern) -> Value {
    serde_json::from_str(&fs::read_to_string(lectern.home().join("settings.json")).unwrap()).unwrap()
}

fn first_line(ran: &Ran) -> Value {
    serde_json::from_str(ran.out.lines().next().unwrap()).unwrap()
}

/// A server that leaves a mark when it is started.
fn marking(lectern: &Lectern) -> (Value, std::path::PathBuf) {
    let mark = lectern.home().join("started");
    (json!({"command": "sh", "args": ["-c", format!("touch '{}'", mark.display())]}), mark)
}

#[test]
fn servers_are_added_listed_and_removed() {
    let lectern = Lectern::new();
    let added =
        lectern.run(["mcp", "add", "a", "-e", "A=1=2", "--timeout", "5", "--", "prog", "-x", "--json"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let far = [
        "mcp",
        "add",
        "far",
        "-H",
        "X-Y: z: 1",
        "https://h.example/mcp",
        "--secret",
        "Authorization=tok",
        "--json",
    ];
    assert_eq!(lectern.run(far).code, Some(0));
    assert_eq!(
        settings(&lectern)["mcpServers"],
        json!({
            "a": {"command": "prog", "args": ["-x", "--json"], "env": {"A": "1=2"}, "timeout": 5},
            "far": {"type": "http", "url": "https://h.example/mcp",
                    "headers": {"Authorization": "${secret:tok}", "X-Y": "z: 1"}},
        })
    );
    let twice = lectern.run(["mcp", "add", "a", "--", "other"]);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    assert_eq!(lectern.run(["mcp", "add", "a", "--replace", "--trust", "--", "other"]).code, Some(0));
    assert_eq!(
        settings(&lectern)["mcpServers"]["a"],
        json!({"command": "other", "lectern": {"trusted": true}})
    );
    assert_eq!(lectern.run(["mcp", "add", "notes", "--", "other"]).code, Some(2), "a vault has this name");
    assert_eq!(lectern.run(["mcp", "remove", "a", "far", "--json"]).code, Some(0));
    assert_eq!(lectern.run(["mcp", "remove", "a"]).code, Some(2));
    assert_eq!(settings(&lectern).get("mcpServers"), None);
}

#[test]
fn an_import_shows_what_would_run_and_needs_a_yes() {
    let lectern = Lectern::new();
    let (server, mark) = marking(&lectern);
    let text = json!({"mcpServers": {"m": server, "other": {"command": "npx", "args": ["-y", "pkg@1.2.3"],
        "env": {"API_TOKEN": "sk-0123456789abcdef", "PLACE": "eu"}, "disabled": true}, "bad": {}}});
    let file = lectern.write("theirs.json", &text.to_string());
    let file = file.to_str().unwrap();
    for args in [&["mcp", "import", file][..], &["mcp", "import", file, "--json"]] {
        let shown = lectern.run(args);
        assert_eq!(shown.code, Some(2), "{shown:?}");
        assert!(shown.err.contains("--yes"), "{shown:?}");
        assert!(!shown.out.contains("sk-0123456789abcdef"), "{shown:?}");
    }
    let preview = first_line(&lectern.run(["mcp", "import", file, "--json"]));
    let servers = preview["preview"]["servers"].as_array().unwrap();
    assert_eq!(servers[0]["args"][1], format!("touch '{}'", mark.display()));
    assert!(servers[0]["warnings"][0].as_str().unwrap().contains("shell"));
    assert_eq!(servers[1]["command_line"], "npx -y pkg@1.2.3");
    assert_eq!(servers[1]["env_names"], json!(["API_TOKEN", "PLACE"]));
    assert_eq!(servers[1]["secrets"], json!(["API_TOKEN"]));
    assert_eq!(preview["preview"]["skipped"][0]["name"], "bad");
    assert!(!lectern.home().join("settings.json").exists(), "a look changes nothing");

    let one = lectern.run(["mcp", "import", file, "--yes", "--only", "m", "--json"]);
    assert_eq!(one.code, Some(0), "{one:?}");
    assert_eq!(settings(&lectern)["mcpServers"], json!({"m": server}));
    assert_eq!(lectern.run(["mcp", "import", file, "--yes", "--only", "bad"]).code, Some(2));
    assert_eq!(lectern.run(["mcp", "import", file, "--yes"]).code, Some(0));
    let kept = settings(&lectern)["mcpServers"]["other"].clone();
    assert_eq!(kept["disabled"], true);
    assert!(!mark.exists(), "nothing was started");
}

#[test]
fn odd_files_are_refused_with_a_reason() {
    let lectern = Lectern::new();
    for (name, text) in [
        ("empty.json", ""),
        ("broken.json", "{\"mcpServers\": {"),
        ("other.json", "{\"name\": \"x\"}"),
        ("deep.json", &"[".repeat(10_000)),
        ("none.json", "{\"mcpServers\": {}}"),
    ] {
        let file = lectern.write(name, text);
        let ran = lectern.run(["mcp", "import", "--yes", file.to_str().unwrap()]);
        assert!(matches!(ran.code, Some(1 | 2)), "{name}: {ran:?}");
        assert!(!ran.err.is_empty() && !ran.err.contains("panicked"), "{name}: {ran:?}");
    }
    let missing = lectern.run(["mcp", "import", "/no/such/file.json"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("/no/such/file.json"), "{missing:?}");
    let folder = lectern.run(["mcp", "import", lectern.home().to_str().unwrap()]);
    assert_eq!(folder.code, Some(2), "{folder:?}");
    let wide = lectern.home().join("utf16.json");
    let units: Vec<u8> = "\u{feff}{\"mcpServers\": {\"ä\": {\"command\": \"x\"}}}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    fs::write(&wide, units).unwrap();
    assert_eq!(lectern.run(["mcp", "import", "--yes", wide.to_str().unwrap()]).code, Some(0));
    assert_eq!(settings(&lectern)["mcpServers"], json!({"ä": {"command": "x"}}));
}

#[test]
fn what_is_pasted_is_read_from_standard_input() {
    let lectern = Lectern::new();
    let ran = lectern.run_with(
        "\"time\": {\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]},",
        ["mcp", "import", "-", "--yes"],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(settings(&lectern)["mcpServers"]["time"]["args"], json!(["mcp-server-time"]));
}

#[test]
fn what_is_exported_is_imported_again_without_secrets() {
    let lectern = Lectern::new();
    let text = json!({"servers": {"gh": {"type": "stdio", "command": "gh-mcp", "env": {"TOKEN": "${input:token}", "K_SECRET": "sk-0123456789abcdef"}}},
        "inputs": [{"type": "promptString", "id": "token", "description": "A token", "password": true}]});
    let file = lectern.write("mcp.json", &text.to_string());
    let imported = lectern.run(["mcp", "import", "--yes", file.to_str().unwrap()]);
    assert!(imported.err.contains("token has no value yet"), "{imported:?}");
    let ours = lectern.run(["mcp", "export", "gh"]);
    let value: Value = serde_json::from_str(&ours.out).unwrap();
    assert_eq!(
        value["mcpServers"]["gh"]["env"],
        json!({"K_SECRET": "${secret:gh/K_SECRET}", "TOKEN": "${input:token}"})
    );
    let theirs: Value = serde_json::from_str(&lectern.run(["mcp", "export", "--vscode"]).out).unwrap();
    assert_eq!(theirs["inputs"][1]["description"], "A token");
    assert!(!ours.out.contains("sk-0123"));
    let other = Lectern::new();
    assert_eq!(other.run_with(&ours.out, ["mcp", "import", "-", "--yes"]).code, Some(0));
    assert_eq!(settings(&other)["mcpServers"]["gh"]["env"], value["mcpServers"]["gh"]["env"]);
    assert_eq!(lectern.run(["mcp", "export", "nobody"]).code, Some(2));
}

#[test]
fn settings_with_a_broken_server_still_work() {
    let lectern = Lectern::new();
    lectern.write(
        "settings.json",
        r#"{"sample_vault": false, "mcpServers": {"bad": {"command": "x", "args": "y"}, "notes2": null}}"#,
    );
    let listed = lectern.run(["mcp", "list", "--json"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let problem = &first_line(&listed)["servers"][0]["state"]["problem"];
    assert_eq!(
        (problem["code"].as_str(), problem["message"].as_str()),
        (Some("bad_server"), Some("the server `bad` can't be read: `args` is not a list"))
    );
    assert_eq!(lectern.run(["mcp", "add", "bad", "--replace", "--", "y"]).code, Some(0));
    assert_eq!(lectern.run(["mcp", "remove", "notes2"]).code, Some(0));
    assert_eq!(settings(&lectern)["mcpServers"], json!({"bad": {"command": "y"}}));
}

#[cfg(unix)]
#[test]
fn secrets_of_the_users_shell_reach_no_server() {
    let lectern = Lectern::new();
    let told = lectern.home().join("told");
    let script = format!("env > '{}'; exit 3", told.display());
    let added = lectern.run(["mcp", "add", "tell", "-e", "MINE=${env:CHOSEN}", "--", "sh", "-c", &script]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let shell = [
        ("GITHUB_TOKEN", "ghp-of-the-shell"),
        ("AWS_SECRET_ACCESS_KEY", "aws-of-the-shell"),
        ("AWS_PROFILE", "profile-of-the-shell"),
        ("OPENAI_API_KEY", "sk-of-the-shell"),
        ("NPM_TOKEN", "npm-of-the-shell"),
        ("SSH_AUTH_SOCK", "/socket-of-the-shell"),
        ("LECTERN_SECRET_OTHER", "other-of-the-shell"),
        ("DATABASE_URL", "postgres://me:of-the-shell@h/x"),
        ("CHOSEN", "chosen"),
    ];
    lectern.run_within(&shell, "", &["mcp", "restart", "tell"]);
    let env = fs::read_to_string(told).unwrap();
    assert!(env.contains("MINE=chosen") && env.contains("PATH="), "{env}");
    assert!(!env.contains("of-the-shell") && !env.contains("LECTERN"), "{env}");
}

#[cfg(unix)]
#[test]
fn a_bundle_is_shown_first_and_unpacked_when_it_is_imported() {
    use std::io::Write;

    let lectern = Lectern::new();
    let manifest = json!({"manifest_version": "0.3", "name": "My Bundle", "version": "1",
        "server": {"type": "binary", "entry_point": "run.sh",
            "mcp_config": {"command": "${__dirname}/run.sh", "args": ["${user_config.dirs}"], "env": {"TOKEN": "${user_config.token}"}}},
        "user_config": {"token": {"type": "string", "title": "Token", "sensitive": true, "required": true},
            "dirs": {"type": "directory", "title": "Folders", "multiple": true, "default": ["/a", "/b"]}}});
    let file = lectern.home().join("my.mcpb");
    let mut zip = zip::ZipWriter::new(fs::File::create(&file).unwrap());
    let plain = zip::write::SimpleFileOptions::default();
    zip.start_file("manifest.json", plain).unwrap();
    zip.write_all(manifest.to_string().as_bytes()).unwrap();
    zip.start_file("run.sh", plain).unwrap();
    let script = format!("#!/bin/sh\nprintf '%s|' \"$TOKEN\" \"$@\" > '{}/told'\n", lectern.home().display());
    zip.write_all(script.as_bytes()).unwrap();
    zip.finish().unwrap();

    let file = file.to_str().unwrap();
    let preview = first_line(&lectern.run(["mcp", "import", file, "--json"]));
    let shown = &preview["preview"]["servers"][0];
    assert_eq!(shown["env_names"], json!(["TOKEN"]));
    assert_eq!(shown["inputs"][1]["id"], "My Bundle/token");
    assert_eq!(shown["inputs"][1]["password"], true);
    let bundles = lectern.home().join("bundles");
    assert!(!bundles.exists(), "a look unpacks nothing");
    let imported = lectern.run(["mcp", "import", file, "--yes"]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let entry = settings(&lectern)["mcpServers"]["My Bundle"].clone();
    assert_eq!(shown["command_line"].as_str().unwrap().split(' ').next(), entry["command"].as_str());
    assert_eq!(entry["args"], json!(["/a", "/b"]));
    lectern.run_within(
        &[("LECTERN_INPUT_MY_BUNDLE_TOKEN", "of-the-user")],
        "",
        &["mcp", "restart", "My Bundle"],
    );
    assert_eq!(fs::read_to_string(lectern.home().join("told")).unwrap(), "of-the-user|/a|/b|");
    assert_eq!(lectern.run(["mcp", "remove", "My Bundle"]).code, Some(0));
    assert_eq!(fs::read_dir(bundles).unwrap().count(), 0);
}

/// Runs `lectern` at a terminal and types this.
#[cfg(target_os = "linux")]
fn at_a_terminal(lectern: &Lectern, arguments: &str, typed: &str) -> (Option<i32>, String) {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_lectern"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "dumb");
    script.env("LECTERN_HOME", lectern.home()).env("LECTERN_KEYRING", "off");
    let mut terminal = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    keys.write_all(typed.as_bytes()).unwrap();
    let output = terminal.wait_with_output().unwrap();
    drop(keys);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(target_os = "linux")]
#[test]
fn at_a_terminal_an_import_is_confirmed() {
    let lectern = Lectern::new();
    let servers = json!({"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}});
    let file = lectern.write("theirs.json", &servers.to_string());
    let command = format!("mcp import '{}'", file.display());
    let (code, seen) = at_a_terminal(&lectern, &command, "n\r");
    assert_eq!(code, Some(2), "{seen}");
    assert!(seen.contains("uvx mcp-server-time") && seen.contains("nothing was imported"), "{seen}");
    assert!(!lectern.home().join("settings.json").exists());
    let (code, seen) = at_a_terminal(&lectern, &command, "y\r");
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(settings(&lectern)["mcpServers"]["time"]["command"], "uvx");
}

#[test]
fn an_answer_that_is_no_choice_is_refused() {
    let lectern = Lectern::new();
    let text = json!({"servers": {"gh": {"command": "gh-mcp", "args": ["${input:level}"]}},
        "inputs": [{"type": "pickString", "id": "level", "description": "How much", "options": ["low", "high"], "default": "low"}]});
    let file = lectern.write("mcp.json", &text.to_string());
    let file = file.to_str().unwrap();
    let shown = lectern.run(["mcp", "import", "--json", file]);
    let input = &first_line(&shown)["preview"]["servers"][0]["inputs"][0];
    assert_eq!((&input["options"], &input["default"]), (&json!(["low", "high"]), &json!("low")), "{shown:?}");
    let refused = lectern.run(["mcp", "import", "--yes", file, "--input", "level=most"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("low, high"), "{refused:?}");
}

#[test]
fn a_restart_of_what_is_not_approved_says_so() {
    let lectern = Lectern::new();
    lectern.write("settings.json", r#"{"mcpServers": {"x": {"command": "true"}}}"#);
    let ran = lectern.run(["mcp", "restart", "x"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("waits for your approval"), "{ran:?}");
}

#[test]
fn a_message_that_is_not_there_is_named() {
    let lectern = Lectern::new();
    let ran = lectern.run(["debug", "message", "nobody"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.err.contains("there is no message `nobody`"), "{ran:?}");
}
