//! What servers have beside tools: resources and prompts, for looking at and for taking along in a message.
//!
//! Invariant: nothing of a server gets into a message unless the message asks for it by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use lectern_core::{Asker, Nobody, Part, ServerId};
use lectern_mcp::{AccessError, CompletionOf, Prompt};

use super::{Engine, unknown_server};
use crate::view::{
    ArgumentView, Attachment, CompletionRequest, CompletionView, FilledPromptView, Problem, PromptRun,
    PromptView, PromptsView, ResourceView, ResourcesView, SendRequest, TemplateView,
};

/// Characters of one resource that a message takes along.
const MOST_ATTACHED: usize = 100_000;

impl Engine {
    /// The resources and templates of a server.
    pub async fn resources(&self, server: &ServerId) -> Result<ResourcesView, Problem> {
        let host = &self.0.host;
        let (resources, templates) =
            tokio::try_join!(host.resources(server), host.resource_templates(server)).map_err(problem)?;
        Ok(ResourcesView {
            server: server.clone(),
            resources: resources
                .into_iter()
                .map(|of| ResourceView {
                    uri: of.uri,
                    name: of.name,
                    title: of.title,
                    description: of.description,
                    mime: of.mime,
                    size: of.size,
                })
                .collect(),
            templates: templates
                .into_iter()
                .map(|of| TemplateView {
                    uri_template: of.uri_template,
                    name: of.name,
                    title: of.title,
                    description: of.description,
                    mime: of.mime,
                })
                .collect(),
        })
    }

    /// A resource as parts of a message: one for a file, several for a folder.
    pub async fn read_resource(&self, server: &ServerId, uri: &str) -> Result<Vec<Part>, Problem> {
        let read = self.0.host.read_resource(server, uri, self.asker()).await.map_err(problem)?;
        Ok(read.into_iter().map(|content| bounded(content.part())).collect())
    }

    /// The prompts of a server.
    pub async fn prompts(&self, server: &ServerId) -> Result<PromptsView, Problem> {
        let prompts = self.0.host.prompts(server).await.map_err(problem)?;
        Ok(PromptsView { server: server.clone(), prompts: prompts.into_iter().map(view).collect() })
    }

    /// Fills a prompt in. Arguments that it does not know, or that are missing, are named.
    pub async fn get_prompt(
        &self,
        server: &ServerId,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<FilledPromptView, Problem> {
        let prompts = self.prompts(server).await?.prompts;
        // Not every server lists all that it has.
        if let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) {
            check(server, prompt, arguments)?;
        } else if !prompts.is_empty() {
            let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
            let message = format!("the server `{server}` has no prompt `{name}`");
            return Err(
                Problem::new("unknown_prompt", message).hint(format!("It has: {}.", names.join(", ")))
            );
        }
        let filled = self.0.host.get_prompt(server, name, arguments, self.asker()).await.map_err(problem)?;
        let description = filled.description.clone();
        Ok(FilledPromptView { description, parts: filled.parts().into_iter().map(bounded).collect() })
    }

    /// Suggestions for what is being typed.
    pub async fn complete(&self, request: &CompletionRequest) -> Result<CompletionView, Problem> {
        let of = match (&request.prompt, &request.template) {
            (Some(name), _) => CompletionOf::Prompt { name: name.clone() },
            (None, Some(template)) => CompletionOf::Template { uri_template: template.clone() },
            (None, None) => return Ok(CompletionView::default()),
        };
        let CompletionRequest { server, argument, typed, known, .. } = request;
        let found = self.0.host.complete(server, &of, argument, typed, known).await.map_err(problem)?;
        Ok(CompletionView { values: found.values, has_more: found.has_more })
    }

    /// The parts of a message: a prompt, the user's text, what it takes along.
    pub(super) async fn parts(
        &self,
        request: &SendRequest,
        enclosed: Vec<Part>,
    ) -> Result<Vec<Part>, Problem> {
        let SendRequest { text, prompt, attachments, .. } = request;
        let mut parts = Vec::new();
        if let Some(PromptRun { server, name, arguments }) = prompt {
            parts.extend(self.get_prompt(server, name, arguments).await?.parts);
        }
        if !parts.is_empty() && !text.trim().is_empty() {
            parts.push(Part::Text { text: "\n\n".to_owned() });
        }
        // Images stand before the question about them: so models were trained.
        parts.extend(enclosed);
        if !text.trim().is_empty() {
            parts.push(Part::Text { text: text.to_owned() });
        }
        for Attachment { server, uri } in attachments {
            parts.extend(self.read_resource(server, uri).await?);
        }
        Ok(parts)
    }

    fn asker(&self) -> Arc<dyn Asker> {
        self.0.options.asker.clone().unwrap_or_else(|| Arc::new(Nobody))
    }
}

/// Compares what was given with what the prompt takes.
fn check(server: &ServerId, prompt: &PromptView, given: &BTreeMap<String, String>) -> Result<(), Problem> {
    let name = &prompt.name;
    let missing =
        prompt.arguments.iter().find(|argument| argument.required && !given.contains_key(&argument.name));
    let unknown = given.keys().find(|key| !prompt.arguments.iter().any(|argument| argument.name == **key));
    let message = match (missing, unknown) {
        (None, None) => return Ok(()),
        (Some(missing), _) => format!("the prompt `{name}` of `{server}` needs `{}`", missing.name),
        (None, Some(unknown)) => format!("the prompt `{name}` of `{server}` takes no `{unknown}`"),
    };
    let takes: Vec<String> =
        prompt
            .arguments
            .iter()
            .map(|argument| {
                if argument.required {
                    argument.name.clone()
                } else {
                    format!("{} (optional)", argument.name)
                }
            })
            .collect();
    let hint = if takes.is_empty() {
        "It takes no arguments.".to_owned()
    } else {
        format!("Write /{server}:{name} {}=…; it takes {}.", prompt.arguments[0].name, takes.join(", "))
    };
    Err(Problem::new("bad_prompt_arguments", message).hint(hint))
}

fn view(prompt: Prompt) -> PromptView {
    let arguments = prompt.arguments.into_iter().map(|argument| ArgumentView {
        name: argument.name,
        title: argument.title,
        description: argument.description,
        required: argument.required,
    });
    PromptView {
        arguments: arguments.collect(),
        name: prompt.name,
        title: prompt.title,
        description: prompt.description,
    }
}

/// A part that leaves room for the rest of a conversation; the cut can be seen.
fn bounded(mut part: Part) -> Part {
    let text = match &mut part {
        Part::Text { text } => Some(text),
        Part::Resource(resource) => resource.text.as_mut(),
        Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) => None,
    };
    if let Some(text) = text
        && let Some((end, _)) = text.char_indices().nth(MOST_ATTACHED)
    {
        let over = text[end..].chars().count();
        text.truncate(end);
        text.push_str(&format!("\n[… cut: {over} more characters]"));
    }
    part
}

fn problem(error: AccessError) -> Problem {
    match error {
        AccessError::Unknown(unknown) => unknown_server(&unknown.0),
        AccessError::Failed(why) => Problem::new("server_refused", why),
    }
}
