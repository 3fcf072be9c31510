"""The tools a dialogue offers: mostly the notes server's own, sometimes other servers', under many names.

A tool is (name, required arguments, optional arguments, signature order). Calls follow the signature's order.
"""
import words

R = words.R
SERVERS = ['notes'] * 14 + ['vault', 'mynotes', 'work', 'personal', 'obsidian', 'wiki', 'brain', 'carnet']
OURS = {
 'list': ('list_notes', [], ['folder', 'limit', 'cursor']),
 'search': ('search_notes', ['query'], ['folder', 'limit']),
 'read': ('read_note', ['path'], ['heading', 'offset', 'limit']),
 'create': ('create_note', ['path', 'content'], []),
 'append': ('append_note', ['path', 'content'], []),
}
FILESYSTEM = [('read_file', ['path'], ['tail', 'head']), ('read_text_file', ['path'], ['tail', 'head']), ('read_media_file', ['path'], []),
 ('read_multiple_files', ['paths'], []), ('write_file', ['path', 'content'], []), ('edit_file', ['path', 'edits'], ['dryRun']), ('create_directory', ['path'], []),
 ('list_directory', ['path'], []), ('list_directory_with_sizes', ['path'], ['sortBy']), ('directory_tree', ['path'], ['excludePatterns']),
 ('move_file', ['source', 'destination'], []), ('search_files', ['path', 'pattern'], ['excludePatterns']), ('get_file_info', ['path'], []), ('list_allowed_directories', [], [])]
EVERYTHING = [('echo', ['message'], []), ('get-annotated-message', ['messageType'], ['includeImage']), ('get-env', [], []), ('get-resource-links', [], ['count']),
 ('get-resource-reference', [], ['resourceType', 'resourceId']), ('get-structured-content', ['location'], []), ('get-sum', ['a', 'b'], []), ('get-tiny-image', [], []),
 ('gzip-file-as-resource', [], ['name', 'data', 'outputType']), ('toggle-simulated-logging', [], []), ('toggle-subscriber-updates', [], []),
 ('trigger-long-running-operation', [], ['duration', 'steps']), ('trigger-sampling-request', ['prompt'], ['maxTokens']), ('simulate-research-query', ['topic'], ['ambiguous'])]
ROLE = {
 'search': (['search_notes', 'search', 'find_notes', 'search_nodes', 'query_notes', 'search_vault', 'simple_search', 'vault_search', 'full_text_search'], ['query', 'query', 'text', 'pattern', 'q']),
 'read': (['read_note', 'read_file', 'get_note', 'open_note', 'get_file_contents', 'view_note', 'read'], ['path', 'path', 'filepath', 'uri', 'file', 'name']),
 'list': (['list_notes', 'list_files', 'list_all_notes', 'list_vault', 'list_documents'], ['folder', 'directory', 'path']),
 'create': (['create_note', 'write_note', 'write_file', 'new_note', 'save_note'], ['path', 'content']),
 'append': (['append_note', 'add_to_note', 'append_to_note', 'append'], ['path', 'content']),
}
SMALL = [('get_current_time', ['timezone'], []), ('convert_time', ['source_timezone', 'time', 'target_timezone'], []), ('fetch', ['url'], ['max_length', 'start_index', 'raw']),
 ('git_status', ['repo_path'], []), ('git_log', ['repo_path'], ['max_count']), ('get_weather', ['city'], []), ('send_email', ['to', 'body'], []),
 ('list_tags', [], []), ('delete_note', ['path'], []), ('rename_note', ['path', 'new_path'], []), ('backlinks', ['path'], []), ('recent_notes', [], ['days']),
 ('create_entities', ['entities'], []), ('read_graph', [], []), ('open_nodes', ['names'], [])]

# Notes servers that others wrote, by role; what else they offer stands beside them.
OTHERS = [
 ({'search': ('search_notes', ['query'], ['limit', 'searchContent', 'searchFrontmatter', 'caseSensitive']), 'read': ('read_note', ['path'], ['prettyPrint']), 'list': ('list_directory', [], ['path', 'prettyPrint']),
   'create': ('write_note', ['path', 'content'], ['frontmatter', 'mode'])},
  [('patch_note', ['path', 'oldString', 'newString'], ['replaceAll']), ('delete_note', ['path', 'confirmPath'], []), ('move_note', ['oldPath', 'newPath'], ['overwrite']), ('read_multiple_notes', ['paths'], ['includeContent', 'includeFrontmatter']),
   ('update_frontmatter', ['path', 'frontmatter'], ['merge']), ('get_notes_info', ['paths'], []), ('get_frontmatter', ['path'], []), ('manage_tags', ['path', 'operation'], ['tags']), ('get_vault_stats', [], ['recentCount'])]),
 ({'search': ('search', ['query'], ['limit', 'mode', 'filters']), 'read': ('read', ['path'], []), 'list': ('list_documents', [], ['folder', 'pattern']), 'create': ('write', ['path', 'content'], ['frontmatter', 'if_match'])},
  [('edit', ['path', 'old_text', 'new_text'], ['if_match']), ('delete', ['path'], ['if_match']), ('rename', ['old_path', 'new_path'], []), ('list_folders', [], []), ('list_tags', [], ['field']), ('reindex', [], []), ('stats', [], []),
   ('get_backlinks', ['path'], []), ('get_outlinks', ['path'], []), ('get_broken_links', [], ['folder']), ('get_similar', ['path'], ['limit']), ('get_recent', [], ['limit', 'folder']), ('get_context', ['path'], ['similar_limit']), ('get_orphan_notes', [], [])]),
 ({'search': ('obsidian_simple_search', ['query'], ['context_length']), 'read': ('obsidian_get_file_contents', ['filepath'], []), 'list': ('obsidian_list_files_in_dir', [], ['dirpath']), 'append': ('obsidian_append_content', ['filepath', 'content'], [])},
  [('obsidian_list_files_in_vault', [], []), ('obsidian_patch_content', ['filepath', 'operation', 'target_type', 'target', 'content'], []), ('obsidian_delete_file', ['filepath', 'confirm'], []), ('obsidian_get_recent_changes', [], ['limit', 'days'])]),
]


