//! What fuzzing has found of interest, and ten thousand mutations of it: an answer or a failure for each.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/model_stream.rs"]
mod model_stream;
#[path = "../../../../fuzz/src/mutate.rs"]
mod mutate;

const MUTATIONS: usize = 10_000;

#[test]
fn the_corpus_holds() {
    corpus::run("model_stream", model_stream::check);
}

#[test]
fn mutated_bodies_are_answered() {
    let seeds = corpus::inputs("model_stream").into_iter().map(|(_, input)| input).collect();
    let mut mutations = mutate::Mutations::new(seeds, 3);
    for _ in 0..MUTATIONS {
        model_stream::check(&mutations.next_input());
    }
}
