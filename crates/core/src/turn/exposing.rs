//! Decides what a step offers to the model: which tools, where they stand, and whether the model is asked first.
//!
//! Invariant: a question to the model is bound to yes or no and tells nobody but the trace; where it fails, tools are
//! offered. What a tool is comes from its provider alone.

use std::collections::HashSet;

use futures::StreamExt;

use super::TurnInput;
use super::assemble::Assembler;
use super::compose;
use super::run::Turn;
use crate::clock::Stopwatch;
use crate::event::TurnError;
use crate::exposure::relevant::{Asked, Choice, choose};
use crate::exposure::{Exposure, ExposureReason, GateDecision, ToolExposure, gate, index};
use crate::ids::ToolName;
use crate::message::{Message, text_of};
use crate::model::{AnswerForm, ChatRequest, Sampling, ThinkingOptions, ToolChoice, ToolMode, ToolPlacement};
use crate::tool::ToolSpec;

/// Tokens that an answer of yes or no may take; models like to begin with a space or a line break.
const ANSWER_TOKENS: u32 = 4;

/// What a step offers.
#[derive(Clone, Default)]
pub(super) struct Offer {
    /// Tools whose definitions stand in the prompt.
    pub tools: Vec<ToolSpec>,
    pub placement: ToolPlacement,
    pub choice: ToolChoice,
    pub answer: AnswerForm,
    /// Stands in the instructions, the same in every step.
    pub index: Option<String>,
    /// Stands last.
    pub last_word: Option<&'static str>,
    /// For the trace.
    pub exposure: Option<Exposure>,
}

impl Offer {
    /// Whether the tools were taken away so that the model answers at last.
    pub fn is_forced(&self) -> bool {
        self.last_word.is_some()
    }
}

/// What a turn remembers of what it offered.
#[derive(Default)]
pub(super) struct Exposing {
    /// Tools whose definitions the model has seen in this turn.
    shown: HashSet<ToolName>,
    /// Tools that it asked for without having seen them, in order.
    wanted: Vec<ToolName>,
    /// The next step gets definitions without a question: a call was refused, or a definition is wanted.
    definitions_due: Option<ExposureReason>,
    /// The next step gets no tools.
    tools_end: Option<ExposureReason>,
    /// The gate's answer in this turn, when it was no.
    closed: bool,
    /// Results came since the model last decided.
    results: bool,
}

impl Exposing {
    /// The model gets these definitions next, without being asked.
    pub fn want(&mut self, tools: impl IntoIterator<Item = ToolName>) {
        for tool in tools {
            if !self.wanted.contains(&tool) {
                self.wanted.push(tool);
            }
        }
        self.definitions_due = Some(ExposureReason::Wanted);
    }

    /// A call was refused for its arguments: the model has to see the definitions to mend it.
    pub fn refused(&mut self) {
        self.definitions_due.get_or_insert(ExposureReason::Policy);
    }

    /// Results are there.
    pub fn got_results(&mut self) {
        self.results = true;
    }

    /// The next step has to do without tools.
    pub fn end_tools(&mut self, reason: ExposureReason) {
        self.tools_end = Some(reason);
    }

    /// Whether the model has seen the definition in this turn.
    pub fn has_shown(&self, tool: &ToolName) -> bool {
        self.shown.contains(tool)
    }
}

/// What the next step offers. May ask the model.
pub(super) async fn offer(turn: &mut Turn) -> Result<Offer, TurnError> {
    let policy = turn.input.exposure.tools;
    let all = all_tools(turn);
    let answer = turn.input.answer.clone();
    let mut exposure = Exposure {
        policy,
        reason: ExposureReason::Policy,
        chosen: Vec::new(),
        left_out: Vec::new(),
        left_out_count: 0,
        gate: None,
    };
    if all.is_empty() {
        exposure.reason =
            if policy == ToolExposure::Off { ExposureReason::Policy } else { ExposureReason::NoTools };
        return Ok(Offer { answer, exposure: Some(exposure), ..Offer::default() });
    }
    // The same whether tools are shown or not: what an earlier question told of them stays there.
    let mut offer = Offer { answer, placement: placement(policy), ..Offer::default() };
    let first = forced_call(turn, &all);
    let history = match policy {
        ToolExposure::Relevant => compose::history(turn)?,
        ToolExposure::Always | ToolExposure::Deciding | ToolExposure::LastUser | ToolExposure::Off => {
            Vec::new()
        }
    };
    let choice = chosen(&turn.input, &all, &history, &turn.exposing.wanted);
    offer.index = choice.needs_index.then(|| index::index(&all));
    if let Some(reason) = turn.exposing.tools_end.take() {
        exposure.reason = reason;
        exposure.left_out_count = count(all.len());
        offer.last_word = last_word(reason);
        offer.exposure = Some(exposure);
        return Ok(offer);
    }
    let due = turn.exposing.definitions_due.take().or(first.as_ref().map(|_| ExposureReason::Policy));
    exposure.gate = match due {
        Some(_) => None,
        None => ask_gate(turn, &all, &choice, &offer).await?,
    };
    let closed = exposure.gate.as_ref().map_or(turn.exposing.closed && due.is_none(), |gate| !gate.open);
    exposure.reason = due.unwrap_or(ExposureReason::Policy);
    if closed {
        close(turn, &mut offer, &mut exposure, &choice, all.len());
    } else {
        open(turn, &mut offer, &mut exposure, choice);
    }
    if let Some(first) = first {
        offer.choice = first;
        offer.answer = AnswerForm::Free;
    }
    turn.exposing.results = false;
    offer.exposure = Some(exposure);
    Ok(offer)
}

