//! How models write: what is set for a model, for a conversation, and under a name.
//!
//! Invariant: what is set is checked before it is kept, all of it or nothing.

use lectern_core::{ConversationId, ModelId};
use serde_json::Value;

use super::{Engine, choice};
use crate::generation::{self, Effective, Entry, Known, Level, Levels, all_presets, check};
use crate::models::{self, Model, Source};
use crate::problem::of_store;
use crate::settings::{ModelOptions, Settings};
use crate::starter::{STARTER_ID, STARTER_NAME};
use crate::view::{GenerationView, Problem, SettingChanges, SettingKey};

/// Characters of a preset's name at most.
const LONGEST_NAME: usize = 60;

impl Engine {
    /// The settings of a conversation, or of a model when no conversation is named. Without a model it is about the one
    /// that answers next.
    pub fn generation(
        &self,
        model: Option<&ModelId>,
        conversation: Option<&ConversationId>,
    ) -> Result<GenerationView, Problem> {
        let model = self.model_of(model)?;
        let levels = self.levels(&model, conversation)?;
        let level = if conversation.is_some() { Level::Conversation } else { Level::Model };
        let (drafts, projectors) = match conversation {
            Some(_) => (Vec::new(), Vec::new()),
            None => (self.drafts(&model), self.projectors(&model)),
        };
        Ok(GenerationView {
            drafts,
            projectors,
            model: model.id,
            conversation: conversation.cloned(),
            settings: levels.views(level),
            problems: levels.effective().problems,
            presets: levels.presets,
        })
    }

    /// Changes the settings of a model; null unsets. Nothing is changed when anything can't be.
    pub async fn set_model_generation(
        &self,
        model: &ModelId,
        changes: &SettingChanges,
    ) -> Result<GenerationView, Problem> {
        let subject = self.model_of(Some(model))?;
        let checked = self.checked(changes, self.known(&subject), Level::Model)?;
        self.check_files(&subject, &checked)?;
        let template = checked.iter().find(|(key, _)| *key == SettingKey::Template);
        if let Some(text) = template.and_then(|(_, value)| value.as_ref()?.as_str()) {
            self.0.models.try_template(text).await?;
        }
        self.change_model(model, |entry| generation::change(entry, checked))?;
        self.generation(Some(model), None)
    }

    /// Forgets all that was set for a model.
    pub fn reset_model_generation(&self, model: &ModelId) -> Result<GenerationView, Problem> {
        self.change_model(model, |entry| entry.retain(|name, _| SettingKey::named(name).is_none()))?;
        self.generation(Some(model), None)
    }

    /// Changes the settings of a conversation; null unsets. Without a conversation one is begun: the view names it, and
    /// the first message goes there.
    pub fn set_conversation_generation(
        &self,
        conversation: Option<&ConversationId>,
        changes: &SettingChanges,
    ) -> Result<GenerationView, Problem> {
        let known = self.known(&self.model_of(None)?);
        let checked = self.checked(changes, known, Level::Conversation)?;
        let store = &self.0.store;
        let id = match conversation {
            Some(id) => store.conversation(id).map_err(|error| of_store(&error))?.id,
            None => store.create_conversation().map_err(|error| of_store(&error))?,
        };
        let mut entry = self.conversation_entry(&id)?;
        generation::change(&mut entry, checked);
        self.keep_conversation_entry(&id, &entry)?;
        self.generation(None, Some(&id))
    }

    /// Forgets all that was set for a conversation.
    pub fn reset_conversation_generation(&self, id: &ConversationId) -> Result<GenerationView, Problem> {
        self.keep_conversation_entry(id, &Entry::new())?;
        self.generation(None, Some(id))
    }

    /// Keeps values under a name. A preset of this name is replaced, unless it is built in.
    pub fn save_preset(&self, name: &str, settings: &SettingChanges) -> Result<GenerationView, Problem> {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        if name.is_empty() || name.chars().count() > LONGEST_NAME {
            let said = format!("a preset's name has 1 to {LONGEST_NAME} characters");
            return Err(Problem::new("bad_preset", said));
        }
        refuse_built_in(&name)?;
        if settings.contains_key(&SettingKey::Preset.name()) {
            return Err(Problem::new("bad_preset", "a preset can't hold another preset"));
        }
        let checked = self.checked(settings, Known::default(), Level::Conversation)?;
        let mut entry = Entry::new();
        generation::change(&mut entry, checked);
        self.change_settings(|settings| {
            settings.presets.insert(name, Value::Object(entry));
        })?;
        self.generation(None, None)
    }

    /// Forgets a preset. Where it was chosen, the values beneath it hold.
    pub fn delete_preset(&self, name: &str) -> Result<GenerationView, Problem> {
        refuse_built_in(name)?;
        let removed = self.change_settings(|settings| settings.presets.shift_remove(name))?;
        if removed.is_none() {
            return Err(Problem::new("unknown_preset", format!("there is no preset `{name}`")));
        }
        self.generation(None, None)
    }

