"""Schemathesis against `/openapi.json`: no 5xx, no body that its schema does not allow, nothing accepted that the schema
forbids, no address without its key. Usage: python api_schemathesis.py LECTERN [CASES] (in the environment that has the
package; CASES is a number for each operation, 60 when it is left out)."""

import subprocess
import sys
import tempfile
from pathlib import Path

from api_served import served

# A request may be well-formed and still not make sense (a result without its call, an image that is none), which no schema
# can say: so not every request that fits has to be accepted.
LEFT_OUT = "positive_data_acceptance"


def main(lectern, cases="60"):
    program = Path(sys.executable).parent / "schemathesis"
    with served(lectern) as (url, key, _), tempfile.TemporaryDirectory() as folder:
        header = f"Authorization: Bearer {key}"
        limits = ("--max-examples", cases, "--request-timeout", "60", "--workers", "2")
        quiet = ("--report-dir", folder, "--exclude-checks", LEFT_OUT, "--continue-on-failure")
        asked = (program, "run", f"{url}/openapi.json", "--header", header, *limits, *quiet)
        return subprocess.run(asked, cwd=folder, check=False).returncode


sys.exit(main(*sys.argv[1:]))
