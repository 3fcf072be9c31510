//! Consent that nobody gives.

use std::time::Duration;

use lectern_api::{ApiOptions, Key, Limits, Scope};
use lectern_core::testing::{calls, says};
use serde_json::{Value, json};

use crate::frames::tools;
use crate::house::{House, Plan, ask, error, kinds};

/// A house in which somebody could answer, and does not for a moment.
async fn unanswered() -> (House, Key) {
    let judge = Key::fresh("judge").with_scopes([Scope::Approvals]);
    let limits = Limits { consent_time: Duration::from_millis(200), ..Limits::default() };
    let options = ApiOptions { limits, ..ApiOptions::default() };
    let replies = [calls("test__change", json!({})), says("Nobody let me.")];
    let plan = Plan { tools: tools(), options, others: vec![judge.clone()], ..Plan::of(replies) };
    (plan.build().await, judge)
}

#[tokio::test]
async fn a_call_that_waited_too_long_is_denied_and_the_answer_goes_on() {
    let (house, judge) = unanswered().await;
    let values = house.stream(&ask("hi")).await;
    let seen: Vec<&str> = kinds(&values).into_iter().filter(|kind| *kind != "tool_call").collect();
    assert_eq!(seen, ["approval_required", "tool_result", "content", "usage", "done"]);
    let asked = values.iter().find(|value| value["type"] == "approval_required").unwrap();
    let id = asked["approval_id"].as_str().unwrap();
    let result = values.iter().find(|value| value["type"] == "tool_result").unwrap();
    assert_eq!(result["result"]["outcome"], "denied");
    assert_eq!(house.tools.calls(), []);
    // Nothing waits any more, and it is too late to answer.
    let url = format!("{}/api/approvals", house.server.url());
    let listed = house.client.get(&url).bearer_auth(judge.secret()).send().await.unwrap();
    assert_eq!(listed.json::<Value>().await.unwrap()["data"], json!([]));
    let late = house.client.post(format!("{url}/{id}")).bearer_auth(judge.secret());
    let (status, said) = error(late.json(&json!({"decision": "allow"})).send().await.unwrap()).await;
    assert_eq!((status, &said["code"]), (404, &json!("approval_not_found")));
}

#[tokio::test]
async fn a_single_call_that_waited_too_long_is_refused() {
    let (house, _) = unanswered().await;
    let (status, said) = error(house.call("test__change", &json!({})).await).await;
    assert_eq!((status, &said["code"]), (403, &json!("approval_required")));
    assert_eq!(house.tools.calls(), []);
}

#[test]
fn five_minutes_unless_something_else_is_said() {
    assert_eq!(Limits::default().consent_time, Duration::from_secs(300));
    assert_eq!(Limits::default().drain, Duration::from_secs(10));
}
