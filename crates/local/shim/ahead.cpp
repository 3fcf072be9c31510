// Layers that predict further tokens: functions of llama.cpp that are exported, but without C linkage.
#include "shim.h"

// As in llama.cpp's `src/llama-ext.h`, which is not installed.
LLAMA_API void llama_set_embeddings_nextn(struct llama_context * ctx, bool value, bool masked);
LLAMA_API float * llama_get_embeddings_nextn(struct llama_context * ctx);

extern "C" void lectern_keep_rows(struct llama_context * context, int32_t outputs_only) {
    llama_set_embeddings_nextn(context, true, outputs_only != 0);
}

extern "C" const float * lectern_rows(struct llama_context * context) {
    try {
        return llama_get_embeddings_nextn(context);
    } catch (...) {
        return nullptr;
    }
}
