//! Prompts that begin with a command, and the session's title.

use peri_acp_types::*;
use peri_agent::CancelTarget;
use peri_testkit::fake_model::FakeAnswer;

use crate::bench::{Bench, end};

fn texts(content: &[Content]) -> Vec<&str> {
    content
        .iter()
        .map(|content| match content {
            Content::Text(text) => text.as_str(),
            Content::Image(_) => "(image)",
            Content::Resource { uri, .. } => uri.as_str(),
        })
        .collect()
}

fn first_input(bench: &Bench) -> Vec<Content> {
    match &bench.thread().messages.first().expect("an input").body {
        MessageBody::User(content) => content.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_transcript_keeps_what_was_typed_and_what_the_command_made_of_it() {
    let mut bench = Bench::new([FakeAnswer::text("Looks good.")]).await;
    let image = Content::Image(Image { mime_type: "image/png".into(), base64: "AAAA".into() });
    let content = vec![Content::Text("/review the diff".into()), image];
    let turn = bench.handle.prompt(PromptInput::new(content)).await.expect("an accepted input").turn_id;
    let events = bench.until_end_of(turn).await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
    assert_eq!(texts(&first_input(&bench)), ["/review the diff", "Please review the diff.", "(image)"]);
    assert_eq!(bench.thread().meta.title.as_deref(), Some("/review the diff"));
    let request = bench.model.requests().remove(0);
    assert!(format!("{:?}", request.messages).contains("Please review the diff."));
    bench.model.check_invariants();
}

#[tokio::test]
async fn a_command_that_has_nothing_to_say_adds_nothing() {
    let mut bench = Bench::new([FakeAnswer::text("x")]).await;
    bench.prompt("/silent").await;
    assert_eq!(texts(&first_input(&bench)), ["/silent"]);
}

#[tokio::test]
async fn a_name_that_nobody_contributed_is_ordinary_text() {
    let mut bench = Bench::new([FakeAnswer::text("x")]).await;
    bench.prompt("/usr/bin is full").await;
    assert_eq!(texts(&first_input(&bench)), ["/usr/bin is full"]);
    assert!(bench.tools.log().is_empty());
}

#[tokio::test]
async fn a_command_that_fails_begins_no_turn_and_the_session_goes_on() {
    let mut bench = Bench::new([FakeAnswer::text("x")]).await;
    let events = bench.prompt("/fail now").await;
    let error = TurnError::Command { name: "fail".into(), reason: "its server is down".into() };
    assert_eq!(end(&events).outcome, TurnOutcome::Interrupted(error.clone()));
    assert_eq!(error.to_string(), "/fail could not be run: its server is down");
    assert_eq!(events.len(), 1, "no turn began: {events:?}");
    let thread = bench.thread();
    assert_eq!((thread.messages.len(), thread.turns.len(), thread.open_turn), (0, 0, None));
    assert!(bench.model.requests().is_empty());
    let events = bench.prompt("again").await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
}

#[tokio::test]
async fn a_command_that_takes_its_time_can_be_cancelled_and_what_waits_comes_next() {
    let mut bench = Bench::new([FakeAnswer::text("x")]).await;
    let slow = bench.accept("/slow").await;
    let next = bench.accept("next").await;
    bench.tools.commands.reached().await;
    let verdict = bench.handle.cancel(CancelTarget::Current, Default::default()).await;
    assert!(
        matches!(&verdict, peri_agent::CancelAnswer::Cancelling(cancelling) if cancelling.key.turn_id == slow),
        "{verdict:?}"
    );
    let events = bench.until_end_of(slow).await;
    assert_eq!(end(&events).outcome, TurnOutcome::Interrupted(TurnError::Cancelled));
    let events = bench.until_end_of(next).await;
    assert_eq!(end(&events).outcome, TurnOutcome::Completed(StopReason::EndTurn));
    assert_eq!(bench.tools.log(), ["/slow", "-/slow"], "the command was dropped");
    assert_eq!(texts(&first_input(&bench)), ["next"]);
}

#[tokio::test]
async fn a_command_that_takes_its_time_comes_to_its_end() {
    let mut bench = Bench::new([FakeAnswer::text("x")]).await;
    let turn = bench.accept("/slow").await;
    bench.tools.commands.reached().await;
    bench.tools.commands.open();
    bench.until_end_of(turn).await;
    assert_eq!(texts(&first_input(&bench)), ["/slow", "at last"]);
}

#[tokio::test]
async fn the_first_prompt_gives_the_session_its_title_and_later_ones_do_not() {
    let mut bench = Bench::new([FakeAnswer::text("x"), FakeAnswer::text("y")]).await;
    let events = bench.prompt("  \nMend the fence\nand paint it").await;
    let expected = [SessionEvent::TurnStarted, SessionEvent::TitleChanged { title: "Mend the fence".into() }];
    assert_eq!(events[..2], expected);
    let events = bench.prompt("And the gate").await;
    assert!(!events.iter().any(|event| matches!(event, SessionEvent::TitleChanged { .. })));
}
