//! Ten thousand mutated frames to `peri acp`: each is answered or means something, and the process goes on.

#[expect(dead_code, reason = "the checks of the corpus are run elsewhere")]
#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/mutate.rs"]
mod mutate;

use peri_testkit::model_server::{Answer, FakeModelServer, Script};
use serde_json::json;

use crate::acp_client::Client;
use crate::sandbox::Sandbox;

const FRAMES: usize = 10_000;
/// Frames between two looks at the answers: what they bring fits the pipe.
const TOGETHER: usize = 20;

/// The lines that the corpus of the fuzz target consists of, as a client of this workspace sends them.
fn frames(cwd: &str) -> Vec<Vec<u8>> {
    let cwd = json!(cwd).to_string();
    let inputs = corpus::inputs("acp_frames").into_iter().map(|(_, input)| input);
    let lines = inputs.flat_map(|input| {
        let text = String::from_utf8_lossy(&input).replace("\"/project\"", &cwd);
        text.lines().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>()
    });
    let mut lines: Vec<Vec<u8>> = lines.filter(|line| !line.is_empty()).collect();
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn mutated_frames_are_answered_and_the_process_lives() {
    let model = FakeModelServer::start(Script::repeating_last([Answer::new().text("Hello.")]));
    let sandbox = Sandbox::with_model(&model.base_url());
    let mut client = Client::initialized(sandbox.peri(["acp"]));
    let mut mutations = mutate::Mutations::new(frames(&sandbox.canonical_work()), 3);
    for _ in 0..FRAMES / TOGETHER {
        for _ in 0..TOGETHER {
            client.write(&mutations.next_input());
        }
        // Where it does not live, or says anything but JSON-RPC, the client says so.
        let listed = client.call("session/list", json!({}));
        assert!(listed["result"]["sessions"].is_array(), "{listed}");
    }
    client.hang_up();
    let (run, heard) = client.finish();
    let errors = heard.iter().filter(|message| message.get("error").is_some()).count();
    run.code(0).check(errors > FRAMES / 4, "mutations are mostly errors");
    run.check(!run.stderr.contains("panicked"), "nothing panicked");
}
