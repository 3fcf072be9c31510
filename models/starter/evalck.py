"""Greedy decoding on fresh dialogues: exact match of every assistant message, by kind and language."""
import argparse
import collections

import torch
from tokenizers import Tokenizer

import gen
from model import greedy, load


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('checkpoint'); ap.add_argument('n', type=int, nargs='?', default=40); ap.add_argument('--tok', default='tok.json'); ap.add_argument('--seed', type=int, default=999)
    ap.add_argument('--size', type=float, default=.7); ap.add_argument('--max', type=int, default=4000); ap.add_argument('--show', type=int, default=6); ap.add_argument('--threads', type=int, default=1); ap.add_argument('--eps', type=int, default=1)
    a = ap.parse_args(); torch.set_num_threads(a.threads); gen.R.seed(a.seed); tk = Tokenizer.from_file(a.tok); m = load(a.checkpoint).eval()
    end = tk.token_to_id('<|im_end|>'); ok, tot = collections.Counter(), collections.Counter(); done = 0; chosen = {}
    gen.pick_lang = lambda: chosen['lang']
    with torch.no_grad():
        while done < a.n:
            chosen['lang'] = gen.LANGS[done % 3]; parts = gen.render(*gen.dialogue(a.size, a.eps)); toks = [tk.encode(t).ids for t, _ in parts]
            if sum(map(len, toks)) > a.max: continue
            done += 1; past = [[] for _ in m.blocks]; pos = 0; h = None; calls = 0
            for (text, target), ids in zip(parts, toks):
                if target:
                    kind = text.split('"')[3].split('__')[-1] if text.startswith('<tool_call>') else f'answer after {calls} calls'
                    calls += text.startswith('<tool_call>')
                    out = greedy(m, [list(p) for p in past], pos, h, end, len(ids) + 20)
                    good = out == ids
                    for key in ('all', chosen['lang'], ('call ' if text.startswith('<tool_call>') else 'answer ') + chosen['lang'], kind): tot[key] += 1; ok[key] += good
                    if not good and a.show > 0:
                        a.show -= 1; print('WANT', repr(text)); print('GOT ', repr(tk.decode(out, skip_special_tokens=False)))
                h = m.hidden(torch.tensor([ids]), past, pos); pos += len(ids)
    for k in sorted(tot): print(f'{k:40} {ok[k]:4}/{tot[k]:<4} {100 * ok[k] / tot[k]:.1f} %')


if __name__ == '__main__': main()
