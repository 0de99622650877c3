//! The conformance suite of the `ThreadStore` port: what every store must answer alike, whatever it is made of.
//!
//! Must not: know a store, or reach around the port. Invariant: each check begins with an empty store of its own, and names
//! the deviation in words when it finds one.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use peri_acp_types::ports::{ThreadQuery, ThreadStore};
use peri_acp_types::{
    AssistantMessage, AssistantPart, Content, FileDiff, FrozenBlob, Image, Message, MessageBody, MessageId, ModelStop,
    SessionEpoch, SessionId, StopReason, StoreError, StoredTurnEnd, Thought, Thread, ThreadChange, ThreadMeta,
    ThreadRuleError, ToolArguments, ToolCall, ToolCallId, ToolDetails, ToolLocation, ToolOutput, ToolResult, TurnId,
    Usage,
};
use serde_json::json;
use uuid::Uuid;

/// Two ways into one store, as two processes would have them. A store without a second way gives the same one twice.
#[derive(Clone)]
pub struct StoreHandles {
    pub first: Arc<dyn ThreadStore>,
    pub second: Arc<dyn ThreadStore>,
}

/// Runs every check, each on handles of a fresh, empty store.
///
/// # Panics
/// If a check finds a deviation: with the names of all checks that did, and what they found.
pub async fn run(make: impl AsyncFn() -> StoreHandles) {
    let mut deviations = Vec::new();
    for (name, check) in CHECKS {
        if let Err(Deviation(words)) = check(make().await).await {
            deviations.push(format!("{name}: {words}"));
        }
    }
    assert!(deviations.is_empty(), "the store deviates from its contract:\n{}", deviations.join("\n"));
}

/// What a check found, in words.
struct Deviation(String);

type Verdict = Result<(), Deviation>;

impl From<StoreError> for Deviation {
    fn from(error: StoreError) -> Deviation {
        Deviation(format!("an operation that had to succeed failed: {error}"))
    }
}

impl From<ThreadRuleError> for Deviation {
    fn from(error: ThreadRuleError) -> Deviation {
        Deviation(format!("the check itself breaks a rule: {error}"))
    }
}

type Check = fn(StoreHandles) -> BoxFuture<'static, Verdict>;

const CHECKS: &[(&str, Check)] = &[
    ("a created thread loads as it was created", |store| created_thread_loads(store).boxed()),
    ("an id is created once", |store| id_is_created_once(store).boxed()),
    ("a child needs its parent", |store| child_needs_parent(store).boxed()),
    ("an unknown thread is not found", |store| unknown_thread_is_not_found(store).boxed()),
    ("an epoch is taken by compare-and-swap", |store| epoch_is_taken_by_cas(store).boxed()),
    ("writes of another epoch are refused whole", |store| other_epochs_are_fenced(store).boxed()),
    ("the frozen context is written once, byte for byte", |store| frozen_context_is_written_once(store).boxed()),
    ("a commit does what the reducer does", |store| commit_follows_the_reducer(store).boxed()),
    ("a change against a rule refuses the whole commit", |store| broken_rules_refuse_the_commit(store).boxed()),
    ("a repeated commit is refused", |store| repeated_commit_is_refused(store).boxed()),
    ("message ids are unique within a thread only", |store| message_ids_are_per_thread(store).boxed()),
    ("every kind of content comes back as it was", |store| content_comes_back(store).boxed()),
    ("a long thread keeps its order", |store| long_thread_keeps_its_order(store).boxed()),
    ("a list shows the newest change first", |store| list_is_newest_first(store).boxed()),
    ("a list is paged without gaps or repetitions", |store| list_is_paged(store).boxed()),
    ("a list of a directory takes its path literally", |store| list_of_directory(store).boxed()),
    ("a list hides children", |store| list_hides_children(store).boxed()),
    ("a cursor of nowhere is refused", |store| foreign_cursor_is_refused(store).boxed()),
    ("a delete takes everything with it and can be repeated", |store| delete_takes_everything(store).boxed()),
    ("a close intent is put and settled, again and again", |store| close_intents(store).boxed()),
    ("of concurrent openers one gets the epoch", |store| one_opener_wins(store).boxed()),
    ("of concurrent inputs one opens the turn", |store| one_input_wins(store).boxed()),
    ("each handle sees what the other wrote", |store| handles_see_each_other(store).boxed()),
];

