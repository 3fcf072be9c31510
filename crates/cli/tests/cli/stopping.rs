//! What ends a turn from outside.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::{Duration, Instant};

use lectern_core::{Event, EventKind, TurnOutcome};

use crate::lectern::{Lectern, QUESTION, calls};

/// Only what is never ended takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn an_interrupt_cancels_the_turn_and_takes_the_servers_along() {
    let lectern = Lectern::new();
    let mut running = lectern.begin([QUESTION]);
    running.until(|kind| matches!(kind, EventKind::StepStarted { .. }));
    let children = children_of(running.id());
    assert!(!children.is_empty());
    signal(running.id(), libc::SIGINT);
    let (code, events) = running.end();
    // A fast machine may have finished before the signal came.
    match &events.last().unwrap().kind {
        EventKind::TurnFinished { outcome: TurnOutcome::Cancelled } => assert_eq!(code, Some(130)),
        other => panic!("{other:?}"),
    }
    wait_for_the_end_of(&children);
}

#[test]
fn a_model_that_is_killed_before_it_said_anything_is_started_again() {
    let lectern = Lectern::new();
    let (code, events) = killed_at(&lectern, |kind| matches!(kind, EventKind::StepStarted { .. }));
    let last = &events.last().unwrap().kind;
    assert!(matches!(last, EventKind::TurnFinished { outcome: TurnOutcome::Completed }), "{last:?}");
    assert_eq!((code, calls(&events).len()), (Some(0), 2));
}

#[test]
fn a_model_that_is_killed_while_it_speaks_costs_one_turn() {
    let lectern = Lectern::new();
    // It may have said all before the signal came.
    let found = (0..5).find_map(|_| {
        let (code, events) = killed_at(&lectern, |kind| matches!(kind, EventKind::TextDelta { .. }));
        let conversation = events[0].conversation.clone();
        match &events.last()?.kind {
            EventKind::TurnFinished { outcome: TurnOutcome::Failed { error } } => {
                assert_eq!(code, Some(1), "{error}");
                Some(conversation)
            }
            EventKind::TurnFinished { outcome: TurnOutcome::Completed } => None,
            other => panic!("{other:?}, calls {:?}", calls(&events)),
        }
    });
    let conversation = found.expect("one of five is killed in time");
    let again = lectern.ask(["--conversation", conversation.as_str(), QUESTION]);
    assert_eq!(*again.outcome(), TurnOutcome::Completed);
}

/// Asks, and kills the model's process when this happens.
fn killed_at(lectern: &Lectern, moment: impl Fn(&EventKind) -> bool) -> (Option<i32>, Vec<Event>) {
    let mut running = lectern.begin([QUESTION]);
    running.until(moment);
    let worker = children_of(running.id()).into_iter().find(|id| command(*id).contains("__local-worker"));
    signal(worker.expect("the model runs in a process of its own"), libc::SIGKILL);
    running.end()
}

#[test]
fn a_reader_that_goes_away_ends_the_turn() {
    let lectern = Lectern::new();
    let mut running = lectern.begin([QUESTION]);
    running.until(|kind| matches!(kind, EventKind::TurnStarted { .. }));
    let children = children_of(running.id());
    assert_eq!(running.go_away(), Some(130));
    wait_for_the_end_of(&children);
}

/// The host's reaper outlives its parent by a moment: it waits for just that.
fn wait_for_the_end_of(processes: &[u32]) {
    let begin = Instant::now();
    while processes.iter().any(|id| runs(*id)) {
        let left: Vec<_> = processes.iter().filter(|id| runs(**id)).map(|id| command(*id)).collect();
        assert!(begin.elapsed() < PATIENCE, "left running: {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(id: u32, signal: i32) {
    // SAFETY: a signal to a process of this test.
    assert_eq!(unsafe { libc::kill(i32::try_from(id).unwrap(), signal) }, 0);
}

fn children_of(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| status(*id).is_some_and(|(of, _)| of == parent)).collect()
}

fn runs(id: u32) -> bool {
    status(id).is_some_and(|(_, state)| state != 'Z')
}

/// The parent and the state of a process.
fn status(id: u32) -> Option<(u32, char)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in brackets and may hold anything.
    let mut fields = stat[stat.rfind(')')? + 2..].split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}

fn command(id: u32) -> String {
    fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default()
}
