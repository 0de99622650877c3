//! Golden files: what an earlier version wrote is read for good, and this version writes the newest form of it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use futures::executor::block_on;
use peri_acp_types::ports::ThreadStore;
use peri_acp_types::{
    AssistantMessage, AssistantPart, Content, FileDiff, FrozenBlob, Image, Message, MessageBody, ModelStop,
    SessionEpoch, StopReason, StoredTurn, StoredTurnEnd, Summary, SummaryOrigin, Thought, Thread, ThreadChange,
    ThreadMeta, ToolArguments, ToolCall, ToolCallId, ToolDetails, ToolLocation, ToolOutput, ToolResult, Usage,
};
use peri_resources::record::{decode_body, decode_turn_end, encode_body, encode_turn_end};
use peri_resources::{SqliteConfig, SqliteStore};
use serde_json::json;

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../fixtures/store", name].iter().collect()
}

fn lines(name: &str) -> Vec<String> {
    BufReader::new(File::open(fixture(name)).unwrap()).lines().collect::<Result<_, _>>().unwrap()
}

fn check(name: &str, bodies: &[MessageBody]) {
    let records = lines(name);
    assert_eq!(records.len(), bodies.len(), "{name}");
    for (record, body) in records.iter().zip(bodies) {
        assert_eq!(&decode_body(record).unwrap(), body, "{name}");
        assert_eq!(&encode_body(body).unwrap(), record, "{name}");
    }
}

#[test]
fn user_messages_of_form_1() {
    let resource = |uri: &str, mime_type: Option<&str>, text: Option<&str>| Content::Resource {
        uri: uri.to_owned(),
        mime_type: mime_type.map(str::to_owned),
        text: text.map(str::to_owned),
    };
    check(
        "form-1/user.jsonl",
        &[MessageBody::User(vec![
            Content::Text("Fix the parser, 请 \0".to_owned()),
            Content::Image(Image { mime_type: "image/png".to_owned(), base64: "iVBORw0KGgo=".to_owned() }),
            resource("file:///p/a.rs", Some("text/rust"), Some("fn main() {}\n")),
            resource("https://example.org/", None, None),
        ])],
    );
}

#[test]
fn assistant_messages_of_form_1() {
    let thought = |text: &str, signature: Option<&str>, redacted| {
        AssistantPart::Thought(Thought { text: text.to_owned(), signature: signature.map(str::to_owned), redacted })
    };
    let call = |id: &str, name: &str, arguments| {
        AssistantPart::ToolCall(ToolCall { id: ToolCallId(id.to_owned()), name: name.to_owned(), arguments })
    };
    let object = |value: serde_json::Value| ToolArguments::Object(value.as_object().unwrap().clone());
    let nested = json!({"z": null, "a": [true, u64::MAX]});
    let cut = ToolArguments::Invalid {
        raw: "{\"command\": \"ls".to_owned(),
        reason: "EOF while parsing a string".to_owned(),
    };
    let message = |parts, stop, usage| {
        MessageBody::Assistant(AssistantMessage { model: "mine/some-model".to_owned(), parts, stop, usage })
    };
    let parts = vec![
        thought("Look first.", Some("c2VhbA=="), false),
        thought("", Some("b3BhcXVl"), true),
        thought("Unsealed.", None, false),
        AssistantPart::Text("I read it.".to_owned()),
        call("toolu_1", "Read", object(json!({"path": "a.rs", "limit": 20, "ratio": 0.1, "nested": nested}))),
        call("toolu_2", "Bash", object(json!({}))),
        call("toolu_3", "Bash", cut),
    ];
    let usage = Usage { input_tokens: 12, output_tokens: 34, cache_read_tokens: 5600, cache_write_tokens: 78 };
    check("form-1/assistant.jsonl", &[message(parts, ModelStop::ToolUse, usage)]);
    let stops = [ModelStop::MaxTokens, ModelStop::EndTurn, ModelStop::Refusal, ModelStop::Other];
    check("form-1/assistant-stops.jsonl", &stops.map(|stop| message(Vec::new(), stop, Usage::default())));
}

#[test]
fn tool_results_of_form_1() {
    let details = ToolDetails {
        locations: vec![
            ToolLocation { path: "/p/a.rs".to_owned(), line: None },
            ToolLocation { path: "/p/b.rs".to_owned(), line: Some(7) },
        ],
        diffs: vec![
            FileDiff { path: "/p/new.rs".to_owned(), old_text: None, new_text: "x".to_owned() },
            FileDiff { path: "/p/old.rs".to_owned(), old_text: Some("a\r\n".to_owned()), new_text: "b\r\n".to_owned() },
        ],
    };
    let image = Content::Image(Image { mime_type: "image/gif".to_owned(), base64: "R0lGODlh".to_owned() });
    let content = vec![Content::Text("fn main() {}".to_owned()), image];
    let result = |id: &str, output| ToolResult { call_id: ToolCallId(id.to_owned()), output };
    check(
        "form-1/tool-results.jsonl",
        &[MessageBody::ToolResults(vec![
            result("toolu_1", ToolOutput { content, is_error: false, details }),
            result("toolu_2", ToolOutput::default()),
            result("toolu_3", ToolOutput::error("not run")),
        ])],
    );
}

