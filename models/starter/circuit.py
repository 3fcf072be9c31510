"""Gives a trained checkpoint a value path for copying, so that training need not discover it.

Training tells the last head of layer 3 where to look, and it learns that quickly; what takes long is that the token
seen there reaches the output, since in the middle of the network a token's own embedding is a whisper. So 64
dimensions are added that only hold a random code of each token, read and written by that head alone and by the tied
output. `<|im_start|>` has an empty code: looking there means copying nothing.
"""
import sys

import torch

from model import HEAD, Model, load, save

CODE, LAYER, START = 64, 3, 1
LENGTH, GAIN = 2.0, 10.0


def sizes(m, ids):
    """Median size of the stream at each norm, in order."""
    out = []; hooks = [n.register_forward_hook(lambda _, a, __: out.append(a[0].pow(2).mean(-1).sqrt().median().item())) for n in norms(m)]
    m.hidden(ids)
    for h in hooks: h.remove()
    return out


def norms(m): return [x for b in m.blocks for x in (b.n1, b.n2)] + [m.norm]


@torch.no_grad()
def build(old, ids, margin=6.0, seed=1):
    g = torch.Generator().manual_seed(seed); d0 = old.cfg['d']; m = Model(**{**old.cfg, 'd': d0 + CODE}); given = dict(old.named_parameters())
    for name, w in m.named_parameters():
        src = given[name]; w.zero_()
        if w.dim() == 1: w[:d0] = src
        else: w[:src.shape[0], :src.shape[1]] = src
    code = torch.randn(old.cfg['vocab'], CODE, generator=g); code *= LENGTH / code.norm(dim=1, keepdim=True); code[START] = 0
    m.emb.weight[:, d0:] = code; before = sizes(old, ids); b = m.blocks[LAYER]; h = m.cfg['heads'] - 1; r = slice(h * HEAD, (h + 1) * HEAD)
    b.v.weight[r] = 0; b.v.weight[r, d0:] = torch.eye(HEAD); b.o.weight[:, r] = 0; b.o.weight[d0:, r] = GAIN * torch.eye(HEAD)
    for i, n in enumerate(norms(m)):  # in order: each norm sees what the ones before it let through
        now = sizes(m, ids)[i]; n.weight[:d0] *= now / before[i]
        n.weight[d0:] = margin * now / (GAIN * LENGTH) if n is m.norm else now / LENGTH
    return m


if __name__ == '__main__':
    from tokenizers import Tokenizer
    import gen
    gen.R.seed(3); tk = Tokenizer.from_file(sys.argv[3]); ids = torch.tensor([tk.encode(''.join(t for t, _ in gen.render(*gen.dialogue(.5, 1)))).ids])
    save(build(load(sys.argv[1]), ids, float(sys.argv[4]) if len(sys.argv) > 4 else 6.0), sys.argv[2])
