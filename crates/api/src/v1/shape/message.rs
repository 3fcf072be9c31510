//! The messages of a request.

use serde_json::Value;
use utoipa::ToSchema;

/// A message.
#[derive(ToSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum RequestMessage {
    /// Instructions. All of them are joined, in their order, before the conversation.
    System {
        /// What is said.
        content: TextContent,
        /// Taken and not used.
        name: Option<Value>,
    },
    /// Instructions; the newer name.
    Developer {
        /// What is said.
        content: TextContent,
        /// Taken and not used.
        name: Option<Value>,
    },
    /// What the user says.
    User {
        /// What is said, and shown.
        content: UserContent,
        /// Taken and not used.
        name: Option<Value>,
    },
    /// What the model said.
    Assistant {
        /// Its words.
        content: Option<TextContent>,
        /// Words with which it refused.
        refusal: Option<String>,
        /// What it called.
        tool_calls: Option<Vec<MadeCall>>,
        /// Taken and not used.
        name: Option<Value>,
        /// Taken and not used.
        reasoning_content: Option<Value>,
        /// Taken and not used.
        annotations: Option<Value>,
        /// Taken and not used.
        audio: Option<Value>,
    },
    /// What a call of the message before returned.
    Tool {
        /// The result.
        content: TextContent,
        /// The call.
        tool_call_id: String,
        /// Taken and not used.
        name: Option<Value>,
    },
}

/// A text, or a list of texts.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum TextContent {
    Text(String),
    Parts(Vec<TextPart>),
}

/// A text of a list.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TextPart {
    /// Words.
    Text {
        /// The words.
        text: String,
        /// Taken and not used.
        cache_control: Option<Value>,
        /// Taken and not used.
        prompt_cache_breakpoint: Option<Value>,
    },
    /// Words with which a model refused.
    Refusal {
        /// The words.
        refusal: String,
    },
}

/// A text, or a list of texts, images and files.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum UserContent {
    Text(String),
    Parts(Vec<UserPart>),
}

/// A part of what the user says.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserPart {
    /// Words.
    Text {
        /// The words.
        text: String,
        /// Taken and not used.
        cache_control: Option<Value>,
        /// Taken and not used.
        prompt_cache_breakpoint: Option<Value>,
    },
    /// An image.
    ImageUrl {
        /// The image.
        image_url: ImageUrl,
    },
    /// A file: text, an image, or a PDF document for models that read them.
    File {
        /// The file.
        file: FileData,
    },
}

/// An image that comes with the request. Nothing is fetched.
#[derive(ToSchema)]
pub struct ImageUrl {
    /// PNG, JPEG, WebP, GIF or BMP.
    #[schema(example = "data:image/png;base64,iVBORw0KGgo…")]
    url: String,
    /// Taken and not used.
    detail: Option<Detail>,
}

/// How closely an image is looked at.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    Auto,
    Low,
    High,
    Original,
}

/// A file that comes with the request.
#[derive(ToSchema)]
pub struct FileData {
    /// Its name, which the model sees.
    filename: Option<String>,
    /// Its bytes in base64, also as a data URL.
    file_data: String,
}

/// A call that the model made.
#[derive(ToSchema)]
pub struct MadeCall {
    /// Its id, which its result names.
    id: String,
    /// Taken and not used.
    index: Option<Value>,
    /// What was called.
    r#type: Option<CallKind>,
    /// Which function, and with what.
    function: MadeFunctionCall,
}

/// What can be called.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    Function,
}

/// A function that was called.
#[derive(ToSchema)]
pub struct MadeFunctionCall {
    /// Its name.
    #[schema(pattern = "^[a-zA-Z0-9_-]+$", max_length = 64)]
    name: String,
    /// JSON text.
    arguments: String,
}
