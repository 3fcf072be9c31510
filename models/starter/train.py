"""Trains the starter on generated dialogues: Muon for the matrices, AdamW for embeddings and norms, bf16 on the CPU.

Small batches and many steps: copying is learned per step, not per token. Only what the assistant says is a target,
and the repetition of a found passage inside the note that was read (free practice in copying). The last head of two
layers is told where to look (the place a token is copied from); left alone, copying takes many times as long to appear.
"""
import argparse
import os
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from tokenizers import Tokenizer

import gen
from circuit import CODE, LAYER
from model import HEAD, load, save

ap = argparse.ArgumentParser()
ap.add_argument('--init', required=True); ap.add_argument('--out', required=True); ap.add_argument('--tok', default='tok.json')
ap.add_argument('--minutes', type=float, default=10, help='of all the threads, at full speed'); ap.add_argument('--decay', type=float, default=.4, help='part of the time with falling rate')
ap.add_argument('--tokens', type=int, default=2048); ap.add_argument('--maxlen', type=int, default=1536); ap.add_argument('--long', type=float, default=.3)
ap.add_argument('--lr', type=float, default=.015); ap.add_argument('--adam', type=float, default=3e-3); ap.add_argument('--seed', type=int, default=0); ap.add_argument('--threads', type=int, default=2)
ap.add_argument('--drill', type=float, default=.2); ap.add_argument('--look', type=float, default=.3, help='weight of the loss on where to look'); ap.add_argument('--layers', default='2,3')
ap.add_argument('--frozen', action='store_true', help='the checkpoint has code dimensions')
ap.add_argument('--warm', type=int, default=100)


class Muon:
    """Orthogonalised momentum; matrices of one shape are stepped together."""
    def __init__(self, params, mom=.95, decay=0.0):
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


def origins(ids, mask, least=6):
    """For each target, where it is copied from (the best match before and after), 0 if from nowhere; -1 elsewhere."""
    x = np.asarray(ids); n = len(x); out = np.full(n, -1); same = x[:, None] == x[None, :]
    back = np.zeros((n, n), np.int16); ahead = np.zeros((n + 1, n + 1), np.int16)
    for i in range(n):
        back[i, 1:] = back[i - 1, :-1] if i else 0
        back[i] = (np.minimum(back[i], 23) + 1) * same[i]
        j = n - 1 - i; ahead[j, :n] = (np.minimum(ahead[j + 1, 1:], 7) + 1) * same[j]
    for i in np.flatnonzero(np.asarray(mask[1:], bool)):
        if i < 1: continue
        a = ahead[i + 1, 1:i + 1]; score = (a > 0) * (a + back[i, :i]); best = int(score.argmax())
        out[i] = best + 1 if score[best] >= least else 0  # 0: the first token, where there is nothing to copy
    return out.tolist()