async fn created_thread_loads(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    let titled = ThreadMeta { title: Some("A title, \u{1f980} and a \0".to_owned()), ..meta(1) };
    for meta in [titled, ThreadMeta { cwd: "/with space/ünïcode".to_owned(), ..meta(2) }] {
        store.create(&meta).await?;
        same(&store.load(meta.id).await?, &Thread::new(meta))?;
    }
    Ok(())
}

async fn id_is_created_once(StoreHandles { first, second }: StoreHandles) -> Verdict {
    first.create(&meta(1)).await?;
    let other = ThreadMeta { cwd: "/elsewhere".to_owned(), ..meta(1) };
    for store in [&first, &second] {
        refused(store.create(&other).await, &StoreError::Exists(session(1)))?;
    }
    same(&first.load(session(1)).await?, &Thread::new(meta(1)))
}

async fn child_needs_parent(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    let child = ThreadMeta { parent_thread_id: Some(session(1)), ..meta(2) };
    refused(store.create(&child).await, &StoreError::NotFound(session(1)))?;
    refused(store.load(session(2)).await, &StoreError::NotFound(session(2)))?;
    store.create(&meta(1)).await?;
    store.create(&child).await?;
    same(&store.load(session(2)).await?, &Thread::new(child))
}

async fn unknown_thread_is_not_found(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    store.create(&meta(1)).await?;
    let (id, epoch) = (session(404), SessionEpoch(1));
    let absent = StoreError::NotFound(id);
    refused(store.load(id).await, &absent)?;
    refused(store.take_epoch(id, SessionEpoch::UNOPENED).await, &absent)?;
    refused(store.freeze(id, epoch, &blob()).await, &absent)?;
    refused(store.commit(id, epoch, &[input(1, 1)], 1).await, &absent)?;
    refused(store.put_close_intent(id, epoch).await, &absent)?;
    refused(store.settle_close(id, epoch).await, &absent)
}

async fn epoch_is_taken_by_cas(StoreHandles { first, second }: StoreHandles) -> Verdict {
    let id = session(1);
    first.create(&meta(1)).await?;
    for (store, expected) in [(&first, 0), (&second, 1), (&first, 2)] {
        same(&store.take_epoch(id, SessionEpoch(expected)).await?, &SessionEpoch(expected + 1))?;
    }
    for stale in [0, 2, 9] {
        let fenced = StoreError::Fenced { ours: SessionEpoch(stale), current: SessionEpoch(3) };
        refused(second.take_epoch(id, SessionEpoch(stale)).await, &fenced)?;
    }
    same(&first.load(id).await?.epoch, &SessionEpoch(3))
}

async fn other_epochs_are_fenced(StoreHandles { first, second }: StoreHandles) -> Verdict {
    let id = session(1);
    let older = opened(&first, 1).await?;
    first.commit(id, older, &[input(1, 1)], 10).await?;
    let current = second.take_epoch(id, older).await?;
    let before = second.load(id).await?;
    for ours in [older, current.next()] {
        let fenced = StoreError::Fenced { ours, current };
        refused(first.freeze(id, ours, &blob()).await, &fenced)?;
        refused(first.commit(id, ours, &[turn_ended(1)], 20).await, &fenced)?;
        // Fencing comes before the rules: a writer that was overtaken must hear that, and nothing else.
        refused(first.commit(id, ours, &[turn_ended(9)], 20).await, &fenced)?;
        refused(first.put_close_intent(id, ours).await, &fenced)?;
        refused(first.settle_close(id, ours).await, &fenced)?;
    }
    same(&second.load(id).await?, &before)
}

