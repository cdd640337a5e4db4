"""Gates: what is sent to the host, what comes back, and what answers in a test."""

import base64
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import rlf  # noqa: E402
from rlf import gates, testing  # noqa: E402


class Host:
    """Answers with what it was given, and keeps what it was asked."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = None

    def ask(self, kind, requests):
        self.asked = kind, json.loads(requests)
        return json.dumps(self.answers)


class Gates(unittest.TestCase):
    def setUp(self):
        testing.forget()
        self.addCleanup(gates._askers.clear)

    def host(self, answers):
        host = Host(answers)
        gates.ask_with(host.ask)
        return host

    def test_calls_of_tools_are_sent_and_shown(self):
        shown = {"content": [{"text": "2"}, {"text": ""}, {"structured": '{"a": 1}'}, {"media_type": "image/png"}], "failed": False}
        refused = {"error": {"kind": "not-found", "message": "no tool"}}
        host = self.host([{"ended": "ok", "observation": shown}, {"ended": "timeout", "observation": None}, refused])
        two, late, none = rlf.call_tools([("add", {"a": 1}), ("slow", {}), ("gone", {})])
        self.assertEqual(host.asked[0], "tools.invoke")
        self.assertEqual(host.asked[1][0], {"name": "add", "arguments": '{"a": 1}'})
        self.assertEqual(two, rlf.ToolResult("ok", '2{"a": 1}[image/png]', [{"a": 1}]))
        self.assertEqual(late, rlf.ToolResult("timeout", None))
        self.assertEqual((none.kind, str(none)), ("not-found", "not-found: no tool"))
        self.host([refused])
        with self.assertRaises(rlf.GateError):
            rlf.call_tool("gone")
        self.host([{"name": "add", "description": "", "input_schema": {}}])
        self.assertEqual(rlf.list_tools()[0]["name"], "add")

    def test_programs_are_sent_and_reported(self):
        data = base64.b64encode(b"\xff").decode()
        report = {"ended": "ok", "outcome": "exited", "exit_code": 3, "exception": None, "stdout": "x", "stderr": "", "files": {"/o": data}, "cpu_us": 7}
        host = self.host([report])
        found = rlf.run_program("print()", stdin="in", files={"a": b"\xff"}, fetch=["/o"], time_ms=5)
        kind, (sent,) = host.asked
        self.assertEqual((kind, sent["language"], sent["stdin"], sent["files"]), ("execute.run", "python", "aW4=", {"a": data}))
        self.assertEqual(sent["limits"], {"wall_ms": 5, "memory_bytes": 0, "output_bytes": 0, "file_bytes": 0})
        self.assertEqual((found.exit_code, found.files, found.completed), (3, {"/o": b"\xff"}, False))

    def test_requests_name_secrets_and_answers_have_bytes(self):
        host = self.host([{"status": 200, "headers": [["a", "b"]], "body": base64.b64encode(b'{"x": 1}').decode()}])
        response = rlf.fetch("https://example.com", headers={"k": rlf.Secret("KEY"), "l": "v"}, body="hi")
        sent = host.asked[1][0]
        self.assertEqual(sent["headers"], [["k", {"secret": "KEY"}], ["l", {"text": "v"}]])
        self.assertEqual((sent["method"], sent["body"]), ("GET", "aGk="))
        self.assertEqual((response.json(), response.headers), ({"x": 1}, [("a", "b")]))

    def test_questions_are_sent_and_answered(self):
        answer = {"text": "yes", "cut_short": True, "prompt_tokens": 3, "completion_tokens": 1}
        host = self.host([answer])
        self.assertEqual(rlf.ask_model("Is it?", max_tokens=9), rlf.Answer("yes", True, 3, 1))
        kind, (sent,) = host.asked
        self.assertEqual((kind, sent["messages"]), ("model.ask", [{"role": "user", "text": "Is it?"}]))
        self.assertEqual((sent["model"], sent["max_tokens"], sent["temperature"]), ("", 9, None))
        refused = {"error": {"kind": "exhausted", "message": "no more"}}
        host = self.host([answer, refused])
        asked = [rlf.Question([("system", "Be short."), ("user", "Why?")], model="judge"), rlf.Question("?")]
        self.assertEqual([type(one) for one in rlf.ask_models(asked)], [rlf.Answer, rlf.GateError])
        self.assertEqual(host.asked[1][0]["messages"][0], {"role": "system", "text": "Be short."})
        self.host([{"name": "judge", "max_tokens": 5, "context_tokens": 0}])
        self.assertEqual(rlf.list_models()[0]["name"], "judge")

    def test_a_question_names_the_schema_of_its_answer(self):
        answer = {"text": '{"score": 3}', "cut_short": False, "prompt_tokens": 3, "completion_tokens": 1}
        host = self.host([answer])
        schema = {"type": "object", "required": ["score"]}
        self.assertEqual(rlf.ask_model("How good?", schema=schema).text, '{"score": 3}')
        (sent,) = host.asked[1]
        self.assertEqual(json.loads(sent["schema"]), schema)
        self.assertNotIn("chat", sent)

    def test_an_agent_asks_in_the_form_of_chat_completions(self):
        message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}]}
        host = self.host([{"text": "", "cut_short": False, "prompt_tokens": 3, "completion_tokens": 1, "message": message}])
        request = {"messages": [{"role": "user", "content": "Why?"}], "tools": []}
        self.assertEqual(rlf.chat(request), message)
        kind, (sent,) = host.asked
        self.assertEqual((kind, sent["messages"], json.loads(sent["chat"])), ("model.ask", [], request))
        testing.answer_questions(lambda question: question.chat["messages"][0]["content"].upper())
        self.assertEqual(rlf.chat(request), {"role": "assistant", "content": "WHY?"})

    def test_requests_of_a_wrong_form_raise(self):
        self.host({"error": {"kind": "invalid-arguments", "message": "stdin is not base64"}})
        with self.assertRaisesRegex(rlf.GateError, "stdin is not base64"):
            rlf.run_programs([rlf.Program("")])
        self.assertEqual(rlf.Program("").time_ms, 2_000)

    def test_outside_the_sandbox_a_test_answers(self):
        with self.assertRaisesRegex(rlf.GateError, "the gate `http` is not open"):
            rlf.fetch("https://example.com")
        self.assertEqual(rlf.list_tools(), [])
        self.assertEqual(rlf.list_models(), [])
        testing.answer_questions(lambda question: question.messages.upper())
        self.assertEqual(rlf.ask_model("why").text, "WHY")

        def add(name, arguments):
            if name != "add":
                raise rlf.GateError("not-found", name)
            return arguments["a"] + 1

        testing.answer_tools(add)
        self.assertEqual(rlf.call_tool("add", {"a": 1}), rlf.ToolResult("ok", "2", [2]))
        self.assertEqual(rlf.call_tools([("sub", {})])[0].kind, "not-found")
        testing.answer_programs(lambda program: program.code.upper())
        self.assertEqual(rlf.run_program("x").stdout, "X")
        testing.answer_requests(lambda request: rlf.Response(404, body=request.url.encode()))
        self.assertEqual(rlf.fetch("https://a").text, "https://a")


if __name__ == "__main__":
    unittest.main()
