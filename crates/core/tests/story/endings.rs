//! How turns end.

use lectern_core::TurnOutcome;
use lectern_core::testing::{Behaviour, ScriptedModel, ScriptedTools, calls, says, tool};
use serde_json::json;

use crate::app::App;

#[tokio::test(start_paused = true)]
async fn a_model_that_never_stops_calling_meets_the_limit() {
    let tools = ScriptedTools::new().with(tool("read", true), Behaviour::Answers("more"));
    let mut app = App::with_model(ScriptedModel::new([calls("read", json!({}))]).repeating(), tools);
    app.max_steps = 5;
    assert_eq!(app.ask("go").await, TurnOutcome::StepLimit);
    assert_eq!(app.tools.calls().len(), 5);
    assert_eq!(app.results().len(), 5);
}
