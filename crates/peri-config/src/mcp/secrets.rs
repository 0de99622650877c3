//! Which texts of a server are secrets, so that what the server says can be shown without them.
//!
//! Owns: the parts of a value that a server may repeat by themselves. Must not: take a text out of another; whoever shows
//! one does. Invariants: what stands for a secret in the settings is one, whole and in those parts; the name of a place is
//! none, since it is in half of all that is shown.

use peri_acp_types::ports::{HeaderValue, McpTransport, Secret};

use super::McpServer;

/// Words of a name whose value is a secret.
const SECRET_WORDS: [&str; 15] = [
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "credential",
    "credentials",
    "key",
    "pass",
    "passwd",
    "password",
    "pat",
    "pwd",
    "secret",
    "sig",
    "token",
];
/// Last words of a name whose value says where something is, or who one is.
const PLACE_WORDS: [&str; 16] = [
    "dir", "file", "folder", "home", "host", "hostname", "lang", "logname", "path", "port", "root", "shell", "temp",
    "tmp", "tmpdir", "user",
];
/// What shells call the folder that they are in.
const WORKING_DIRECTORIES: [&str; 2] = ["PWD", "OLDPWD"];
/// Shorter ones are words of the language, or of a command line.
const LEAST_PART_BYTES: usize = 8;

impl McpServer {
    /// What must not be shown of what is said about this server, whether it is enabled or not: all of
    /// [`McpServer::secrets_of`], and what the variables hold that its texts name.
    pub fn secrets(&self) -> impl Iterator<Item = Secret> + '_ {
        self.secrets.iter().cloned()
    }

    /// What must not be shown of what a server says, as far as the way to it tells: the values of its variables and
    /// headers; the parts of them that a server may repeat alone, such as what is behind `Bearer`; and what is plainly a
    /// secret in its arguments and its address. Of a builtin server nothing: it repeats what it is asked to.
    pub fn secrets_of(transport: &McpTransport) -> Vec<Secret> {
        let mut found = Found::default();
        match transport {
            McpTransport::Builtin(_) => {}
            McpTransport::Stdio { command: _, args, env } => {
                env.values().for_each(|value| found.value(value.reveal()));
                found.arguments(args);
            }
            McpTransport::Http { url, headers } => {
                for (_, value) in headers {
                    if let HeaderValue::Secret(value) = value {
                        found.header(value.reveal());
                    }
                }
                found.address(url);
            }
        }
        found.0
    }
}

/// What a variable holds that is named in a server's texts, as secrets.
pub(super) fn secrets_of_variable(name: &str, value: &str) -> Vec<Secret> {
    let mut found = Found::default();
    let is_place =
        WORKING_DIRECTORIES.contains(&name) || words_of(name).last().is_some_and(|word| PLACE_WORDS.contains(&&**word));
    if !is_place {
        found.value(value);
    }
    found.0
}

#[derive(Default)]
struct Found(Vec<Secret>);

impl Found {
    fn add(&mut self, text: &str) {
        let text = text.trim();
        if text.len() >= LEAST_PART_BYTES && self.0.iter().all(|known| known.reveal() != text) {
            self.0.push(Secret::new(text));
        }
    }

    /// A value, and of one that has several lines or words those that are no words of a language.
    fn value(&mut self, value: &str) {
        self.add(value);
        self.parts(value, |c| c.is_whitespace() || matches!(c, '"' | '\''));
    }

    /// Also what is behind the scheme, whatever it looks like.
    fn header(&mut self, value: &str) {
        self.add(value);
        if let Some((_scheme, rest)) = value.trim().split_once(' ') {
            self.add(rest);
        }
        self.parts(value, |c| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | ';'));
    }

    fn parts(&mut self, value: &str, is_border: impl Fn(char) -> bool) {
        for part in value.split(is_border).filter(|part| part.contains(|c: char| c.is_ascii_digit())) {
            self.add(part);
        }
    }

    /// Values of flags and of `NAME=VALUE` whose name says it; headers; addresses.
    fn arguments(&mut self, args: &[String]) {
        let mut before = "";
        for arg in args {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) if !name.contains(char::is_whitespace) => (name, value),
                _ => (before, arg.as_str()),
            };
            if matches!(name, "-H" | "--header") {
                self.header(value.split_once(':').map_or(value, |(_name, value)| value));
            } else if says_secret(name) && !value.starts_with("--") {
                self.value(value);
            }
            self.address(arg);
            before = if arg.starts_with('-') { arg } else { "" };
        }
    }

    /// The password, or whoever stands alone in its place, and what a query holds besides words of a language.
    fn address(&mut self, url: &str) {
        let Some((_scheme, rest)) = url.split_once("://") else { return };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = place.split('/').next().unwrap_or_default();
        if let Some((who, _host)) = authority.rsplit_once('@') {
            self.add(who.split_once(':').map_or(who, |(_user, password)| password));
        }
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or(("", pair));
            if says_secret(name) || value.contains(|c: char| c.is_ascii_digit()) {
                self.add(value);
            }
        }
    }
}

