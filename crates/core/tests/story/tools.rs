//! Tool calls that go well, and those that don't.

use std::time::Duration;

use lectern_core::testing::{Behaviour, ScriptedModel, ScriptedTools, calls, calls_all, says, tool};
use lectern_core::{Grant, Message, PermissionAnswer, ToolCallId, ToolOutcome, ToolResult, TurnOutcome};
use serde_json::json;

use crate::app::{App, answer, finish, permission_request};

#[tokio::test(start_paused = true)]
async fn a_tool_is_called_and_its_result_reaches_the_model() {
    let tools = ScriptedTools::new().with(tool("read", true), Behaviour::Answers("two eggs"));
    let app = App::start([calls("read", json!({"path": "a.md"})), says("Two eggs.")], tools);

    assert_eq!(app.ask("how many eggs?").await, TurnOutcome::Completed);

    let requests = app.model.requests();
    assert_eq!(requests.len(), 2);
    let Some(Message::Tool(result)) = requests[1].messages.last() else { panic!("{requests:?}") };
    assert_eq!((result.outcome, result.text()), (ToolOutcome::Succeeded, "two eggs".to_owned()));
    assert_eq!(app.tools.calls()[0].call.arguments["path"], "a.md");
    assert_eq!(app.messages().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_denied_tool_is_reported_to_the_model() {
    let tools = ScriptedTools::new().with(tool("delete", false), Behaviour::Answers("gone"));
    let app = App::start([calls("delete", json!({})), says("I did not delete it.")], tools);
    let turn = app.send("clean up");
    answer(&turn, PermissionAnswer::Deny).await;
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    let Some(Message::Tool(result)) = app.model.requests()[1].messages.last().cloned() else { panic!() };
    assert_eq!(result.outcome, ToolOutcome::Denied);
    assert!(result.text().contains("did not allow `delete`"), "{}", result.text());
    assert!(app.tools.calls().is_empty());
}
