//! Counts what the API does, for `GET /metrics` and for the window.
//!
//! Invariant: no word of a request is in a label. Labels have values of ours and names of tools; those are told by servers,
//! so no more than [`MOST_TOOLS`] of them are told apart.

pub mod http;
mod shown;
pub mod turn;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lectern_core::{Timestamp, ToolOutcome, Usage, clock};
use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
};

/// Tools that are told apart.
const MOST_TOOLS: usize = 200;

/// What stands for all other tools, and for names that no server has.
const OTHER: &str = "other";

/// Seconds; answers of small models take parts of one, of large ones minutes.
const SECONDS: [f64; 12] = [0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0];

/// What is counted.
pub struct Metrics {
    since: Timestamp,
    registry: Registry,
    requests: IntCounterVec,
    running: IntGauge,
    request_time: HistogramVec,
    errors: IntCounterVec,
    answers: IntCounter,
    with_tools: IntCounter,
    first_token: Histogram,
    tool_calls: IntCounterVec,
    tool_time: HistogramVec,
    tokens: IntCounterVec,
    // A std mutex: nothing awaits while it is held.
    tools: Mutex<HashSet<String>>,
}

impl Metrics {
    /// Nothing is counted yet.
    pub fn new() -> Result<Self, prometheus::Error> {
        let counters = |name, help, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels);
        let times = |name: &str, help: &str| HistogramOpts::new(name, help).buckets(SECONDS.to_vec());
        let metrics = Self {
            since: clock::now(),
            registry: Registry::new(),
            requests: counters(
                "lectern_requests_total",
                "Requests that were answered.",
                &["path", "status"],
            )?,
            running: IntGauge::new("lectern_requests_running", "Requests that are being answered.")?,
            request_time: HistogramVec::new(
                times("lectern_request_seconds", "From a request to its last byte."),
                &["path"],
            )?,
            errors: counters("lectern_errors_total", "Errors that clients were told.", &["code"])?,
            answers: IntCounter::new("lectern_answers_total", "Answers of models that were begun.")?,
            with_tools: IntCounter::new(
                "lectern_answers_with_tools_total",
                "Answers in which a tool of a server ran.",
            )?,
            first_token: Histogram::with_opts(times(
                "lectern_first_token_seconds",
                "From a request to the first word or call.",
            ))?,
            tool_calls: counters(
                "lectern_tool_calls_total",
                "Calls of servers' tools.",
                &["tool", "outcome"],
            )?,
            tool_time: HistogramVec::new(times("lectern_tool_seconds", "How long calls ran."), &["tool"])?,
            tokens: counters(
                "lectern_tokens_total",
                "Tokens of prompts, those of them that were evaluated before, and tokens that were written.",
                &["kind"],
            )?,
            tools: Mutex::default(),
        };
        metrics.all().into_iter().try_for_each(|one| metrics.registry.register(one))?;
        Ok(metrics)
    }

    fn all(&self) -> [Box<dyn Collector>; 10] {
        [
            Box::new(self.requests.clone()),
            Box::new(self.running.clone()),
            Box::new(self.request_time.clone()),
            Box::new(self.errors.clone()),
            Box::new(self.answers.clone()),
            Box::new(self.with_tools.clone()),
            Box::new(self.first_token.clone()),
            Box::new(self.tool_calls.clone()),
            Box::new(self.tool_time.clone()),
            Box::new(self.tokens.clone()),
        ]
    }

    /// A model begins an answer.
    pub fn answer(&self) {
        self.answers.inc();
    }

    /// The first word of an answer.
    pub fn first_token(&self, after: Duration) {
        self.first_token.observe(after.as_secs_f64());
    }

    /// What a reply cost.
    pub fn tokens(&self, usage: &Usage) {
        for (kind, tokens) in [
            ("prompt", usage.prompt_tokens),
            ("reused", usage.reused_tokens),
            ("written", usage.generated_tokens),
        ] {
            add(&self.tokens, &[kind], tokens.into());
        }
    }

    /// The first tool of an answer runs.
    pub fn tools_ran(&self) {
        self.with_tools.inc();
    }

    /// A client was told of an error.
    pub fn error(&self, code: &'static str) {
        add(&self.errors, &[code], 1);
    }

    /// A call came to its end; none where no server has such a tool.
    pub fn tool(&self, tool: Option<&str>, outcome: ToolOutcome, ran: Option<Duration>) {
        let tool = self.label(tool);
        let outcome = match outcome {
            ToolOutcome::Succeeded => "succeeded",
            ToolOutcome::Failed => "failed",
            ToolOutcome::Denied => "denied",
            ToolOutcome::Cancelled => "cancelled",
        };
        add(&self.tool_calls, &[&tool, outcome], 1);
        if let Some(ran) = ran {
            observe(&self.tool_time, &tool, ran);
        }
    }

    fn label(&self, tool: Option<&str>) -> String {
        let Some(tool) = tool else { return OTHER.to_owned() };
        let mut known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(tool) {
            if known.len() >= MOST_TOOLS {
                return OTHER.to_owned();
            }
            known.insert(tool.to_owned());
        }
        tool.to_owned()
    }
}

/// There are always as many values as labels; a count is not worth more than the request that is counted.
fn add(counters: &IntCounterVec, labels: &[&str], count: u64) {
    if let Ok(counter) = counters.get_metric_with_label_values(labels) {
        counter.inc_by(count);
    }
}

fn observe(times: &HistogramVec, label: &str, time: Duration) {
    if let Ok(times) = times.get_metric_with_label_values(&[label]) {
        times.observe(time.as_secs_f64());
    }
}
