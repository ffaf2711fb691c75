"""What cargo says of the workspace, for the checks beside this file."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def load() -> dict:
    """`cargo metadata` of the workspace and everything it depends on."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