def _sig(name, req, opt):
    order = list(req) + list(opt)
    if R.random() < .15: R.shuffle(order)
    elif R.random() < .2: order.sort()
    return name, list(req), list(opt), order


def _server(prefix, tools): return [_sig(prefix + n, q, o) for n, q, o in tools]


def _named():
    """Tools of a server that nobody has seen, to be called by name."""
    pre = R.choice(['', R.choice(words.EN_LOWER) + '__', R.choice(words.EN_COMMON) + '__']); out = []
    for _ in range(R.randint(1, 4)):
        name = R.choice(['_', '-', '_']).join(R.choice(words.EN_COMMON + words.EN_SHORT[::40]) for _ in range(R.choice([1, 1, 2, 3])))
        out.append(_sig(pre + name, R.choice([[], [], [R.choice(['text', 'name', 'message', 'value', 'topic', 'input'])]]), R.sample(['limit', 'mode', 'verbose'], R.choice([0, 0, 1]))))
    return out


def _vary():
    """A notes server that somebody else wrote."""
    pre = R.choice(['', '', 'kb__', 'vault_', 'notes.', 'docs__']); by = {}
    for role, (names, args) in ROLE.items():
        name = pre + R.choice(names)
        req = [] if role == 'list' else [R.choice(args)] if role in ('search', 'read') else list(args)
        by[role] = _sig(name, req, [R.choice(args)] if role == 'list' else R.sample(['limit', 'tag', 'offset', 'raw'], R.randint(0, 2)))
    for role in R.sample(['list', 'create', 'append'], R.randint(0, 2)): by.pop(role)
    return by


def toolset():
    """-> (tools in the order shown, role -> tool). Roles echo, sum, long, time, fs_* exist when their server does."""
    r = R.random(); beside = []
    if r < .74: by = {role: _sig(server_prefix + n, q, o) for server_prefix in [R.choice(SERVERS) + '__'] for role, (n, q, o) in OURS.items()}
    elif r < .82: by = _vary()
    elif r < .90:
        roles, rest = R.choice(OTHERS); pre = R.choice(['', R.choice(SERVERS) + '__', 'vault__']); by = {role: _sig(pre + n, q, o) for role, (n, q, o) in roles.items()}
        beside = _server(pre, rest if R.random() < .5 else R.sample(rest, R.randint(1, 4)))
    else: by = {}
    own = list(by.values()) + beside
    if beside: R.shuffle(own)
    groups = [own]
    if R.random() < (.06 if by else .7):
        pre = R.choice(['everything__', 'everything__', 'test__', ''])
        g = _server(pre, EVERYTHING if R.random() < .6 else R.sample(EVERYTHING, R.randint(2, 8))); groups.append(g)
        for n, role in (('echo', 'echo'), ('get-sum', 'sum'), ('trigger-long-running-operation', 'long')):
            for t in g:
                if t[0] == pre + n: by[role] = t
    if R.random() < (.04 if by else .9):
        pre = R.choice(['fs__', 'filesystem__', 'files__', '']); g = _server(pre, FILESYSTEM); groups.append(g)
        for t in g: by['fs_' + t[0][len(pre):]] = t
    if R.random() < .15:
        pre = R.choice(['', 'time__', 'web__', 'git__', 'memory__']); g = _server(pre, R.sample(SMALL, R.randint(1, 4))); groups.append(g)
        for t in g:
            if t[0] == pre + 'get_current_time': by['time'] = t
    if R.random() < .1: g = _named(); groups.append(g); by['named'] = [t for group in groups for t in group if not t[1] and t not in by.values()] + g * 2
    R.shuffle(groups)
    tools = [t for g in groups for t in g]
    if R.random() < .3: R.shuffle(tools)
    return tools, by


def render_tools(tools):
    return '\n'.join(f"{n}({', '.join(a if a in req else a + '?' for a in order)})" for n, req, opt, order in tools)
