//! What fuzzing has found of interest, and ten thousand mutations of it: settings or findings for each.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../../fuzz/src/settings.rs"]
mod settings;

const MUTATIONS: usize = 10_000;

#[test]
fn the_corpus_holds() {
    corpus::run("settings", settings::check);
}

#[test]
fn mutated_settings_are_answered() {
    let seeds = corpus::inputs("settings").into_iter().map(|(_, input)| input).collect();
    let mut mutations = mutate::Mutations::new(seeds, 3);
    for _ in 0..MUTATIONS {
        settings::check(&mutations.next_input());
    }
}
