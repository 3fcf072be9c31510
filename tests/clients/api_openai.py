"""The local API as the `openai` package of Python sees it. Usage: python api_openai.py LECTERN (in the environment that has
the package). Prints one line per check; the exit status is 0 only when all of them held."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import openai

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg=="
)
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CHILDREN = []
COUNT = 0


def start(home, *command):
    env = {**os.environ, "LECTERN_HOME": home, "LECTERN_KEYRING": "off"}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)
    CHILDREN.append(child)
    return child.stdout.readline().strip()


def held(name):
    global COUNT
    COUNT += 1
    print(f"ok {COUNT} {name}", flush=True)


def user(content):
    return [{"role": "user", "content": content}]


def refused(kind, code, ask):
    try:
        ask()
    except kind as error:
        assert error.code == code, (error.code, code)
        assert set(error.body) >= {"message", "type", "code", "param"}, error.body
    else:
        raise AssertionError(f"served in place of {code}")


def checks(client, chat, url, upstream):
    assert "upstream" in [model.id for model in client.models.list()]
    assert client.models.retrieve("upstream").object == "model"
    held("models")
    answer = chat(messages=user("hi"))
    assert answer.choices[0].message.content == "Grüß Gott, Welt.", answer
    assert answer.usage.total_tokens == 16
    held("plain")
    pieces, usage = [], None
    for chunk in chat(messages=user("hi"), stream=True, stream_options={"include_usage": True}):
        pieces += [choice.delta.content or "" for choice in chunk.choices]
        usage = chunk.usage or usage
    assert "".join(pieces) == "Grüß Gott, Welt." and usage.completion_tokens == 5
    held("streaming with usage")
    for count in (1, 2, 5):
        messages = user(f"calls {count}")
        with client.chat.completions.stream(model="upstream", messages=messages, tools=[TOOL]) as stream:
            message = stream.get_final_completion().choices[0].message
        assert len({call.id for call in message.tool_calls}) == count
        assert [json.loads(call.function.arguments)["city"] for call in message.tool_calls] == [str(n) for n in range(count)]
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": f"r{number}"}
            for number, call in enumerate(message.tool_calls)
        ]
        back = [*messages, message.model_dump(exclude_none=True, exclude={"parsed"}), *results]
        for entry in back[1].get("tool_calls", []):
            entry["function"].pop("parsed_arguments", None)
        answer = chat(messages=back, tools=[TOOL])
        assert answer.choices[0].message.content == " and ".join(f"r{number}" for number in range(count)), answer
        held(f"tools, {count} at once, and back")
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}},
        "required": ["city", "degrees"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": schema, "strict": True}}
    answer = chat(messages=user("json"), response_format=form)
    assert json.loads(answer.choices[0].message.content) == {"city": "Rom", "degrees": 30}
    held("a schema")
    image = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    assert chat(messages=user(image)).choices[0].message.content == "I see an image."
    held("an image")
    refused(openai.BadRequestError, "unsupported_value", lambda: chat(messages=user("hi"), n=2))
    refused(openai.NotFoundError, "model_not_found", lambda: chat(messages=user("hi"), model="nobody"))
    refused(openai.InternalServerError, "provider_unauthorized", lambda: chat(messages=user("fail 401")))
    wrong = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-wrong", max_retries=0)
    refused(openai.AuthenticationError, "invalid_api_key", lambda: list(wrong.models.list()))
    page = {"Origin": "https://evil.example"}
    refused(openai.PermissionDeniedError, "origin_not_allowed", lambda: client.models.retrieve("upstream", extra_headers=page))
    held("each class of error")
    stream = chat(messages=user("slow"), stream=True)
    next(chunk for chunk in stream if chunk.choices and chunk.choices[0].delta.content)
    stream.close()
    while urllib.request.urlopen(f"{upstream}/open").read() != b"0":
        time.sleep(0.02)
    held("cancel ends the model's work")


def main(lectern):
    home = tempfile.mkdtemp(prefix="api-openai-")
    try:
        upstream = start(home, "node", str(Path(__file__).parent / "api_upstream.mjs"))
        model = ("--model", "upstream", "--base-url", f"{upstream}/v1")
        said = json.loads(start(home, lectern, "serve", "--port", "0", "--json", *model))
        client = openai.OpenAI(base_url=f"{said['url']}/v1", api_key=said["key"], max_retries=0)

        def chat(**body):
            return client.chat.completions.create(**{"model": "upstream", **body})

        checks(client, chat, said["url"], upstream)
    finally:
        for child in CHILDREN:
            child.kill()
            child.wait()
        shutil.rmtree(home, ignore_errors=True)


main(sys.argv[1])
