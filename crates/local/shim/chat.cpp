// Templates and parsing: a thin border over llama.cpp's common/chat.h.
#include "format.hpp"
#include "log.h"

struct lectern_templates {
    common_chat_templates_ptr templates;
};

namespace {

common_chat_templates_inputs read_request(const common_json & request) {
    common_chat_templates_inputs in;
    in.messages = common_chat_msgs_parse_oaicompat(request.at("messages"));
    if (request.contains("tools") && !request.at("tools").empty()) {
        in.tools       = common_chat_tools_parse_oaicompat(request.at("tools"));
        in.tool_choice = common_chat_tool_choice_parse_oaicompat(request.value("tool_choice", "auto"));
    }
    in.parallel_tool_calls   = request.value("parallel_tool_calls", false);
    in.add_generation_prompt = request.value("add_generation_prompt", true);
    in.enable_thinking       = request.value("enable_thinking", true);
    in.reasoning_format      = COMMON_REASONING_FORMAT_AUTO;
    if (request.contains("kwargs")) {
        for (const auto & pair : request.at("kwargs").items()) {
            in.chat_template_kwargs[pair.key()] = pair.value().dump();
        }
    }
    if (request.contains("json_schema")) {
        in.json_schema = request.at("json_schema").dump();
    }
    return in;
}

common_json describe(const common_chat_params & params) {
    common_json out            = common_json::object();
    out["prompt"]              = params.prompt;
    out["generation_prompt"]   = params.generation_prompt;
    out["grammar"]             = params.grammar;
    out["grammar_lazy"]        = params.grammar_lazy;
    out["triggers"]            = params.grammar_triggers.size();
    out["supports_thinking"]   = params.supports_thinking;
    out["thinking_start_tag"]  = params.thinking_start_tag;
    out["thinking_end_tags"]   = params.thinking_end_tags;
    out["additional_stops"]    = params.additional_stops;
    out["preserved_tokens"]    = params.preserved_tokens;
    out["format"]              = std::string(common_chat_format_name(params.format));
    return out;
}

common_json describe(const common_chat_msg & message) {
    common_json out  = common_json::object();
    out["content"]   = message.render_content();
    out["reasoning"] = message.reasoning_content;
    auto calls       = common_json::array();
    for (const auto & call : message.tool_calls) {
        common_json one  = common_json::object();
        one["name"]      = call.name;
        one["arguments"] = call.arguments;
        one["id"]        = call.id;
        calls.push_back(one);
    }
    out["tool_calls"] = calls;
    return out;
}

} // namespace

extern "C" {

void lectern_free(char * text) {
    std::free(text);
}

lectern_templates * lectern_templates_new(const llama_model * model, const char * source, const char * bos,
                                          const char * eos, char ** error) {
    // The library's own log would repeat what the model wrote; errors come back as values.
    common_log_set_verbosity_thold(-1);
    lectern_templates * out = nullptr;
    *error                  = lectern::guarded([&]() -> char * {
        auto templates = common_chat_templates_init(model, source, bos, eos);
        out            = new lectern_templates{ std::move(templates) };
        return nullptr;
    });
    return out;
}

void lectern_templates_free(lectern_templates * templates) {
    delete templates;
}

char * lectern_templates_describe(const lectern_templates * templates) {
    return lectern::guarded([&] {
        common_json caps = common_json::object();
        for (const auto & cap : common_chat_templates_get_caps(templates->templates.get())) {
            caps[cap.first] = cap.second;
        }
        common_json out = common_json::object();
        out["caps"]     = caps;
        out["explicit"] = common_chat_templates_was_explicit(templates->templates.get());
        out["source"]   = common_chat_templates_source(templates->templates.get());
        return lectern::copy(out.dump_safe());
    });
}

char * lectern_apply(const lectern_templates * templates, const char * request, lectern_format ** format) {
    return lectern::guarded([&] {
        auto inputs   = read_request(common_json::parse(request));
        auto out      = std::make_unique<lectern_format>();
        out->params   = common_chat_templates_apply(templates->templates.get(), inputs);
        out->parser   = common_chat_parser_params(out->params);
        out->parser.reasoning_format = inputs.reasoning_format;
        if (!out->params.parser.empty()) {
            out->parser.parser.load(out->params.parser);
        }
        char * text = lectern::copy(describe(out->params).dump_safe());
        *format     = out.release();
        return text;
    });
}

char * lectern_format_parse(const lectern_format * format, const char * text, size_t length, int32_t partial) {
    return lectern::guarded([&] {
        auto message = common_chat_parse(std::string(text, length), partial != 0, format->parser);
        return lectern::copy(describe(message).dump_safe());
    });
}

void lectern_format_free(lectern_format * format) {
    delete format;
}

} // extern "C"
