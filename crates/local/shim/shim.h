// The C border of Lectern's shim over llama.cpp's `common` library.
// Rules: JSON in and out; no exception crosses; every returned char * is freed with lectern_free.
#pragma once

#include "llama.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lectern_templates;
struct lectern_format;
struct lectern_sampler;

void lectern_free(char * text);

// Templates of a model (may be null), or from source text. On failure null, and *error is set.
struct lectern_templates * lectern_templates_new(const struct llama_model * model, const char * source,
                                                 const char * bos, const char * eos, char ** error);
void lectern_templates_free(struct lectern_templates * templates);
// {"caps": {...}, "source": "...", "thinking": bool} or {"error": "..."}
char * lectern_templates_describe(const struct lectern_templates * templates);

// Request: {messages, tools, tool_choice, parallel_tool_calls, json_schema, enable_thinking,
// add_generation_prompt, kwargs}. Gives {"prompt", "generation_prompt", ...}; *format then holds what parsing and
// sampling need. On failure {"error"} and *format stays null.
char * lectern_apply(const struct lectern_templates * templates, const char * request,
                     struct lectern_format ** format);
// Parses everything generated so far: {"content", "reasoning", "tool_calls": [{name, arguments, id}]}.
char * lectern_format_parse(const struct lectern_format * format, const char * text, size_t length,
                            int32_t partial);
void lectern_format_free(struct lectern_format * format);

// Options: {seed, temperature, top_k, top_p, min_p, repeat_penalty, frequency_penalty, presence_penalty,
// thinking_budget, root, grammar, calls, trigger}. `calls` stands in place of the format's grammar; with a `trigger`
// (an expression) it begins with the first group that matches. A `root` replaces the start
// rule of the format's grammar, a `grammar` the whole; neither is then advanced over the generation prompt. On
// failure null, and *error is set.
struct lectern_sampler * lectern_sampler_new(const struct llama_model * model,
                                             const struct lectern_format * format, const char * options,
                                             char ** error);
// Samples from the logits at `index` and accepts the token. Null, or an error to be freed.
char * lectern_sampler_sample(struct lectern_sampler * sampler, struct llama_context * context, int32_t index,
                              llama_token * token);
void lectern_sampler_free(struct lectern_sampler * sampler);

// Keeps what each token of a batch is (only of those with logits, if `outputs_only`), for the layer that predicts further
// tokens from it. The rows of the last batch follow each other; null when there are none.
void lectern_keep_rows(struct llama_context * context, int32_t outputs_only);
const float * lectern_rows(struct llama_context * context);

#ifdef __cplusplus
}
#endif
