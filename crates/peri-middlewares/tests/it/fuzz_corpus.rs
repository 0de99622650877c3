//! What fuzzing has found of interest.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/shell_rules.rs"]
mod shell_rules;

#[test]
fn the_corpus_holds() {
    corpus::run("shell_rules", shell_rules::check);
}
