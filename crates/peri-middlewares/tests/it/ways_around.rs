//! Ways around the rules that were found by trying: each is a kind, and stays closed.

use crate::permission::{begins, desk};

#[tokio::test]
async fn what_a_file_holds_or_is_called_is_never_computed_with() {
    for rules in ["", "allow Bash(git status:*)", "accept-edits"] {
        let desk = desk(rules);
        for command in [
            "[[ $(<evil) -eq 0 ]]",
            "while [[ $(<evil) -eq 1 ]]; do git status; done",
            "x=$(<evil); (( x )); git status",
            "e=\"$(<evil)\"; (( e > 0 )) && git status",
            "e=`<evil`; git status $((e))",
            "e=$(<evil); git status ${x[e]}",
            "e=$(<evil); git status ${PWD:e}",
            "e=$(<evil); x[e]=1; git status",
            "for f in a*; do (( f )); done; git status",
            "x=(a*); (( x )); git status",
            "for f in a*; do [[ $f -eq 0 ]]; done; git status",
            "git status ${PWD:a}",
            "[[ -v $x ]] && git status",
            "> out",
            "$(<evil)",
        ] {
            begins(&desk.bash(command).await, "asked: ", command);
        }
    }
}

#[tokio::test]
async fn a_program_that_is_only_called_like_a_launcher_needs_a_rule_of_its_own() {
    let desk = desk("allow Bash(git status:*)");
    for command in [
        "./nohup git status",
        "./env git status",
        "./sh -c 'git status'",
        "./xargs git status",
        "./time git status",
        "out/link/nohup git status",
        "/tmp/timeout 5 git status",
        "../bin/nice git status",
    ] {
        begins(&desk.bash(command).await, "asked: ", command);
    }
    for command in ["nohup git status", "/usr/bin/timeout 5 git status"] {
        assert_eq!(desk.bash(command).await, "runs", "{command}");
    }
}

#[tokio::test]
async fn write_and_edit_name_the_same_subject() {
    for name in ["Write", "Edit"] {
        let desk = desk(&format!("bypass\n deny {name}(secret/**)\n ask {name}(asked/**)"));
        for tool in ["Write", "Edit"] {
            begins(&desk.file(tool, "secret/x").await, "refused: ", tool);
        }
        begins(&desk.bash("echo B > secret/x").await, "refused: ", name);
        let desk = self::desk(&format!("allow Bash(echo:*)\n allow {name}(out/**)\n ask {name}(out/asked)"));
        for tool in ["Write", "Edit"] {
            assert_eq!(desk.file(tool, "out/x").await, "runs", "{name} {tool}");
            begins(&desk.file(tool, "out/asked").await, "asked: ", tool);
        }
        assert_eq!(desk.bash("echo B > out/x").await, "runs", "{name}");
        begins(&desk.bash("echo B > out/asked").await, "asked: ", name);
    }
}

#[tokio::test]
async fn values_are_never_evaluated_by_commands_that_a_rule_allows() {
    let desk = desk(
        "allow Bash(test:*)\n allow Bash([:*)\n allow Bash(printf:*)\n allow Bash(unset:*)\n allow Bash(declare:*)\n \
         allow Bash(read:*)\n allow Bash(mapfile:*)\n allow Bash(wait:*)\n allow Bash(readonly:*)",
    );
    for command in [
        "test -v \"$x\"",
        "[ \"$x\" \"$y\" ]",
        "[ $x ]",
        "printf \"$x\"",
        "printf -v \"$x\" y",
        "unset \"$x\"",
        "unset a[x]",
        "wait $x",
        "declare -i x=y",
        "declare -a x='($(rm y))'",
        "declare x=\"$(<evil)\"",
        "readonly x='([a]=1)'",
        "read x; (( x ))",
        "mapfile x; test $((x))",
        "printf '%s' $((RANDOM))",
        "for ((i = 0; i < 3; i++)); do test -f x; done",
    ] {
        begins(&desk.bash(command).await, "asked: ", command);
    }
    for command in
        ["test -f \"$x\"", "[ \"$x\" = y ]", "printf '%s' \"$x\"", "declare x=1", "wait $!", "test $((1 + 2)) = 3"]
    {
        let outcome = desk.bash(command).await;
        assert!(outcome == "runs" || command.contains("$((1"), "{command}: {outcome}");
    }
}

#[tokio::test]
async fn an_option_given_twice_is_not_guessed_at() {
    let desk = desk("allow Bash(git status:*)");
    for command in [
        "xargs -I foo -I status git status",
        "xargs -Ifoo -Istatus git status",
        "xargs -I foo -n 1 git status",
        "xargs -i git status",
        "xargs --replace=status git status",
        "nice -n 1 -n 2 git status",
        "timeout -s INT -s KILL 5 git status",
    ] {
        begins(&desk.bash(command).await, "asked: ", command);
    }
    for command in ["xargs -I foo git status foo", "xargs -n 1 -P 2 git status", "nice -n 1 git status"] {
        assert_eq!(desk.bash(command).await, "runs", "{command}");
    }
}

