// What the two halves of the shim share.
#pragma once

#include "chat.h"
#include "json.h"
#include "shim.h"

#include <cstdlib>
#include <cstring>
#include <string>

// The outcome of applying a template: grammar, triggers and the parser, kept as C++ values.
struct lectern_format {
    common_chat_params        params;
    common_chat_parser_params parser;
};

namespace lectern {

inline char * copy(const std::string & text) {
    char * out = static_cast<char *>(std::malloc(text.size() + 1));
    if (out != nullptr) {
        std::memcpy(out, text.c_str(), text.size() + 1);
    }
    return out;
}

inline char * error(const char * what) {
    common_json out = common_json::object();
    out["error"]    = std::string(what);
    return copy(out.dump_safe());
}

// Runs `work`; an exception becomes an error text.
template <typename Work> char * guarded(Work work) {
    try {
        return work();
    } catch (const std::exception & thrown) {
        return error(thrown.what());
    } catch (...) {
        return error("unknown C++ exception");
    }
}

} // namespace lectern
