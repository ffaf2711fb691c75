"""Starts the binary, gives it something to show, and lets schemathesis ask: see scripts/api-test.sh.

Everything runs in two rounds, each against a server of its own: what works with processes, and what controls the
runtime. A server that ended or answers no more is a failure of its round.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "api-test-0123456789"
BASE = "/api/v1"
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection,missing_required_header,unsupported_method,"
    "allow_header_conformance,ignored_auth"
)
# What ends the server, or never ends: other tests have these.
LEFT_OUT = ["/admin/workflow-runtime/force-drain", "/admin/workflow-runtime/events", "/shells/{shell}/retire"]
CONTROL = "^/(admin|shells)"
ROUNDS = {
    "work": ["--exclude-path-regex", CONTROL],
    "control": ["--include-path-regex", CONTROL],
}


class Server:
    """The binary over a data directory that goes with it."""

    def __init__(self, log: Path):
        self.data = tempfile.TemporaryDirectory()
        self.log = log.open("w")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TIDEGATE_")}
        environment["TIDEGATE_TOKEN"] = TOKEN
        command = [os.environ["TIDEGATE_BINARY"], "serve", "--demo", "--listen", "127.0.0.1:0", "--data", self.data.name]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.url = ""
        for line in self.process.stdout:
            if " listens on " in line:
                self.url = line.split(" listens on ")[1].strip().removesuffix(BASE)
            if line.startswith("Try:"):
                break
        if not self.url:
            sys.exit(f"error: the server did not start: {log.read_text()}")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> dict:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
        request = urllib.request.Request(self.url + BASE + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def is_live(self) -> bool:
        try:
            with urllib.request.urlopen(self.url + "/health/live", timeout=30) as answer:
                return answer.status == 200
        except OSError:
            return False

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.log.close()
            self.data.cleanup()


def furnish(server: Server) -> None:
    """Definitions, and instances in different states."""
    for file in sorted((ROOT / "examples").glob("*.bpmn")):
        server.ask("POST", f"/deployments?name={file.name}", file.read_bytes(), "application/xml")
    for process, variables in [("hello", {}), ("order", {"amount": 5000}), ("order", {}), ("reminder", {})]:
        body = json.dumps({"processId": process, "variables": variables}).encode()
        server.ask("POST", "/process-instances", body)


def search(server: Server, name: str, chosen: list[str], work: Path) -> bool:
    seconds, examples = os.environ.get("SECONDS_EACH", "20"), os.environ.get("EXAMPLES", "20")
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}{BASE}/openapi.json"]
    command += ["-H", f"Authorization: Bearer {TOKEN}", "--checks", CHECKS, "--continue-on-failure", "--no-color"]
    command += ["--max-time", seconds, "--max-examples", examples, "--seed", os.environ.get("SEED", "1")]
    command += ["--request-timeout", "30", "--suppress-health-check", "all", "--warnings", "off", "--no-shrink"]
    command += chosen
    for path in LEFT_OUT:
        command += ["--exclude-path", path]
    out = work / f"{name}.txt"
    with out.open("w") as log:
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, cwd=work).returncode
    text = out.read_text()
    print(f"-- {name}")
    print(text if code else "\n".join(text.splitlines()[-12:]))
    return code == 0


def main() -> int:
    work = Path(sys.argv[1]).resolve()
    wrong = []
    for name, chosen in ROUNDS.items():
        log = work / f"{name}.log"
        server = Server(log)
        try:
            furnish(server)
            if not search(server, name, chosen, work):
                wrong.append(f"{name}: answers that the description does not have, see above")
            if not server.is_live():
                wrong.append(f"{name}: the server answers no more")
        finally:
            code = server.end()
        if code != 0:
            wrong.append(f"{name}: the server ended with {code}")
        if "panicked" in log.read_text():
            wrong.append(f"{name}: something panicked, see {log}")
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    if not wrong:
        print(f"api: {len(ROUNDS)} rounds, every answer is as described")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