#[tokio::test]
async fn a_function_does_not_take_the_place_of_an_allowed_command() {
    let desk = desk("allow Bash(git status:*)\n allow Bash(echo:*)");
    for command in [
        "git() { git status | git status; }",
        "git() { echo x; }; git status",
        "function git { echo x; }; git status",
        "function git () { echo x; }; nohup git status",
        "eval() { echo x; }; eval git status",
        "sh -c 'git() { echo x; }; git status'",
        "git status; git() { echo x; }",
    ] {
        begins(&desk.bash(command).await, "asked: ", command);
    }
    assert_eq!(desk.bash("unused() { echo x; }; git status").await, "runs");
}

#[tokio::test]
async fn what_programs_run_for_their_arguments_is_no_way_around_a_deny_rule() {
    let desk = desk("bypass\n deny Bash(rm:*)");
    for command in [
        "rbash -c 'rm x'",
        "zsh -c 'rm x'",
        "jobs -x rm x",
        "flock f rm x",
        "setarch x86_64 rm x",
        "linux32 rm x",
        "linux64 rm x",
        "chrt 1 rm x",
        "ionice -c 3 rm x",
        "taskset 1 rm x",
        "ssh-agent rm x",
        "prlimit rm x",
        "setpriv rm x",
        "choom -n 0 rm x",
        "unshare rm x",
        "nsenter rm x",
        "chroot / rm x",
        "script -c 'rm x'",
        "strace rm x",
        "ltrace rm x",
        "gdb --args rm x",
        "valgrind rm x",
        "perf stat rm x",
        "catchsegv rm x",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "split --filter='rm x' f",
        "split --filt 'rm x' f",
        "tar -cf a --checkpoint-action=exec='rm x' .",
        "tar xf a --to-command='rm x'",
        "tar -I 'rm x' -xf a",
        "tar cIf 'rm x' a",
        "tar --use-compress='rm x' -xf a",
        "sed 'e rm x' f",
        "sed -n '1e rm x' f",
        "sed 's/a/rm x/e' f",
        "sed -e p -e '$!{e rm x\n}' f",
        "sed -f f",
        "awk 'BEGIN { system(\"rm x\") }'",
        "gawk 'BEGIN { print | \"rm x\" }'",
        "awk -v a=b '{ \"rm x\" | getline }'",
        "make -f -",
        "make -f- x",
        "make --file=- x",
        "make -sf /dev/stdin",
        "make --eval='x:;rm x'",
        "git -c alias.x='!rm y' x",
        "git config alias.x '!rm y'",
        "git config --global core.pager 'rm y'",
        "find . -execdir rm {} +",
        "find . -ok rm {} \\;",
        "parallel rm ::: x",
        "watch rm x",
        "doas rm x",
        "su -c 'rm x'",
        "runuser -c 'rm x'",
        "systemd-run rm x",
        "at now",
        "batch",
        "crontab f",
        "./nohup rm x",
        "out/sh -c 'rm x'",
    ] {
        begins(&desk.bash(command).await, "refused: ", command);
    }
    for command in [
        "sed -n '1,20p' f",
        "sed -i 's/here/there/g; /x/d' f",
        "sed -E 's#a/b#c#' f",
        "awk -F: '{ print $1 }' f",
        "awk '/a/ || /b/' f",
        "tar -xzf out/INDEX.tar.gz",
        "make -j4 -f Makefile test",
        "git config --get user.name",
        "git config user.name x",
        "split -l 10 f",
        "jobs -l",
    ] {
        assert_eq!(desk.bash(command).await, "runs", "{command}");
    }
}

#[tokio::test]
async fn where_programs_are_looked_for_is_not_changed_unasked() {
    let desk = desk("allow Bash(git status:*)\n allow Bash(read:*)\n allow Bash(printf:*)\n allow Bash(unset:*)");
    for command in [
        "PATH=. git status",
        "PATH=. nohup git status",
        "PATH=.; nohup git status",
        "env PATH=. git status",
        "env PATH=. nohup git status",
        "nohup env PATH=. git status",
        "BASH_ENV=x sh -c 'git status'",
        "export PATH=.; git status",
        "declare PATH=.; git status",
        "read PATH; git status",
        "printf -v PATH .; git status",
        "unset PATH; git status",
        "for PATH in .; do git status; done",
        "git status ${PATH:=.}",
        "(( PATH = 1 )); git status",
        "hash -p ./x git; git status",
        "/usr/bin/../../work/nohup git status",
        "~/bin/nohup git status",
        "/bin//nohup git status",
    ] {
        begins(&desk.bash(command).await, "asked: ", command);
    }
}
