"""The starter as a torch module: llama architecture (RMSNorm, interleaved rope, SwiGLU, tied embeddings), no bias."""
import torch
import torch.nn as nn
import torch.nn.functional as F

HEAD = 64  # a head is 64 wide, so that some rotary dimensions stay nearly free of position for matching
THETA = 500000.0
FREE = 14  # rotary pairs from here on do not turn at all (rope_freqs in the GGUF): matching works at any distance


def rope(x, cos, sin):
    """Interleaved pairs, as llama.cpp's NORM rope."""
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, d, heads, ff):
        super().__init__(); self.heads = heads; w = heads * HEAD
        self.n1 = nn.RMSNorm(d, eps=1e-5); self.n2 = nn.RMSNorm(d, eps=1e-5)
        self.q, self.k, self.v = (nn.Linear(d, w, bias=False) for _ in range(3))
        self.o = nn.Linear(w, d, bias=False)
        self.gate, self.up = nn.Linear(d, ff, bias=False), nn.Linear(d, ff, bias=False)
        self.down = nn.Linear(ff, d, bias=False)

    def forward(self, x, cos, sin, past=None, look=None):
        b, t, _ = x.shape; h = self.n1(x)
        q, k, v = (f(h).view(b, t, self.heads, HEAD).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = rope(q, cos, sin).to(v.dtype), rope(k, cos, sin).to(v.dtype)
        if past is not None:
            if past: k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
            past[:] = [k, v]
        if look is not None: look.append((q[:, -1] @ k[:, -1].mT).float() / HEAD ** .5)
        causal = t > 1 and k.shape[2] == t
        mask = None
        if t > 1 and not causal: mask = torch.ones(t, k.shape[2], dtype=torch.bool).tril(k.shape[2] - t)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, -1))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, vocab, d, layers, heads, ff):
        super().__init__(); self.cfg = dict(vocab=vocab, d=d, layers=layers, heads=heads, ff=ff)
        self.emb = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(Block(d, heads, ff) for _ in range(layers))
        self.norm = nn.RMSNorm(d, eps=1e-5)
        self.register_buffer('inv', 1.0 / (THETA ** (torch.arange(0, HEAD, 2).float() / HEAD)), persistent=False)
        self.inv[FREE:] = 0

    def hidden(self, ids, past=None, start=0, look=None):
        """`look` maps a layer to a list that receives the last head's attention scores."""
        f = torch.outer(torch.arange(start, start + ids.shape[1]).float(), self.inv)
        cos, sin = f.cos(), f.sin(); x = self.emb(ids)
        for i, b in enumerate(self.blocks): x = b(x, cos, sin, None if past is None else past[i], (look or {}).get(i))
        return self.norm(x)

    def logits(self, h): return h @ self.emb.weight.T


def load(path):
    ck = torch.load(path, map_location='cpu'); m = Model(**ck['cfg']); m.load_state_dict(ck['sd'])
    return m


def save(m, path): torch.save({'cfg': m.cfg, 'sd': m.state_dict()}, path)


@torch.no_grad()
def greedy(m, past, start, h, stop, limit, force=None):
    """Continue after hidden state `h` until `stop`. `force(tokens)` may name the next token. -> tokens"""
    out = []
    while len(out) < limit:
        k = force(out) if force else None
        if k is None: k = m.logits(h[:, -1]).argmax(-1).item()
        out.append(k)
        h = m.hidden(torch.tensor([[k]]), past, start); start += 1
        if k == stop: break
    return out
