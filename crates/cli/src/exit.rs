//! How the command line ends: 0 done, 1 failed, 2 wrong use, 130 stopped by the user.

use std::process::ExitCode;

use lectern_app::view::Problem;
use lectern_core::TurnOutcome;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exit {
    /// It did what was asked.
    Done,
    /// It could not.
    Failed,
    /// What was typed makes no sense here.
    Usage,
    /// The user stopped it.
    Cancelled,
    /// As another program of ours says.
    Code(ExitCode),
}

impl Exit {
    /// As a turn ended.
    pub fn of_outcome(outcome: &TurnOutcome) -> Self {
        match outcome {
            TurnOutcome::Completed => Self::Done,
            TurnOutcome::Cancelled => Self::Cancelled,
            TurnOutcome::StepLimit | TurnOutcome::Failed { .. } => Self::Failed,
        }
    }

    /// Problems with what was typed are told apart from all others.
    pub fn of_problem(problem: &Problem) -> Self {
        match problem.code.as_str() {
            "bad_rule"
            | "bad_mcp_config"
            | "bad_vault"
            | "unknown_model"
            | "unknown_conversation"
            | "unknown_message"
            | "unknown_server"
            | "usage"
            | "server_exists"
            | "bad_server"
            | "built_in_server"
            | "bad_import"
            | "bad_secret"
            | "empty_message"
            | "no_home"
            | "starter_stays"
            | "bad_questions"
            | "bad_tools"
            | "bad_template"
            | "bad_target"
            | "no_such_file"
            | "unknown_download"
            | "unknown_folder"
            | "unknown_provider"
            | "bad_address"
            | "bad_provider"
            | "bad_price"
            | "bad_model_name"
            | "bad_credentials"
            | "no_login_found"
            | "not_agreed"
            | "not_remote"
            | "secret_in_clear"
            | "unknown_removal" => Self::Usage,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => ExitCode::SUCCESS,
            Exit::Failed => ExitCode::from(1),
            Exit::Usage => ExitCode::from(2),
            Exit::Cancelled => ExitCode::from(130),
            Exit::Code(code) => code,
        }
    }
}
