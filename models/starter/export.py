"""Writes a checkpoint as GGUF (F16, or Q8_0 for the matrices) for llama.cpp's `llama` architecture."""
import argparse
import json
import os

import gguf
import numpy as np
from tokenizers import Tokenizer

from model import FREE, HEAD, THETA, load

# Lectern's key: where the model quotes, names a note or fills in an argument, the decoder lets it copy only. The text
# holds, one a line, the beginnings of a line after which the path of a note stands.
VERBATIM = "From \nD'après \n来自 \n- "
CONTROL = ('<|endoftext|>', '<|im_start|>', '<|im_end|>')
PARTS = (('attn_q', 'q'), ('attn_k', 'k'), ('attn_v', 'v'), ('attn_output', 'o'), ('ffn_gate', 'gate'), ('ffn_up', 'up'), ('ffn_down', 'down'))


def vocabulary(w, tok):
    data = json.loads(Tokenizer.from_file(tok).to_str()); vocab = data['model']['vocab']
    special = {t['content']: t['id'] for t in data['added_tokens']}
    tokens = [t for t, _ in sorted(vocab.items(), key=lambda x: x[1])]
    kind = lambda t: gguf.TokenType.CONTROL if t in CONTROL else gguf.TokenType.USER_DEFINED if t in special else gguf.TokenType.NORMAL
    w.add_tokenizer_model('gpt2'); w.add_tokenizer_pre('gpt-2'); w.add_token_list(tokens); w.add_token_types([kind(t) for t in tokens])
    w.add_token_merges([' '.join(m) if isinstance(m, list) else m for m in data['model']['merges']])
    w.add_bos_token_id(special['<|endoftext|>']); w.add_eos_token_id(special['<|im_end|>']); w.add_pad_token_id(special['<|endoftext|>']); w.add_add_bos_token(False)
    return len(tokens)


def export(checkpoint, out, tok, context, q8):
    m = load(checkpoint); c, sd = m.cfg, m.state_dict(); w = gguf.GGUFWriter(out, 'llama')
    w.add_name('Lectern Starter'); w.add_license('MIT OR Apache-2.0'); w.add_languages(['en', 'fr', 'zh'])
    w.add_description('A very small model that drives the notes tools; choose a larger one in Settings for conversation.')
    w.add_context_length(context); w.add_embedding_length(c['d']); w.add_block_count(c['layers']); w.add_feed_forward_length(c['ff'])
    w.add_head_count(c['heads']); w.add_head_count_kv(c['heads']); w.add_key_length(HEAD); w.add_value_length(HEAD)
    w.add_layer_norm_rms_eps(1e-5); w.add_rope_dimension_count(HEAD); w.add_rope_freq_base(THETA); w.add_vocab_size(c['vocab'])
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0 if q8 else gguf.LlamaFileType.MOSTLY_F16)
    if vocabulary(w, tok) != c['vocab']: raise SystemExit('the tokenizer and the checkpoint disagree on the vocabulary')
    w.add_string('lectern.verbatim', VERBATIM); w.add_chat_template(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'template.jinja'), encoding='utf-8').read())

    def tensor(name, key):
        x = sd[key + '.weight'].float().numpy()
        if x.ndim == 1: w.add_tensor(name + '.weight', x)
        elif q8 and x.shape[1] % 32 == 0:
            q = gguf.quantize(x, gguf.GGMLQuantizationType.Q8_0); w.add_tensor(name + '.weight', q, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else: w.add_tensor(name + '.weight', x.astype(np.float16))
    # llama.cpp divides the rotation by these factors: pairs from FREE on practically do not turn.
    w.add_tensor('rope_freqs.weight', np.array([1.0] * FREE + [1e30] * (HEAD // 2 - FREE), np.float32))
    tensor('token_embd', 'emb'); tensor('output_norm', 'norm')
    for i in range(c['layers']):
        tensor(f'blk.{i}.attn_norm', f'blocks.{i}.n1'); tensor(f'blk.{i}.ffn_norm', f'blocks.{i}.n2')
        for a, b in PARTS: tensor(f'blk.{i}.{a}', f'blocks.{i}.{b}')
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
    print('wrote', out, os.path.getsize(out))


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    ap.add_argument('checkpoint'); ap.add_argument('out'); ap.add_argument('--tok', default='tok.json'); ap.add_argument('--context', type=int, default=4096); ap.add_argument('--q8', action='store_true')
    a = ap.parse_args(); export(a.checkpoint, a.out, a.tok, a.context, a.q8)