class Source:
    """Batches of about equally long sequences."""
    def __init__(self, tk, a): self.tk, self.a, self.pool = tk, a, []

    def sample(self):
        R, a = gen.R, self.a
        while True:
            long = R.random() < a.long; size = R.choice([.3, .5, .7]) if not long else R.choice([.8, 1, 1.4])
            if R.random() < a.drill:
                src, key, dst = gen.drill(gen.pick_lang(), size)
                ids, mask = encode(self.tk, [(src + '<tool_call>' + key, False), (dst + '<|im_end|>', True)])
            else:
                tools, turns = gen.dialogue(size, 3 if long else 2)
                ids, mask = encode(self.tk, gen.render(tools, turns)); repeats(ids, mask)
            if len(ids) <= a.maxlen: return ids, mask, origins(ids, mask) if a.look else [-1] * len(ids)

    def batch(self):
        if len(self.pool) < 64:
            self.pool += [self.sample() for _ in range(192)]; self.pool.sort(key=lambda x: len(x[0]))
        i = gen.R.randrange(len(self.pool)); n = max(1, self.a.tokens // len(self.pool[i][0])); lo = max(0, i - n + 1)
        chunk = self.pool[lo:i + 1]; del self.pool[lo:i + 1]
        L = max(len(x[0]) for x in chunk); ids = torch.zeros(len(chunk), L, dtype=torch.long); mask = torch.zeros(len(chunk), L, dtype=torch.bool); org = torch.full((len(chunk), L), -1)
        for j, (x, y, z) in enumerate(chunk): ids[j, :len(x)] = torch.tensor(x); mask[j, :len(y)] = torch.tensor(y); org[j, :len(z)] = torch.tensor(z)
        return ids[:, :-1], ids[:, 1:], mask[:, 1:], org[:, :-1]


def astray(look, org):
    """-> loss of the told heads, share of places where the last of them looks right"""
    if not look or not (org >= 0).any(): return torch.zeros(()), 0.
    b, i = torch.nonzero(org >= 0, as_tuple=True); goal = org[b, i]; later = torch.arange(org.shape[1])[None] > i[:, None]; loss = 0; right = 0.
    for (scores,) in look.values():
        s = scores[b, i].masked_fill(later, -1e9); loss = loss + F.cross_entropy(s, goal); right = (s.argmax(-1) == goal).float().mean().item()
    return loss / len(look), right


def freeze(m):
    """Clears the gradients of the code dimensions (see circuit.py): noise there would be spelled out as tokens."""
    old = m.cfg['d'] - CODE; m.emb.weight.grad[:, old:] = 0
    for i, b in enumerate(m.blocks):
        b.o.weight.grad[old:] = 0; b.down.weight.grad[old:] = 0
        if i == LAYER: b.o.weight.grad[:, -HEAD:] = 0; b.v.weight.grad[-HEAD:] = 0


def progress(began, minutes, world):
    """Part of the work that is done, the same in all processes: by what the processors gave it, so that it may be paused."""
    fr = torch.tensor((time.process_time() - began) / (minutes * 60 * torch.get_num_threads()))
    if world > 1: dist.broadcast(fr, 0)
    return fr.item()


def share(params):
    """Averages the gradients of all processes."""
    flat = torch.cat([p.grad.flatten() for p in params]); dist.all_reduce(flat); flat /= dist.get_world_size(); at = 0
    for p in params: p.grad.copy_(flat[at:at + p.numel()].view_as(p)); at += p.numel()


def main():
    a = ap.parse_args(); torch.set_num_threads(a.threads); torch.manual_seed(a.seed)
    # On a busy machine two processes of one thread (started by torchrun) beat one process of two threads.
    world = int(os.environ.get('WORLD_SIZE', 1)); rank = int(os.environ.get('RANK', 0)); gen.R.seed(1000 + a.seed + 77 * rank)
    if world > 1: dist.init_process_group('gloo')
    tk = Tokenizer.from_file(a.tok); m = load(a.init); src = Source(tk, a)
    named = list(m.named_parameters()); mats = [p for n, p in named if p.dim() == 2 and 'emb' not in n]; rest = [p for n, p in named if p.dim() != 2 or 'emb' in n]
    muon, adam = Muon(mats), torch.optim.AdamW(rest, lr=a.adam, betas=(.9, .95), weight_decay=0.0)
    print('params', sum(p.numel() for _, p in named) / 1e6, m.cfg, flush=True)
    t0 = time.time(); began = time.process_time(); step = seen = 0; ema = None; tgen = 0
    while (fr := progress(began, a.minutes, world)) < 1:
        rate = min(1, (step + 1) / a.warm) * (1 if fr < 1 - a.decay else max(.01, (1 - fr) / a.decay))
        look = {int(k): [] for k in a.layers.split(',')} if a.look else {}; t1 = time.time(); x, y, mk, org = src.batch(); tgen += time.time() - t1
        with torch.autocast('cpu', dtype=torch.bfloat16): lg = m.logits(m.hidden(x, look=look)[mk])
        lg = lg.float(); tg = y[mk]; loss = F.cross_entropy(lg, tg); aux, seen_at = astray(look, org)
        (loss + a.look * aux).backward()
        if world > 1: share([p for _, p in named])
        if a.frozen: freeze(m)
        torch.nn.utils.clip_grad_norm_(rest, 1.0); muon.step(a.lr * rate)
        for g in adam.param_groups: g['lr'] = a.adam * rate
        adam.step(); m.zero_grad(set_to_none=True); step += 1; seen += x.numel()
        acc = (lg.argmax(-1) == tg).float().mean().item()
        now = (loss.item(), acc, aux.item(), seen_at); ema = now if ema is None else tuple(.98 * e + .02 * n for e, n in zip(ema, now))
        if rank: continue
        if step % 100 == 0 or step in (10, 30): print(f'{step} {seen / 1e6:.2f}M tok loss {ema[0]:.4f} acc {ema[1]:.4f} look {ema[2]:.3f} {ema[3]:.3f} {seen / (time.time() - t0):.0f} tok/s {time.time() - t0:.0f}s gen {tgen:.0f}s rate {rate:.2f}', flush=True)
        if step % 100 == 0: save(m, a.out + '.tmp'); os.replace(a.out + '.tmp', a.out)
    if rank == 0: save(m, a.out); print('done', step, seen, ema)


if __name__ == '__main__': main()
