"""Rebuilds a torch checkpoint from a starter GGUF, so that training can go on from the published weights.

With `--d/--layers/--heads/--ff/--vocab` the network is grown on the way without changing what it computes: new widths
read and write zeros, new layers add nothing, new vocabulary rows are drawn like the old ones.
"""
import argparse
import json

import gguf
import torch

from model import HEAD, Model, save

NAMES = {'attn_norm': 'n1', 'ffn_norm': 'n2', 'attn_q': 'q', 'attn_k': 'k', 'attn_v': 'v', 'attn_output': 'o', 'ffn_gate': 'gate', 'ffn_up': 'up', 'ffn_down': 'down'}


def read(path):
    """-> (state dict, configuration)"""
    sd = {}
    for t in gguf.GGUFReader(path).tensors:
        x = torch.tensor(gguf.dequantize(t.data, t.tensor_type).astype('float32')).reshape(tuple(int(n) for n in reversed(t.shape)))
        if t.name == 'rope_freqs.weight': continue
        if t.name == 'token_embd.weight': sd['emb.weight'] = x
        elif t.name == 'output_norm.weight': sd['norm.weight'] = x
        else:
            _, i, part, _ = t.name.split('.'); sd[f'blocks.{i}.{NAMES[part]}.weight'] = x
    v, d = sd['emb.weight'].shape
    cfg = dict(vocab=v, d=d, layers=1 + max(int(k.split('.')[1]) for k in sd if k.startswith('blocks.')), heads=sd['blocks.0.q.weight'].shape[0] // HEAD, ff=sd['blocks.0.up.weight'].shape[0])
    return sd, cfg


def grow(sd, old, new, seed=0):
    """Larger weights that compute the same."""
    g = torch.Generator().manual_seed(seed); m = Model(**new); out = m.state_dict()
    d0, d1, scale = old['d'], new['d'], (old['d'] / new['d']) ** .5
    rnd = lambda *s: torch.randn(*s, generator=g)
    e = sd['emb.weight']; std = e.std(); mean, cov = e.mean(0), torch.cov(e.T)
    L = torch.linalg.cholesky(cov + 1e-6 * torch.eye(d0))
    E = torch.zeros(new['vocab'], d1); E[:old['vocab'], :d0] = e
    E[old['vocab']:, :d0] = mean + rnd(new['vocab'] - old['vocab'], d0) @ L.T
    if d1 > d0: E[:, d0:] = rnd(new['vocab'], d1 - d0) * std * .3
    out['emb.weight'] = E
    out['norm.weight'] = torch.ones(d1) * .5; out['norm.weight'][:d0] = sd['norm.weight'] * scale
    for i in range(new['layers']):
        p = f'blocks.{i}.'
        for n in ('n1', 'n2'):
            w = torch.ones(d1) * .5
            if i < old['layers']: w[:d0] = sd[p + n + '.weight'] * scale
            out[p + n + '.weight'] = w
        for n in ('q', 'k', 'v', 'o', 'gate', 'up', 'down'):
            shape = out[p + n + '.weight'].shape
            w = torch.zeros(shape) if n in ('o', 'down') else rnd(*shape) * d1 ** -.5
            if i < old['layers']:
                s = sd[p + n + '.weight']
                w[:, s.shape[1]:] = 0 if n not in ('o', 'down') else w[:, s.shape[1]:]
                w[:s.shape[0], :s.shape[1]] = s
                if n in ('q', 'k', 'v', 'gate', 'up'): w[s.shape[0]:] = rnd(shape[0] - s.shape[0], shape[1]) * d1 ** -.5
            out[p + n + '.weight'] = w
    m.load_state_dict(out)
    return m


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    ap.add_argument('gguf'); ap.add_argument('out')
    for k in ('vocab', 'd', 'layers', 'heads', 'ff'): ap.add_argument('--' + k, type=int)
    a = ap.parse_args(); sd, old = read(a.gguf); new = {k: getattr(a, k) or v for k, v in old.items()}
    save(grow(sd, old, new), a.out); print(json.dumps(old), '->', json.dumps(new))
