"""The gateway under test: the built binary, as a process of its own."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile

BINARY = os.environ["AHP_GATEWAY"]
LISTENING = "listening on "
STOP_TIMEOUT = 30  # seconds


class Gateway:
    """Serves one configuration from start to stop."""

    def __init__(self, configuration: dict, environment: dict[str, str] | None = None):
        self._folder = tempfile.TemporaryDirectory(prefix="ahp-gateway-")
        folder = pathlib.Path(self._folder.name)
        self._log = folder / "log"
        self.audit_file = folder / "audit.jsonl"
        file = folder / "gateway.json"
        file.write_text(
            json.dumps(
                {
                    "listen": "127.0.0.1:0",
                    "admin": "off",
                    "audit": {"file": str(self.audit_file)},
                    **configuration,
                }
            )
        )
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [BINARY, "serve", "--config", str(file)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={"PATH": os.environ["PATH"], **(environment or {})},
            )
        line = self._process.stdout.readline()
        if not line.startswith(LISTENING):
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            log = self._log.read_text()
            self._folder.cleanup()
            raise AssertionError(f"the gateway did not start: {line!r}\n{log}")
        self.url = line.removeprefix(LISTENING).strip() + "/hooks"

    def url_of(self, tenant: str) -> str:
        return self.url.removesuffix("/hooks") + f"/t/{tenant}/hooks"

    def stop(self) -> list[dict]:
        """Drains the gateway and returns the audit records that it left."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            self._process.stdout.close()
        if self._process.returncode != 0:
            raise AssertionError(
                f"the gateway ended with {self._process.returncode}\n{self._log.read_text()}"
            )
        records = [json.loads(line) for line in self.audit_file.read_text().splitlines()]
        self._folder.cleanup()
        return records

    def discard(self) -> None:
        """Ends the process if a failed test has left it running."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()
