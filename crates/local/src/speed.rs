//! How a model uses the machine: settings of speed and memory, and which of them go together.
//!
//! Invariant: plain data and pure checks; what is found out about the machine is found out elsewhere.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a model uses the machine. What is unset is chosen by the file and the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpeedOptions {
    /// Guessing the next tokens from the conversation itself.
    pub lookup: Lookup,
    /// Tokens that are guessed at once at most.
    pub guesses: Option<u32>,
    /// A small model of the same vocabulary that guesses where the conversation gives nothing.
    pub draft: Option<PathBuf>,
    /// Guessing with the model's own layers for that (multi-token prediction), where it has them.
    pub mtp: bool,
    /// How keys are kept in the cache.
    pub keys: Option<KvType>,
    /// How values are kept in the cache. Quantised ones need flash attention.
    pub values: Option<KvType>,
    /// Whether attention is computed in one piece.
    pub flash_attention: FlashAttention,
    /// Layers on a graphics processor; unset: as many as fit.
    pub gpu_layers: Option<u32>,
    /// Threads that write.
    pub threads: Option<u32>,
    /// Threads that read prompts; unset: as many as write.
    pub batch_threads: Option<u32>,
    /// How the file comes into memory.
    pub loading: Loading,
    /// How threads wait for each other.
    pub waiting: Waiting,
    /// After so long without work the model gives its memory back; never when unset.
    pub idle_unload: Option<Duration>,
}

/// Whether the next tokens are guessed from the conversation: where the last few tokens stand in it already, what
/// followed them may follow again. The text is the same either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lookup {
    /// As long as it measures as a gain.
    #[default]
    Auto,
    /// Always, where the model can take guesses back.
    On,
    /// Never.
    Off,
}

/// Whether attention is computed in one piece, without keeping its intermediate results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlashAttention {
    /// Where the device is good at it.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How threads wait for each other between two operations, a few thousand times for each token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// By what other programs do when the model's process starts: asleep where they use the processor, else awake.
    #[default]
    Auto,
    /// Asleep: the processor is free for others, and waking up takes time.
    Asleep,
    /// Awake for a moment before they sleep: faster on a quiet machine, and many times slower beside others.
    Awake,
}

/// How the file comes into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loading {
    /// Mapped: the system reads what is used and may drop it again.
    #[default]
    Mapped,
    /// Mapped, and kept from being swapped out.
    Locked,
    /// Copied.
    Copied,
}

/// How numbers are kept in the cache, by llama.cpp's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KvType {
    /// 4 bytes.
    #[serde(rename = "f32")]
    F32,
    /// 2 bytes; llama.cpp's default.
    #[serde(rename = "f16")]
    F16,
    /// 2 bytes, as wide as f32.
    #[serde(rename = "bf16")]
    Bf16,
    /// 34 bytes for 32 numbers.
    #[serde(rename = "q8_0")]
    Q8_0,
    /// 24 bytes for 32 numbers.
    #[serde(rename = "q5_1")]
    Q5_1,
    /// 22 bytes for 32 numbers.
    #[serde(rename = "q5_0")]
    Q5_0,
    /// 20 bytes for 32 numbers.
    #[serde(rename = "q4_1")]
    Q4_1,
    /// 18 bytes for 32 numbers.
    #[serde(rename = "q4_0")]
    Q4_0,
    /// 18 bytes for 32 numbers, not evenly spaced.
    #[serde(rename = "iq4_nl")]
    Iq4Nl,
}

impl KvType {
    /// All of them, widest first.
    pub const ALL: [Self; 9] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q8_0,
        Self::Q5_1,
        Self::Q5_0,
        Self::Q4_1,
        Self::Q4_0,
        Self::Iq4Nl,
    ];

    /// Bytes of 32 numbers.
    pub const fn bytes_of_32(self) -> u64 {
        match self {
            Self::F32 => 128,
            Self::F16 | Self::Bf16 => 64,
            Self::Q8_0 => 34,
            Self::Q5_1 => 24,
            Self::Q5_0 => 22,
            Self::Q4_1 => 20,
            Self::Q4_0 | Self::Iq4Nl => 18,
        }
    }

    /// Whether numbers share a scale in blocks of 32.
    pub const fn is_quantised(self) -> bool {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => false,
            Self::Q8_0 | Self::Q5_1 | Self::Q5_0 | Self::Q4_1 | Self::Q4_0 | Self::Iq4Nl => true,
        }
    }

    /// The name in llama.cpp and in the settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
            Self::Q5_1 => "q5_1",
            Self::Q5_0 => "q5_0",
            Self::Q4_1 => "q4_1",
            Self::Q4_0 => "q4_0",
            Self::Iq4Nl => "iq4_nl",
        }
    }
}

impl std::str::FromStr for KvType {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Self, SpeedError> {
        let named = Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(text));
        named.ok_or_else(|| SpeedError::UnknownKvType { name: text.to_owned() })
    }
}

