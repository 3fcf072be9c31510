"""Synthetic dialogues for the starter: a person asks, the assistant calls the notes tools and quotes what they return."""
import json

import frames
import words
from frames import (APPEND, ASK, BOTH, CALL, CALL_WITH, CREATE, EMPTY, FAILED, FIRST, FROM, HELLO, HELLO_A, LIST, LIST_IN, NEXT, NO_OTHER, NO_TOOLS_A, NONE_LISTED, NOTHING, OTHER, OUT, OUT_A, READ, SAYS,
                    SEARCH, SECOND, THANKS, THANKS_A, THIRD, TOOL_SAID, WHOLE, WROTE, YOURS)
from toolbox import render_tools, toolset
from words import LANGS, passage, path_of, phrase, sentence, text, title

R = words.R
LISTED = 8  # lines of a listing that the answer repeats


def user(t): return ('user', t)
def asst(t): return ('assistant', t)
def tool(t): return ('tool', t)


def call(spec, args):
    """A call with its arguments in the order of the signature."""
    name, _, _, order = spec
    args = {k: args[k] for k in order if k in args}
    return asst('<tool_call>\n' + json.dumps({'name': name, 'arguments': args}, ensure_ascii=False) + '\n</tool_call>')


def arg(spec, i=0): return spec[1][i]


def quote(block): return '\n'.join('> ' + line if line else '>' for line in block.split('\n'))


def pick_lang(): return R.choices(LANGS, [40, 28, 32])[0]