async fn frozen_context_is_written_once(StoreHandles { first, second }: StoreHandles) -> Verdict {
    let id = session(1);
    let epoch = opened(&first, 1).await?;
    // A version of the future: the store keeps it, whoever continues the session judges it.
    let blob = FrozenBlob { version: u32::MAX, bytes: (0..=u8::MAX).cycle().take(100_000).collect() };
    first.freeze(id, epoch, &blob).await?;
    refused(second.freeze(id, epoch, &self::blob()).await, &StoreError::Exists(id))?;
    same(&second.load(id).await?.frozen, &Some(blob))
}

async fn commit_follows_the_reducer(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    let id = session(1);
    let epoch = opened(&store, 1).await?;
    let mut expected = Thread { epoch, ..Thread::new(meta(1)) };
    let interrupted = StoredTurnEnd::Interrupted("found without an end".to_owned());
    let commits = [
        vec![input(1, 1)],
        vec![step(1, 2, &["a", "b"])],
        vec![notice(1, 4), step(1, 5, &[]), turn_ended(1)],
        vec![input(2, 7), ThreadChange::TurnEnded { turn_id: turn(2), end: interrupted }],
        vec![ThreadChange::TitleSet { title: "Better".to_owned() }],
        // An input whose turn has no end: what a crash leaves.
        vec![input(3, 8)],
    ];
    for (round, changes) in (100..).zip(&commits) {
        store.commit(id, epoch, changes, round).await?;
        expected.apply_all(changes)?;
        expected.meta.updated_at_ms = round;
        same(&store.load(id).await?, &expected)?;
    }
    Ok(())
}

async fn broken_rules_refuse_the_commit(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    let id = session(1);
    let epoch = opened(&store, 1).await?;
    let past = [input(1, 1), step(1, 2, &["a"]), turn_ended(1)];
    store.commit(id, epoch, &past, 10).await?;
    let before = store.load(id).await?;
    for (changes, rule) in broken_changes() {
        // Each comes after changes that are right, so that a store that does not undo them is found out.
        let mut commit = vec![ThreadChange::TitleSet { title: "Not to be seen".to_owned() }, input(2, 20)];
        commit.extend(changes);
        refused(store.commit(id, epoch, &commit, 20).await, &StoreError::Rule(rule))?;
        same(&store.load(id).await?, &before)?;
    }
    store.commit(id, epoch, &[input(2, 20)], 30).await?;
    Ok(())
}

/// Changes that a thread with the turn 1 behind it (messages 1 to 3) and the turn 2 open (message 20) must refuse.
fn broken_changes() -> Vec<(Vec<ThreadChange>, ThreadRuleError)> {
    let no_notice = ThreadChange::NoticeAdded { message: message(2, 21, MessageBody::User(Vec::new())) };
    let answers = |calls: &[&str]| ThreadChange::StepCommitted {
        assistant: assistant(2, 21, &["a", "b"]),
        results: Some(results(2, 22, calls)),
    };
    let mismatch = |calls: &[&str], answered: &[&str]| {
        ThreadRuleError::ResultsMismatch(format!("calls {calls:?}, results {answered:?}"))
    };
    vec![
        (vec![input(3, 21)], ThreadRuleError::TurnOpen(turn(2))),
        (vec![step(1, 21, &[])], ThreadRuleError::TurnNotOpen(turn(1))),
        (vec![turn_ended(1)], ThreadRuleError::TurnNotOpen(turn(1))),
        (vec![turn_ended(2), turn_ended(2)], ThreadRuleError::TurnNotOpen(turn(2))),
        (vec![turn_ended(2), input(1, 21)], ThreadRuleError::TurnReused(turn(1))),
        (vec![turn_ended(2), input(2, 21)], ThreadRuleError::TurnReused(turn(2))),
        (vec![turn_ended(2), input(3, 1)], ThreadRuleError::MessageReused(message_id(1))),
        (vec![step(2, 3, &[])], ThreadRuleError::MessageReused(message_id(3))),
        (vec![step(2, 19, &["a"])], ThreadRuleError::MessageReused(message_id(20))),
        (vec![notice(2, 21), notice(2, 21)], ThreadRuleError::MessageReused(message_id(21))),
        (vec![no_notice], ThreadRuleError::WrongBody(message_id(21))),
        (vec![answers(&["a"])], mismatch(&["a", "b"], &["a"])),
        (vec![answers(&["b", "a"])], mismatch(&["a", "b"], &["b", "a"])),
        (vec![answers(&["a", "b", "b"])], mismatch(&["a", "b"], &["a", "b", "b"])),
    ]
}

