//! What is read of a command line: commands, files, doubts.

use super::second_opinion::Dice;
use super::{Access, Command, Doubt, Reading, Runs, read};

/// The commands, then files as `<path` and `>path`, then `?` for an unseen and `~` for an unsettled doubt.
fn shown(text: &str) -> String {
    let Reading { commands, files, doubts, .. } = read(text);
    let files = files.iter().map(|file| {
        let sign = if file.access == Access::Read { '<' } else { '>' };
        format!("{sign}{}", file.path.as_deref().unwrap_or("?"))
    });
    let doubts = doubts.iter().map(|doubt| if matches!(doubt, Doubt::Unseen(_)) { "?" } else { "~" }.to_owned());
    commands.iter().map(command_shown).chain(files).chain(doubts).collect::<Vec<_>>().join(" | ")
}

fn command_shown(command: &Command) -> String {
    let words: Vec<&str> = command
        .words
        .iter()
        .map(|word| word.literal().unwrap_or("*"))
        .chain(command.settings.iter().map(|_| "(set)"))
        .collect();
    let words = words.join(" ");
    match &command.runs {
        Runs::Itself => words,
        Runs::Unseen(_) => format!("{words} !"),
        Runs::Others { commands, .. } => {
            let inner: Vec<String> = commands.iter().map(command_shown).collect();
            format!("{words} {{{}}}", inner.join(", "))
        }
    }
}

#[track_caller]
fn check(text: &str, expect: &str) {
    assert_eq!(shown(text), expect, "{text}");
}

#[test]
fn lists_and_pipelines() {
    check("git status", "git status");
    check("git status && rm -rf x", "git status | rm -rf x");
    check("a; b & c || d |& e", "a | b | c | d | e");
    check("! a | b", "a | b");
    check("time -p a x; time b", "a x | b");
    check("a &&\n b # c; d\n\n e", "a | b | e");
    check("a \\\n b", "a b");
    check("a\nb", "a | b");
    check("a &", "a");
    check("", "");
    check("# only a comment", "");
}

#[test]
fn compound_commands() {
    check("(a; b); { c; d; }", "a | b | c | d");
    check("if a; then b; elif c; then d; else e; fi", "a | b | c | d | e");
    check("while a; do b; done; until c\ndo d; done", "a | b | c | d");
    check("for x in 1 $(a); do b $x; done", "a | b *");
    check("for ((i = 0; i < 3; i++)); do a; done", "a | ?");
    check("for ((;;)); do a; done", "a");
    check("case $x in a|b) c;; (d) e;& *) f;; esac", "c | e | f");
    check("f() { a; }; f", "a | f | ~");
    check("function g { a; }\nh x", "a | h x");
    check("[[ -f x && ( $y == z* || ! -d w ) ]] && a", "a");
    check("((i++)); ((x[i + 1] = 16#ff * (a - -b))); a", "a | ?");
    check("((x[1] = 1)); a", "a | ?");
    check("((1 + 2 * (3 - -4))); a", "a");
    check("if [ -f x ]; then a; fi > out", "[ -f x ] | a | >out");
    check("{ echo a }", "echo a } | ?");
    check("select x in a b; do c; done", "c");
}

#[test]
fn substitutions_at_any_depth() {
    check("echo $(rm x)", "rm x | echo *");
    check("echo `rm x`", "rm x | echo *");
    check("echo \"a $(b \"$(c)\")\"", "c | b * | echo *");
    check("echo ${x:-$(rm y)} ${y/a/`b`}", "rm y | b | echo * *");
    check("diff <(a) >(b)", "a | b | diff * *");
    check("x=$(rm y)", "rm y");
    check("x=(a $(b)); c", "b | c");
    check("echo $((1 + 2 * (3 - 4)))", "echo *");
    check("echo \"${arr[@]}\" ${#x} $? ${x%.*} ${x:1:2}", "echo * * * * *");
    check("echo '$(rm x)' \\$\\(rm\\) \"\\$(rm x)\"", "echo $(rm x) $(rm) $(rm x)");
    check("$(echo rm) x", "echo rm | * x !");
    check("cat < <(a)", "a | cat | <?");
    check("a $(case x in y) b;; esac)", "b | a *");
    check("a $(b # a ) comment\n c)", "b | c | a *");
}

