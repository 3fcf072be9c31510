//! Chooses the tools that are shown in full when there are many.
//!
//! Invariant: pure. What was chosen for a question stays chosen while it is answered; later steps only add to it.

use super::index::{finder, is_finder};
use super::rank::{query, scores};
use super::{ChosenBecause, ChosenTool, ExposurePolicy, LeftOutTool, MAX_LEFT_OUT};
use crate::ids::ToolName;
use crate::tool::ToolSpec;

/// A word of an earlier question or call counts this much beside one of the question.
const RECENT_WEIGHT: f32 = 0.4;

/// Tools that one search of the finder adds at most.
const FOUND: usize = 5;

/// What the choice depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Situation<'a> {
    /// The user's question.
    pub question: &'a str,
    /// The one before it: "and the other one?" says little.
    pub earlier: &'a str,
    /// Tools called in the turns before, the last one first.
    pub recent: &'a [ToolName],
    /// Tools that the model asked for in this turn, by calling them or by the finder.
    pub wanted: &'a [ToolName],
}

/// The tools that are shown in full, and why.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// In the order in which they are shown: as the tools stand, what was wanted later behind them.
    pub tools: Vec<ToolSpec>,
    pub chosen: Vec<ChosenTool>,
    pub left_out: Vec<LeftOutTool>,
    pub left_out_count: u32,
    /// Whether there are more tools than are shown, so that the model needs the list of names.
    pub needs_index: bool,
}

/// Chooses among the tools.
pub(crate) fn choose(tools: &[ToolSpec], policy: &ExposurePolicy, situation: &Situation<'_>) -> Choice {
    let room = usize::try_from(policy.relevant).unwrap_or(usize::MAX).max(1);
    let recent = situation.recent.iter().map(|tool| (tool.as_str().to_owned(), RECENT_WEIGHT));
    let asked = [(situation.question.to_owned(), 1.0), (situation.earlier.to_owned(), RECENT_WEIGHT)];
    let question = query(asked.into_iter().chain(recent));
    let scores = scores(tools, &question);
    let ranked = ranked(&scores);
    let mut reasons: Vec<Option<ChosenBecause>> =
        tools.iter().map(|spec| because(spec, policy, situation)).collect();
    let fits = ranked.iter().filter(|at| scores[**at] > 0.0).map(|at| (*at, ChosenBecause::Relevant));
    let rest = ranked.iter().filter(|at| scores[**at] <= 0.0).map(|at| (*at, ChosenBecause::Room));
    let on_top = |at: &usize, reasons: &[Option<ChosenBecause>]| reasons[*at].is_some();
    let free: Vec<_> = fits.chain(rest).filter(|(at, _)| !on_top(at, &reasons)).take(room).collect();
    for (at, why) in free {
        reasons[at] = Some(why);
    }
    let mut choice = Choice::default();
    let wanted = |spec: &ToolSpec| situation.wanted.iter().position(|tool| *tool == spec.name);
    let mut order: Vec<usize> = (0..tools.len()).filter(|at| reasons[*at].is_some()).collect();
    order.sort_by_key(|at| {
        let late = reasons[*at] == Some(ChosenBecause::Wanted);
        (late, if late { wanted(&tools[*at]).unwrap_or(0) } else { *at })
    });
    for at in order {
        let Some(why) = reasons[at] else { continue };
        choice.chosen.push(ChosenTool { tool: tools[at].name.clone(), why, score: Some(scores[at]) });
        choice.tools.push(tools[at].clone());
    }
    let left = ranked.iter().filter(|at| reasons[**at].is_none());
    choice.left_out = left
        .clone()
        .take(MAX_LEFT_OUT)
        .map(|at| LeftOutTool { tool: tools[*at].name.clone(), score: Some(scores[*at]) })
        .collect();
    choice.left_out_count = u32::try_from(left.count()).unwrap_or(u32::MAX);
    choice.needs_index = choice.left_out_count > 0 || !situation.wanted.is_empty();
    if choice.needs_index {
        add_finder(tools, &mut choice);
    }
    choice
}

/// The tools that a search of the finder names: those called so, else those that fit best.
pub(crate) fn find(tools: &[ToolSpec], text: &str) -> Vec<ToolName> {
    let is_named = |spec: &&ToolSpec| {
        let named = |name: &str| {
            text.split(|c: char| c.is_whitespace() || ",;`'\"".contains(c)).any(|part| part == name)
        };
        named(spec.name.as_str()) || named(&spec.original_name)
    };
    let named: Vec<ToolName> =
        tools.iter().filter(is_named).map(|spec| spec.name.clone()).take(FOUND).collect();
    if !named.is_empty() {
        return named;
    }
    let scores = scores(tools, &query([(text.to_owned(), 1.0)]));
    let fitting = ranked(&scores).into_iter().filter(|at| scores[*at] > 0.0);
    fitting.take(FOUND).map(|at| tools[at].name.clone()).collect()
}

fn because(spec: &ToolSpec, policy: &ExposurePolicy, situation: &Situation<'_>) -> Option<ChosenBecause> {
    if policy.pinned.contains(&spec.name) {
        Some(ChosenBecause::Pinned)
    } else if situation.wanted.contains(&spec.name) {
        Some(ChosenBecause::Wanted)
    } else if situation.recent.iter().take(1).any(|tool| *tool == spec.name) {
        // "And the other one?" goes on with the tool that was used last.
        Some(ChosenBecause::Used)
    } else {
        None
    }
}

fn add_finder(tools: &[ToolSpec], choice: &mut Choice) {
    let finder = finder();
    if is_finder(&finder.name, tools) {
        choice.chosen.push(ChosenTool { tool: finder.name.clone(), why: ChosenBecause::Finder, score: None });
        choice.tools.push(finder);
    }
}

/// Positions, the best first.
fn ranked(scores: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // Stable: equal ones stay in the order of the tools.
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order
}
