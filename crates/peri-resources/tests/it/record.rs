//! The stored form: what goes in comes out, and what is not of a known form is refused by name.

use peri_acp_types::{
    AssistantMessage, AssistantPart, Content, FileDiff, Image, MessageBody, ModelStop, StopReason, StoreError,
    StoredTurnEnd, Thought, ToolArguments, ToolCall, ToolCallId, ToolDetails, ToolLocation, ToolOutput, ToolResult,
    Usage,
};
use peri_resources::record::{decode_body, decode_turn_end, encode_body, encode_turn_end};
use proptest::prelude::*;
use proptest::{collection, option};
use serde_json::{Map, Value};

proptest! {
    #[test]
    fn a_body_comes_back_as_it_was(body in body()) {
        let record = encode_body(&body).unwrap();
        prop_assert!(record.starts_with(r#"{"v":1,"#), "{}", record);
        prop_assert_eq!(decode_body(&record).unwrap(), body);
    }

    #[test]
    fn a_turn_end_comes_back_as_it_was(end in turn_end()) {
        prop_assert_eq!(decode_turn_end(&encode_turn_end(&end).unwrap()).unwrap(), end);
    }

    #[test]
    fn any_other_text_is_refused_and_not_guessed_at(text in ".{0,200}") {
        prop_assert!(matches!(decode_body(&text), Err(StoreError::Unreadable(_))));
        prop_assert!(matches!(decode_turn_end(&text), Err(StoreError::Unreadable(_))));
    }
}

#[test]
fn arguments_as_deep_as_the_parser_takes_come_back() {
    let mut text = "{}".to_owned();
    for _ in 0..126 {
        text = format!("{{\"a\":{text}}}");
    }
    let arguments: Map<String, Value> = serde_json::from_str(&text).unwrap();
    let body = MessageBody::Assistant(AssistantMessage {
        model: String::new(),
        parts: vec![call(ToolArguments::Object(arguments))],
        stop: ModelStop::ToolUse,
        usage: Usage::default(),
    });
    assert_eq!(decode_body(&encode_body(&body).unwrap()).unwrap(), body);
}

#[test]
fn the_order_of_keys_in_arguments_is_kept() {
    let text = r#"{"z":1,"a":{"y":0.1,"b":1e-7},"m":[]}"#;
    let body = MessageBody::Assistant(AssistantMessage {
        model: String::new(),
        parts: vec![call(ToolArguments::Object(serde_json::from_str(text).unwrap()))],
        stop: ModelStop::ToolUse,
        usage: Usage::default(),
    });
    let read = decode_body(&encode_body(&body).unwrap()).unwrap();
    let MessageBody::Assistant(message) = read else { panic!("{read:?}") };
    let arguments = message.calls().next().unwrap().arguments.object().unwrap();
    assert_eq!(serde_json::to_string(arguments).unwrap(), text);
}

#[test]
fn an_unknown_form_is_named() {
    for (record, named) in [
        (r#"{"v":2,"body":{"hologram":[]}}"#, "form 2"),
        (r#"{"v":7,"body":{"notice":"the same shape"}}"#, "form 7"),
        (r#"{"v":3,"anything":"else"}"#, "form 3"),
        (r#"{"v":1,"body":{"hologram":[]}}"#, "hologram"),
        (r#"{"v":1,"body":{"notice":"x"},"more":1}"#, "more"),
        (r#"{"v":1,"body":{"user":[{"text":"x"},{"audio":{}}]}}"#, "audio"),
        (r#"{"v":1,"body":{"user":[{"image":{"mime_type":"a","base64":"b","alt":"c"}}]}}"#, "alt"),
        (r#"{"v":1,"body":{"notice":"cut"#, "EOF"),
    ] {
        match decode_body(record) {
            Err(StoreError::Unreadable(words)) => assert!(words.contains(named), "{record}: {words}"),
            other => panic!("{record}: {other:?}"),
        }
    }
}

fn body() -> impl Strategy<Value = MessageBody> {
    prop_oneof![
        contents().prop_map(MessageBody::User),
        assistant().prop_map(MessageBody::Assistant),
        collection::vec(result(), 0..4).prop_map(MessageBody::ToolResults),
        text().prop_map(MessageBody::Notice),
    ]
}

/// Any characters, control characters and those that JSON escapes among them.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", collection::vec(any::<char>(), 0..20).prop_map(String::from_iter)]
}

fn contents() -> impl Strategy<Value = Vec<Content>> {
    let content = prop_oneof![
        text().prop_map(Content::Text),
        (text(), text()).prop_map(|(mime_type, base64)| Content::Image(Image { mime_type, base64 })),
        (text(), option::of(text()), option::of(text())).prop_map(|(uri, mime_type, text)| Content::Resource {
            uri,
            mime_type,
            text
        }),
    ];
    collection::vec(content, 0..4)
}

fn assistant() -> impl Strategy<Value = AssistantMessage> {
    let stop = prop_oneof![
        Just(ModelStop::EndTurn),
        Just(ModelStop::ToolUse),
        Just(ModelStop::MaxTokens),
        Just(ModelStop::Refusal),
        Just(ModelStop::Other),
    ];
    let usage = any::<[u64; 4]>().prop_map(|[input_tokens, output_tokens, cache_read_tokens, cache_write_tokens]| {
        Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens }
    });
    (text(), collection::vec(part(), 0..5), stop, usage).prop_map(|(model, parts, stop, usage)| AssistantMessage {
        model,
        parts,
        stop,
        usage,
    })
}

fn part() -> impl Strategy<Value = AssistantPart> {
    prop_oneof![
        text().prop_map(AssistantPart::Text),
        (text(), option::of(text()), any::<bool>())
            .prop_map(|(text, signature, redacted)| AssistantPart::Thought(Thought { text, signature, redacted })),
        collection::vec((text(), json()), 0..4)
            .prop_map(|entries| call(ToolArguments::Object(entries.into_iter().collect()))),
        (text(), text()).prop_map(|(raw, reason)| call(ToolArguments::Invalid { raw, reason })),
    ]
}

fn call(arguments: ToolArguments) -> AssistantPart {
    AssistantPart::ToolCall(ToolCall { id: ToolCallId("toolu_1".to_owned()), name: "Read".to_owned(), arguments })
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Every finite number, to the last bit.
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            collection::vec((text(), inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn result() -> impl Strategy<Value = ToolResult> {
    let location = (text(), option::of(any::<u32>())).prop_map(|(path, line)| ToolLocation { path, line });
    let diff = (text(), option::of(text()), text()).prop_map(|(path, old_text, new_text)| FileDiff {
        path,
        old_text,
        new_text,
    });
    (text(), contents(), any::<bool>(), collection::vec(location, 0..3), collection::vec(diff, 0..3)).prop_map(
        |(call_id, content, is_error, locations, diffs)| ToolResult {
            call_id: ToolCallId(call_id),
            output: ToolOutput { content, is_error, details: ToolDetails { locations, diffs } },
        },
    )
}

fn turn_end() -> impl Strategy<Value = StoredTurnEnd> {
    prop_oneof![
        Just(StoredTurnEnd::Completed(StopReason::EndTurn)),
        Just(StoredTurnEnd::Completed(StopReason::MaxTokens)),
        Just(StoredTurnEnd::Completed(StopReason::MaxTurnRequests)),
        Just(StoredTurnEnd::Completed(StopReason::Refusal)),
        text().prop_map(StoredTurnEnd::Interrupted),
    ]
}
