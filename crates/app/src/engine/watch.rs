//! Looking at a server at work: its log, its messages, and what the doctor finds.
//!
//! Invariant: reading never waits for a server, and what is read is masked.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lectern_core::ServerId;
use lectern_mcp::doctor::{Check, Step, Verdict};

use super::{Engine, unknown_server};
use crate::view::{
    CheckOutcome, DoctorCheck, DoctorReport, DoctorStep, LogLine, LogPage, Problem, TrafficMessage,
    TrafficPage,
};

impl Engine {
    /// What a server wrote to stderr and logged, after this number; 0 for all that is kept.
    pub fn server_log(&self, id: &ServerId, after: u64) -> Result<LogPage, Problem> {
        let page = self.0.host.log(id, after).map_err(|_| unknown_server(id))?;
        let lines = page.lines.into_iter().map(|line| LogLine {
            number: line.number,
            at: Some(line.at),
            text: line.text.to_string(),
        });
        Ok(LogPage { lines: lines.collect(), next: page.next })
    }

    /// The messages between Lectern and a server, after this number; 0 for all that are kept.
    pub fn server_traffic(&self, id: &ServerId, after: u64) -> Result<TrafficPage, Problem> {
        let page = self.0.host.traffic(id, after).map_err(|_| unknown_server(id))?;
        let messages = page.messages.into_iter().map(|message| TrafficMessage {
            number: message.number,
            at: message.at,
            direction: message.direction,
            id: message.id,
            method: message.method,
            bytes: message.bytes as u64,
            message: message.message,
        });
        Ok(TrafficPage { messages: messages.collect(), next: page.next })
    }

    /// The servers that the doctor visits when none is named: those that are not disabled, and those that can't be run.
    pub fn servers_to_examine(&self) -> Vec<ServerId> {
        let unusable: Vec<ServerId> =
            self.state().unusable.iter().map(|unusable| unusable.id.as_str().into()).collect();
        self.0.enabled.iter().cloned().chain(unusable).collect()
    }

    /// Examines a server step by step; each check is told as it is made.
    pub async fn doctor(
        &self,
        id: &ServerId,
        on_check: impl Fn(&DoctorCheck) + Send + Sync,
    ) -> Result<DoctorReport, Problem> {
        let checks = Mutex::new(Vec::new());
        let tell = |check: Check| {
            let check = view_of(check);
            on_check(&check);
            checks.lock().unwrap_or_else(PoisonError::into_inner).push(check);
        };
        match self.why_unusable(id) {
            Some(says) => tell(Check {
                step: Step::Executable,
                verdict: Verdict::Failed,
                took: Duration::ZERO,
                says,
                hint: Some("Correct its entry in the settings.".to_owned()),
            }),
            None => _ = self.0.host.examine(id, tell).await.map_err(|_| unknown_server(id))?,
        }
        let checks = checks.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(DoctorReport { server: id.clone(), checks })
    }

    fn why_unusable(&self, id: &ServerId) -> Option<String> {
        let state = self.state();
        state.unusable.iter().find(|unusable| unusable.id == id.as_str()).map(|it| it.reason.clone())
    }
}

fn view_of(check: Check) -> DoctorCheck {
    DoctorCheck {
        step: match check.step {
            Step::Path => DoctorStep::Path,
            Step::Executable => DoctorStep::Executable,
            Step::Version => DoctorStep::Version,
            Step::Address => DoctorStep::Address,
            Step::Spawn => DoctorStep::Spawn,
            Step::SignIn => DoctorStep::SignIn,
            Step::Handshake => DoctorStep::Handshake,
            Step::List => DoctorStep::List,
            Step::Call => DoctorStep::Call,
        },
        outcome: match check.verdict {
            Verdict::Passed => CheckOutcome::Passed,
            Verdict::Failed => CheckOutcome::Failed,
            Verdict::Skipped => CheckOutcome::Skipped,
        },
        took_ms: u64::try_from(check.took.as_millis()).unwrap_or(u64::MAX),
        says: check.says,
        hint: check.hint,
    }
}
