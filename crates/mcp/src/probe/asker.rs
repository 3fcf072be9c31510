//! Answers forms without a person.
//!
//! Invariant: nothing is opened and no model is asked.

use futures::future::{BoxFuture, FutureExt, ready};
use lectern_core::{Asker, Question, QuestionAnswer, Reply, ServerId};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Elicitation;
use super::arguments::arguments;

/// Answers each form the same way.
#[derive(Debug)]
pub(super) struct Defaults(pub(super) Elicitation);

impl Asker for Defaults {
    fn ask(&self, _: ServerId, question: Question, _: CancellationToken) -> BoxFuture<'static, Reply> {
        let answer = match (self.0, question) {
            (Elicitation::AcceptDefaults, Question::Form { fields, schema, .. }) => {
                let mut content = arguments(&schema);
                for field in fields {
                    if let Some(default) = field.default.filter(|default| *default != Value::Null) {
                        content.insert(field.name, default);
                    }
                }
                QuestionAnswer::Accepted { content: Some(content) }
            }
            (Elicitation::AcceptDefaults, Question::Url { .. }) => QuestionAnswer::Accepted { content: None },
            (Elicitation::Decline, _) | (_, Question::Sampling { .. } | Question::SamplingReply { .. }) => {
                QuestionAnswer::Declined
            }
        };
        ready(Reply::Answer(answer)).boxed()
    }
}
