//! Newtype ids, so that a call's id can never be passed where a turn's is meant.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
        #[serde(transparent)]
        #[ts(export, export_to = "core/ids.ts")]
        pub struct $name(pub String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

macro_rules! fresh {
    ($name:ident) => {
        impl $name {
            /// A new id; later ids sort after earlier ones (UUID version 7).
            pub fn fresh() -> Self {
                Self(uuid::Uuid::now_v7().to_string())
            }
        }
    };
}

id!(/// Names a conversation.
    ConversationId);
id!(/// Names a message in the store.
    MessageId);
id!(/// Names a turn.
    TurnId);
id!(/// Ties a tool result to its call; never changes.
    ToolCallId);
id!(/// Names a question of a server.
    QuestionId);
id!(/// The public name of a tool, `server__tool`, at most 64 characters of `[A-Za-z0-9_-]`.
    ToolName);
id!(/// Our own name of an MCP server, as in the settings; never what the server says of itself.
    ServerId);
id!(/// Names a model in the model list, e.g. `starter`.
    ModelId);

fresh!(ConversationId);
fresh!(MessageId);
fresh!(TurnId);
fresh!(ToolCallId);
fresh!(QuestionId);