/// What the first step was told to call; none in later steps, and where nothing was said.
fn forced_call(turn: &mut Turn, all: &[ToolSpec]) -> Option<ToolChoice> {
    match std::mem::take(&mut turn.input.first_choice) {
        ToolChoice::Auto | ToolChoice::None => None,
        ToolChoice::Required => Some(ToolChoice::Required),
        ToolChoice::Tool(name) => {
            // Whatever else is chosen, this one is shown.
            let there = all.iter().any(|spec| spec.name == name);
            turn.input.exposure.pinned.push(name.clone());
            there.then_some(ToolChoice::Tool(name))
        }
    }
}

/// All tools that may be offered in this turn.
pub(super) fn all_tools(turn: &Turn) -> Vec<ToolSpec> {
    offerable(&turn.input)
}

/// All tools that may be offered in a turn with this input.
pub(super) fn offerable(input: &TurnInput) -> Vec<ToolSpec> {
    match (input.tool_mode, input.exposure.tools) {
        (ToolMode::Off, _) | (_, ToolExposure::Off) => Vec::new(),
        (
            ToolMode::Native | ToolMode::Prompted,
            ToolExposure::Always | ToolExposure::Deciding | ToolExposure::LastUser | ToolExposure::Relevant,
        ) => input.tools.tools().to_vec(),
    }
}

fn close(turn: &mut Turn, offer: &mut Offer, exposure: &mut Exposure, choice: &Choice, all: usize) {
    exposure.reason =
        if turn.exposing.results { ExposureReason::Synthesis } else { ExposureReason::GateClosed };
    exposure.left_out_count = count(all);
    offer.choice = ToolChoice::None;
    turn.exposing.closed = true;
    if turn.input.exposure.tools == ToolExposure::Always {
        // Behind them stands the whole history, which would have to be read anew.
        offer.tools.clone_from(&choice.tools);
    }
}

fn open(turn: &mut Turn, offer: &mut Offer, exposure: &mut Exposure, choice: Choice) {
    let bound = std::mem::take(&mut offer.answer) != AnswerForm::Free;
    // The form would hold a call too; that a call is needed was said.
    offer.choice = if bound { ToolChoice::Required } else { ToolChoice::Auto };
    turn.exposing.closed = false;
    turn.exposing.shown.extend(choice.tools.iter().map(|spec| spec.name.clone()));
    offer.tools = choice.tools;
    exposure.chosen = choice.chosen;
    exposure.left_out = choice.left_out;
    exposure.left_out_count = choice.left_out_count;
}

pub(super) fn placement(policy: ToolExposure) -> ToolPlacement {
    match policy {
        // A local model keeps the beginnings with and without definitions side by side; behind the question they would
        // be read anew in every turn.
        ToolExposure::Always | ToolExposure::Deciding | ToolExposure::Off => ToolPlacement::System,
        ToolExposure::LastUser | ToolExposure::Relevant => ToolPlacement::LastUser,
    }
}

/// The tools that the policy would show now.
///
/// `history` ends with the present turn, and is looked at by [`ToolExposure::Relevant`] alone.
pub(super) fn chosen(
    input: &TurnInput,
    all: &[ToolSpec],
    history: &[Message],
    wanted: &[ToolName],
) -> Choice {
    match input.exposure.tools {
        ToolExposure::Always | ToolExposure::Deciding | ToolExposure::LastUser | ToolExposure::Off => {
            Choice { tools: all.to_vec(), ..Choice::default() }
        }
        ToolExposure::Relevant => {
            let question = text_of(&input.message.parts);
            let mut turns = turns_before(history);
            turns.push(Asked { question, wanted: wanted.to_vec() });
            choose(all, &input.exposure, &turns)
        }
    }
}

