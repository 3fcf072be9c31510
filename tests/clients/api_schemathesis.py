"""Schemathesis against all of `/openapi.json`: no 5xx, no body that its schema does not allow, nothing accepted that the
schema forbids, no address without its key. The server has a folder of its own, notes that may be changed, and a scripted
provider. Usage: python api_schemathesis.py LECTERN [CASES] (in the environment that has the package; CASES is a number for
each operation, SCHEMATHESIS_CASES or 60 when it is left out)."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from api_served import served

# A request may be well-formed and still not make sense (a result without its call, an image that is none), which no schema
# can say: so not every request that fits has to be accepted.
LEFT_OUT = "positive_data_acceptance"


def main(lectern, cases=os.environ.get("SCHEMATHESIS_CASES", "60")):
    program = Path(sys.executable).parent / "schemathesis"
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        (notes / "Heat pump.md").write_text("# Heat pump\n\nError E7 means that the filter is blocked.\n")
        with served(lectern, "--vault", str(notes), "--allow", "all") as (url, key, _):
            return run(program, folder, url, key, cases)


def run(program, folder, url, key, cases):
    header = f"Authorization: Bearer {key}"
    # One worker: with two, Python 3.11 breaks down in its own parser.
    limits = ("--max-examples", cases, "--request-timeout", "60", "--workers", "1")
    quiet = ("--report-dir", folder, "--exclude-checks", LEFT_OUT, "--continue-on-failure")
    asked = (program, "run", f"{url}/openapi.json", "--header", header, *limits, *quiet)
    return subprocess.run(asked, cwd=folder, check=False).returncode


sys.exit(main(*sys.argv[1:]))