async fn repeated_commit_is_refused(StoreHandles { first, second }: StoreHandles) -> Verdict {
    let id = session(1);
    let epoch = opened(&first, 1).await?;
    first.commit(id, epoch, &[input(1, 1)], 10).await?;
    first.commit(id, epoch, &[step(1, 2, &["a"])], 20).await?;
    let before = first.load(id).await?;
    let reused = StoreError::Rule(ThreadRuleError::MessageReused(message_id(2)));
    for store in [&first, &second] {
        refused(store.commit(id, epoch, &[step(1, 2, &["a"])], 30).await, &reused)?;
    }
    same(&second.load(id).await?, &before)
}

async fn message_ids_are_per_thread(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    // A copy of a session keeps the ids of its messages and turns.
    for number in [1, 2] {
        let epoch = opened(&store, number).await?;
        store.commit(session(number), epoch, &[input(1, 1), turn_ended(1)], 10).await?;
    }
    let (left, right) = (store.load(session(1)).await?, store.load(session(2)).await?);
    same(&left.messages, &right.messages)
}

async fn content_comes_back(StoreHandles { first, second }: StoreHandles) -> Verdict {
    let id = session(1);
    let epoch = opened(&first, 1).await?;
    let changes = every_kind_of_content();
    first.commit(id, epoch, &changes, 10).await?;
    let mut expected = Thread { epoch, ..Thread::new(ThreadMeta { updated_at_ms: 10, ..meta(1) }) };
    expected.apply_all(&changes)?;
    same(&second.load(id).await?, &expected)
}

