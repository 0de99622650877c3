//! The checks themselves: what they let pass, and what they find.

use std::time::SystemTime;

use peri_testkit::model_server::CapturedRequest;
use serde_json::{Value, json};

use super::history::History;
use super::printed::Printed;
use super::scripted::{self, Place};
use super::witness::Witness;

const NOTICE: &str = "The turn above was interrupted: its effects are unknown.";

/// The messages of a turn with so many steps.
fn turn(run: usize, steps: usize) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": [{"type": "text", "text": scripted::prompt(run)}]})];
    for step in 0..steps {
        let said = Place { run, step }.said();
        messages.push(json!({"role": "assistant", "content": said.content()}));
        let result = |call: &scripted::Call| {
            let text = json!([{"type": "text", "text": call.result}]);
            json!({"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": false})
        };
        let results: Vec<Value> = said.calls.iter().map(result).collect();
        if !results.is_empty() {
            messages.push(json!({"role": "user", "content": results}));
        }
    }
    for (place, message) in messages.iter_mut().enumerate() {
        message["id"] = json!(format!("{run}-{place}"));
        message["turn_id"] = json!(format!("turn-{run}"));
    }
    messages
}

fn notice(run: usize) -> Value {
    let content = json!([{"type": "text", "text": NOTICE}]);
    json!({"role": "notice", "content": content, "turn_id": format!("turn-{run}")})
}

/// An interrupted turn of two steps, one that left no trace, a whole one, an open one.
fn session() -> Value {
    let messages = [turn(0, 2), vec![notice(0)], turn(2, 4), turn(3, 1)].concat();
    json!({"messages": messages, "turns": [
        {"turn_id": "turn-0", "end": "interrupted", "reason": "its effects are unknown"},
        {"turn_id": "turn-2", "end": "completed", "stop_reason": "end_turn"},
        {"turn_id": "turn-3", "end": null},
    ]})
}

#[track_caller]
fn expect(found: Result<(), String>, fault: Option<&str>) {
    match (found, fault) {
        (Ok(()), None) => {}
        (Err(found), Some(fault)) if found.contains(fault) => {}
        (found, fault) => panic!("expected {fault:?}, found {found:?}"),
    }
}

#[track_caller]
fn check_history(spoil: impl FnOnce(&mut Value), fault: Option<&str>) {
    let mut session = session();
    spoil(&mut session);
    expect(History::read(&session).map(drop), fault);
}

fn messages(session: &mut Value) -> &mut Vec<Value> {
    session["messages"].as_array_mut().expect("messages")
}

#[test]
fn a_session_is_whole_or_its_fault_is_found() {
    check_history(|_| {}, None);
    check_history(|session| drop(messages(session).remove(2)), Some("1 calls have 0 results"));
    check_history(|session| drop(messages(session).remove(1)), Some("is out of place"));
    check_history(|session| messages(session)[1]["content"][0]["text"] = json!("Run 0 has"), Some("said was"));
    check_history(|session| messages(session)[4]["content"][1]["is_error"] = json!(true), Some("Bash toolu_0_1_1"));
    check_history(
        |session| messages(session)[4]["content"].as_array_mut().expect("results").reverse(),
        Some("was to give"),
    );
    check_history(|session| drop(messages(session).remove(5)), Some("Interrupted after 2 steps, with the notice None"));
    check_history(|session| session["turns"][0]["end"] = json!("completed"), Some("ended as it cannot have"));
    check_history(|session| session["turns"][0] = json!({"turn_id": "turn-0", "end": null}), Some("has no end"));
    check_history(|session| drop(messages(session).drain(11..14)), Some("Completed after 2 steps"));
    check_history(|session| messages(session).rotate_left(6), Some("the turns are of the runs [2, 3, 0]"));
    check_history(|session| messages(session).extend(turn(2, 4)), Some("the turns are of the runs [0, 2, 3, 2]"));
    check_history(|session| drop(messages(session).drain(14..)), Some("3 turns are listed, and 2 have messages"));
}

