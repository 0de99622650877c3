//! What fuzzing has found of interest.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/edit.rs"]
mod edit;

#[test]
fn the_corpus_holds() {
    corpus::run("edit", edit::check);
}