#[test]
fn here_documents() {
    check("cat <<EOF | sh\nrm x\nEOF", "cat | sh !");
    check("cat <<EOF\n$(rm x) `rm y` \\$(no)\nEOF", "cat | rm x | rm y");
    check("cat <<'EOF'\n$(rm x)\nEOF\na", "cat | a");
    check("cat <<-EOF && b\n\ttext\n\tEOF\na", "cat | b | a");
    check("cat <<A <<B\n1\nA\n2\nB\na", "cat | a");
    check("cat <<< \"$(rm x)\"", "rm x | cat");
    check("git commit -m \"$(cat <<'EOF'\nit's (done)\n\nEOF\n)\"", "cat | git commit -m *");
    check("cat <<EOF\ntext", "cat | ?");
    check("cat <<EOF\na\\\nEOF\nEOF", "cat | ?");
    check("cat <<EOF $(a\nb)\nEOF", "a | ?");
    check("cat <<EOF 'x\ny'\nEOF", "?");
}

#[test]
fn words_and_their_quotes() {
    check("\\rm x; 'r'm y; \"rm\" z; r'm' w", "rm x | rm y | rm z | rm w");
    check("a *.rs ~/x {b,c} {1..3} [ab] {} HEAD@{1}", "a * * * * * {} HEAD@{1}");
    check("a $'b' $'\\x72m' $\"c\"", "a b * *");
    check("a 日本 'ü' 🦀", "a 日本 ü 🦀");
    check("a --x=\"y z\"", "a --x=y z");
    check("$x a; ${x} a; ~/bin/x a; r? a; {a,b} c", "* a ! | * a ! | * a ! | * a ! | * c !");
    check("a=b c; a+=b; c[1]=d", "c");
    check("\"a=b\" c", "a=b c !");
}

#[test]
fn assignments() {
    check("FOO=1 cmd", "cmd (set)");
    check("foo=1 CI=1 LC_ALL=C cmd", "cmd");
    check("PATH=/tmp; ls", "ls | ~");
    check("for PATH in x; do ls; done", "ls | ~");
    check("export PATH=x; export y=1", "export PATH=x | export y=1 | ~");
    check("${PATH:=x}", "* ! | ~");
    check("while IFS= read -r line; do a; done", "read -r line | a");
    check("http_proxy=x curl", "curl (set)");
}

#[test]
fn values_of_variables_that_programs_obey() {
    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let hinted: Vec<String> = read(text).hinted.iter().map(Command::shown).collect();
        assert_eq!(hinted, expect, "{text}");
    }
    check("PS4='$(rm x)'; set -x; ls", &["rm x", "$(rm x)"]);
    check("GIT_SSH_COMMAND='rm x; y' git fetch", &["rm x", "y"]);
    check("export EDITOR='rm x'; env PAGER='rm y' man z", &["rm x", "rm y"]);
    check("foo='rm x' a; CI='rm y' b; A='(' c; B=$X d", &[]);
}

#[test]
fn redirections() {
    check("a > f 2>&1 >> g < h &> i 3<>j >| k >& l", "a | >f | >g | <h | >i | >j | >k | >l");
    check("a > /dev/null 2> /dev/stderr <&- >&2 2>&1- < /dev/fd/3", "a");
    check("> f", ">f");
    check("a > $x; b > ~/y; c > /dev/tcp/h/1", "a | b | c | >? | >~/y | ~");
    check("a > $(b)", "b | a | >?");
    check("exec 3> f", "exec | >f");
    check("exec > f", "exec | >f");
    check("a {fd}> f", "?");
}

