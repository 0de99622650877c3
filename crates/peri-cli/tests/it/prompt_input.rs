//! Where the prompt comes from.

use peri_testkit::model_server::{Answer, FakeModelServer, Script};

use crate::sandbox::Sandbox;

fn model() -> FakeModelServer {
    FakeModelServer::start(Script::repeating_last([Answer::new().text("Hello.")]))
}

#[test]
fn an_open_pipe_is_not_waited_for_when_there_is_an_argument() {
    let model = model();
    let sandbox = Sandbox::with_model(&model.base_url());
    // The pipe stays open for as long as `running` lives.
    let running = sandbox.peri(["-p", "say hello"]).start();
    running.finish().code(0).stdout_is("Hello.\n");
}

#[test]
fn without_an_argument_standard_input_is_the_prompt() {
    let model = model();
    let sandbox = Sandbox::with_model(&model.base_url());
    sandbox.peri(["-p"]).stdin("grüß mich 🦀".as_bytes()).run().code(0).stdout_is("Hello.\n");
    let request = model.requests().pop().expect("a request");
    assert_eq!(request.last_text(), "grüß mich 🦀");
    sandbox.peri(["-p", "-"]).stdin(b"by a dash").run().code(0).stdout_is("Hello.\n");
    let request = model.requests().pop().expect("a request");
    assert_eq!(request.last_text(), "by a dash");
}

#[test]
fn a_prompt_that_cannot_be_taken_is_a_usage_error() {
    let sandbox = Sandbox::with_model("http://127.0.0.1:9");
    sandbox.peri(["-p"]).stdin(b"").run().code(2).stderr_has("empty");
    sandbox.peri(["-p"]).stdin(b"ab\xff\xfe").run().code(2).stderr_has("not UTF-8 (byte 2)");
    sandbox.peri(["-p"]).stdin(&vec![b'a'; (10 << 20) + 1]).run().code(2).stderr_has("over 10 MiB");
}