# ---- notes
class Note:
    """A note as the server would return it: front matter, title, blocks."""
    def __init__(self, lang, size):
        self.lang = lang; self.title = title(lang); self.path = path_of(self.title, lang)
        if R.random() < .75 and '/' not in self.title: self.title = self.path.rsplit('/', 1)[-1].rsplit('.', 1)[0] if R.random() < .6 else self.title
        n = R.choice([1, 1, 2, 2, 3, 3, 4, 5, 6]) if size > 1 else R.choice([1, 1, 2, 2, 3])
        self.blocks = [passage(lang, R.choice([.5, .7, 1, 1.4]) * min(1, size)) for _ in range(n)]
        self.headed = {i for i in range(n) if R.random() < .3}  # blocks after a heading, counted from the second

    def opening(self):
        """What an answer about the whole note quotes: the first two blocks, the second unless it has its own heading."""
        return '\n\n'.join(self.blocks[:1 if 0 in self.headed else 2])

    def render(self):
        """The same each time it is read."""
        self.text = getattr(self, 'text', None) or self._render()
        return self.text

    def _render(self):
        lang, out = self.lang, ''
        if R.random() < .4:
            tags = ', '.join(phrase(lang, 1, 1) for _ in range(R.randint(1, 3)))
            lines = [f'tags: [{tags}]', f'date: 20{R.randint(10, 29)}-{R.randint(1, 12):02}-{R.randint(1, 28):02}', f'title: {self.title}', f'author: {R.choice(words.NAMES)}']
            R.shuffle(lines); out += '---\n' + '\n'.join(lines[:R.randint(1, 3)]) + '\n---\n' + R.choice(['', '\n'])
        if R.random() < .8: out += f'# {self.title}' + R.choice(['\n\n', '\n\n', '\n\n', '\n'])
        if R.random() < .1: out += '## ' + title(lang) + '\n\n'
        out += self.blocks[0]
        for i, b in enumerate(self.blocks[1:]):
            if i in self.headed: out += '\n\n' + '#' * R.randint(2, 3) + ' ' + title(lang)
            out += '\n\n' + b
        return out + R.choice(['', '', '\n']) + (R.choice(CUT).format(n=R.randint(20, 900)) if R.random() < .04 else '')

    def found(self):
        """The passage a search shows: one block on one line, cut at 400 characters."""
        self.left = getattr(self, 'left', None) or list(self.blocks)
        b = ' '.join(self.left.pop(R.randrange(len(self.left))).split())
        if len(b) > 400 or R.random() < .05:
            i = R.randrange(max(1, len(b) // 2)) if R.random() < .5 else 0; j = min(len(b), i + R.randint(60, 400))
            b = ('… ' if i else '') + b[i:j].strip() + (' …' if j < len(b) else '')
        return b.strip() or '…'


CUT = ['\n[cut here: line {n} of 950 is next; read on with offset {n}]', '\n[cut here: line {n} of 950 is next; read on with offset {n}]', '\n\n… ({n} lines more)']


def result_text(hits, style):
    if style == 'ours': return '\n\n'.join(f'[{i + 1}] {n.title} ({n.path})\n{p}' for i, (n, p) in enumerate(hits))
    if style == 'md': return '\n\n'.join(f'## {n.title}\n{n.path}\n\n{p}' for n, p in hits)
    if style == 'dash': return '\n'.join(f"- {n.path}: {p.split(chr(10))[0]}" for n, p in hits)
    return json.dumps([{'path': n.path, 'title': n.title, 'snippet': p} for n, p in hits], ensure_ascii=False)


# ---- episodes: each returns the turns of one question
hits = []  # what the last search found: (note, passage)


def find(lang, by, query, size, twice=.3):
    """search -> read the first hit -> quote its passage; or nothing found."""
    s, r = by['search'], by.get('read')
    out = [call(s, {arg(s): query})]
    if R.random() < .13:
        return out + [tool(R.choice(['No notes match.', 'No notes match.', 'No notes match.', f'No notes match “{query}”.', '[]', 'No results.', 'No matches found', 'no results found'])), asst(NOTHING[lang].format(q=query))]
    if R.random() < .02:
        e = R.choice(ERRORS[1:]).format(p=query); return out + [tool(e), asst(FAILED[lang].format(e=e))]
    k = R.choice([1, 1, 2, 3, 3, 3] if size < 1 else [1, 2, 3, 3, 4, 6]); other = lang if R.random() < .85 else R.choice(LANGS)
    notes = [Note(other if R.random() < .8 else R.choice(LANGS), size if i == 0 else min(size, .8)) for i in range(k)]
    hits[:] = []
    for n in notes:  # a note is often found with several of its blocks
        again = [m for m, _ in hits if m.left]
        n = R.choice(again) if again and R.random() < twice else n
        hits.append((n, n.found()))
    style = 'ours' if R.random() < .92 else R.choice(['md', 'dash', 'json'])
    first, shown = hits[0]
    body = result_text(hits, style) + (f'\n\n(Not all notes are indexed yet: {R.randint(1, 99)} of {R.randint(100, 999)} were searched.)' if R.random() < .02 else '')
    out.append(tool(body))
    if r: out += [call(r, {arg(r): first.path}), tool(first.render())]
    return out + [asst(FROM[lang].format(p=first.path, q=quote(shown)))]


def vary(s):
    if R.random() < .12: s = s.lower()
    elif R.random() < .05: s = s[0].upper() + s[1:]
    if R.random() < .12: s = s.rstrip(' ?.!？。！')
    return s


def ask(lang, by, size, twice=.3):
    r = R.random()
    if r < .82:
        f = R.choice(ASK[lang]); q = vary(f.format(t=phrase(lang, 1, 4), u=phrase(lang, 1, 3)))
    elif r < .9: q = vary(sentence(lang, 3, 12))
    else: q = vary(f'{R.choice(ASK[lang]).format(t=phrase(lang, 1, 3), u=phrase(lang, 1, 2))} {sentence(lang, 3, 8)}')
    return [user(q)] + find(lang, by, q.rstrip(' ?.!？。！…').strip() or q, size, twice)


def search_for(lang, by, size, twice=.3):
    t = phrase(lang, 1, 4); f = R.choice(SEARCH[lang])
    if R.random() < .1: t, f = t, f.replace('{t}', R.choice(['"{t}"', '“{t}”', '« {t} »'] if lang != 'zh' else ['“{t}”', '「{t}」']))
    if R.random() < .1: f = f.lower()
    if R.random() < .1: f = f.rstrip(' ?.!？。！')
    return [user(f.format(t=t))] + find(lang, by, t, size, twice)


def both(lang, by, size):
    """Two notes that are named, read one after the other."""
    r = by['read']; notes = [Note(lang if R.random() < .85 else R.choice(LANGS), min(size, .7)) for _ in range(2)]; out = [user(R.choice(BOTH[lang]).format(p=notes[0].path, r=notes[1].path))]
    for n in notes: out += [call(r, {arg(r): n.path}), tool(n.render())]
    return out + [asst('\n\n'.join(FROM[lang].format(p=n.path, q=quote(n.blocks[0])) for n in notes))]


def follow_up(lang, by, size):
    """A search with its answer, then questions that only mean something after it: the next hit, the third, the whole note."""
    hits.clear(); twice = R.choice([0, .3, .6]); out = (ask if R.random() < .6 else search_for)(lang, by, size, twice)
    found = list(hits); quoted = out[-1][1].startswith(FROM[lang].split('{')[0])
    if not quoted: return out + ([user(vary(R.choice(OTHER[lang]))), asst(NO_OTHER[lang])] if R.random() < .3 else [])
    last = 0; r = by['read']
    for step in range(R.choice([1, 1, 1, 2, 2, 3, 3])):
        if R.random() < .08: out += [user(R.choice(THANKS[lang])), asst(THANKS_A[lang])]; continue
        kind, want = R.choices([('other', last + 1), ('second', 1), ('third', 2), ('first', 0), ('whole', last)], [50, 14, 8, 6 if last else 0, 35 if step else 15])[0]
        q = user(vary(R.choice({'other': OTHER, 'second': SECOND, 'third': THIRD, 'first': FIRST, 'whole': WHOLE}[kind][lang])))
        if want >= len(found): out += [q, asst(NO_OTHER[lang])]; continue
        n, shown = found[want]; last = want
        answer = SAYS[lang].format(p=n.path, q=quote(n.opening())) if kind == 'whole' else FROM[lang].format(p=n.path, q=quote(shown))
        out = (as_history(out) if R.random() < .6 else out) + [q, call(r, {arg(r): n.path}), tool(n.render()), asst(answer)]
    return out


def as_history(turns):
    """Earlier turns as the app sends them: but for the first result, where a search or list stands, results are cut. They are no targets then."""
    out = []; first = [role for role, _ in turns].index('tool')
    for i, (role, t) in enumerate(turns):
        if role == 'tool' and i > first and len(t.encode()) > SEEN and '[cut here, ' not in t: short = t.encode()[:SEEN].decode(errors='ignore'); t = f'{short}\n[cut here, {len(t) - len(short)} more characters]'
        out.append(('said' if role == 'assistant' else role, t))
    return out


SEEN = 300  # bytes


def listed_next(lang, by, size):
    """A list, then one of its notes by its place there, and perhaps the one after it, or the same again."""
    out = listing(lang, by, min(size, .7)); paths = [line.removeprefix('- ') for line in out[-2][1].split('\n')] if out[-2][0] == 'tool' else []
    i, frames_ = R.choice([(0, FIRST), (1, SECOND), (1, SECOND), (2, THIRD)]); r = by['read']; notes = {}
    if not out[-1][1].startswith(YOURS[lang].split('{')[0]): return out
    for step in range(R.choice([1, 1, 2, 3])):
        if i >= len(paths) or not paths[i].endswith('.md'): return out
        n = notes.setdefault(i, Note(lang, min(size, .8))); n.path = paths[i]
        out = (as_history(out) if step and R.random() < .6 else out) + [user(vary(R.choice(frames_[lang]))), call(r, {arg(r): n.path}), tool(n.render()), asst(SAYS[lang].format(p=n.path, q=quote(n.opening())))]
        i, frames_ = R.choice([(i + 1, NEXT), (i, WHOLE)])
    return out


def by_name(lang, by):
    """A tool that is called by its name, with the one text it wants or with nothing."""
    s = R.choice(by['named']); n = s[0] if R.random() < .3 else s[0].split('__')[-1]
    if s[1]:
        m = R.choice([text(lang, 1, 1), phrase(lang, 1, 4)]); q = R.choice(CALL_WITH[lang])
        if not q.endswith('{m}'): m = m.rstrip('.。!！?？ ')
        out = [user(q.format(n=n, m=m)), call(s, {arg(s): m})]
    else: out = [user(vary(R.choice(CALL[lang]).format(n=n))), call(s, {})]
    b = R.choice([text(lang, 1, 1), phrase(lang, 1, 5), 'ok', 'Done.', words.number()]); return out + [tool(b), asst(TOOL_SAID[lang].format(e=b))]


AMBIGUOUS = ('What is in {p}', 'What does {p}', 'What is written', 'Que contient {p}', 'Que dit {p}', "Qu'", '{p}里', 'Read {p} to me')  # read only a path


def read(lang, by, size):
    r = by['read']; n = Note(lang if R.random() < .85 else R.choice(LANGS), size); f = R.choice(READ[lang])
    if f.startswith(AMBIGUOUS) or R.random() < .5: p = n.path
    else: p = R.choice([n.title, n.path.rsplit('/', 1)[-1][:-3]])
    if R.random() < .1: p = p.lower()
    out = [user(f.format(p=p)), call(r, {arg(r): p})]
    if R.random() < .1: return out + unreadable(lang, by, p, size)
    body = n.render()
    if R.random() < .03: return out + [tool(R.choice(['', '\n', f'# {n.title}\n'])), asst(EMPTY[lang])]
    return out + [tool(body), asst(SAYS[lang].format(p=p, q=quote(n.opening())))]


ERRORS = ['{p}: no such note', 'The path `{p}` leads out of the folder of notes.', 'The path `{p}` is not a Markdown note; notes end in .md.', 'The user denied this call.', '`{p}` could be `a/{p}` or `b/{p}`; give the whole path.', 'The user declined this tool call.', 'Permission denied', 'denied by the user', 'timed out after 30 s', 'the server is not running',
          'the path leaves the vault: {p}', 'The user said no to this call.', 'cancelled', 'the note is larger than 1 MB: {p}', 'not a Markdown file: {p}', 'The call was denied.']
MISSING = ['There is no note `{p}`.', 'There is no note `{p}`.', 'There is no note `{p}`; similar names: `{q}`, `{r}`.', 'There is no note `{p}`; similar names: `{q}`.', 'No note at {p}.', 'note not found: {p}', 'there is no note {p}', 'no such note: {p}', 'file not found', 'ENOENT: no such file or directory, open {p}', 'There is no note called “{p}”.', 'not found: {p}', 'no note `{p}` in this vault']


def unreadable(lang, by, p, size):
    """A missing note is searched for; any other error is told."""
    head = R.choice(['', 'error: ', 'Error: '])
    if R.random() < .6 and 'search' in by:
        return [tool(head + R.choice(MISSING).format(p=p, q=path_of(title(lang), lang), r=path_of(title(lang), lang)))] + find(lang, by, p, min(size, .8))
    e = head + R.choice(ERRORS).format(p=p)
    return [tool(e), asst(FAILED[lang].format(e=e))]


def listing(lang, by, size):
    s = by['list']; args = {}; q = R.choice(LIST[lang])
    if R.random() < .6:
        f = R.choice(words.FOLDERS[lang]) if R.random() < .6 else path_of(title(lang), lang).split('/')[0].replace('.md', '')
        key = (s[1] + s[2])[0]; args = {key: f}
        return _listed(lang, s, size, R.choice(LIST_IN[lang]).format(f=f), args)
    return _listed(lang, s, size, vary(q), args)


def _listed(lang, s, size, q, args):
    k = R.choice([0, 1, 2, 3, 5, 7, 8, 9, 10, 12, 15, 25]) if size > .7 else R.randint(1, 9)
    style = R.choice(['- {p}'] * 9 + ['{p}', '- {t} ({p})', '{t} ({p})', '{p} — {t}', '[FILE] {p}'])
    lines = [style.format(p=n, t=title(lang)) for n in (path_of(title(lang), R.choice(LANGS) if R.random() < .3 else lang) for _ in range(k))]
    body = '\n'.join(lines) or R.choice(['No notes.', 'No notes.', '', 'There are no notes here.'])
    if R.random() < .08 and lines: body = R.choice([f'{k} notes\n', f'{k} notes:\n', f'Notes 1 to {k} of {R.randint(k, 99)}:\n']) + body
    if R.random() < .25 and lines: body += R.choice(['\n({c} more; the cursor for the next is "{p}")', '\n({c} more; the cursor for the next is "{p}")', '\nnext cursor: {c}', '\n… {c} more']).format(c=R.randint(10, 99), p=path_of(title(lang), lang))
    shown = [x if x.startswith('- ') else '- ' + x for x in lines[:LISTED]] + (['- …'] if k > LISTED else [])
    return [user(q), call(s, args), tool(body), asst(YOURS[lang].format(l='\n'.join(shown)) if lines else NONE_LISTED[lang])]


def write(lang, by, size, role):
    s = by[role]; t = title(lang); p = path_of(t, lang) if R.random() < .6 else R.choice([t, t, words.clean(t)])
    c = R.choice([text(lang, 1, 1), phrase(lang, 2, 6), sentence(lang, 3, 9), '- ' + phrase(lang, 1, 4), '- [ ] ' + phrase(lang, 1, 4)])
    if R.random() < .1: c = text(lang, 2, 3)
    f = R.choice((CREATE if role == 'create' else APPEND)[lang])
    if R.random() < .1 and f.endswith('{c}'): c = passage(lang, .6)
    if not f.endswith('{c}') and not any(m in f for m in ('"{c}"', '“{c}”', '« {c} »')): c = c.rstrip('.。!！?？ ')
    c = c.strip(); path_key, text_key = arg(s), arg(s, 1)
    out = [user(f.format(p=p, c=c)), call(s, {path_key: p, text_key: c})]
    if R.random() < .8:
        done = R.choice(WRITTEN).format(p=p if p.endswith('.md') else p + '.md', n=len(c)); return out + [tool(done), asst(WROTE[lang].format(p=p))]
    e = R.choice(['', 'error: ', 'Error: ']) + R.choice(ERRORS[1:] + ['There is already a note `{p}`, and notes are never overwritten; use append_note to add to it.', 'There is no note `{p}`.', 'There is already a note `{p}`, and notes are never overwritten; use append_note to add to it.', 'the note {p} already exists', '{p} exists; use append_note']).format(p=p)
    return out + [tool(e), asst(FAILED[lang].format(e=e))]


WRITTEN = ['Created {p}', 'Created {p}', 'Appended to {p}', 'Appended to {p}', 'Created {p}', 'Appended to {p}', 'Created {p}.', 'Wrote {p}.', 'Appended to {p}.', 'Appended {n} bytes to {p}', 'Added to {p}', 'ok', 'Note saved.', 'Wrote {n} bytes to {p}', 'Successfully wrote to {p}', 'Created note {p} ({n} characters).', 'Appended {n} characters to {p}.']


def fixed(questions, answers, lang, by):
    q = R.choice(questions[lang]).format(t=phrase(lang, 1, 4))
    return [user(vary(q)), asst(answers[lang])]


def other(lang, by):
    """Tools of the well-known example servers."""
    kind = R.choice([k for k in ('echo', 'sum', 'long', 'time') if k in by])
    s = by[kind]
    if kind == 'echo':
        m = R.choice([text(lang, 1, 1), phrase(lang, 1, 4)]); q = R.choice({'en': ['Echo {m}', 'echo: {m}', 'Echo "{m}"', 'Use the echo tool with {m}', 'Repeat {m}', 'Call echo with the message "{m}"'], 'fr': ['Répète {m}', 'Écho : {m}', 'Echo {m}', 'Répète « {m} »'], 'zh': ['重复：{m}', '回显{m}', 'echo {m}', '重复“{m}”']}[lang])
        return [user(q.format(m=m)), call(s, {arg(s): m}), tool(b := R.choice(['Echo: ', 'Echo: ', '']) + m), asst(TOOL_SAID[lang].format(e=b))]
    if kind == 'sum':
        x, y = R.randint(0, 9999), R.randint(0, 999); b = R.choice([f'The sum of {x} and {y} is {x + y}.', str(x + y)])
        q = R.choice({'en': ['Add {x} and {y}', 'What is {x} + {y}?', 'sum {x} and {y}', '{x}+{y}', 'What is the sum of {x} and {y}?', 'How much is {x} plus {y}?'], 'fr': ['Additionne {x} et {y}', 'Combien font {x} + {y} ?', 'Quelle est la somme de {x} et {y} ?', '{x} plus {y}'], 'zh': ['{x}加{y}等于多少？', '{x}+{y}', '计算{x}和{y}的和', '{x} + {y} 是多少？']}[lang])
        return [user(q.format(x=x, y=y)), call(s, {'a': x, 'b': y}), tool(b), asst(TOOL_SAID[lang].format(e=b))]
    if kind == 'long':
        d, n = R.randint(1, 60), R.randint(1, 20); b = f'Long running operation completed. Duration: {d} seconds, Steps: {n}.'
        q = R.choice({'en': ['Run the long operation for {d} seconds in {n} steps', 'Start a long running operation: {d} seconds, {n} steps', 'Trigger the long running operation with duration {d} and {n} steps'], 'fr': ["Lance l'opération longue : {d} secondes, {n} étapes", "Démarre une longue opération de {d} secondes en {n} étapes"], 'zh': ['运行长时间操作：{d}秒，{n}步', '启动一个长操作，时长{d}秒，共{n}步']}[lang])
        return [user(q.format(d=d, n=n)), call(s, {'duration': d, 'steps': n}), tool(b), asst(TOOL_SAID[lang].format(e=b))]
    z = R.choice(['Europe/Paris', 'Asia/Shanghai', 'UTC', 'America/New_York', 'Asia/Tokyo', 'Europe/London']); b = f'20{R.randint(20, 40)}-{R.randint(1, 12):02}-{R.randint(1, 28):02}T{R.randint(0, 23):02}:{R.randint(0, 59):02}:00'
    return [user(R.choice(['What time is it in {z}?', 'Quelle heure est-il à {z} ?', '{z}现在几点？'] if R.random() < .3 else [{'en': 'What time is it in {z}?', 'fr': 'Quelle heure est-il à {z} ?', 'zh': '{z}现在几点？'}[lang]]).format(z=z)), call(s, {arg(s): z}), tool(b), asst(TOOL_SAID[lang].format(e=b))]


def files(lang, by, size):
    """server-filesystem in place of the notes server: read, search by name, list."""
    n = Note(lang, min(size, 1)); kind = R.choice(['read', 'read', 'search', 'list'])
    # Invented, as all of it is. The published weights saw other folders in place of the last three.
    root = R.choice(['', '', '/srv/notes/', '/srv/wiki/', '/srv/vault/', 'D:/Notes/'])
    if kind == 'read':
        s, p = by['fs_read_text_file'], root + n.path
        return [user(R.choice(READ[lang]).format(p=p)), call(s, {'path': p}), tool(n.render()), asst(SAYS[lang].format(p=p, q=quote(n.opening())))]
    if kind == 'list':
        s = by['fs_list_directory']; f = R.choice(['.', root.rstrip('/') or '.', R.choice(words.FOLDERS[lang])])
        q = R.choice({'en': ['List the files in {f}', 'What is in the folder {f}?', 'List {f}'], 'fr': ['Liste les fichiers de {f}', 'Quels fichiers y a-t-il dans {f} ?'], 'zh': ['列出{f}里的文件', '{f}里有哪些文件？']}[lang]) if f != '.' else R.choice(LIST[lang])
        lines = [R.choice(['[FILE] ', '[FILE] ', '[DIR] ']) + path_of(title(lang), lang) for _ in range(R.randint(1, 10))]
        shown = ['- ' + x for x in lines[:LISTED]] + (['- …'] if len(lines) > LISTED else [])
        return [user(q.format(f=f)), call(s, {'path': f}), tool('\n'.join(lines)), asst(YOURS[lang].format(l='\n'.join(shown)))]
    s, r = by['fs_search_files'], by['fs_read_text_file']; t = phrase(lang, 1, 2)
    q = R.choice(ASK[lang]).format(t=t, u=phrase(lang, 1, 2)) if R.random() < .3 else None
    out = [user(q or R.choice(SEARCH[lang]).format(t=t)), call(s, {'path': '.', 'pattern': q.rstrip(' ?.!？。！…').strip() if q else t})]
    if R.random() < .2: return out + [tool('No matches found'), asst(NOTHING[lang].format(q=q.rstrip(' ?.!？。！…').strip() if q else t))]
    paths = [root + n.path] + [root + path_of(title(lang), lang) for _ in range(R.randint(0, 3))]
    return out + [tool('\n'.join(paths)), call(r, {'path': paths[0]}), tool(n.render()), asst(SAYS[lang].format(p=paths[0], q=quote(n.opening())))]


def episode(lang, by, size):
    if not by:
        q = R.choice([ASK, ASK, SEARCH, READ, LIST, CREATE])[lang]
        return [user(R.choice(q).format(t=phrase(lang, 1, 3), u=phrase(lang, 1, 2), p=title(lang), c=phrase(lang, 2, 4))), asst(NO_TOOLS_A[lang])]
    if 'named' in by and R.random() < .4: return by_name(lang, by)
    others = [k for k in ('echo', 'sum', 'long', 'time') if k in by]
    if others and R.random() < (.3 if 'search' in by else .8): return other(lang, by)
    if 'fs_search_files' in by and R.random() < (.2 if 'search' in by else 1): return files(lang, by, size)
    if 'search' not in by:
        return other(lang, by) if others else fixed(HELLO, HELLO_A, lang, by)
    kind = R.choices(['ask', 'search', 'read', 'list', 'create', 'append', 'hello', 'out', 'both', 'next', 'place', 'thanks'], [32, 8, 13, 8, 8, 9, 3, 3, 3, 18, 5, 2])[0]
    if kind in ('create', 'append') and kind in by: return write(lang, by, size, kind)
    if kind == 'list' and kind in by: return listing(lang, by, size)
    if kind == 'both': return both(lang, by, size)
    if kind == 'next': return follow_up(lang, by, size)
    if kind == 'place' and 'list' in by: return listed_next(lang, by, size)
    if kind == 'thanks': return fixed(THANKS, THANKS_A, lang, by)
    if kind == 'read': return read(lang, by, size)
    if kind == 'hello': return fixed(HELLO, HELLO_A, lang, by)
    if kind == 'out': return fixed(OUT, OUT_A, lang, by)
    return search_for(lang, by, size) if kind == 'search' else ask(lang, by, size)


def dialogue(size=1.0, max_eps=3):
    """`size` scales notes and passages. -> (tools, turns)"""
    if R.random() < .02: tools, by = [], {}
    else: tools, by = toolset()
    lang = pick_lang(); out = []
    for _ in range(min(max_eps, R.choices([1, 2, 3], [72, 20, 8])[0])):
        out += episode(lang, by, size)
        if R.random() < .08: out += [user(R.choice(THANKS[lang])), asst(THANKS_A[lang])]
        if R.random() < .15: lang = pick_lang()
    return tools, out


def render(tools, turns):
    """-> list of (text, is target), split where the tokenizer splits anyway."""
    parts = []
    if tools: parts.append(('<|im_start|>tools\n' + render_tools(tools) + '<|im_end|>\n', False))
    for role, t in turns:
        if role == 'said': parts.append((f'<|im_start|>assistant\n{t}<|im_end|>\n', False))
        elif role == 'assistant': parts += [('<|im_start|>assistant\n', False), (t + '<|im_end|>', True), ('\n', False)]
        else: parts.append((f'<|im_start|>{role}\n{t}<|im_end|>\n', False))
    return parts


def drill(lang, size=1.0):
    """Pure copying: a few texts, then one of them again, named by its first words or by its number."""
    n = R.randint(1, 4); blocks = [passage(lang if R.random() < .8 else R.choice(LANGS), size) if R.random() < .7 else phrase(lang, 5, 30) for _ in range(n)]
    k = R.randrange(n)
    return '\n\n'.join(f'[{i + 1}]\n{b}' for i, b in enumerate(blocks)) + '\n', f'[{k + 1}]\n', blocks[k]


if __name__ == '__main__':
    import sys
    R.seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 6):
        print(''.join(p for p, _ in render(*dialogue()))); print('=' * 60)