#[test]
fn notices_of_form_1() {
    check("form-1/notice.jsonl", &[MessageBody::Notice("The turn above was interrupted.".to_owned())]);
}

#[test]
fn summaries_of_form_2() {
    let kept = "01890000-0000-7000-8000-0000000000a2".parse().unwrap();
    let summary =
        |text: &str, first_kept, origin| MessageBody::Summary(Summary { text: text.to_owned(), first_kept, origin });
    check(
        "form-2/summary.jsonl",
        &[
            summary("The parser was fixed.", Some(kept), SummaryOrigin::Model),
            summary("Earlier messages were left out.", None, SummaryOrigin::Truncation),
        ],
    );
}

#[test]
fn turn_ends_of_form_1() {
    let reasons = [StopReason::EndTurn, StopReason::MaxTokens, StopReason::MaxTurnRequests, StopReason::Refusal];
    let mut ends: Vec<StoredTurnEnd> = reasons.map(StoredTurnEnd::Completed).into();
    ends.push(StoredTurnEnd::Interrupted("cancelled".to_owned()));
    let records = lines("form-1/turn-end.jsonl");
    assert_eq!(records.len(), ends.len());
    for (record, end) in records.iter().zip(&ends) {
        assert_eq!(&decode_turn_end(record).unwrap(), end);
        assert_eq!(&encode_turn_end(end).unwrap(), record);
    }
}

#[test]
fn a_database_of_form_1_opens() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let mut dump = String::new();
    File::open(fixture("schema-1.sql")).unwrap().read_to_string(&mut dump).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch(&dump).unwrap();

    let store = SqliteStore::open(SqliteConfig::at(&path)).unwrap();
    let report = block_on(store.report()).unwrap();
    assert!(report.notices.is_empty() && !report.created, "{report:?}");
    let parent = thread_of_the_dump();
    assert_eq!(block_on(store.load(parent.meta.id)).unwrap(), parent);
    let child = ThreadMeta {
        id: "01890000-0000-7000-8000-000000000002".parse().unwrap(),
        parent_thread_id: Some(parent.meta.id),
        title: None,
        created_at_ms: 1_700_000_000_001,
        updated_at_ms: 1_700_000_000_001,
        ..parent.meta
    };
    assert_eq!(block_on(store.load(child.id)).unwrap(), Thread::new(child));
}

#[test]
fn a_database_of_form_2_opens_at_its_summary_and_knows_what_was_rewound() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("peri.db");
    let mut dump = String::new();
    File::open(fixture("schema-2.sql")).unwrap().read_to_string(&mut dump).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch(&dump).unwrap();

    let store = SqliteStore::open(SqliteConfig::at(&path)).unwrap();
    let id = "01890000-0000-7000-8000-000000000001".parse().unwrap();
    let ids = |thread: &Thread| thread.messages.iter().map(|message| message.id.to_string()).collect::<Vec<_>>();
    let named =
        |ends: &[&str]| ends.iter().map(|n| format!("01890000-0000-7000-8000-0000000000{n}")).collect::<Vec<_>>();
    let thread = block_on(store.load(id)).unwrap();
    assert_eq!(thread.earlier, 1, "the load begins with what the summary kept");
    assert_eq!(ids(&thread), named(&["a2", "a3"]));
    let epoch = block_on(store.take_epoch(id, thread.epoch)).unwrap();
    block_on(store.commit(id, epoch, &[ThreadChange::RewindUndone], 1_700_000_000_010)).unwrap();
    assert_eq!(ids(&block_on(store.load(id)).unwrap()), named(&["a2", "a3", "a4"]));
}

fn thread_of_the_dump() -> Thread {
    let message = |id: &str, turn: &str, created_at_ms, body| Message {
        id: id.parse().unwrap(),
        turn_id: turn.parse().unwrap(),
        created_at_ms,
        body,
    };
    let said = |text: &str| MessageBody::User(vec![Content::Text(text.to_owned())]);
    let (first, second) = ("01890000-0000-7000-8000-0000000000b1", "01890000-0000-7000-8000-0000000000b2");
    Thread {
        meta: ThreadMeta {
            id: "01890000-0000-7000-8000-000000000001".parse().unwrap(),
            parent_thread_id: None,
            cwd: "/p".to_owned(),
            title: Some("Fix the parser".to_owned()),
            created_at_ms: 1_700_000_000_000,
            updated_at_ms: 1_700_000_000_009,
        },
        epoch: SessionEpoch(3),
        frozen: Some(FrozenBlob { version: 1, bytes: b"{}".to_vec() }),
        close_intent: Some(SessionEpoch(2)),
        earlier: 0,
        rewound: Vec::new(),
        messages: vec![
            message("01890000-0000-7000-8000-0000000000a1", first, 1_700_000_000_002, said("Fix the parser")),
            message(
                "01890000-0000-7000-8000-0000000000a2",
                first,
                1_700_000_000_003,
                MessageBody::Notice("Interrupted.".to_owned()),
            ),
            message("01890000-0000-7000-8000-0000000000a3", second, 1_700_000_000_004, said("Go on")),
        ],
        turns: vec![StoredTurn {
            turn_id: first.parse().unwrap(),
            end: StoredTurnEnd::Interrupted("cancelled".to_owned()),
        }],
        open_turn: Some(second.parse().unwrap()),
    }
}
