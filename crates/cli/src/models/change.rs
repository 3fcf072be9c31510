//! Changing the list: add, choose, remove, bring back.

use std::path::Path;

use clap::Args;
use lectern_app::Engine;
use lectern_app::units::bytes;
use lectern_app::view::Problem;

use super::words::{self, line};

/// What to take off the list, or to bring back.
#[derive(Debug, Args)]
pub struct Rm {
    /// Its id; with --undo, what `rm` printed [default with --undo: the last one]
    #[arg(required_unless_present = "undo")]
    pub id: Option<String>,
    /// Bring a removed model back, file and settings; possible for a day
    #[arg(long)]
    pub undo: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What is saved of conversations.
#[derive(Debug, Args)]
pub struct States {
    /// Delete it; conversations stay, and are read anew when they go on
    #[arg(long)]
    pub clear: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Says how much is saved of conversations, or deletes it.
pub async fn states(engine: &Engine, asked: States) -> Result<(), Problem> {
    let before = engine.saved_states()?;
    let now = if asked.clear { engine.forget_states().await? } else { before };
    if asked.json {
        words::json(&now);
        return Ok(());
    }
    if asked.clear {
        line(&format!("deleted {}", bytes(before.bytes.saturating_sub(now.bytes))));
        return Ok(());
    }
    let off = if now.saved { "" } else { "; nothing more is saved" };
    let conversations = if now.conversations == 1 { "conversation" } else { "conversations" };
    let (count, held, limit) = (now.conversations, bytes(now.bytes), bytes(now.limit));
    line(&format!("{held} of {count} {conversations}, at most {limit}{off}"));
    Ok(())
}

/// Adds a file.
pub fn add(engine: &Engine, path: &Path, as_json: bool) -> Result<(), Problem> {
    let model = engine.add_model(path)?;
    if as_json {
        words::json(&model);
    } else {
        line(&format!("added {}", words::model(&model)));
    }
    Ok(())
}

/// Chooses the model that answers.
pub async fn choose(engine: &Engine, id: &str) -> Result<(), Problem> {
    engine.scan_model_folders().await?;
    engine.select_model(&id.into())?;
    line(&format!("{id} answers from now on"));
    Ok(())
}

/// Takes a model off the list, or brings it back.
pub async fn rm(engine: &Engine, rm: Rm) -> Result<(), Problem> {
    if rm.undo {
        return undo(engine, rm).await;
    }
    let id = rm.id.unwrap_or_default();
    let removed = engine.remove_model(&id.as_str().into()).await?;
    if rm.json {
        words::json(&removed);
        return Ok(());
    }
    let file = match (removed.model.remote.is_some(), removed.file_deleted) {
        (true, _) => String::new(),
        (false, true) => format!(" and its file ({}, free in a day)", bytes(removed.freed)),
        (false, false) => "; its file stays".to_owned(),
    };
    line(&format!("removed {id}{file}"));
    line(&format!("bring it back: lectern models rm --undo {}", removed.token));
    Ok(())
}

async fn undo(engine: &Engine, rm: Rm) -> Result<(), Problem> {
    let token = match rm.id {
        Some(token) => token,
        None => engine.removed_models().into_iter().next().map(|(token, ..)| token).ok_or_else(|| {
            Problem::new("unknown_removal", "nothing was removed that could come back")
                .hint("A removed model can come back for a day.")
        })?,
    };
    let model = engine.restore_model(&token).await?;
    if rm.json {
        words::json(&model);
    } else {
        line(&format!("{} is back", words::model(&model)));
    }
    Ok(())
}