/// A turn with everything that a message can hold.
fn every_kind_of_content() -> Vec<ThreadChange> {
    let image = Content::Image(Image { mime_type: "image/png".to_owned(), base64: "AAEC".repeat(50_000) });
    let resource = |text: Option<&str>| Content::Resource {
        uri: "file:///a b.rs".to_owned(),
        mime_type: text.map(|_| "text/rust".to_owned()),
        text: text.map(str::to_owned),
    };
    let words = Content::Text("line\r\n\u{0}\u{feff}\u{202e}\u{1f468}\u{200d}\u{1f469} 漢字".to_owned());
    let content =
        vec![words, image.clone(), resource(None), resource(Some("fn main() {}")), Content::Text(String::new())];
    let details = ToolDetails {
        locations: vec![
            ToolLocation { path: "/a".to_owned(), line: None },
            ToolLocation { path: "/b".to_owned(), line: Some(u32::MAX) },
        ],
        diffs: vec![
            FileDiff { path: "/new".to_owned(), old_text: None, new_text: String::new() },
            FileDiff { path: "/old".to_owned(), old_text: Some("\r\n".to_owned()), new_text: "\n".to_owned() },
        ],
    };
    let arguments = json!({
        "z": 1, "a": {"deep": [[[[null, true, -0.1, 1e-300, 18_446_744_073_709_551_615_u64, i64::MIN]]]]}, "": "\u{1f980}",
    });
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let calls = [
        ToolArguments::Object(arguments),
        ToolArguments::Object(serde_json::Map::new()),
        ToolArguments::Invalid { raw: "{\"cut".to_owned(), reason: "EOF".to_owned() },
    ];
    let thoughts = [
        Thought { text: "Hm.".to_owned(), signature: Some("sealed==".to_owned()), redacted: false },
        Thought { text: String::new(), signature: Some("opaque".to_owned()), redacted: true },
        Thought::default(),
    ];
    let mut parts: Vec<AssistantPart> = thoughts.map(AssistantPart::Thought).into();
    parts.push(AssistantPart::Text("Let me see.".to_owned()));
    parts.extend((0..).zip(calls).map(|(number, arguments)| {
        AssistantPart::ToolCall(ToolCall { id: call_id(number), name: format!("tool_{number}"), arguments })
    }));
    let outputs = [
        ToolOutput { content: content.clone(), is_error: false, details },
        ToolOutput::default(),
        ToolOutput::error("arguments are not a JSON object"),
    ];
    let results = (0..).zip(outputs).map(|(number, output)| ToolResult { call_id: call_id(number), output }).collect();
    let usage = Usage { input_tokens: u64::MAX, output_tokens: 2, cache_read_tokens: 3, cache_write_tokens: 4 };
    let mut changes = vec![
        ThreadChange::InputAccepted { message: message(1, 1, MessageBody::User(content)) },
        ThreadChange::StepCommitted {
            assistant: message(1, 2, MessageBody::Assistant(assistant_of(parts, ModelStop::ToolUse, usage))),
            results: Some(message(1, 3, MessageBody::ToolResults(results))),
        },
    ];
    let stops = [ModelStop::EndTurn, ModelStop::MaxTokens, ModelStop::Refusal, ModelStop::Other];
    changes.extend((4..).zip(stops).map(|(number, stop)| ThreadChange::StepCommitted {
        assistant: message(1, number, MessageBody::Assistant(assistant_of(Vec::new(), stop, Usage::default()))),
        results: None,
    }));
    changes.push(turn_ended(1));
    let ends = [
        StoredTurnEnd::Completed(StopReason::MaxTokens),
        StoredTurnEnd::Completed(StopReason::MaxTurnRequests),
        StoredTurnEnd::Completed(StopReason::Refusal),
        StoredTurnEnd::Interrupted("cancelled\n".to_owned()),
    ];
    changes.extend((20_u64..).zip(ends).flat_map(|(number, end)| {
        [input(number, u128::from(number)), ThreadChange::TurnEnded { turn_id: turn(number), end }]
    }));
    changes
}

async fn long_thread_keeps_its_order(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    let id = session(1);
    let epoch = opened(&store, 1).await?;
    store.commit(id, epoch, &[input(1, 1)], 1).await?;
    // Ids that do not ascend: the order is that of the commits.
    let numbers: Vec<u128> = (0..120_u128).map(|number| 1000 + number * 7919 % 1009).collect();
    for chunk in numbers.chunks(3) {
        let changes: Vec<ThreadChange> = chunk.iter().map(|number| notice(1, *number)).collect();
        store.commit(id, epoch, &changes, 2).await?;
    }
    let ids: Vec<MessageId> = store.load(id).await?.messages.iter().map(|message| message.id).collect();
    let expected: Vec<MessageId> = std::iter::once(1).chain(numbers).map(message_id).collect();
    same(&ids, &expected)
}

async fn list_is_newest_first(StoreHandles { first, second }: StoreHandles) -> Verdict {
    for number in [1, 2, 3] {
        first.create(&meta(number)).await?;
    }
    // The same time: the higher id comes first.
    same(&listed(&second, ThreadQuery { limit: 9, ..ThreadQuery::default() }).await?, &vec![3, 2, 1])?;
    let epoch = second.take_epoch(session(2), SessionEpoch::UNOPENED).await?;
    second.commit(session(2), epoch, &[input(1, 1)], meta(2).updated_at_ms + 1).await?;
    same(&listed(&first, ThreadQuery { limit: 9, ..ThreadQuery::default() }).await?, &vec![2, 3, 1])?;
    let page = first.list(&ThreadQuery { limit: 9, ..ThreadQuery::default() }).await?;
    let newest = page.threads.first().ok_or(Deviation("the list is empty".to_owned()))?;
    same(newest, &second.load(session(2)).await?.meta)
}

