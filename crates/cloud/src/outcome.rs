//! Why a reply ended, and why a prompt was blocked, in the words of the providers.
//!
//! Invariant: a value that nobody knew when this was written is kept as it is.

use serde::{Serialize, Serializer};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$about])* $variant,)*
            /// One that is not known here.
            Other(String),
        }

        impl $name {
            /// Reads the provider's word.
            pub fn of(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }

            /// The provider's word.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words!(
    /// Why a reply of Gemini ended (`Candidate.finishReason`).
    Finish {
        /// The model was done.
        Stop = "STOP",
        /// The limit of tokens was reached.
        MaxTokens = "MAX_TOKENS",
        /// The safety filters.
        Safety = "SAFETY",
        /// The reply repeats a work that is protected.
        Recitation = "RECITATION",
        /// A language that is not supported.
        Language = "LANGUAGE",
        /// Without a reason that is told.
        NotTold = "OTHER",
        /// A word of a list that is forbidden.
        Blocklist = "BLOCKLIST",
        /// Content that the terms forbid.
        ProhibitedContent = "PROHIBITED_CONTENT",
        /// Personal data.
        PersonalData = "SPII",
        /// The model wrote a call that can't be read.
        MalformedCall = "MALFORMED_FUNCTION_CALL",
        /// The model called a tool that was not offered.
        UnexpectedCall = "UNEXPECTED_TOOL_CALL",
        /// The model called too many tools at once.
        TooManyCalls = "TOO_MANY_TOOL_CALLS",
        /// An image met the safety filters.
        ImageSafety = "IMAGE_SAFETY",
        /// An image that the terms forbid.
        ImageProhibited = "IMAGE_PROHIBITED_CONTENT",
        /// An image that repeats a protected work.
        ImageRecitation = "IMAGE_RECITATION",
        /// An image failed without a reason that is told.
        ImageNotTold = "IMAGE_OTHER",
        /// An image was wanted and none came.
        NoImage = "NO_IMAGE",
    }
);

words!(
    /// Why a prompt got no reply (`PromptFeedback.blockReason`).
    BlockReason {
        /// The safety filters.
        Safety = "SAFETY",
        /// Without a reason that is told.
        NotTold = "OTHER",
        /// A word of a list that is forbidden.
        Blocklist = "BLOCKLIST",
        /// Content that the terms forbid.
        ProhibitedContent = "PROHIBITED_CONTENT",
        /// An image met the safety filters.
        ImageSafety = "IMAGE_SAFETY",
        /// Model Armor, a filter of the project's own.
        ModelArmor = "MODEL_ARMOR",
        /// An attempt to talk the model out of its rules.
        Jailbreak = "JAILBREAK",
    }
);

words!(
    /// Why a choice of an OpenAI-compatible endpoint ended (`finish_reason`).
    Ending {
        /// The model was done.
        Stop = "stop",
        /// The limit of tokens was reached.
        Length = "length",
        /// The model wants tools to be called.
        ToolCalls = "tool_calls",
        /// The same, as older servers say it.
        FunctionCall = "function_call",
        /// The provider's filters.
        ContentFilter = "content_filter",
        /// The model's own limit was reached (Mistral).
        ModelLength = "model_length",
        /// The provider behind the endpoint failed (OpenRouter, Mistral).
        Failed = "error",
    }
);
