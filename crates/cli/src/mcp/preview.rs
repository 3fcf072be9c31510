//! What a server would run, on the terminal.

use lectern_app::view::{ImportPreview, PreviewedServer};

use crate::output::printable;

/// The preview of an import, line by line.
pub fn lines(preview: &ImportPreview) -> Vec<String> {
    let servers = preview.servers.iter().flat_map(server);
    let skipped = preview
        .skipped
        .iter()
        .map(|skipped| one(&format!("{} can't be imported: {}", skipped.name, skipped.reason)));
    servers.chain(skipped).collect()
}

fn server(server: &PreviewedServer) -> Vec<String> {
    let mut lines =
        vec![format!("{}{}", server.name, if server.exists { "  (replaces the one there is)" } else { "" })];
    let mut field = |name: &str, value: &str| lines.push(format!("    {name:9} {value}"));
    if let Some(command) = &server.command_line {
        field("runs", command);
    }
    if let Some(url) = &server.url {
        field("address", url);
    }
    if let Some(cwd) = &server.cwd {
        field("folder", cwd);
    }
    if !server.env_names.is_empty() {
        field("variables", &server.env_names.join(", "));
    }
    if !server.header_names.is_empty() {
        field("headers", &server.header_names.join(", "));
    }
    for input in &server.inputs {
        let about =
            if input.description.is_empty() { String::new() } else { format!(": {}", input.description) };
        let choices = match input.options.as_slice() {
            [] => String::new(),
            options => format!(" (one of: {})", options.join(", ")),
        };
        let default = input.default.as_ref().map(|default| format!(" [{default}]")).unwrap_or_default();
        field("asks for", &format!("{}{about}{choices}{default}", input.id));
    }
    for warning in &server.warnings {
        field("!", warning);
    }
    lines.iter().map(|line| one(line)).collect()
}

/// Whatever a file says, a line of the preview stays one line, and all of it is seen.
fn one(line: &str) -> String {
    printable(line).replace(['\n', '\t'], " ")
}
