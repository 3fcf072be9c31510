"""The tokenizer: the first starter's byte-level BPE, its ids kept, with rows appended for Chinese and French.

Appended merges: Latin-1 letters, punctuation and the 3,755 level-1 hanzi of GB 2312 as byte merges, then French word
pieces learned on top. Merges never join a space to a word, so a word has the same tokens in a question and in JSON.
The pre-tokenizer is GPT-2's, as in llama.cpp's `gpt-2`.
"""
import collections
import json
import random
import sys

from tokenizers import Tokenizer, pre_tokenizers

import words

FRENCH_PIECES = 640
PUNCTUATION = "àâäçéèêëîïôöùûüÿœæÀÂÇÉÈÊËÎÏÔÖÙÛÜŒßñáíóúãõ°€£¥§«»’‘“”–—…•·×→✓★、。「」『』《》【】，！？：；（）～％ "


def byte_symbols():
    """byte -> the printable character that stands for it in byte-level BPE."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, n = {b: chr(b) for b in keep}, 0
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + n); n += 1
    return table


SYM = byte_symbols()


class Extender:
    def __init__(self, model):
        self.vocab = model['vocab']
        self.merges = [tuple(m) if isinstance(m, list) else tuple(m.split(' ')) for m in model['merges']]
        self.known = set(self.merges)

    def merge(self, a, b):
        if (a, b) in self.known: return
        self.known.add((a, b)); self.merges.append((a, b))
        self.vocab.setdefault(a + b, len(self.vocab))

    def character(self, ch):
        s = [SYM[b] for b in ch.encode('utf-8')]
        acc = s[0]
        for b in s[1:]:
            self.merge(acc, b); acc += b


def learn_french(ext, tk, count):
    """Further BPE merges on French words, on top of the merges that are there."""
    rng = random.Random(11)
    freq = collections.Counter({w: 60 for w in words.FR_COMMON})
    freq.update({w: 250 for w in words.FR_FUNC})
    freq.update(rng.sample(words.FR_LOWER, 20000))
    for w in list(freq)[:3000]: freq[w.capitalize()] += max(1, freq[w] // 4)
    seqs = [([t for t in tk.encode(w).tokens], n) for w, n in freq.items()]
    for _ in range(count):
        pairs = collections.Counter()
        for s, n in seqs:
            for p in zip(s, s[1:]): pairs[p] += n
        (a, b), _ = pairs.most_common(1)[0]
        ext.merge(a, b)
        for s, _ in seqs:
            i = 0
            while i < len(s) - 1:
                if s[i] == a and s[i + 1] == b: s[i:i + 2] = [a + b]
                i += 1


def build(old, new):
    data = json.loads(Tokenizer.from_file(old).to_str())
    ext = Extender(data['model'])
    for ch in PUNCTUATION:
        if ord(ch) > 127: ext.character(ch)
    for ch in words.HANZI: ext.character(ch)
    data['model']['merges'] = [list(m) for m in ext.merges]
    tk = _load(data)
    learn_french(ext, tk, FRENCH_PIECES)
    data['model']['merges'] = [list(m) for m in ext.merges]
    tk = _load(data)
    tk.save(new)
    return tk


def _load(data):
    tk = Tokenizer.from_str(json.dumps(data, ensure_ascii=False))
    tk.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return tk


if __name__ == '__main__':
    tk = build(sys.argv[1], sys.argv[2])
    print(tk.get_vocab_size())
    for s in ["La recette de la crème brûlée : l'œuf et 3 °C", '红烧肉需要生抽和糖。', 'Garden plan “x” – it’s']:
        e = tk.encode(s); print(len(e.ids), tk.decode(e.ids) == s, [tk.decode([i]) for i in e.ids])
