//! What fuzzing has found of interest.

#[path = "../../../../fuzz/src/acp_frames.rs"]
mod acp_frames;
#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;

#[test]
fn the_corpus_holds() {
    corpus::run("acp_frames", acp_frames::check);
}