/// Whether a turn begins with the question whether a tool is needed at all.
pub(super) fn asks_first(input: &TurnInput) -> bool {
    input.exposure.gate || input.answer != AnswerForm::Free
}

/// The turns before the present one, and what was called in them.
fn turns_before(history: &[Message]) -> Vec<Asked> {
    let mut turns: Vec<Asked> = Vec::new();
    for message in history {
        match message {
            Message::User(user) => {
                turns.push(Asked { question: text_of(&user.parts), wanted: Vec::new() });
            }
            Message::Tool(result) => {
                let called = turns.last_mut().map(|turn| &mut turn.wanted);
                if let Some(called) = called.filter(|called| !called.contains(&result.tool)) {
                    called.push(result.tool.clone());
                }
            }
            Message::Assistant(_) => {}
        }
    }
    turns.pop();
    turns
}

/// Asks whether a tool is needed, where the policy wants to know.
async fn ask_gate(
    turn: &mut Turn,
    all: &[ToolSpec],
    choice: &Choice,
    offer: &Offer,
) -> Result<Option<GateDecision>, TurnError> {
    let policy = &turn.input.exposure;
    let bound = turn.input.answer != AnswerForm::Free;
    let shown = policy.tools == ToolExposure::Always;
    let question = if turn.exposing.results {
        (policy.tools == ToolExposure::Deciding || bound).then(|| gate::needs_more(all))
    } else if turn.exposing.closed {
        None
    } else {
        asks_first(&turn.input).then(|| gate::needs_tool(all, shown))
    };
    let Some(question) = question else { return Ok(None) };
    // With the definitions in their usual place what is read for the question is not read again for the step.
    let tools = if shown { choice.tools.clone() } else { Vec::new() };
    let asked = Offer { tools, placement: offer.placement, index: offer.index.clone(), ..Offer::default() };
    let request = yes_or_no(compose::composed(turn, &asked)?.request, &question);
    put(turn, request).await.map(Some)
}

/// The request with a question behind it that is answered yes or no. Nobody thinks about that.
pub(super) fn yes_or_no(mut request: ChatRequest, question: &str) -> ChatRequest {
    compose::append(&mut request, question);
    request.answer = AnswerForm::Grammar(gate::GRAMMAR.to_owned());
    request.thinking = ThinkingOptions { enabled: Some(false), budget: None };
    request.sampling =
        Sampling { temperature: Some(0.0), max_tokens: Some(ANSWER_TOKENS), ..Sampling::default() };
    request
}

async fn put(turn: &mut Turn, request: ChatRequest) -> Result<GateDecision, TurnError> {
    let watch = Stopwatch::start();
    let mut stream = turn.input.model.stream(request, turn.cancel.clone());
    let mut reply = Assembler::new(turn.input.model.info().id.clone());
    let mut problem = None;
    let mut used = HashSet::new();
    loop {
        let delta = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => return Err(TurnError::interrupted()),
            delta = stream.next() => delta,
        };
        match delta {
            // The first load of a model is the longest wait of all; it is shown whatever it is for.
            Some(Ok(delta)) => _ = reply.take(delta, &mut used),
            Some(Err(error)) => {
                problem = Some(error.message);
                break;
            }
            None => break,
        }
    }
    let answer = gate::answer(&reply.whole());
    if answer.is_none() && problem.is_none() {
        problem = Some("the model said neither yes nor no".to_owned());
    }
    Ok(GateDecision {
        open: answer.unwrap_or(true),
        answer,
        problem,
        took_ms: watch.millis(),
        usage: reply.usage,
    })
}

/// What a model is told that has to do without tools from now on.
fn last_word(reason: ExposureReason) -> Option<&'static str> {
    match reason {
        ExposureReason::EmptyAnswer => {
            Some("Answer my question now, from what the tools returned above. Say so if it is not there.")
        }
        ExposureReason::Repeating => Some(
            "You made the same calls again. Tools can't be called any more: answer now from what they returned, and \
             say what you could not find out.",
        ),
        ExposureReason::Policy
        | ExposureReason::NoTools
        | ExposureReason::GateClosed
        | ExposureReason::Synthesis
        | ExposureReason::Wanted => None,
    }
}

fn count(tools: usize) -> u32 {
    u32::try_from(tools).unwrap_or(u32::MAX)
}