    /// The values that hold for a model, in a conversation.
    pub(super) fn effective(
        &self,
        model: &Model,
        conversation: Option<&ConversationId>,
    ) -> Result<Effective, Problem> {
        let effective = self.levels(model, conversation)?.effective();
        for problem in &effective.problems {
            tracing::warn!(%problem, "a setting is not used");
        }
        Ok(effective)
    }

    /// What is known of a model without loading it.
    pub(super) fn known(&self, model: &Model) -> Known {
        let path = match &model.source {
            Source::Starter => return Known { starter: true, ..Known::default() },
            Source::Remote(_) => return Known::default(),
            Source::File(path) => path,
        };
        // A file that can't be read is a problem of the turn that uses it.
        let Ok(info) = self.0.models.inspect(path) else { return Known::default() };
        Known {
            starter: info.name == STARTER_NAME,
            parameters: Some(info.parameters).filter(|parameters| *parameters > 0),
            trained: Some(info.context_length).filter(|length| *length > 0),
        }
    }

    /// A model, loaded as was said for this run.
    pub(super) fn of_run(&self, mut model: Model) -> Model {
        let loads = |name: &String| SettingKey::named(name).is_some_and(SettingKey::reloads);
        let said = self.0.options.generation.iter().filter(|(name, _)| loads(name));
        let mut entry = model.options.entry();
        entry.extend(said.map(|(name, value)| (name.clone(), value.clone())));
        model.options.set_entry(entry);
        model
    }

    /// Looks at what was said for this run.
    pub(super) fn check_run(&self) -> Result<(), Problem> {
        let model = self.model_of(None)?;
        let checked = self.checked(&self.0.options.generation, self.known(&model), Level::Model)?;
        self.check_files(&model, &checked)
    }

    fn levels(&self, model: &Model, conversation: Option<&ConversationId>) -> Result<Levels, Problem> {
        let presets = all_presets(&self.state().settings.presets);
        Ok(Levels {
            known: self.known(model),
            presets,
            model: model.options.entry(),
            conversation: conversation.map_or_else(|| Ok(Entry::new()), |id| self.conversation_entry(id))?,
            run: self.0.options.generation.clone(),
        })
    }

    fn checked(
        &self,
        changes: &SettingChanges,
        known: Known,
        level: Level,
    ) -> Result<Vec<(SettingKey, Option<Value>)>, Problem> {
        let presets = all_presets(&self.state().settings.presets);
        let names: Vec<String> = presets.into_iter().map(|preset| preset.name).collect();
        let checked = check::changes(changes, known.trained, &names)?;
        let misplaced =
            checked.iter().find(|(key, _)| level == Level::Conversation && !key.per_conversation());
        if let Some((key, _)) = misplaced {
            let said = format!(
                "`{}` decides how the model is loaded, so it can't be set for a conversation",
                key.name()
            );
            return Err(Problem::new("bad_setting", said).hint("Set it for the model."));
        }
        Ok(checked)
    }

    fn model_of(&self, id: Option<&ModelId>) -> Result<Model, Problem> {
        match id {
            Some(id) => self.listed(id),
            None => Ok(self.state().model.clone()),
        }
    }

    fn change_model(&self, id: &ModelId, change: impl FnOnce(&mut Entry)) -> Result<(), Problem> {
        let changed = self.change_settings(|settings| {
            let Some(options) = options_of(settings, id) else { return Err(models::unknown(id)) };
            let mut entry = options.entry();
            change(&mut entry);
            options.set_entry(entry);
            Ok(())
        })?;
        changed.map_err(|problem| {
            problem.hint("Only models of the list have settings; `lectern models add FILE` adds one.")
        })?;
        let mut state = self.state();
        let listed = models::of_settings(&state.settings);
        if let Some(model) = listed.into_iter().find(|model| model.id == state.model.id) {
            state.model = model;
        }
        drop(state);
        self.tell_models();
        Ok(())
    }

    fn conversation_entry(&self, id: &ConversationId) -> Result<Entry, Problem> {
        let mut body = self.conversation_body(id)?;
        body.shift_remove(choice::KEY);
        Ok(body)
    }

    fn keep_conversation_entry(&self, id: &ConversationId, entry: &Entry) -> Result<(), Problem> {
        let mut body = entry.clone();
        if let Some(model) = self.conversation_body(id)?.shift_remove(choice::KEY) {
            body.insert(choice::KEY.to_owned(), model);
        }
        self.keep_conversation_body(id, &body)
    }
}

fn options_of<'a>(settings: &'a mut Settings, id: &ModelId) -> Option<&'a mut ModelOptions> {
    if id.as_str() == STARTER_ID {
        return Some(&mut settings.starter);
    }
    settings.models.iter_mut().find(|entry| entry.id == *id).map(|entry| &mut entry.options)
}

fn refuse_built_in(name: &str) -> Result<(), Problem> {
    if generation::built_in().iter().any(|preset| preset.name == name) {
        return Err(Problem::new(
            "bad_preset",
            format!("the preset `{name}` came with Lectern and stays as it is"),
        )
        .hint("Choose another name."));
    }
    Ok(())
}