fn says_secret(name: &str) -> bool {
    let words = words_of(name);
    words.iter().any(|word| SECRET_WORDS.contains(&&**word))
        && words.last().is_some_and(|word| !PLACE_WORDS.contains(&&**word))
}

/// `--apiKey`, `API_KEY` and `api-key` are all `api`, `key`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && was_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revealed(secrets: Vec<Secret>) -> Vec<String> {
        secrets.iter().map(|secret| secret.reveal().to_owned()).collect()
    }

    #[track_caller]
    fn check_value(name: &str, value: &str, expect: &[&str]) {
        let env = [(name.to_owned(), Secret::new(value))].into();
        let transport = McpTransport::Stdio { command: "c".to_owned(), args: Vec::new(), env };
        assert_eq!(revealed(McpServer::secrets_of(&transport)), expect);
    }

    #[track_caller]
    fn check_header(value: &str, expect: &[&str]) {
        let headers = vec![("x".to_owned(), HeaderValue::Secret(Secret::new(value)))];
        let transport = McpTransport::Http { url: "https://h".to_owned(), headers };
        assert_eq!(revealed(McpServer::secrets_of(&transport)), expect, "{value}");
    }

    #[track_caller]
    fn check_args(args: &[&str], expect: &[&str]) {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let transport = McpTransport::Stdio { command: "c".to_owned(), args, env: Default::default() };
        assert_eq!(revealed(McpServer::secrets_of(&transport)), expect);
    }

    #[track_caller]
    fn check_url(url: &str, expect: &[&str]) {
        let transport = McpTransport::Http { url: url.to_owned(), headers: Vec::new() };
        assert_eq!(revealed(McpServer::secrets_of(&transport)), expect, "{url}");
    }

    #[test]
    fn values_and_their_parts() {
        check_value("A", " geheimes\n", &["geheimes"]);
        check_value("A", "short", &[]);
        check_value("A", "-----BEGIN-----\nMIIE12345\n", &["-----BEGIN-----\nMIIE12345", "MIIE12345"]);
        check_value(
            "A",
            r#"{"Authorization":"Bearer x1234567"}"#,
            &[r#"{"Authorization":"Bearer x1234567"}"#, "x1234567"],
        );
    }

    #[test]
    fn headers_and_what_is_behind_their_scheme() {
        check_header("geheimes", &["geheimes"]);
        check_header("Bearer geheimes", &["Bearer geheimes", "geheimes"]);
        check_header("Basic dXNlcjpwYXNz", &["Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"]);
        check_header("Token token=\"g1234567\"", &["Token token=\"g1234567\"", "token=\"g1234567\"", "g1234567"]);
        check_header(
            "sid=g1234567; theme=dark-mode",
            &["sid=g1234567; theme=dark-mode", "theme=dark-mode", "g1234567"],
        );
    }

    #[test]
    fn arguments_that_are_plainly_secret() {
        check_args(&["-y", "@scope/server-1.2.3", "/srv/docs-2024"], &[]);
        check_args(&["--token", "geheimes", "--verbose-output"], &["geheimes"]);
        check_args(&["--apiKey=geheimes", "-e", "GITHUB_TOKEN=geheimer"], &["geheimes", "geheimer"]);
        check_args(&["--key-file", "/etc/keys/one.pem", "--author", "somebody", "--token", "--verbose1"], &[]);
        check_args(&["--header", "Authorization: Bearer geheimes"], &["Bearer geheimes", "geheimes"]);
        check_args(&["mcp-remote", "https://u:geheimes@h/x?key=geheimer"], &["geheimer", "geheimes"]);
    }

    #[test]
    fn addresses_hold_passwords_and_keys() {
        check_url("https://h/mcp/x1234567", &[]);
        check_url("https://geheimes@h/", &["geheimes"]);
        check_url("https://u:geheimes@h/a@b", &["geheimes"]);
        check_url(
            "https://h?transport=streamable&key=geheimes&x=g1234567&g7654321",
            &["geheimes", "g1234567", "g7654321"],
        );
    }

    #[test]
    fn variables_that_name_a_place_hold_no_secret() {
        for name in ["HOME", "PWD", "CLAUDE_PROJECT_DIR", "KEY_FILE", "NODE_PATH", "projectRoot"] {
            assert_eq!(revealed(secrets_of_variable(name, "/home/someone")), [""; 0], "{name}");
        }
        for name in ["TOKEN", "DATABASE_URL", "DB_PWD", "X"] {
            assert_eq!(revealed(secrets_of_variable(name, "/home/someone")), ["/home/someone"], "{name}");
        }
    }
}
