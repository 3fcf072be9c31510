//! Which tools a model gets to see: policy by policy, the gate, and many tools.

use lectern_core::Message;
use lectern_core::exposure::{ChosenBecause, Exposure, ExposureReason, FINDER};
use lectern_core::model::ToolPlacement;
use lectern_core::testing::{Beat, Behaviour, ScriptedModel, ScriptedTools, calls, fails, says, tool};
use lectern_core::turn::likely_request;
use lectern_core::{
    AnswerForm, ChatRequest, Event, EventKind, ExposurePolicy, ModelErrorCode, ResultNote, ToolChoice,
    ToolExposure, ToolMode, ToolOutcome, ToolSpec, TurnInput, TurnOutcome, UserMessage,
};
use serde_json::json;

use crate::app::{App, all_events, finish};

fn named(name: &str, description: &str) -> ToolSpec {
    let properties = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ToolSpec { description: description.to_owned(), input_schema: properties, ..tool(name, true) }
}

fn notes() -> ScriptedTools {
    ScriptedTools::new()
        .with(named("notes__search", "Searches all notes."), Behaviour::Answers("From A.md: it is blue."))
        .with(named("notes__read", "Reads one note."), Behaviour::Answers("It is blue."))
}

fn with(policy: ToolExposure, gate: bool, model: ScriptedModel, tools: ScriptedTools) -> App {
    let mut app = App::with_model(model, tools);
    app.exposure = ExposurePolicy { tools: policy, gate, ..ExposurePolicy::default() };
    app
}

fn names(request: &ChatRequest) -> Vec<&str> {
    request.tools.iter().map(|spec| spec.name.as_str()).collect()
}

fn exposures(events: &[Event]) -> Vec<Exposure> {
    let started = events.iter().filter_map(|event| match &event.kind {
        EventKind::StepStarted { exposure, .. } => exposure.clone(),
        _ => None,
    });
    started.collect()
}

fn is_question(request: &ChatRequest) -> bool {
    matches!(&request.answer, AnswerForm::Grammar(grammar) if grammar.contains("yes"))
}

