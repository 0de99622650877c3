//! `peri demo`: no key, no network, no home.

use crate::sandbox::Sandbox;

#[test]
fn it_mends_the_sample_by_itself() {
    let sandbox = Sandbox::new();
    let run = sandbox.peri(["demo"]).env("HOME", None).env("ANTHROPIC_API_KEY", None).cwd("/".as_ref()).run();
    run.code(0)
        .stdout_has("SCRIPTED")
        .stdout_has("FAIL  1900")
        .stdout_has("Bash")
        .stdout_has("Read")
        .stdout_has("+if [ $((year % 4)) -eq 0 ] && ")
        .stdout_has("ok    1900 no")
        .stdout_has("The tests pass.")
        .stdout_has("export ANTHROPIC_API_KEY");
    run.check(run.stderr.is_empty(), "nothing went wrong on the way");
}

#[test]
fn it_leaves_the_users_files_alone_and_cleans_up() {
    let sandbox = Sandbox::new();
    let temporary = sandbox.home().join("tmp");
    std::fs::create_dir(&temporary).expect("a folder");
    let before = sandbox.files_below(&sandbox.home());
    let tmpdir = temporary.display().to_string();
    sandbox.peri(["demo"]).env("TMPDIR", Some(&tmpdir)).run().code(0);
    assert_eq!(sandbox.files_below(&sandbox.home()), before);

    let run = sandbox.peri(["demo", "--keep"]).env("TMPDIR", Some(&tmpdir)).run();
    run.code(0).stdout_has("The sample project is in");
    let kept = sandbox.files_below(&temporary);
    run.check(kept.iter().any(|path| path.ends_with("sample/leap.sh")), "the sample is kept");
}
