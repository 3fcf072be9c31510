"""`lectern serve` with a scripted provider behind it, for the suites of the local API in Python."""

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent


@contextmanager
def served(lectern, *more):
    """The address and the key of the server, and the address of the provider, until the block ends."""
    home = tempfile.mkdtemp(prefix="api-served-")
    env = {**os.environ, "LECTERN_HOME": home, "LECTERN_KEYRING": "off"}
    children = []

    def start(*command):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)
        children.append(child)
        return child.stdout.readline().strip()

    try:
        upstream = start("node", str(HERE / "api_upstream.mjs"))
        model = ("--model", "upstream", "--base-url", f"{upstream}/v1")
        said = json.loads(start(lectern, "serve", "--port", "0", "--json", *model, *more))
        yield said["url"], said["key"], upstream
    finally:
        for child in children:
            child.kill()
            child.wait()
        shutil.rmtree(home, ignore_errors=True)