async fn list_is_paged(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    let count = 7;
    for number in 1..=count {
        // Times that come in pairs, so that pages end between equal ones.
        let updated_at_ms = i64::try_from(number / 2).unwrap_or_default() - 2;
        store.create(&ThreadMeta { updated_at_ms, ..meta(number) }).await?;
    }
    let all: Vec<u64> = (1..=count).rev().collect();
    for limit in [1, 2, 3, 7, 8] {
        let mut seen = Vec::new();
        let mut query = ThreadQuery { limit, ..ThreadQuery::default() };
        loop {
            let page = store.list(&query).await?;
            ensure(page.threads.len() <= limit, || format!("a page of {limit} holds {}", page.threads.len()))?;
            seen.extend(page.threads.iter().map(number_of));
            let Some(next) = page.next else { break };
            ensure(!page.threads.is_empty(), || "an empty page says that there are more".to_owned())?;
            query.cursor = Some(next);
        }
        same(&seen, &all)?;
    }
    Ok(())
}

async fn list_of_directory(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    let directories = ["/w", "/w/", "/W", "/w/sub", "/%", "/_"];
    for (number, cwd) in (1..).zip(directories) {
        store.create(&ThreadMeta { cwd: cwd.to_owned(), ..meta(number) }).await?;
    }
    for (number, cwd) in (1..).zip(directories) {
        let query = ThreadQuery { cwd: Some(cwd.to_owned()), limit: 9, ..ThreadQuery::default() };
        same(&listed(&store, query).await?, &vec![number])?;
    }
    let nowhere = ThreadQuery { cwd: Some(String::new()), limit: 9, ..ThreadQuery::default() };
    same(&listed(&store, nowhere).await?, &Vec::new())
}

async fn list_hides_children(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    store.create(&meta(1)).await?;
    for (number, parent) in [(2, 1), (3, 2)] {
        store.create(&ThreadMeta { parent_thread_id: Some(session(parent)), ..meta(number) }).await?;
    }
    for cwd in [None, Some(meta(1).cwd)] {
        let query = ThreadQuery { cwd, limit: 1, ..ThreadQuery::default() };
        let page = store.list(&query).await?;
        same(&page.next, &None)?;
        same(&page.threads, &vec![meta(1)])?;
    }
    Ok(())
}

async fn foreign_cursor_is_refused(StoreHandles { first: store, .. }: StoreHandles) -> Verdict {
    store.create(&meta(1)).await?;
    for cursor in ["", "0", "nonsense", "1.2", "\u{1f980}"] {
        let query = ThreadQuery { cursor: Some(cursor.to_owned()), limit: 9, ..ThreadQuery::default() };
        let refused = matches!(store.list(&query).await, Err(StoreError::Failed(_)));
        ensure(refused, || format!("the cursor `{cursor}` was not refused"))?;
    }
    Ok(())
}

async fn delete_takes_everything(StoreHandles { first, second }: StoreHandles) -> Verdict {
    for (number, parent) in [(1, None), (2, Some(1)), (3, Some(2)), (4, None)] {
        first.create(&ThreadMeta { parent_thread_id: parent.map(session), ..meta(number) }).await?;
        let epoch = first.take_epoch(session(number), SessionEpoch::UNOPENED).await?;
        first.freeze(session(number), epoch, &blob()).await?;
        first.commit(session(number), epoch, &[input(1, 1), turn_ended(1)], 10).await?;
    }
    let bystander = first.load(session(4)).await?;
    for store in [&second, &second, &first] {
        store.delete(session(1)).await?;
        for number in [1, 2, 3] {
            refused(store.load(session(number)).await, &StoreError::NotFound(session(number)))?;
        }
    }
    let gone = first.commit(session(1), SessionEpoch(1), &[input(2, 2)], 20).await;
    refused(gone, &StoreError::NotFound(session(1)))?;
    // The id is free again, and nothing of the old thread shines through.
    first.create(&meta(1)).await?;
    same(&first.load(session(1)).await?, &Thread::new(meta(1)))?;
    same(&second.load(session(4)).await?, &bystander)
}

