//! Which tools a model gets to see in a step, and what is told about it.
//!
//! Small models that have the definitions of tools before them all the time call without need, or answer nothing once
//! a result is there; many tools fill a context. So the definitions are exposed by a policy, chosen for each model.
//!
//! Invariant: pure. What is chosen depends on the tools, the policy and the conversation alone, never on a clock or on
//! the order of a map, so that the same step always has the same prompt.

pub(crate) mod gate;
pub(crate) mod index;
mod rank;
pub(crate) mod relevant;
mod words;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::ids::ToolName;
use crate::model::Usage;

pub use index::FINDER;

/// Tools that are shown in full, unless another number is given, with [`ToolExposure::Relevant`].
pub const USUAL_RELEVANT: u32 = 8;

/// When the definitions of tools stand in the prompt, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/exposure.ts")]
pub enum ToolExposure {
    /// In every step, where the model's template puts them.
    #[default]
    Always,
    /// Where the model's template puts them, and only while the model decides what to call. Once results are there, it is
    /// asked whether it needs another call; if not, it answers without definitions.
    Deciding,
    /// In every step, behind the last user message at the time when they were first shown or last changed: the history
    /// before it stays as it was evaluated.
    LastUser,
    /// A short list of names stays at the beginning; the definitions that fit the question best stand behind it. They stay
    /// there; with a later question come those that were not shown yet.
    Relevant,
    /// Never.
    Off,
}

/// How tools are exposed to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/exposure.ts")]
pub struct ExposurePolicy {
    /// When and where.
    pub tools: ToolExposure,
    /// Tools that [`ToolExposure::Relevant`] shows in full with a question at most. Pinned ones, and those already used in
    /// the turn, come on top, and as many again that were shown with earlier questions.
    pub relevant: u32,
    /// Whether the model is first asked, bound to yes or no, if it needs a tool at all.
    pub gate: bool,
    /// Tools that the user wants to be shown in full whatever the question.
    pub pinned: Vec<ToolName>,
}

impl Default for ExposurePolicy {
    fn default() -> Self {
        Self { tools: ToolExposure::Always, relevant: USUAL_RELEVANT, gate: false, pinned: Vec::new() }
    }
}

/// Which tools were offered in a step and why, for the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/exposure.ts")]
pub struct Exposure {
    /// The policy.
    pub policy: ToolExposure,
    /// What decided about this step.
    pub reason: ExposureReason,
    /// Why each tool was offered, when the policy chose among them; empty when all or none were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<ChosenTool>,
    /// Tools that were left out, the nearest first, [`MAX_LEFT_OUT`] at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutTool>,
    /// How many were left out in all.
    pub left_out_count: u32,
    /// What the gate, or the question whether another call is needed, came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub gate: Option<GateDecision>,
}

/// Tools that the trace names as left out.
pub const MAX_LEFT_OUT: usize = 20;

/// What decided which tools a step offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/exposure.ts")]
pub enum ExposureReason {
    /// The policy alone.
    Policy,
    /// There are no tools, or this model is not to get any.
    NoTools,
    /// The model said that it needs no tool.
    GateClosed,
    /// Results are there, and the model said that it needs no further call: it answers now.
    Synthesis,
    /// It called a tool whose definition it had not seen; it sees it now.
    Wanted,
    /// It answered nothing after its tools; it is asked once more, without them.
    EmptyAnswer,
    /// It kept repeating the same calls; it has to answer with what is there.
    Repeating,
}

/// A tool that a policy chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/exposure.ts")]
pub struct ChosenTool {
    /// Its public name.
    pub tool: ToolName,
    /// Why it was chosen.
    pub why: ChosenBecause,
    /// How well it fits the question (BM25, higher is better); none where nothing was compared.
    pub score: Option<f32>,
}

/// Why a tool was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/exposure.ts")]
pub enum ChosenBecause {
    /// The user pinned it.
    Pinned,
    /// The model asked for it by name.
    Wanted,
    /// It was called in this conversation not long ago.
    Used,
    /// It fits the question.
    Relevant,
    /// It was shown with an earlier question, and stands there.
    Shown,
    /// There was room for it.
    Room,
    /// It finds other tools of the list.
    Finder,
}

/// A tool that a policy left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/exposure.ts")]
pub struct LeftOutTool {
    /// Its public name.
    pub tool: ToolName,
    /// How well it fits the question (BM25); none where nothing was compared.
    pub score: Option<f32>,
}

/// What a question to the model, bound to yes or no, came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/exposure.ts")]
pub struct GateDecision {
    /// Whether tools are offered.
    pub open: bool,
    /// What it said; none when it said neither yes nor no, and the tools are offered.
    pub answer: Option<bool>,
    /// Why there is no answer, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub problem: Option<String>,
    /// Milliseconds from the question to the answer.
    pub took_ms: u32,
    /// What it cost. Its prompt is the beginning of the step's, so most of it is not lost.
    pub usage: Usage,
}