#[test]
fn launchers_of_commands() {
    check("command rm x; builtin cd; exec rm", "command rm x {rm x} | builtin cd {cd} | exec rm {rm}");
    check(
        "timeout -k 1 5 nice -n 3 nohup rm",
        "timeout -k 1 5 nice -n 3 nohup rm {nice -n 3 nohup rm {nohup rm {rm}}}",
    );
    check("timeout $t rm; timeout --odd 5 rm", "timeout * rm ! | timeout --odd 5 rm !");
    check("command -v rm", "command -v rm");
    check("env rm; env A=1 b=2 rm; env -i rm; env", "env rm {rm} | env A=1 b=2 rm {rm (set)} | env -i rm ! | env");
    check("env a=$x rm", "env * rm !");
    check("sudo rm x; sudo -u root rm; sudo -X rm", "sudo rm x {rm x} | sudo -u root rm {rm} | sudo -X rm !");
    check("xargs rm; xargs -n 1 -0 grep x; xargs", "xargs rm {rm *} | xargs -n 1 -0 grep x {grep x *} | xargs");
    check("xargs -I {} mv {} d; xargs -I% % x", "xargs -I {} mv {} d {mv * d} | xargs -I% % x {* x !}");
    check("find . -name '*.rs'", "find . -name *.rs");
    check("find . -exec rm {} +", "find . -exec rm {} + {rm *}");
    check("find . -exec a + b \\; -ok c {} \\;", "find . -exec a + b ; -ok c {} ; {a + b, c *}");
    check("find . -delete; find $x", "find . -delete ! | find * !");
    check("sh -c 'rm x; ls'; bash -ec \"a | b\"", "sh -c rm x; ls {rm x, ls} | bash -ec a | b {a, b}");
    check("sh -c \"$x\"; sh; bash x.sh; bash -l x", "sh -c * ! | sh ! | bash x.sh | bash -l x !");
    check("eval 'rm x' y; eval $x", "eval rm x y {rm x y} | eval * !");
    check("trap 'rm x' EXIT; trap - INT", "trap rm x EXIT {rm x} | trap - INT");
    check(". x; source y; ssh h rm; watch ls; alias a=b", ". x ! | source y ! | ssh h rm ! | watch ls ! | alias a=b !");
    check("/usr/bin/env /bin/rm x", "/usr/bin/env /bin/rm x {/bin/rm x}");
    check("busybox rm x", "busybox rm x {rm x}");
    check("git -c alias.x=!rm x; git -c user.name=x commit", "git -c alias.x=!rm x ! | git -c user.name=x commit");
    check("git -C d rebase -x rm; git bisect run rm", "git -C d rebase -x rm ! | git bisect run rm !");
    check("sh -c 'sh -c \"rm $(ls)\"'", "sh -c sh -c \"rm $(ls)\" {ls, sh -c * !}");
}

#[test]
fn text_that_evaluates_itself() {
    check("x='a[$(rm y)]'; echo $((x))", "echo * | ?");
    check("f 'a[$(rm y)]'; echo $(( $1 ))", "f a[$(rm y)] | echo * | ?");
    check("x=$(cat f); [[ $x -eq 1 ]]", "cat f | ?");
    check("read x; ((x++))", "read x | ?");
    check("i=1; echo $((i + 1))", "echo * | ?");
    check("echo $(($# + $? + 1))", "echo *");
    check("test -v 'a[$(rm y)]'; printf -v 'b[`rm`]' c", "test -v a[$(rm y)] ! | printf -v b[`rm`] c !");
    check("unset 'a[$(rm y)]'; read 'a[$(rm y)]'", "unset a[$(rm y)] ! | read a[$(rm y)] !");
    check("declare -n r=PATH; let 'x=1'", "declare -n r=PATH ! | let x=1 !");
    for text in ["echo ${!x}", "echo ${x@P}", "echo $[1+1]", "echo $((`rm x`))", "echo $(( $(rm x) ))", "a[`rm`]=1"] {
        assert!(shown(text).ends_with('?'), "{text}: {}", shown(text));
    }
}

#[test]
fn what_is_outside_the_grammar() {
    for text in [
        "a | | b",
        "a &&",
        "(a",
        "a)",
        "'a",
        "\"a",
        "`a",
        "$(a",
        "${a",
        "a\\",
        "if a; then b",
        "fi",
        "a; ) b",
        "((a) )",
        "coproc a",
        "a @(b)",
        "a(b)",
        "a b()",
        "echo `a \\`b\\``",
        "$\\\n(rm x)",
        "r\\\nm x",
        "x=([0]=a)",
        "x=(a)b c",
        "a ;;",
        "((a;b))",
        "((rm x))",
        "echo $((rm x))",
        "((a)|(b))",
        "echo $((a)|(b))",
        "\"${x:-'a'}\"",
        "a\0b",
        "a\u{7}",
        "a\rb",
        "a\u{a0}b",
        "a\u{202e}b",
        "function",
        "for",
        "case x",
        "[[ a",
        "a <",
        "> ",
        "a <<",
        "99999999999>&",
    ] {
        let reading = read(text);
        assert!(matches!(reading.doubts.as_slice(), [Doubt::Unseen(_), ..]), "{text:?}: {reading:?}");
    }
    assert!(read(&"a ".repeat(8 * 1024)).doubts.is_empty());
    assert!(!read(&"a ".repeat(8 * 1024 + 1)).doubts.is_empty());
}

/// Runs on the smallest stack that any of our threads has.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1024 * 1024).spawn(work);
    thread.expect("a thread").join().expect("no panic");
}