#[tokio::test(start_paused = true)]
async fn always_and_last_user_differ_in_the_place_alone() {
    for (policy, place) in
        [(ToolExposure::Always, ToolPlacement::System), (ToolExposure::LastUser, ToolPlacement::LastUser)]
    {
        let script = [calls("notes__read", json!({"path": "A.md"})), says("Blue.")];
        let app = with(policy, false, ScriptedModel::new(script), notes());
        assert_eq!(app.ask("Which colour?").await, TurnOutcome::Completed);
        for request in app.model.requests() {
            assert_eq!(names(&request), ["notes__search", "notes__read"]);
            assert_eq!(request.tool_placement, place);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn off_offers_nothing_and_the_trace_says_so() {
    let app = with(ToolExposure::Off, true, ScriptedModel::new([says("Hello.")]), notes());
    let turn = app.send("Hi");
    let events = all_events(&turn).await;
    assert!(app.model.requests()[0].tools.is_empty());
    assert_eq!(exposures(&events)[0].policy, ToolExposure::Off);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_asked_for_is_forced_in_the_first_step_alone() {
    for (policy, gate) in [
        (ToolExposure::Always, false),
        (ToolExposure::Always, true),
        (ToolExposure::Deciding, false),
        (ToolExposure::LastUser, false),
    ] {
        for choice in [ToolChoice::Required, ToolChoice::Tool("notes__read".into())] {
            let script = [calls("notes__read", json!({"path": "A.md"})), says("no"), says("Blue.")];
            let mut app = with(policy, gate, ScriptedModel::new(script), notes());
            app.first_choice = choice.clone();
            app.answer = AnswerForm::JsonSchema(json!({"type": "string"}));
            assert_eq!(app.ask("Which colour?").await, TurnOutcome::Completed);
            let requests = app.model.requests();
            assert_eq!((&requests[0].tool_choice, &requests[0].answer), (&choice, &AnswerForm::Free));
            assert_eq!(names(&requests[0]), ["notes__search", "notes__read"]);
            assert!(is_question(&requests[1]));
            assert_ne!(requests[2].tool_choice, choice);
            assert_eq!(requests[2].answer, app.answer);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_named_tool_is_shown_whatever_else_is_chosen() {
    let tools = (0..40).map(|number| named(&format!("notes__colour_{number}"), "Tells the colour."));
    let tools = tools.chain([named("notes__odd", "Something else.")]);
    let tools = tools.fold(ScriptedTools::new(), |all, spec| all.with(spec, Behaviour::Answers("Blue.")));
    let script = [calls("notes__odd", json!({})), says("Blue.")];
    let mut app = with(ToolExposure::Relevant, false, ScriptedModel::new(script), tools);
    app.first_choice = ToolChoice::Tool("notes__odd".into());
    assert_eq!(app.ask("Which colour?").await, TurnOutcome::Completed);
    let requests = app.model.requests();
    assert_eq!(requests[0].tool_choice, app.first_choice);
    assert!(names(&requests[0]).contains(&"notes__odd"));
    assert_eq!(requests[1].tool_choice, ToolChoice::Auto);
}

#[tokio::test(start_paused = true)]
async fn definitions_are_there_while_it_decides_and_gone_when_it_answers() {
    let script = [calls("notes__read", json!({"path": "A.md"})), says("no"), says("It is blue.")];
    let app = with(ToolExposure::Deciding, false, ScriptedModel::new(script), notes());
    let turn = app.send("Which colour?");
    let events = all_events(&turn).await;
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    let [deciding, asked, answering] = &app.model.requests()[..] else { panic!() };
    assert_eq!((names(deciding).len(), deciding.tool_placement), (2, ToolPlacement::System));
    assert!(is_question(asked) && asked.tools.is_empty());
    assert!(answering.tools.is_empty());
    // While the tool ran it read the same up to the result; for the next turn it reads with definitions.
    let [answer, question] = &app.model.prepared()[..] else { panic!() };
    let known = answer.messages.len() - 1;
    assert!(answer.tools.is_empty() && question.tools == deciding.tools);
    assert_eq!(answer.messages[..known], answering.messages[..known]);
    assert!(matches!(answer.messages[known], Message::Tool(_)));
    assert_eq!(question.messages[..=known], answering.messages[..=known]);
    assert!(matches!(question.messages[known + 1..], [Message::Assistant(_), Message::User(_)]));
    // What was read for the question is the beginning of what is read for the answer.
    assert_eq!(asked.messages[..answering.messages.len()], answering.messages[..]);
    assert_eq!((&asked.system, &deciding.system), (&answering.system, &answering.system));
    let reasons: Vec<_> = exposures(&events).iter().map(|exposure| exposure.reason).collect();
    assert_eq!(reasons, [ExposureReason::Policy, ExposureReason::Synthesis]);
    let gate = exposures(&events)[1].gate.clone().unwrap();
    assert_eq!((gate.open, gate.answer), (false, Some(false)));
}

#[tokio::test(start_paused = true)]
async fn a_further_call_is_possible_while_deciding() {
    let script = [
        calls("notes__search", json!({})),
        says("Yes"),
        calls("notes__read", json!({"path": "A.md"})),
        says("no"),
        says("It is blue."),
    ];
    let app = with(ToolExposure::Deciding, false, ScriptedModel::new(script), notes());
    assert_eq!(app.ask("Which colour?").await, TurnOutcome::Completed);
    assert_eq!(app.tools.calls().len(), 2);
    let offered: Vec<usize> = app.model.requests().iter().map(|request| request.tools.len()).collect();
    assert_eq!(offered, [2, 0, 2, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_call_during_the_answer_runs_when_its_definition_was_seen() {
    let script = [
        calls("notes__search", json!({})),
        says("no"),
        calls("notes__read", json!({"path": "A.md"})),
        says("no"),
        says("It is blue."),
    ];
    let app = with(ToolExposure::Deciding, false, ScriptedModel::new(script), notes());
    assert_eq!(app.ask("Which colour?").await, TurnOutcome::Completed);
    assert_eq!(app.tools.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_bring_the_definitions_back_without_a_question() {
    let script = [
        calls("notes__read", json!({"path": 5})),
        calls("notes__read", json!({"path": "A.md"})),
        says("no"),
        says("Blue."),
    ];
    let app = with(ToolExposure::Deciding, false, ScriptedModel::new(script), notes());
    assert_eq!(app.ask("Which colour?").await, TurnOutcome::Completed);
    let requests = app.model.requests();
    assert_eq!((requests[1].tools.len(), is_question(&requests[1])), (2, false));
}

#[tokio::test(start_paused = true)]
async fn thanks_need_no_tools() {
    for policy in
        [ToolExposure::Always, ToolExposure::LastUser, ToolExposure::Deciding, ToolExposure::Relevant]
    {
        let script = [says("no"), says("You are welcome.")];
        let app = with(policy, true, ScriptedModel::new(script), notes());
        let turn = app.send("Thank you!");
        let events = all_events(&turn).await;
        let [asked, answering] = &app.model.requests()[..] else { panic!("{policy:?}") };
        assert!(is_question(asked) && asked.sampling.temperature == Some(0.0));
        assert!(asked.tail.as_ref().is_some_and(|tail| tail.contains("yes or no")), "{policy:?}");
        assert_eq!(asked.conversation, answering.conversation, "the cache is shared");
        assert_eq!(answering.tool_choice, ToolChoice::None);
        assert_eq!(asked.tools, answering.tools, "what stands before the history stays");
        assert_eq!(answering.tools.is_empty(), policy != ToolExposure::Always);
        let EventKind::StepStarted { tools, exposure: Some(exposure), .. } = &events[1].kind else {
            panic!()
        };
        assert_eq!((tools.len(), exposure.reason), (0, ExposureReason::GateClosed));
        assert_eq!(exposure.gate.as_ref().unwrap().answer, Some(false));
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_says_nothing_clear_stays_open() {
    let unclear = [says("perhaps"), fails(ModelErrorCode::Provider, "no grammar here")];
    for first in unclear {
        let app = with(ToolExposure::Always, true, ScriptedModel::new([first, says("Blue.")]), notes());
        let turn = app.send("Which colour?");
        let events = all_events(&turn).await;
        assert_eq!(finish(&turn).await, TurnOutcome::Completed);
        assert_eq!(app.model.requests()[1].tools.len(), 2);
        let gate = exposures(&events)[0].gate.clone().unwrap();
        assert!(gate.open && gate.answer.is_none() && gate.problem.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_the_gate_ends_the_turn() {
    let slow = vec![Beat::Stall(std::time::Duration::from_secs(3600))];
    let app = with(ToolExposure::Always, true, ScriptedModel::new([slow]), notes());
    let turn = app.send("Which colour?");
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    turn.cancel();
    assert_eq!(finish(&turn).await, TurnOutcome::Cancelled);
    assert!(app.model.requests().len() == 1);
}

#[tokio::test(start_paused = true)]
async fn a_bound_answer_leaves_calls_their_own_form() {
    let script = [
        says("yes"),
        calls("notes__read", json!({"path": "A.md"})),
        says("no"),
        says(r#"{"colour":"blue"}"#),
    ];
    let mut app = with(ToolExposure::Always, false, ScriptedModel::new(script), notes());
    app.answer = AnswerForm::JsonSchema(json!({"type": "object"}));
    assert_eq!(app.ask("Which colour?").await, TurnOutcome::Completed);
    let requests = app.model.requests();
    assert_eq!((&requests[1].answer, &requests[1].tool_choice), (&AnswerForm::Free, &ToolChoice::Required));
    assert_eq!(requests[3].answer, app.answer);
    assert_eq!(requests[3].tool_choice, ToolChoice::None);
}

/// Three hundred tools of ten servers, some with names in other scripts.
fn many() -> ScriptedTools {
    let mut tools = ScriptedTools::new();
    for number in 0..297 {
        let spec = named(&format!("server{}__tool_{number}", number / 30), "Does something with a widget.");
        tools = tools.with(spec, Behaviour::Answers("done"));
    }
    tools
        .with(
            named("photos__resize_image", "Makes a picture smaller or larger."),
            Behaviour::Answers("resized"),
        )
        .with(
            named("wetter__vorhersage", "Sagt das Wetter der nächsten Tage voraus."),
            Behaviour::Answers("Regen"),
        )
        .with(named("笔记__搜索", "搜索所有笔记的内容。"), Behaviour::Answers("红烧肉"))
}

#[tokio::test(start_paused = true)]
async fn of_many_tools_the_fitting_ones_are_shown_in_any_language() {
    for (question, wanted) in [
        ("Please resize the image of my cat", "photos__resize_image"),
        ("Wie wird das Wetter morgen?", "wetter__vorhersage"),
        ("在笔记里搜索红烧肉", "笔记__搜索"),
    ] {
        let app = with(ToolExposure::Relevant, false, ScriptedModel::new([says("ok")]), many());
        let turn = app.send(question);
        let events = all_events(&turn).await;
        let request = &app.model.requests()[0];
        assert!(names(request).contains(&wanted), "{question}: {:?}", names(request));
        assert_eq!(names(request).len(), 9, "eight and the finder");
        assert_eq!(request.tool_placement, ToolPlacement::LastUser);
        let system = request.system.as_ref().unwrap();
        assert!(
            system.starts_with("Be brief.") && system.contains("server3__tool_99") && system.contains(wanted)
        );
        assert!(system.len() < 16_000, "{}", system.len());
        let exposure = &exposures(&events)[0];
        let chosen = exposure.chosen.iter().find(|chosen| chosen.tool.as_str() == wanted).unwrap();
        assert_eq!(chosen.why, ChosenBecause::Relevant);
        assert!(chosen.score > Some(0.0));
        assert_eq!((exposure.left_out.len(), exposure.left_out_count), (20, 292));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_the_list_is_shown_when_it_is_called_unseen() {
    let call = || calls("photos__resize_image", json!({"path": "cat.png"}));
    let app =
        with(ToolExposure::Relevant, false, ScriptedModel::new([call(), call(), says("Done.")]), many());
    let turn = app.send("Do it");
    let events = all_events(&turn).await;
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    let results = app.results();
    assert_eq!(results[0].note, Some(ResultNote::DefinitionShown));
    assert_eq!(results[1].outcome, ToolOutcome::Succeeded);
    let requests = app.model.requests();
    assert!(!names(&requests[0]).contains(&"photos__resize_image"));
    assert!(names(&requests[1]).contains(&"photos__resize_image"));
    assert_eq!(requests[0].system, requests[1].system, "the list stays");
    assert_eq!(names(&requests[1])[..8], names(&requests[0])[..8], "what was shown stays where it was");
    assert_eq!(exposures(&events)[1].reason, ExposureReason::Wanted);
}

#[tokio::test(start_paused = true)]
async fn the_finder_shows_what_it_is_asked_for() {
    let script = [
        calls(FINDER, json!({"query": "weather: wetter__vorhersage"})),
        calls("wetter__vorhersage", json!({})),
        says("Rain."),
    ];
    let app = with(ToolExposure::Relevant, false, ScriptedModel::new(script), many());
    assert_eq!(app.ask("Will it rain?").await, TurnOutcome::Completed);
    assert_eq!(app.results()[0].note, Some(ResultNote::Answered));
    assert_eq!(app.tools.calls().len(), 1, "no server saw the search");
    assert!(names(&app.model.requests()[1]).contains(&"wetter__vorhersage"));
}

#[tokio::test(start_paused = true)]
async fn pinned_tools_and_those_used_last_are_shown_whatever_the_question() {
    let script = [
        calls("server0__tool_3", json!({})),
        calls("server0__tool_3", json!({"path": "b"})),
        says("ok"),
        says("ok"),
    ];
    let mut app = with(ToolExposure::Relevant, false, ScriptedModel::new(script), many());
    app.exposure.pinned = vec!["笔记__搜索".into()];
    app.ask("resize the image").await;
    app.ask("And the other one?").await;
    let requests = app.model.requests();
    assert!(names(&requests[0]).contains(&"笔记__搜索"));
    let last = requests.last().unwrap();
    assert!(
        names(last).contains(&"server0__tool_3") && names(last).contains(&"photos__resize_image"),
        "{:?}",
        names(last)
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_shown_stays_and_more_comes_when_a_question_needs_it() {
    let areas = ["notes", "photos", "invoices", "mails"];
    let each = areas.iter().flat_map(|area| ["list", "find", "tags", "recent"].map(|what| (area, what)));
    let tools = each.fold(ScriptedTools::new(), |all, (area, what)| {
        let spec = named(&format!("{area}__{what}"), &format!("The {what} of {area}."));
        all.with(spec, Behaviour::Answers("?"))
    });
    let script = ScriptedModel::new([calls("notes__list", json!({})), says("ok")]);
    let mut app = with(ToolExposure::Relevant, false, script, tools);
    app.exposure.relevant = 4;
    app.ask("Which notes?").await;
    for question in ["Which other notes?", "Which photos?", "And which notes?", "Which invoices?", "Thanks!"]
    {
        app.model.then(says("ok"));
        app.ask(question).await;
    }
    let shown: Vec<String> = app
        .model
        .requests()
        .iter()
        .map(|request| {
            let areas = areas
                .iter()
                .map(|area| names(request).iter().filter(|name| name.starts_with(area)).count().to_string());
            areas.collect::<Vec<_>>().join(" ")
        })
        .collect();
    // The last but one would be more than two questions' worth, so it begins anew; the tool that was used last stays.
    assert_eq!(shown, ["4 0 0 0", "4 0 0 0", "4 0 0 0", "4 4 0 0", "4 4 0 0", "1 0 4 0", "1 0 4 0"]);
    let systems: Vec<_> = app.model.requests().iter().map(|request| request.system.clone()).collect();
    assert!(systems.iter().all(|system| *system == systems[0]), "the list of names never changes");
}

#[tokio::test(start_paused = true)]
async fn few_tools_need_no_list_and_no_finder() {
    let app = with(ToolExposure::Relevant, false, ScriptedModel::new([says("ok")]), notes());
    app.ask("hi").await;
    let request = &app.model.requests()[0];
    assert_eq!((names(request).len(), request.system.as_deref()), (2, Some("Be brief.")));
}

#[tokio::test(start_paused = true)]
async fn a_model_without_tools_gets_none_by_any_policy() {
    for policy in
        [ToolExposure::Always, ToolExposure::Deciding, ToolExposure::LastUser, ToolExposure::Relevant]
    {
        let mut app = with(policy, true, ScriptedModel::new([says("ok")]), notes());
        app.tool_mode = ToolMode::Off;
        assert_eq!(app.ask("hi").await, TurnOutcome::Completed);
        assert_eq!((app.model.requests().len(), app.model.requests()[0].tools.len()), (1, 0));
    }
}

/// Whether a request goes on like a likely one: the same but for the last message, and what stands behind it.
fn assert_goes_on(request: &ChatRequest, likely: &ChatRequest, at: &str) {
    let history = likely.messages.len() - 1;
    assert_eq!(request.system, likely.system, "{at}");
    assert_eq!(request.messages[..history], likely.messages[..history], "{at}");
    assert_eq!(request.messages.len(), likely.messages.len(), "{at}");
    assert_eq!(request.tool_placement, likely.tool_placement, "{at}");
    assert_eq!((request.tool_mode, request.thinking), (likely.tool_mode, likely.thinking), "{at}");
    assert_eq!(request.conversation, likely.conversation, "{at}");
    if likely.tool_placement == ToolPlacement::System {
        assert_eq!(names(request), names(likely), "{at}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_begins_with_what_can_be_read_while_its_message_is_typed() {
    let policies = [
        ToolExposure::Always,
        ToolExposure::Deciding,
        ToolExposure::LastUser,
        ToolExposure::Relevant,
        ToolExposure::Off,
    ];
    for (policy, gate) in policies.into_iter().flat_map(|policy| [(policy, false), (policy, true)]) {
        let many = (0..40).fold(notes(), |tools, at| {
            tools.with(named(&format!("far__tool_{at}"), "Does something else."), Behaviour::Answers("?"))
        });
        let model = ScriptedModel::new([says("no")]).repeating();
        let app = with(policy, gate, model, many);
        for turn in 0..3 {
            let typed = TurnInput { message: UserMessage::text("Search my no"), ..app.input("") };
            let likely = likely_request(&typed).unwrap();
            let before = app.model.requests().len();
            assert_eq!(app.ask("Search my notes for the colour.").await, TurnOutcome::Completed);
            let request = &app.model.requests()[before];
            assert_goes_on(request, &likely, &format!("{policy:?}, gate {gate}, turn {turn}"));
        }
    }
}