async fn close_intents(StoreHandles { first, second }: StoreHandles) -> Verdict {
    let id = session(1);
    let epoch = opened(&first, 1).await?;
    first.settle_close(id, epoch).await?;
    for _ in 0..2 {
        first.put_close_intent(id, epoch).await?;
        same(&second.load(id).await?.close_intent, &Some(epoch))?;
    }
    // The intent of a process that died is settled by the next one.
    let next = second.take_epoch(id, epoch).await?;
    same(&second.load(id).await?.close_intent, &Some(epoch))?;
    for _ in 0..2 {
        second.settle_close(id, next).await?;
        same(&first.load(id).await?.close_intent, &None)?;
    }
    second.put_close_intent(id, next).await?;
    same(&first.load(id).await?.close_intent, &Some(next))
}

async fn one_opener_wins(StoreHandles { first, second }: StoreHandles) -> Verdict {
    first.create(&meta(1)).await?;
    let openers = [&first, &second].into_iter().cycle().take(8);
    let answers = join_all(openers.map(|store| store.take_epoch(session(1), SessionEpoch::UNOPENED))).await;
    let fenced = StoreError::Fenced { ours: SessionEpoch::UNOPENED, current: SessionEpoch(1) };
    let won = answers.iter().filter(|answer| **answer == Ok(SessionEpoch(1))).count();
    let lost = answers.iter().filter(|answer| **answer == Err(fenced.clone())).count();
    ensure((won, lost) == (1, 7), || format!("{answers:?}"))
}

async fn one_input_wins(StoreHandles { first, second }: StoreHandles) -> Verdict {
    let id = session(1);
    let epoch = opened(&first, 1).await?;
    let inputs: Vec<[ThreadChange; 1]> = (1..=8).map(|number| [input(number, u128::from(number))]).collect();
    let writers = [&first, &second].into_iter().cycle().zip(&inputs);
    let answers = join_all(writers.map(|(store, changes)| store.commit(id, epoch, changes, 10))).await;
    let thread = second.load(id).await?;
    let open = thread.open_turn.ok_or(Deviation("no turn is open".to_owned()))?;
    let refusal = Err(StoreError::Rule(ThreadRuleError::TurnOpen(open)));
    let won = answers.iter().filter(|answer| answer.is_ok()).count();
    let lost = answers.iter().filter(|answer| **answer == refusal).count();
    ensure((won, lost, thread.messages.len()) == (1, 7, 1), || format!("{answers:?}, {:?}", thread.messages))
}

async fn handles_see_each_other(StoreHandles { first, second }: StoreHandles) -> Verdict {
    let id = session(1);
    let epoch = opened(&first, 1).await?;
    first.commit(id, epoch, &[input(1, 1)], 10).await?;
    for (number, (writer, reader)) in (10..).zip([(&first, &second), (&second, &first)].into_iter().cycle().take(6)) {
        writer.commit(id, epoch, &[notice(1, number)], 10).await?;
        let seen = reader.load(id).await?.messages.last().map(|message| message.id);
        same(&seen, &Some(message_id(number)))?;
    }
    Ok(())
}

/// Creates the thread of that number and takes its first epoch.
async fn opened(store: &Arc<dyn ThreadStore>, number: u64) -> Result<SessionEpoch, StoreError> {
    store.create(&meta(number)).await?;
    store.take_epoch(session(number), SessionEpoch::UNOPENED).await
}