#[test]
fn nesting_is_bounded() {
    on_a_small_stack(|| {
        for (open, close) in [
            ("$(", ")"),
            ("(", ")"),
            ("( ", " )"),
            ("{ ", ";}"),
            ("\"$(", ")\""),
            ("${x:-", "}"),
            ("$((", "))"),
            ("<(", ")"),
            ("if ", ";then a;fi"),
            ("while ", ";do a;done"),
            ("for i in a;do ", ";done"),
            ("case x in a) ", ";;esac"),
            ("f(){ ", ";}"),
            ("function f { ", ";}"),
            ("nohup ", ""),
            ("! ", ""),
            ("a[", "]"),
            ("[[ ! ( ", " ) ]]"),
            ("xargs ", ""),
            ("env ", ""),
            ("sh -c 'a' | ", ""),
            ("x=(", ")"),
            ("f() ", ""),
            ("time ", ""),
            ("if a; then b; elif ", ""),
            ("eval ", ""),
            ("<<a\n", ""),
            ("{", "}"),
            ("'", ""),
            ("\"", ""),
            ("\\", ""),
            ("$", ""),
            ("find . -exec ", ""),
        ] {
            for count in [10, 60, 70, 1000, 5000] {
                for closes in [count, count / 2, 0] {
                    let text = format!("echo {}x{}", open.repeat(count), close.repeat(closes));
                    read(&text);
                    read(&text["echo ".len()..]);
                }
            }
        }
        let deep = |count: usize| read(&format!("{}a{}", "$(".repeat(count), ")".repeat(count)));
        assert!(deep(30).doubts.is_empty());
        assert!(!deep(100).doubts.is_empty());
    });
}

#[test]
fn ten_thousand_mutations_are_read_without_harm() {
    const SEEDS: [&str; 12] = [
        "git status && rm -rf x | tee \"$(cat <<'EOF'\nit's\nEOF\n)\" > out 2>&1",
        "for f in *.rs; do [[ -f $f ]] && sed -i 's/a/b/' \"$f\"; done",
        "case \"$1\" in a|b) echo $((1+2*(3))) ;; *) exit 1 ;; esac",
        "find . -name '*.o' -exec rm {} + ; xargs -0 -I{} sh -c 'echo {}'",
        "FOO=1 BAR=\"x y\" env -i cmd --a=b ${x:-${y/z/w}} <(ls) `date`",
        "if ! grep -q x f; then { a; b; } 2>/dev/null; else (c; d) & fi",
        "x=(1 2 $(seq 3)); echo \"${x[@]}\" ${#x} ${x[1]}; f() { return; }",
        "cat <<-A <<\"B\"\n\t$x\n\tA\n$(no)\nB\necho done",
        "timeout 5 nohup bash -c \"eval 'rm x'; trap 'y' EXIT\" <<< $'a\\tb'",
        "while read -r l; do ((i++)); printf '%s\\n' \"$l\"; done < in > out",
        "a[1]=2; b+=c; ((i=0, j<3)); for ((;;)); do break; done",
        "select x in a; do :; done; until a; do b; done; time -p c",
    ];
    const PIECES: [&str; 34] = [
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "${",
        "}",
        "((",
        "))",
        "<<",
        "<<EOF\n",
        "\nEOF\n",
        "|",
        "&&",
        ";;",
        ";",
        "\\",
        "\n",
        "#",
        "(",
        "{ ",
        "[[ ",
        " ]]",
        "if ",
        "fi",
        "case x in",
        "esac",
        "do ",
        "done",
        "$",
        "~",
        "99999999999>",
        "日",
        "\u{0}",
    ];
    on_a_small_stack(|| {
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
        for _ in 0..10_000 {
            let mut text: Vec<char> = SEEDS[dice.roll(SEEDS.len())].chars().collect();
            for _ in 0..=dice.roll(8) {
                let at = dice.roll(text.len() + 1);
                match dice.roll(4) {
                    0 => drop(text.splice(at..at, PIECES[dice.roll(PIECES.len())].chars())),
                    1 => drop(text.drain(at..(at + dice.roll(6)).min(text.len()))),
                    2 => drop(text.splice(at..at, SEEDS[dice.roll(SEEDS.len())].chars())),
                    _ => {
                        let piece: Vec<char> = PIECES[dice.roll(PIECES.len())].chars().collect();
                        for _ in 0..dice.roll(200) {
                            text.splice(at..at, piece.iter().copied());
                        }
                    }
                }
            }
            let text: String = text.into_iter().collect();
            read(&text);
        }
    });
}