fn lines(run: usize, steps: usize) -> String {
    let mut lines = vec![json!({"type": "system", "subtype": "init"})];
    for message in turn(run, steps).into_iter().skip(1) {
        lines.push(json!({"type": message["role"], "message": message}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn result() -> Value {
    json!({"type": "result", "subtype": "success"})
}

#[track_caller]
fn check_printed(run: usize, stdout: &str, shown: Option<&Value>, fault: Option<&str>) {
    let printed = Printed::read(run, stdout).expect("lines of the format");
    let mut witness = Witness::default();
    witness.printed.push(printed);
    expect(witness.check(shown, &[]), fault);
}

#[test]
fn an_acknowledgement_is_kept_or_its_loss_is_found() {
    let session = session();
    check_printed(0, &lines(0, 2), Some(&session), None);
    check_printed(0, &lines(0, 1), Some(&session), None);
    check_printed(2, &format!("{}{}\n", lines(2, 4), result()), Some(&session), None);
    check_printed(0, &format!("{}{}", lines(0, 2), result()), Some(&session), None);
    check_printed(1, &lines(1, 0), Some(&session), None);
    check_printed(1, "{\"type\": \"system\", \"subty", None, None);

    check_printed(0, &format!("{}{}\n", lines(0, 2), result()), Some(&session), Some("acknowledged whole"));
    check_printed(3, &lines(3, 2), Some(&session), Some("its step 1 was acknowledged and is gone"));
    check_printed(1, &lines(1, 1), Some(&session), Some("its turn is not there"));
    check_printed(1, &lines(1, 0), None, Some("is gone"));
    check_printed(0, &lines(0, 2).replace("0-1", "0-9"), Some(&session), Some("its step 0 was acknowledged as"));
    check_printed(
        0,
        &lines(0, 2).replace("begun\\nended", "begun"),
        Some(&session),
        Some("its results 1 were acknowledged as"),
    );
}

#[test]
fn what_was_stored_once_must_stay() {
    let mut witness = Witness::default();
    expect(witness.check(Some(&session()), &[]), None);
    let mut later = session();
    messages(&mut later)[0]["id"] = json!("another");
    expect(witness.check(Some(&later), &[]), Some("gone or changed"));
    expect(witness.check(None, &[]), Some("is gone"));
    // After an open turn a run must say that it was interrupted.
    witness.printed.push(Printed::read(4, &format!("{}{}\n", lines(4, 4), result())).expect("lines"));
    let mut resumed = session();
    messages(&mut resumed).extend([vec![notice(3)], turn(4, 4)].concat());
    resumed["turns"][2] = json!({"turn_id": "turn-3", "end": "interrupted", "reason": "its effects are unknown"});
    let ends = resumed["turns"].as_array_mut().expect("turns");
    ends.push(json!({"turn_id": "turn-4", "end": "completed", "stop_reason": "end_turn"}));
    expect(witness.check(Some(&resumed), &[]), Some("did not say so"));
}

fn request(messages: Vec<Value>) -> CapturedRequest {
    CapturedRequest {
        number: 0,
        connection: 1,
        arrived_at: SystemTime::UNIX_EPOCH,
        method: "POST".to_owned(),
        path: "/v1/messages".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        json: json!({"messages": messages}),
    }
}

#[test]
fn a_model_is_told_the_past_or_the_omission_is_found() {
    let check = |messages: Vec<Value>, fault: Option<&str>| {
        expect(Witness::default().check(Some(&session()), &[request(messages)]), fault);
    };
    let told = json!({"role": "user", "content": [{"type": "text", "text": format!("[peri] {NOTICE}")}]});
    check([turn(0, 2), vec![told.clone()], turn(2, 3)].concat(), None);
    check([turn(0, 2), turn(2, 3)].concat(), Some("at step 3 of run 2 the model heard"));
    check([turn(0, 2), vec![told.clone()], turn(1, 0)].concat(), Some("its input is not stored"));
    let without_results = turn(0, 2).into_iter().filter(|message| message["id"] != "0-4").collect();
    check([without_results, vec![told], turn(2, 0)].concat(), Some("are answered by"));
    expect(Witness::default().check(None, &[request(turn(0, 0))]), Some("before the session was stored"));
}
