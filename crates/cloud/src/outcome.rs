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
            /// Reads the provider's word, in capitals or not.
            pub fn of(word: &str) -> Self {
                match word {
                    $(known if known.eq_ignore_ascii_case($word) => Self::$variant,)*
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
        /// Model Armor, a filter of the project's own.
        ModelArmor = "MODEL_ARMOR",
        /// The model wrote something that its provider can't read.
        MalformedResponse = "MALFORMED_RESPONSE",
        /// The request lacks a signature of an earlier step.
        MissingSignature = "MISSING_THOUGHT_SIGNATURE",
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

impl Ending {
    /// Whether it says that all is well.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Stop | Self::ToolCalls | Self::FunctionCall)
    }

    /// What a word means, also where a server has one of its own or passes on that of the provider behind it.
    pub fn meant(word: &str) -> Self {
        let plain = word.trim().to_ascii_lowercase().replace(['-', ' ', '.'], "_");
        match plain.as_str() {
            "eos" | "eos_token" | "end" | "end_turn" | "end_of_turn" | "stop_sequence" | "stop_token"
            | "stopped" | "eosfound" | "done" | "complete" | "completed" | "finished" | "finish"
            | "normal" | "success" => Self::Stop,
            "max_tokens"
            | "max_new_tokens"
            | "max_output_tokens"
            | "max_completion_tokens"
            | "max_length"
            | "token_limit"
            | "length_limit"
            | "context_length"
            | "context_length_exceeded"
            | "model_context_window_exceeded"
            | "limit" => Self::Length,
            "tool_call" | "tool_use" | "tool" | "tools" | "function_calls" | "function" => Self::ToolCalls,
            // The words of Gemini, GLM, Bedrock, Cohere and others that stand behind one address.
            "content_filtered"
            | "filter"
            | "filtered"
            | "safety"
            | "sensitive"
            | "recitation"
            | "refusal"
            | "blocked"
            | "block"
            | "blocklist"
            | "prohibited_content"
            | "spii"
            | "moderation"
            | "censored"
            | "guardrail"
            | "guardrails"
            | "guardrail_intervened"
            | "guardrails_intervened"
            | "model_armor"
            | "error_toxic"
            | "language"
            | "image_safety" => Self::ContentFilter,
            "abort"
            | "aborted"
            | "cancel"
            | "cancelled"
            | "canceled"
            | "timeout"
            | "timed_out"
            | "time_limit"
            | "network_error"
            | "insufficient_system_resource"
            | "failed"
            | "failure"
            | "server_error"
            | "internal_error"
            | "internal_server_error"
            | "interrupted"
            | "incomplete"
            | "overloaded"
            | "disconnected"
            | "malformed_function_call"
            | "malformed_response" => Self::Failed,
            other => Self::of(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_another_provider_means_the_same() {
        for (word, meant) in [
            ("STOP", Ending::Stop),
            ("end_turn", Ending::Stop),
            ("MAX_TOKENS", Ending::Length),
            ("model_length", Ending::ModelLength),
            ("tool-calls", Ending::ToolCalls),
            ("Content_Filter", Ending::ContentFilter),
            ("SAFETY", Ending::ContentFilter),
            ("abort", Ending::Failed),
            ("insufficient_system_resource", Ending::Failed),
            ("something_new", Ending::Other("something_new".to_owned())),
        ] {
            assert_eq!(Ending::meant(word), meant, "{word}");
        }
        assert_eq!(Finish::of("max_tokens"), Finish::MaxTokens);
        assert_eq!(Finish::of("ESCALATION").as_str(), "ESCALATION");
    }
}
