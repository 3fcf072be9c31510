"""Trains the starter on generated dialogues: Muon for the matrices, AdamW for embeddings and norms, bf16 on the CPU.

Small batches and many steps: copying is learned per step, not per token. Only what the assistant says is a target,
and the repetition of a found passage inside the note that was read (free practice in copying).
"""
import argparse
import os
import time

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import gen
from model import load, save

ap = argparse.ArgumentParser()
ap.add_argument('--init', required=True); ap.add_argument('--out', required=True); ap.add_argument('--tok', default='tok.json')
ap.add_argument('--minutes', type=float, default=10); ap.add_argument('--decay', type=float, default=.4, help='part of the time with falling rate')
ap.add_argument('--tokens', type=int, default=2048); ap.add_argument('--maxlen', type=int, default=1536); ap.add_argument('--long', type=float, default=.3)
ap.add_argument('--lr', type=float, default=.015); ap.add_argument('--adam', type=float, default=3e-3); ap.add_argument('--seed', type=int, default=0); ap.add_argument('--threads', type=int, default=2)
ap.add_argument('--drill', type=float, default=.2); ap.add_argument('--warm', type=int, default=100)


class Muon:
    """Orthogonalised momentum; matrices of one shape are stepped together."""
    def __init__(self, params, mom=.95, decay=.02):
        self.mom, self.decay, self.groups, self.state = mom, decay, {}, {}
        for p in params: self.groups.setdefault((min(p.shape), max(p.shape)), []).append((p, p.size(0) > p.size(1)))

    @torch.no_grad()
    def step(self, lr):
        for key, ps in self.groups.items():
            G = torch.stack([p.grad.T if tr else p.grad for p, tr in ps]); st = self.state.setdefault(key, torch.zeros_like(G))
            st.lerp_(G, 1 - self.mom); g = G.lerp(st, self.mom); X = (g / (g.norm(dim=(1, 2), keepdim=True) + 1e-7)).bfloat16()
            for _ in range(5):
                A = torch.bmm(X, X.mT); X = 3.4445 * X + torch.bmm(-4.7750 * A + 2.0315 * torch.bmm(A, A), X)
            for (p, tr), x in zip(ps, X): p.mul_(1 - lr * self.decay).add_(x.T if tr else x, alpha=-lr * max(1, p.size(0) / p.size(1)) ** .5)


def encode(tk, parts):
    """Tokens and target mask of [(text, is target)]."""
    ids, mask = [], []
    for (_, target), e in zip(parts, tk.encode_batch([t for t, _ in parts])): ids += e.ids; mask += [target] * len(e.ids)
    return ids, mask


def repeats(ids, mask, least=6):
    """Marks what merely repeats an earlier stretch of at least `least` tokens."""
    seen = {}; run = 0; src = -1
    for i in range(len(ids)):
        if src >= 0 and ids[src] == ids[i]: run += 1; src += 1
        else: run = 0; src = -1
        if run > 0: mask[i] = True
        key = tuple(ids[max(0, i - least + 1):i + 1])
        if src < 0 and key in seen: src = seen[key] + 1
        seen[key] = i


class Source:
    """Batches of about equally long sequences."""
    def __init__(self, tk, a): self.tk, self.a, self.pool = tk, a, []

    def sample(self):
        R, a = gen.R, self.a
        while True:
            long = R.random() < a.long; size = R.choice([.3, .5, .7]) if not long else R.choice([1, 1, 1.4])
            if R.random() < a.drill:
                src, key, dst = gen.drill(gen.pick_lang(), size)
                ids, mask = encode(self.tk, [(src + '<tool_call>' + key, False), (dst + '<|im_end|>', True)])
            else:
                tools, turns = gen.dialogue(size, 3 if long else 2)
                ids, mask = encode(self.tk, gen.render(tools, turns)); repeats(ids, mask)
            if len(ids) <= a.maxlen: return ids, mask

    def batch(self):
        if len(self.pool) < 64:
            self.pool += [self.sample() for _ in range(192)]; self.pool.sort(key=lambda x: len(x[0]))
        i = gen.R.randrange(len(self.pool)); n = max(1, self.a.tokens // len(self.pool[i][0])); lo = max(0, i - n + 1)
        chunk = self.pool[lo:i + 1]; del self.pool[lo:i + 1]
        L = max(len(x[0]) for x in chunk); ids = torch.zeros(len(chunk), L, dtype=torch.long); mask = torch.zeros(len(chunk), L, dtype=torch.bool)
        for j, (x, y) in enumerate(chunk): ids[j, :len(x)] = torch.tensor(x); mask[j, :len(y)] = torch.tensor(y)
        return ids[:, :-1], ids[:, 1:], mask[:, 1:]


def main():
    a = ap.parse_args(); torch.set_num_threads(a.threads); torch.manual_seed(a.seed); gen.R.seed(1000 + a.seed)
    tk = Tokenizer.from_file(a.tok); m = load(a.init); src = Source(tk, a)
    named = list(m.named_parameters()); mats = [p for n, p in named if p.dim() == 2 and 'emb' not in n]; rest = [p for n, p in named if p.dim() != 2 or 'emb' in n]
    muon, adam = Muon(mats), torch.optim.AdamW(rest, lr=a.adam, betas=(.9, .95), weight_decay=0.0)
    print('params', sum(p.numel() for _, p in named) / 1e6, m.cfg, flush=True)
    t0 = time.time(); step = seen = 0; el = ea = None; tgen = 0
    while (fr := (time.time() - t0) / (a.minutes * 60)) < 1:
        rate = min(1, (step + 1) / a.warm) * (1 if fr < 1 - a.decay else max(.01, (1 - fr) / a.decay))
        t1 = time.time(); x, y, mk = src.batch(); tgen += time.time() - t1
        with torch.autocast('cpu', dtype=torch.bfloat16): lg = m.logits(m.hidden(x)[mk])
        lg = lg.float(); tg = y[mk]; loss = F.cross_entropy(lg, tg); loss.backward()
        torch.nn.utils.clip_grad_norm_(rest, 1.0); muon.step(a.lr * rate)
        for g in adam.param_groups: g['lr'] = a.adam * rate
        adam.step(); m.zero_grad(set_to_none=True); step += 1; seen += x.numel()
        acc = (lg.argmax(-1) == tg).float().mean().item()
        el, ea = (loss.item(), acc) if el is None else (.98 * el + .02 * loss.item(), .98 * ea + .02 * acc)
        if step % 100 == 0 or step in (10, 30): print(f'{step} {seen / 1e6:.2f}M tok loss {el:.4f} acc {ea:.4f} {seen / (time.time() - t0):.0f} tok/s {time.time() - t0:.0f}s gen {tgen:.0f}s rate {rate:.2f}', flush=True)
        if step % 250 == 0: save(m, a.out + '.tmp'); os.replace(a.out + '.tmp', a.out)
    save(m, a.out); print('done', step, seen, el, ea)


if __name__ == '__main__': main()
