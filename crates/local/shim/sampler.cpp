// Sampling: llama.cpp's own common_sampler, which samples first and consults the grammar only then.
#include "format.hpp"
#include "sampling.h"

#include <algorithm>
#include <cctype>

struct lectern_sampler {
    common_sampler_ptr sampler;
};

namespace {

// Replaces the start rule of a GBNF text. Rules stand one to a line.
std::string with_root(const std::string & grammar, const std::string & root) {
    std::string out;
    size_t      at = 0;
    while (at < grammar.size()) {
        size_t end = grammar.find('\n', at);
        if (end == std::string::npos) {
            end = grammar.size();
        }
        std::string line = grammar.substr(at, end - at);
        out += line.rfind("root ::=", 0) == 0 ? "root ::= " + root : line;
        out += '\n';
        at = end + 1;
    }
    return out;
}

void replace_all(std::string & text, const std::string & from, const std::string & to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

// llama.cpp lets a number have an exponent of 16 digits, which no JSON reader takes. Two are enough.
std::string with_readable_numbers(std::string grammar) {
    replace_all(grammar, "([eE] [-+]? integral-part)?", "([eE] [-+]? [0-9]{1,2})?");
    replace_all(grammar, "((\"e\" | \"E\") [+-]? [0-9]+)?", "((\"e\" | \"E\") [+-]? [0-9]{1,2})?");
    return grammar;
}

void add_triggers(const llama_vocab * vocab, const common_chat_params & params, common_params_sampling & out) {
    for (const auto & text : params.preserved_tokens) {
        auto ids = common_tokenize(vocab, text, false, true);
        if (ids.size() == 1) {
            out.preserved_tokens.insert(ids[0]);
        }
    }
    for (const auto & trigger : params.grammar_triggers) {
        auto use = trigger;
        if (trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_WORD) {
            auto ids = common_tokenize(vocab, trigger.value, false, true);
            if (ids.size() == 1 && out.preserved_tokens.count(ids[0]) != 0) {
                use.type  = COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN;
                use.token = ids[0];
            }
        }
        out.grammar_triggers.push_back(use);
    }
}

// A lazy grammar stays silent while the model thinks; the budget sampler knows when that is.
void add_thinking(const llama_vocab * vocab, const common_chat_params & params, common_params_sampling & out) {
    if (params.thinking_start_tag.empty() || params.thinking_end_tags.empty()) {
        return;
    }
    out.reasoning_budget_start = common_tokenize(vocab, params.thinking_start_tag, false, true);
    for (const auto & tag : params.thinking_end_tags) {
        out.reasoning_budget_end.push_back(common_tokenize(vocab, tag, false, true));
    }
    out.reasoning_budget_forced = out.reasoning_budget_end.front();
}

std::string trimmed(const std::string & text) {
    const char * space = " \t\r\n";
    size_t       from  = text.find_first_not_of(space);
    return from == std::string::npos ? "" : text.substr(from, text.find_last_not_of(space) - from + 1);
}

// The end of the prompt as the budget is to see it. Without white space behind the tag with which thinking begins: a
// budget of nothing would take it for the end of the thought. Nothing where the thought has ended already: with a
// tag that is written in several tokens it would be ended again.
std::string seen_by_budget(const common_chat_params & params) {
    const std::string & prompt = params.generation_prompt;
    const std::string & tag    = params.thinking_start_tag;
    size_t              at     = tag.empty() ? std::string::npos : prompt.rfind(tag);
    if (at == std::string::npos) {
        return prompt;
    }
    size_t end = at + tag.size();
    for (const auto & other : params.thinking_end_tags) {
        std::string close = trimmed(other);
        if (!close.empty() && prompt.find(close, end) != std::string::npos) {
            return "";
        }
    }
    return trimmed(prompt.substr(end)).empty() ? prompt.substr(0, end) : prompt;
}

// How far back tokens are counted that stand in the reply.
const int32_t WHOLE_REPLY = 16384;

common_params_sampling read_options(const common_json & options) {
    common_params_sampling out;
    out.no_perf        = true;
    out.seed           = options.value("seed", out.seed);
    out.temp           = options.value("temperature", out.temp);
    out.top_k          = options.value("top_k", out.top_k);
    out.top_p          = options.value("top_p", out.top_p);
    out.min_p          = options.value("min_p", out.min_p);
    out.penalty_repeat  = options.value("repeat_penalty", out.penalty_repeat);
    out.penalty_freq    = options.value("frequency_penalty", out.penalty_freq);
    out.penalty_present = options.value("presence_penalty", out.penalty_present);
    if (out.penalty_freq != 0.0f || out.penalty_present != 0.0f) {
        out.penalty_last_n = WHOLE_REPLY;
    }
    out.reasoning_budget_tokens = options.value("thinking_budget", out.reasoning_budget_tokens);
    return out;
}

void add_grammar(const llama_vocab * vocab, const common_chat_params & params, const common_json & options,
                 common_params_sampling & out) {
    std::string calls   = options.value("calls", "");
    std::string root    = options.value("root", "");
    std::string trigger = options.value("trigger", "");
    std::string grammar = with_readable_numbers(calls.empty() ? params.grammar : calls);
    if (grammar.empty()) {
        return;
    }
    if (!trigger.empty()) {
        out.grammar      = { COMMON_GRAMMAR_TYPE_TOOL_CALLS, root.empty() ? grammar : with_root(grammar, root) };
        out.grammar_lazy = true;
        common_grammar_trigger pattern;
        pattern.type  = COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN;
        pattern.value = trigger;
        out.grammar_triggers.push_back(pattern);
        return;
    }
    if (!root.empty()) {
        out.grammar = { COMMON_GRAMMAR_TYPE_USER, with_root(grammar, root) };
        return;
    }
    out.grammar      = { COMMON_GRAMMAR_TYPE_TOOL_CALLS, grammar };
    out.grammar_lazy = params.grammar_lazy;
    add_triggers(vocab, params, out);
}

} // namespace

extern "C" {

lectern_sampler * lectern_sampler_new(const llama_model * model, const lectern_format * format,
                                      const char * options, char ** error) {
    lectern_sampler * out = nullptr;
    *error                = lectern::guarded([&]() -> char * {
        auto given  = common_json::parse(options);
        auto params = read_options(given);
        auto vocab  = llama_model_get_vocab(model);
        auto grammar = given.value("grammar", "");
        if (!grammar.empty()) {
            params.grammar = { COMMON_GRAMMAR_TYPE_USER, with_readable_numbers(grammar) };
        } else if (format != nullptr) {
            add_grammar(vocab, format->params, given, params);
            if (params.grammar_lazy || given.value("root", "").empty()) {
                params.generation_prompt =
                    params.reasoning_budget_tokens >= 0 ? seen_by_budget(format->params) : format->params.generation_prompt;
                add_thinking(vocab, format->params, params);
            }
        }
        common_sampler_ptr sampler(common_sampler_init(model, params));
        out = new lectern_sampler{ std::move(sampler) };
        return nullptr;
    });
    return out;
}

char * lectern_sampler_sample(lectern_sampler * sampler, llama_context * context, int32_t index,
                              llama_token * token) {
    return lectern::guarded([&]() -> char * {
        *token = common_sampler_sample(sampler->sampler.get(), context, index);
        common_sampler_accept(sampler->sampler.get(), *token, true);
        return nullptr;
    });
}

void lectern_sampler_free(lectern_sampler * sampler) {
    delete sampler;
}

} // extern "C"
