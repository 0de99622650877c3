"""A home, a workspace and a scripted model for one test; what `sandbox.mjs` is to the scripts."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SUPPORT = Path(__file__).parent


def calling(name, arguments, call_id):
    """One answer of the model that calls one tool."""
    return {"tool_calls": [{"id": call_id, "name": name, "input": arguments}]}


class Sandbox:
    def __init__(self, replies, settings=None):
        # Links resolved, as Peri names it.
        self.folder = Path(tempfile.mkdtemp(prefix="peri-interop-")).resolve()
        self.home, self.work = self.folder / "home", self.folder / "work"
        self.record = self.folder / "record.jsonl"
        self.home.mkdir()
        self.work.mkdir()
        self._start_model(replies)
        provider = {"protocol": "anthropic", "baseUrl": self.model_url, "apiKeyEnv": "MY_KEY"}
        chosen = {"model": "mine/some-model", "providers": {"mine": provider}, **(settings or {})}
        file = self.home / ".config/peri/settings.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(chosen))

    def _start_model(self, replies):
        script = self.folder / "script.json"
        script.write_text(json.dumps({"replies": replies}))
        words = [os.environ["PERI_SCRIPTED_ENDPOINT"], "--script", str(script), "--log", str(self._log)]
        self._endpoint = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.model_url = f"http://127.0.0.1:{self._endpoint.stdout.readline().strip()}"

    @property
    def _log(self):
        return self.folder / "requests.jsonl"

    @property
    def environment(self):
        inherited = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        return {**inherited, "HOME": str(self.home), "MY_KEY": "sk-interop"}

    @property
    def agent(self):
        """Peri, with everything between it and its client recorded."""
        return ["node", str(SUPPORT / "relay.mjs"), str(self.record), os.environ["PERI_BIN"], "acp"]

    def requests(self):
        """What the model was asked, oldest first."""
        return [json.loads(line)["body"] for line in self._log.read_text().splitlines()]

    def judge(self):
        """Findings about the agent's frames by the protocol's schema; empty where there is none."""
        words = ["node", str(SUPPORT / "record.mjs"), str(self.record)]
        return subprocess.run(words, capture_output=True, text=True, check=False).stderr

    def remove(self):
        self._endpoint.stdin.close()
        self._endpoint.wait()
        self._endpoint.stdout.close()
        shutil.rmtree(self.folder)
