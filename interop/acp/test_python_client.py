"""agent-client-protocol of PyPI: the core path, from the first prompt to a loaded session."""

import asyncio
import base64
import faulthandler
import os
import unittest
from pathlib import Path

from acp import PROTOCOL_VERSION, RequestError, image_block, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, DeniedOutcome, McpServerStdio, RequestPermissionResponse

from support.sandbox import SUPPORT, Sandbox, calling

MAKE = {"command": "echo made > made; cat made"}


class Client:
    """Keeps what it is told, and answers questions by the option of one kind."""

    def __init__(self, choice=None):
        self.choice = choice
        self.told = []
        self.questions = []

    async def request_permission(self, session_id, tool_call, options, **_):
        self.questions.append(tool_call)
        chosen = [option.option_id for option in options if option.kind == self.choice]
        outcome = (
            AllowedOutcome(outcome="selected", option_id=chosen[0]) if chosen else DeniedOutcome(outcome="cancelled")
        )
        return RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **_):
        self.told.append(update)

    async def ext_method(self, method, params):
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method, params):
        pass

    def on_connect(self, conn):
        pass

    def updates(self, kind):
        return [update for update in self.told if update.session_update == kind]

    @property
    def text(self):
        return "".join(update.content.text for update in self.updates("agent_message_chunk"))


async def until_gone(pid):
    """Waits for the end of a process that is not our child: there is no event for that."""
    while Path(f"/proc/{pid}").exists():
        await asyncio.sleep(0.01)


