use super::*;
use crate::message::JsonObject;
use crate::tool::ToolAnnotations;

const SERVER: &str = "s";
const TOOL: &str = "s__t";

/// What a case expects; an allow names the match of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Runs,
    Denied,
    Asks,
}
use Expected::{Asks, Denied, Runs};

fn spec(trusted: bool, read_only: Option<bool>, destructive: Option<bool>) -> ToolSpec {
    ToolSpec {
        name: TOOL.into(),
        server: SERVER.into(),
        original_name: "t".to_owned(),
        title: None,
        description: String::new(),
        input_schema: serde_json::json!({}),
        output_schema: None,
        annotations: ToolAnnotations { read_only, destructive, ..ToolAnnotations::default() },
        trusted,
    }
}

fn call() -> ToolCall {
    let arguments = JsonObject::new();
    ToolCall { id: "c".into(), tool: TOOL.into(), arguments, malformed: None, provider_data: None }
}

fn everything() -> RuleMatch {
    RuleMatch::Everything
}
fn server(id: &str) -> RuleMatch {
    RuleMatch::Server { server: id.into() }
}
fn tool(name: &str) -> RuleMatch {
    RuleMatch::Tool { tool: name.into() }
}

fn policy(rules: &[(RuleMatch, RuleEffect)]) -> Policy {
    let rules = rules.iter().map(|(matches, effect)| Rule { matches: matches.clone(), effect: *effect });
    Policy { rules: rules.collect() }
}

fn outcome(policy: &Policy, spec: &ToolSpec) -> Expected {
    match decide(policy, &call(), spec) {
        Decision::Allow(_) => Runs,
        Decision::Deny(_) => Denied,
        Decision::Ask => Asks,
    }
}

/// Rules, and what comes of a tool that reads, one that destroys, and one that says nothing.
type Line<'a> = (&'a [(RuleMatch, RuleEffect)], [Expected; 3]);

/// The table of the module, line by line: no rule, then each effect on each match.
#[test]
fn the_table() {
    use RuleEffect::{Allow, Ask, Deny};
    let reading = spec(true, Some(true), None);
    let destroying = spec(true, Some(false), Some(true));
    let other = spec(true, None, None);
    let lines: [Line<'_>; 11] = [
        (&[], [Runs, Asks, Asks]),
        (&[(everything(), Ask)], [Asks, Asks, Asks]),
        (&[(server(SERVER), Ask)], [Asks, Asks, Asks]),
        (&[(tool(TOOL), Ask)], [Asks, Asks, Asks]),
        (&[(everything(), Deny)], [Denied, Denied, Denied]),
        (&[(server(SERVER), Deny)], [Denied, Denied, Denied]),
        (&[(tool(TOOL), Deny)], [Denied, Denied, Denied]),
        (&[(everything(), Allow)], [Runs, Runs, Runs]),
        (&[(server(SERVER), Allow)], [Runs, Asks, Runs]),
        (&[(tool(TOOL), Allow)], [Runs, Runs, Runs]),
        (&[(server("other"), Allow), (tool("s__other"), Deny)], [Runs, Asks, Asks]),
    ];
    for (rules, expected) in lines {
        let policy = policy(rules);
        let got = [&reading, &destroying, &other].map(|spec| outcome(&policy, spec));
        assert_eq!(got, expected, "{rules:?}");
    }
}

/// Every mix of claims: reading counts only when it is believed, and destroying only when it is said.
#[test]
fn claims_count_as_far_as_they_are_believed() {
    let hints = [None, Some(false), Some(true)];
    for trusted in [false, true] {
        for read_only in hints {
            for destructive in hints {
                let spec = spec(trusted, read_only, destructive);
                let reads = trusted && read_only == Some(true);
                let case = format!("trusted {trusted}, reads {read_only:?}, destroys {destructive:?}");
                assert_eq!(outcome(&Policy::default(), &spec), if reads { Runs } else { Asks }, "{case}");
                let destroys = destructive == Some(true) && !reads;
                let by_server = policy(&[(server(SERVER), RuleEffect::Allow)]);
                assert_eq!(outcome(&by_server, &spec), if destroys { Asks } else { Runs }, "{case}");
            }
        }
    }
}

/// Every pair of rules in both orders: the more exact wins wherever it stands, and of equals the later.
#[test]
fn the_more_exact_rule_wins_and_then_the_later() {
    use RuleEffect::{Allow, Ask, Deny};
    let spec = spec(false, None, None);
    let says = |effect| match effect {
        Allow => Runs,
        Deny => Denied,
        Ask => Asks,
    };
    let matches = [everything(), server(SERVER), tool(TOOL)];
    for (a, first) in matches.iter().enumerate() {
        for (b, second) in matches.iter().enumerate() {
            for one in [Allow, Deny, Ask] {
                for two in [Allow, Deny, Ask] {
                    let policy = policy(&[(first.clone(), one), (second.clone(), two)]);
                    let winner = if a > b { one } else { two };
                    assert_eq!(outcome(&policy, &spec), says(winner), "{policy:?}");
                }
            }
        }
    }
}

#[test]
fn a_decision_names_its_rule() {
    let rule = Rule { matches: tool(TOOL), effect: RuleEffect::Deny };
    let policy = Policy { rules: vec![rule.clone()] };
    assert_eq!(decide(&policy, &call(), &spec(true, Some(true), None)), Decision::Deny(rule));
    let read_only = decide(&Policy::default(), &call(), &spec(true, Some(true), None));
    assert_eq!(read_only, Decision::Allow(None));
}