async fn listed(store: &Arc<dyn ThreadStore>, query: ThreadQuery) -> Result<Vec<u64>, StoreError> {
    Ok(store.list(&query).await?.threads.iter().map(number_of).collect())
}

fn ensure(holds: bool, words: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Deviation(words())) }
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Verdict {
    ensure(found == expected, || format!("found {}\n  expected {}", shown(found), shown(expected)))
}

fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>, expected: &StoreError) -> Verdict {
    ensure(answer.as_ref().err() == Some(expected), || format!("answered {answer:?}, expected {expected:?}"))
}

/// Long values are cut: the beginning tells which they are.
fn shown(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").chars().take(2000).collect()
}

fn session(number: u64) -> SessionId {
    SessionId(Uuid::from_u128(u128::from(number)))
}

fn number_of(meta: &ThreadMeta) -> u64 {
    u64::try_from(meta.id.0.as_u128()).unwrap_or(u64::MAX)
}

fn turn(number: u64) -> TurnId {
    TurnId(Uuid::from_u128(u128::from(number)))
}

fn message_id(number: u128) -> MessageId {
    MessageId(Uuid::from_u128(number))
}

fn call_id(number: usize) -> ToolCallId {
    ToolCallId(format!("call_{number}"))
}

fn meta(number: u64) -> ThreadMeta {
    ThreadMeta {
        id: session(number),
        parent_thread_id: None,
        cwd: "/home/dev/project".to_owned(),
        title: None,
        created_at_ms: 1_700_000_000_000,
        updated_at_ms: 1_700_000_000_001,
    }
}

fn blob() -> FrozenBlob {
    FrozenBlob { version: 1, bytes: b"frozen".to_vec() }
}

fn message(turn_number: u64, number: u128, body: MessageBody) -> Message {
    Message { id: message_id(number), turn_id: turn(turn_number), created_at_ms: 1_700_000_000_002, body }
}

fn input(turn_number: u64, number: u128) -> ThreadChange {
    let body = MessageBody::User(vec![Content::Text(format!("Input {number}"))]);
    ThreadChange::InputAccepted { message: message(turn_number, number, body) }
}

fn notice(turn_number: u64, number: u128) -> ThreadChange {
    let body = MessageBody::Notice(format!("Notice {number}"));
    ThreadChange::NoticeAdded { message: message(turn_number, number, body) }
}

/// An answer with those calls, and their results under the next number.
fn step(turn_number: u64, number: u128, calls: &[&str]) -> ThreadChange {
    let results = (!calls.is_empty()).then(|| results(turn_number, number + 1, calls));
    ThreadChange::StepCommitted { assistant: assistant(turn_number, number, calls), results }
}

fn assistant(turn_number: u64, number: u128, calls: &[&str]) -> Message {
    let calls = calls.iter().map(|call| {
        let arguments = ToolArguments::Object(serde_json::Map::new());
        AssistantPart::ToolCall(ToolCall { id: ToolCallId((*call).to_owned()), name: "read".to_owned(), arguments })
    });
    let body = assistant_of(calls.collect(), ModelStop::ToolUse, Usage::default());
    message(turn_number, number, MessageBody::Assistant(body))
}

fn assistant_of(parts: Vec<AssistantPart>, stop: ModelStop, usage: Usage) -> AssistantMessage {
    AssistantMessage { model: "provider/model".to_owned(), parts, stop, usage }
}

fn results(turn_number: u64, number: u128, calls: &[&str]) -> Message {
    let results = calls.iter().map(|call| ToolResult {
        call_id: ToolCallId((*call).to_owned()),
        output: ToolOutput::text(format!("result of {call}")),
    });
    message(turn_number, number, MessageBody::ToolResults(results.collect()))
}

fn turn_ended(number: u64) -> ThreadChange {
    ThreadChange::TurnEnded { turn_id: turn(number), end: StoredTurnEnd::Completed(StopReason::EndTurn) }
}