class CorePath(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        # A test that hangs is a failure, not a wait.
        faulthandler.dump_traceback_later(240, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    async def asyncSetUp(self):
        # Judging holds the loop, which is no news.
        asyncio.get_running_loop().slow_callback_duration = 60

    def sandbox(self, replies, **settings):
        sandbox = Sandbox(replies, settings)
        self.addCleanup(sandbox.remove)
        return sandbox

    def peri(self, sandbox, client):
        command, *arguments = sandbox.agent
        # Frames may be longer than asyncio's default line.
        options = {"limit": 64 * 1024 * 1024, "shutdown_timeout": 60, "stderr": None}
        return spawn_agent_process(
            client, command, *arguments, env=sandbox.environment, cwd=sandbox.work, transport_kwargs=options
        )

    async def one_turn(self, sandbox, client, prompt="Go."):
        """A session with one turn: its id and the turn's stop reason."""
        async with self.peri(sandbox, client) as (connection, _):
            await connection.initialize(PROTOCOL_VERSION)
            session = await connection.new_session(cwd=str(sandbox.work))
            end = await connection.prompt(session_id=session.session_id, prompt=[text_block(prompt)])
        self.assertEqual(sandbox.judge(), "")
        return session.session_id, end.stop_reason

    async def test_a_turn_with_a_tool(self):
        sandbox = self.sandbox([calling("Read", {"file_path": "a.txt"}, "toolu_1"), {"text": ["It says ", "hello."]}])
        (sandbox.work / "a.txt").write_text("hello\n")
        client = Client()
        _, stop_reason = await self.one_turn(sandbox, client)
        self.assertEqual((stop_reason, client.text), ("end_turn", "It says hello."))
        end = client.updates("tool_call_update")[-1]
        self.assertEqual((end.tool_call_id, end.status), ("toolu_1", "completed"))
        self.assertEqual(client.questions, [])

    async def test_each_answer_to_a_question(self):
        outcomes = {
            "allow_once": ("completed", 2),
            "allow_always": ("completed", 1),
            "reject_once": ("failed", 2),
            "reject_always": ("failed", 1),
            None: ("failed", 2),
        }
        for choice, (status, questions) in outcomes.items():
            with self.subTest(choice=choice):
                replies = [calling("Bash", MAKE, "toolu_1"), calling("Bash", MAKE, "toolu_2"), {"text": "Done."}]
                sandbox, client = self.sandbox(replies), Client(choice)
                await self.one_turn(sandbox, client)
                ends = [update.status for update in client.updates("tool_call_update") if update.raw_output]
                self.assertEqual(ends, [status, status])
                self.assertEqual(len(client.questions), questions)
                self.assertEqual((sandbox.work / "made").exists(), status == "completed")

    async def test_a_cancelled_tool_is_gone(self):
        running = calling("Bash", {"command": "echo $$ > signpost; sleep 300"}, "toolu_1")
        sandbox = self.sandbox([running], permissions={"mode": "bypass"})
        os.mkfifo(sandbox.work / "signpost")
        client = Client()
        async with self.peri(sandbox, client) as (connection, _):
            await connection.initialize(PROTOCOL_VERSION)
            session = await connection.new_session(cwd=str(sandbox.work))
            turn = asyncio.create_task(
                connection.prompt(session_id=session.session_id, prompt=[text_block("Go.")])
            )
            pid = await asyncio.to_thread((sandbox.work / "signpost").read_text)
            await connection.cancel(session_id=session.session_id)
            self.assertEqual((await turn).stop_reason, "cancelled")
            await asyncio.wait_for(until_gone(int(pid)), timeout=2)
        self.assertEqual(sandbox.judge(), "")

    async def test_a_session_is_listed_loaded_resumed_and_closed(self):
        sandbox = self.sandbox([{"text": "One."}, {"text": "Two."}, {"text": "Three."}])
        session_id, _ = await self.one_turn(sandbox, Client(), "Count.")
        client = Client()
        async with self.peri(sandbox, client) as (connection, _):
            await connection.initialize(PROTOCOL_VERSION)
            [listed] = (await connection.list_sessions(cwd=str(sandbox.work))).sessions
            self.assertEqual(listed.session_id, session_id)
            await connection.load_session(cwd=str(sandbox.work), session_id=session_id)
            self.assertEqual([update.content.text for update in client.updates("user_message_chunk")], ["Count."])
            self.assertEqual(client.text, "One.")
            await connection.prompt(session_id=session_id, prompt=[text_block("On.")])
            await connection.close_session(session_id=session_id)
            with self.assertRaises(RequestError) as refused:
                await connection.prompt(session_id=session_id, prompt=[text_block("x")])
            self.assertEqual(refused.exception.code, -32002)
            await connection.resume_session(cwd=str(sandbox.work), session_id=session_id)
            await connection.prompt(session_id=session_id, prompt=[text_block("Once more.")])
            self.assertEqual(client.text, "One.Two.Three.")
        self.assertEqual(sandbox.judge(), "")

    async def test_mode_and_options(self):
        sandbox, client = self.sandbox([calling("Bash", MAKE, "toolu_1"), {"text": "Done."}]), Client()
        async with self.peri(sandbox, client) as (connection, _):
            await connection.initialize(PROTOCOL_VERSION)
            session = await connection.new_session(cwd=str(sandbox.work))
            self.assertEqual(session.modes.current_mode_id, "default")
            self.assertEqual([option.id for option in session.config_options], ["mode", "model", "effort"])
            await connection.set_config_option(session_id=session.session_id, config_id="effort", value="low")
            await connection.set_session_mode(session_id=session.session_id, mode_id="bypass")
            await connection.prompt(session_id=session.session_id, prompt=[text_block("Make it.")])
        self.assertEqual([update.current_mode_id for update in client.updates("current_mode_update")], ["bypass"])
        self.assertEqual((client.questions, (sandbox.work / "made").exists()), ([], True))
        self.assertEqual(sandbox.judge(), "")

    async def test_a_server_that_the_client_gives(self):
        shouting = calling("mcp__given__shout", {"words": "hello"}, "toolu_1")
        sandbox, client = self.sandbox([shouting, {"text": "Done."}]), Client("allow_once")
        given = McpServerStdio(name="given", command="node", args=[str(SUPPORT / "mcp-server.mjs")], env=[])
        async with self.peri(sandbox, client) as (connection, _):
            await connection.initialize(PROTOCOL_VERSION)
            session = await connection.new_session(cwd=str(sandbox.work), mcp_servers=[given])
            await connection.prompt(session_id=session.session_id, prompt=[text_block("Shout.")])
        end = client.updates("tool_call_update")[-1]
        self.assertEqual((end.status, end.content[0].content.text), ("completed", "HELLO"))
        self.assertEqual(sandbox.judge(), "")

    async def test_an_image(self):
        sandbox = self.sandbox([{"text": "Seen."}])
        # The content is not looked at: a provider says what is wrong with it.
        data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode()
        async with self.peri(sandbox, Client()) as (connection, _):
            await connection.initialize(PROTOCOL_VERSION)
            session = await connection.new_session(cwd=str(sandbox.work))
            blocks = [text_block("Look."), image_block(data, "image/png")]
            await connection.prompt(session_id=session.session_id, prompt=blocks)
        [request] = sandbox.requests()
        self.assertIn(data, [block.get("source", {}).get("data") for block in request["messages"][0]["content"]])
        self.assertEqual(sandbox.judge(), "")


if __name__ == "__main__":
    unittest.main()
