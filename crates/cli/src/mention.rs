//! What a message asks of servers: `@server:address` takes a resource along, `/server:prompt name=value` runs a prompt.
//!
//! Invariant: pure. What names no server is plain text, unless it can't be anything else.

use std::collections::BTreeMap;

use lectern_app::view::{Attachment, Problem, PromptRun, SendRequest};
use lectern_core::{ConversationId, ServerId};

/// Reads a message.
pub fn read(
    text: &str,
    conversation: Option<ConversationId>,
    servers: &[ServerId],
) -> Result<SendRequest, Problem> {
    if let Some(prompt) = prompt(text, servers)? {
        return Ok(SendRequest { conversation, prompt: Some(prompt), ..SendRequest::default() });
    }
    let attachments = attachments(text, servers)?;
    Ok(SendRequest { conversation, text: text.to_owned(), attachments, ..SendRequest::default() })
}

/// Whether a line is a prompt to run, known server or not.
pub fn is_prompt(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    first.strip_prefix('/').and_then(|rest| rest.split_once(':')).is_some_and(|(server, prompt)| {
        !server.is_empty() && !prompt.is_empty() && !server.contains('/') && !prompt.starts_with('/')
    })
}

fn prompt(text: &str, servers: &[ServerId]) -> Result<Option<PromptRun>, Problem> {
    let text = text.trim();
    if !is_prompt(text) {
        return Ok(None);
    }
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let Some((server, name)) = first[1..].split_once(':') else { return Ok(None) };
    let server = known(server, servers)?;
    let bad = |message: String| {
        Problem::new("bad_prompt_arguments", message)
            .hint(format!("Write /{server}:{name} name=value, with quotes around blanks."))
    };
    let words = shlex::split(rest).ok_or_else(|| bad("a quotation is not closed".to_owned()))?;
    let mut arguments = BTreeMap::new();
    for word in words {
        let (key, value) = word
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| bad(format!("`{word}` is no name=value")))?;
        if arguments.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(bad(format!("`{key}` is given twice")));
        }
    }
    Ok(Some(PromptRun { server, name: name.to_owned(), arguments }))
}

fn attachments(text: &str, servers: &[ServerId]) -> Result<Vec<Attachment>, Problem> {
    let mut found: Vec<Attachment> = Vec::new();
    for word in text.split_whitespace() {
        let word = word.trim_start_matches(['(', '[', '"', '\'']);
        let Some((server, uri)) = word.strip_prefix('@').and_then(|rest| rest.split_once(':')) else {
            continue;
        };
        let uri = uri.trim_end_matches(['.', ',', ';', ')', ']', '"', '\'', '!', '?']);
        if server.is_empty() || uri.is_empty() {
            continue;
        }
        // With an address behind it, it is meant; anything else may be a name or a time.
        if !servers.iter().any(|known| known.as_str() == server) && !uri.contains("://") {
            continue;
        }
        let attachment = Attachment { server: known(server, servers)?, uri: uri.to_owned() };
        if !found.contains(&attachment) {
            found.push(attachment);
        }
    }
    Ok(found)
}

fn known(server: &str, servers: &[ServerId]) -> Result<ServerId, Problem> {
    let found = servers.iter().find(|known| known.as_str() == server).cloned();
    found.ok_or_else(|| {
        let names: Vec<&str> = servers.iter().map(ServerId::as_str).collect();
        let problem = Problem::new("unknown_server", format!("there is no server `{server}`"));
        if names.is_empty() { problem } else { problem.hint(format!("There is: {}.", names.join(", "))) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers() -> Vec<ServerId> {
        vec!["notes".into(), "my-server".into()]
    }

    #[test]
    fn resources_are_found_in_the_text() {
        let text = "Compare @notes:note:///Travel/Lyon.md, with (@my-server:demo://x/1) at @10:30 for me@notes:x. @notes:note:///Travel/Lyon.md";
        let request = read(text, None, &servers()).unwrap();
        let uris: Vec<&str> = request.attachments.iter().map(|one| one.uri.as_str()).collect();
        assert_eq!(uris, ["note:///Travel/Lyon.md", "demo://x/1"]);
        assert_eq!(request.text, text, "the text stays as it is");
        assert_eq!(read("see @nobody:demo://x", None, &servers()).unwrap_err().code, "unknown_server");
    }

    #[test]
    fn prompts_are_read_with_their_arguments() {
        let request = read(r#"/notes:sum-up path="My notes/a.md" words=20"#, None, &servers()).unwrap();
        let prompt = request.prompt.unwrap();
        assert_eq!((prompt.server.as_str(), prompt.name.as_str()), ("notes", "sum-up"));
        assert_eq!(prompt.arguments["path"], "My notes/a.md");
        for (bad, code) in [
            ("/nobody:x", "unknown_server"),
            ("/notes:x word", "bad_prompt_arguments"),
            ("/notes:x a=1 a=2", "bad_prompt_arguments"),
            ("/notes:x \"a=1", "bad_prompt_arguments"),
        ] {
            assert_eq!(read(bad, None, &servers()).unwrap_err().code, code, "{bad}");
        }
        assert!(read("/etc/hosts: what is it?", None, &servers()).unwrap().prompt.is_none());
    }
}
