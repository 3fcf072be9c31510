//! `lectern models folders`: which folders are looked into.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lectern_app::Engine;
use lectern_app::view::{ModelFolderKind, ModelFolderView, Problem};
use serde_json::json;

use super::words::{self, line};

/// What to do with the folders.
#[derive(Debug, Args)]
pub struct Folders {
    #[command(subcommand)]
    pub what: Option<What>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum What {
    /// List them, and those of other programs that could be added
    List,
    /// Look into a folder from now on; nothing in it is changed
    Add {
        /// The folder
        folder: PathBuf,
    },
    /// Look into it no more; the files stay
    #[command(visible_alias = "remove")]
    Rm {
        /// The folder
        folder: PathBuf,
    },
}

/// Does it.
pub async fn run(engine: &Engine, asked: Folders) -> Result<(), Problem> {
    match asked.what.unwrap_or(What::List) {
        What::List => {
            let folders = engine.model_folders();
            if asked.json {
                words::json(&json!({"folders": folders}));
            } else {
                folders.iter().for_each(|folder| line(&in_words(folder)));
            }
        }
        What::Add { folder } => {
            let folder = engine.add_model_folder(&folder).await?;
            if asked.json { words::json(&folder) } else { line(&format!("added {}", in_words(&folder))) }
        }
        What::Rm { folder } => {
            engine.remove_model_folder(&folder).await?;
            let path = folder.display().to_string();
            if asked.json {
                words::json(&json!({"removed": path}));
            } else {
                line(&format!("{path} is not looked into any more; its files stay"));
            }
        }
    }
    Ok(())
}

fn in_words(folder: &ModelFolderView) -> String {
    let whose = match folder.kind {
        ModelFolderKind::Library => "Lectern's own",
        ModelFolderKind::Watched => "watched",
        ModelFolderKind::LmStudio => "LM Studio's, can be added",
        ModelFolderKind::Jan => "Jan's, can be added",
        ModelFolderKind::LlamaCpp => "llama.cpp's, can be added",
        ModelFolderKind::HuggingFace => "of Hugging Face's programs, can be added",
        ModelFolderKind::Ollama => "Ollama's, can be added",
    };
    let plural = if folder.models == 1 { "" } else { "s" };
    let problem = folder.problem.as_ref().map(|problem| format!(": {}", problem.message)).unwrap_or_default();
    format!("{}  ({whose}, {} model{plural}){problem}", folder.path, folder.models)
}
