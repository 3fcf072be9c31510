"""Drives llama-cpp-python for the benchmark: one JSON object a line in, one out.

What is timed is what its documentation shows: Llama.generate for tokens per second, Llama.create_chat_completion with
stream=True for everything else.
"""
import json
import sys
import time

import llama_cpp

OUT = sys.stdout
sys.stdout = sys.stderr


class Peer:
    def __init__(self):
        self.llm = None

    def load(self, model, threads, context):
        began = time.perf_counter()
        self.llm = llama_cpp.Llama(
            model_path=model, n_ctx=context, n_threads=threads, n_threads_batch=threads, verbose=False
        )
        return {"seconds": time.perf_counter() - began, "version": llama_cpp.__version__}

    def raw(self, prompt, generate):
        """A prompt from nothing and so many tokens, with the greedy sampler."""
        tokens = self.llm.tokenize(prompt.encode(), add_bos=False, special=True)
        self.llm.reset()
        began = time.perf_counter()
        first = None
        count = 0
        for _ in self.llm.generate(tokens, temp=0.0):
            count += 1
            if first is None:
                first = time.perf_counter()
            if count == generate:
                break
        last = time.perf_counter()
        return {"prompt": len(tokens), "first": first - began, "rest": last - first, "generated": count}

    def chat(self, **request):
        began = time.perf_counter()
        first = None
        text, calls, chunks = "", {}, 0
        for chunk in self.llm.create_chat_completion(stream=True, temperature=0.0, **request):
            delta = chunk["choices"][0]["delta"]
            pieces = delta.get("content") or ""
            for call in delta.get("tool_calls") or []:
                kept = calls.setdefault(call["index"], {"id": call["id"], "name": "", "arguments": ""})
                kept["name"] = call["function"].get("name") or kept["name"]
                kept["arguments"] += call["function"].get("arguments") or ""
                pieces += call["function"].get("arguments") or ""
            if pieces:
                chunks += 1
                first = first or time.perf_counter()
            text += delta.get("content") or ""
        last = time.perf_counter()
        return {
            "first": (first or last) - began,
            "rest": last - (first or last),
            "chunks": chunks,
            "text": text,
            "calls": list(calls.values()),
        }

    def forget(self):
        self.llm.reset()
        return {}


def main():
    peer = Peer()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(peer, request.pop("do"))(**request)
        except Exception as error:  # pylint: disable=broad-except
            answer = {"error": f"{type(error).__name__}: {error}"}
        OUT.write(json.dumps(answer) + "\n")
        OUT.flush()


main()
