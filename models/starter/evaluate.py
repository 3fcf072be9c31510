"""Runs the whole loop in torch over a file of questions: model, tool calls on the real notes server, final answer.

For decisions while training, without building the app. Decoding is greedy and free (no grammar), so the score is a
lower bound of what the app reaches. A question counts when the tools asked for were called, the right note was read
(or listed, or written) and the answer holds the quotation.
"""
import argparse
import collections
import json
import shutil
import subprocess
import tempfile
import unicodedata

import torch
from tokenizers import Tokenizer

from model import greedy, load

PREFIX = 'notes__'


class Server:
    """An MCP server over stdio, one JSON message a line."""
    def __init__(self, command):
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding='utf-8'); self.n = 0
        self.ask('initialize', {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'evaluate', 'version': '1'}})
        self.send({'jsonrpc': '2.0', 'method': 'notifications/initialized'})
        self.tools = self.ask('tools/list', {})['tools']

    def send(self, message): self.p.stdin.write(json.dumps(message) + '\n'); self.p.stdin.flush()

    def ask(self, method, params):
        self.n += 1; self.send({'jsonrpc': '2.0', 'id': self.n, 'method': method, 'params': params})
        for line in self.p.stdout:
            m = json.loads(line)
            if m.get('id') == self.n and 'method' not in m: return m['result'] if 'result' in m else {'content': [{'type': 'text', 'text': m['error']['message']}], 'isError': True}
        raise SystemExit('the notes server went away')

    def call(self, name, args):
        r = self.ask('tools/call', {'name': name, 'arguments': args})
        return '\n'.join(c.get('text', '') for c in r.get('content', [])), r.get('isError', False)

    def signatures(self):
        out = []
        for t in self.tools:
            s = t['inputSchema']; req = s.get('required', [])
            out.append(f"{PREFIX}{t['name']}({', '.join(p if p in req else p + '?' for p in s.get('properties', {}))})")
        return '\n'.join(out)

    def close(self): self.p.terminate()


class Chat:
    """One conversation with the model, its key-value cache kept."""
    def __init__(self, m, tk, signatures):
        self.m, self.tk, self.past, self.pos, self.h = m, tk, [[] for _ in m.blocks], 0, None
        self.end = tk.token_to_id('<|im_end|>'); self.feed(f'<|im_start|>tools\n{signatures}<|im_end|>\n')

    def feed(self, text):
        ids = self.tk.encode(text).ids; self.h = self.m.hidden(torch.tensor([ids]), self.past, self.pos); self.pos += len(ids)

    def say(self, role, text, limit=300):
        self.feed(f'<|im_start|>{role}\n{text}<|im_end|>\n<|im_start|>assistant\n')
        out = greedy(self.m, self.past, self.pos, self.h, self.end, limit); self.pos += len(out); self.feed('\n')
        return self.tk.decode([t for t in out if t != self.end], skip_special_tokens=False)


def turn(chat, server, question, steps=6):
    """-> (calls as (tool, arguments, result, failed), final answer)"""
    calls = []; reply = chat.say('user', question)
    while reply.startswith('<tool_call>') and len(calls) < steps:
        try: c = json.loads(reply.removeprefix('<tool_call>').removesuffix('</tool_call>')); name, args = c['name'].removeprefix(PREFIX), c['arguments']
        except (ValueError, KeyError, AttributeError): return calls, reply
        text, failed = server.call(name, args); calls.append((name, args, text, failed)); reply = chat.say('tool', text)
    return calls, reply


def plain(s): return ' '.join(unicodedata.normalize('NFC', s).replace('\n> ', '\n').replace('>', ' ').split())


def judge(q, calls, answer):
    """-> the reason why it is wrong, or None."""
    names = [n for n, *_ in calls]
    for t in q['tools']:
        if t not in names: return f'did not call {t}'
    if q['kind'] == 'none': return None if all('No notes match' in r for n, _, r, _ in calls if n == 'search_notes') and 'read_note' not in names else 'claims to have found something'
    used = [str(v) for n, a, _, f in calls if n == q['tools'][-1] and not f for v in a.values()]
    if q['kind'] == 'write':
        ok = any(q['path'] in u for u in used) and any(q['quote'] in u for u in used); return None if ok else f'wrote {used}'
    if q['kind'] == 'list': return None if any(q['path'].strip('/') == u.strip('/') for u in used) else f'listed {used}'
    stem = q['path'].removesuffix('.md')
    if not any(u.removesuffix('.md') in (stem, stem.split('/')[-1]) or u.lower().removesuffix('.md') in stem.lower() for u in used): return f'read {used}'
    parts = [p.strip() for p in q['quote'].split(' | ')] if plain(q['quote']) not in plain(answer) else []
    return next((f'no quotation of {p!r}' for p in parts if plain(p) not in plain(answer)), None)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('checkpoint'); ap.add_argument('questions'); ap.add_argument('vault'); ap.add_argument('server', nargs='+', help='command that serves a vault given as last argument')
    ap.add_argument('--tok', default='tok.json'); ap.add_argument('--threads', type=int, default=1); ap.add_argument('--verbose', action='store_true')
    a = ap.parse_args(); torch.set_num_threads(a.threads); tk, m = Tokenizer.from_file(a.tok), load(a.checkpoint).eval()
    ok, tot = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as d, torch.no_grad():
        shutil.copytree(a.vault, d + '/v'); server = Server([*a.server, d + '/v'])
        for q in map(json.loads, open(a.questions, encoding='utf-8')):
            calls, answer = turn(Chat(m, tk, server.signatures()), server, q['question']); why = judge(q, calls, answer)
            for k in ('all', q['lang'], q['kind']): tot[k] += 1; ok[k] += why is None
            if why or a.verbose: print(f"{q['id']} {q['kind']}: {why or 'right'}\n  {q['question']}\n  " + '\n  '.join(f'{n} {json.dumps(x, ensure_ascii=False)}' for n, x, _, _ in calls) + f'\n  {answer!r}')
        server.close()
    for k in sorted(tot): print(f'{k:6} {ok[k]}/{tot[k]}')


if __name__ == '__main__': main()