/// Why settings of speed cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpeedError {
    /// No such type.
    #[error(
        "`{name}` is no type of the cache; there are f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 and iq4_nl"
    )]
    UnknownKvType {
        /// What was written.
        name: String,
    },
    /// llama.cpp keeps values in an order that has no blocks, unless attention is computed in one piece.
    #[error(
        "values cannot be kept as {} without flash attention: switch flash attention on, or keep values as f16",
        .values.name()
    )]
    ValuesNeedFlashAttention {
        /// The type of the values.
        values: KvType,
    },
    /// Blocks of 32 numbers have to fit.
    #[error(
        "this model's heads have {head} numbers, so the cache cannot keep them as {} (blocks of 32): use f16 or q8_0's \
         wider kin",
        .kind.name()
    )]
    HeadsNotInBlocks {
        /// Numbers of a head.
        head: u32,
        /// The type that was asked for.
        kind: KvType,
    },
    /// The file has no layer for it, or several, of which llama.cpp would use one after the other.
    #[error(
        "guessing with the model's own layers (multi-token prediction) needs one layer for it, and this file has {layers}: \
         switch `mtp` off, or take a file that was made with that layer"
    )]
    LayersAhead {
        /// Layers of the file that predict further tokens.
        layers: usize,
    },
    /// llama.cpp knows the layer, but not how to compute it alone.
    #[error(
        "guessing with the model's own layers is not possible with `{architecture}` models: switch `mtp` off"
    )]
    NoPrediction {
        /// The architecture.
        architecture: String,
    },
    /// Whoever guesses is asked alone.
    #[error("a draft model and the model's own layers (`mtp`) cannot both guess: set one of the two")]
    TwoWhoGuess,
    /// Not a number of threads.
    #[error("a model needs at least one thread")]
    NoThreads,
}

/// Architectures whose layer llama.cpp computes by itself (`LLM_GRAPH_TYPE_DECODER_MTP` in its `src/models`), and whose
/// cache is none of a special kind and can take guesses back (`llm_arch_supports_rs_rollback`).
const PREDICTING: [&str; 9] = [
    "bailingmoe3",
    "cohere2moe",
    "deepseek2",
    "glm4moe",
    "hy_v3",
    "mimo2",
    "nemotron_h_moe",
    "qwen35",
    "qwen35moe",
];

impl SpeedOptions {
    /// Whether these go together, for a model whose heads have so many numbers (0: not known).
    pub fn check(&self, head_of_keys: u32, head_of_values: u32) -> Result<(), SpeedError> {
        if self.threads == Some(0) || self.batch_threads == Some(0) {
            return Err(SpeedError::NoThreads);
        }
        if self.mtp && self.draft.is_some() {
            return Err(SpeedError::TwoWhoGuess);
        }
        if let Some(values) = self.values
            && values.is_quantised()
            && self.flash_attention == FlashAttention::Off
        {
            return Err(SpeedError::ValuesNeedFlashAttention { values });
        }
        for (kind, head) in [(self.keys, head_of_keys), (self.values, head_of_values)] {
            if let Some(kind) = kind
                && kind.is_quantised()
                && head % 32 != 0
            {
                return Err(SpeedError::HeadsNotInBlocks { head, kind });
            }
        }
        Ok(())
    }

    /// Whether a model of this architecture, with so many layers that predict further tokens, can guess for itself.
    pub fn check_ahead(&self, architecture: &str, layers: usize) -> Result<(), SpeedError> {
        match layers {
            _ if !self.mtp => Ok(()),
            1 if PREDICTING.contains(&architecture) => Ok(()),
            1 => Err(SpeedError::NoPrediction { architecture: architecture.to_owned() }),
            layers => Err(SpeedError::LayersAhead { layers }),
        }
    }

    /// Whether attention is computed in one piece: quantised values leave no choice.
    pub fn attention(&self) -> FlashAttention {
        match (self.flash_attention, self.values) {
            (FlashAttention::Auto, Some(values)) if values.is_quantised() => FlashAttention::On,
            (asked, _) => asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantised_values_want_flash_attention() {
        let asked = |flash_attention| SpeedOptions {
            values: Some(KvType::Q8_0),
            flash_attention,
            ..SpeedOptions::default()
        };
        assert_eq!(
            asked(FlashAttention::Off).check(64, 64),
            Err(SpeedError::ValuesNeedFlashAttention { values: KvType::Q8_0 })
        );
        assert_eq!(asked(FlashAttention::Auto).check(64, 64), Ok(()));
        assert_eq!(asked(FlashAttention::Auto).attention(), FlashAttention::On);
        assert_eq!(SpeedOptions::default().attention(), FlashAttention::Auto);
    }

    #[test]
    fn one_guesses() {
        let asked = SpeedOptions { mtp: true, draft: Some("small.gguf".into()), ..SpeedOptions::default() };
        assert_eq!(asked.check(64, 64), Err(SpeedError::TwoWhoGuess));
        assert_eq!(SpeedOptions { mtp: false, ..asked }.check(64, 64), Ok(()));
    }

    #[test]
    fn blocks_have_to_fit_into_heads() {
        let asked = SpeedOptions { keys: Some(KvType::Q4_0), ..SpeedOptions::default() };
        assert_eq!(asked.check(80, 80), Err(SpeedError::HeadsNotInBlocks { head: 80, kind: KvType::Q4_0 }));
        assert_eq!(asked.check(96, 80), Ok(()));
        assert_eq!(asked.check(0, 0), Ok(()), "what is not known is not refused");
    }

    #[test]
    fn guessing_for_oneself_needs_one_layer_that_can_be_computed_alone() {
        let asked = SpeedOptions { mtp: true, ..SpeedOptions::default() };
        assert_eq!(asked.check_ahead("qwen35", 1), Ok(()));
        assert_eq!(asked.check_ahead("qwen35", 0), Err(SpeedError::LayersAhead { layers: 0 }));
        assert_eq!(asked.check_ahead("glm4moe", 3), Err(SpeedError::LayersAhead { layers: 3 }));
        let architecture = "llama".to_owned();
        assert_eq!(asked.check_ahead("llama", 1), Err(SpeedError::NoPrediction { architecture }));
        assert_eq!(SpeedOptions::default().check_ahead("llama", 0), Ok(()));
    }

    #[test]
    fn names_of_types_are_read_back() {
        for kind in KvType::ALL {
            assert_eq!(kind.name().to_uppercase().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        assert!("q3".parse::<KvType>().is_err());
    }
}
