//! The long texts of `--help`: examples, variables, exit codes, files.

pub const BEFORE: &str = "Peri reads, edits and runs things in a repository, with a model of your choice.";

pub const AFTER_SHORT: &str = "Try it without a key: peri demo. Examples, variables, files and exit codes: peri --help";

pub const AFTER_LONG: &str = "\
Examples:
  peri demo                                          watch it work; needs no key
  peri -p \"why does the build fail?\"                 read-only unless a rule allows more
  peri -p --permission-mode accept-edits --allowed-tools 'Bash(cargo test:*)' \"fix the test\"
  git diff | peri -p                                 the prompt comes from standard input
  peri -p -c \"now add a changelog line\"              go on in the last session of this directory
  peri -p --output-format json \"count the TODOs\"     for scripts: answer, usage, session_id
  peri acp                                           started by an editor: the Agent Client Protocol (peri acp --help)
  peri models; peri doctor                           what the endpoint offers; what is missing, and what to do about it
  peri sessions export ID -o session.json            a whole session, without your keys

A model:
  export ANTHROPIC_API_KEY=...                       is enough, and so is OPENAI_API_KEY; --model PROVIDER/MODEL chooses
  or name your own endpoint in settings.json (protocol: anthropic, openai-chat or openai-responses):
    {\"model\": \"mine/some-model\",
     \"providers\": {\"mine\": {\"protocol\": \"openai-chat\", \"baseUrl\": \"http://127.0.0.1:8080/v1\", \"apiKeyEnv\": \"MY_KEY\"}}}

Permission:
  Reading inside the workspace is always allowed. Whatever else a rule or the mode does not allow is refused, and the
  refusal names the option that would allow it; a print run never asks. Rules: Tool or Tool(pattern); deny wins.

Files (peri config path shows them all):
  $XDG_CONFIG_HOME/peri/settings.json                yours (~/.config without the variable)
  .peri/settings.json, .peri/settings.local.json, .mcp.json
                                                     the workspace's; see peri trust
  $XDG_DATA_HOME/peri/                               sessions and trust (~/.local/share without the variable)

Variables:
  ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_MODEL
                                                     a provider named anthropic and its model, if settings name none
  OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL      likewise, named openai
  PERI_MODEL                                         the model, over all settings files
  PERI_HOME                                          one directory for settings and data
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY                  used for other hosts than this machine
  NO_COLOR, CLICOLOR_FORCE                           colour on standard error: never, always

Exit codes:
  0  the model ended its turn          3  stopped by a limit: --max-turns, tokens, a loop
  1  failure                           129, 130, 143  hangup, interrupt, termination; no child process is left
  2  usage or settings";

pub const COMPLETIONS: &str = "\
Examples:
  peri completions bash > ~/.local/share/bash-completion/completions/peri
  peri completions zsh  > ~/.zfunc/_peri
  peri completions fish > ~/.config/fish/completions/peri.fish";

pub const TRUST: &str = "\
Examples:
  peri trust                                         shows what the workspace's files would enable, then asks
  peri trust ~/project --yes

Until a workspace is trusted, its own settings may only tighten: what they allow, run or configure is ignored.
Trust is for the files as they are now; a change of one of them voids it.";

pub const DEMO: &str = "\
Example:
  peri demo --keep                                   leaves the sample project to look at

The model is scripted: a small server in this process answers as a model would. All the rest is real: the session, the
tools, the permission rules, the edit and the test run. Your settings and sessions are not touched.";

pub const ACP_BEFORE: &str = "\
Serves a client over the Agent Client Protocol: JSON-RPC 2.0, a message a line, on standard input and output. Nothing else
is written to standard output. Editors start this command; it ends when the client closes its end, and then leaves no
session running and no child process.";

pub const ACP_SHORT: &str = "How editors start it, and what the options mean to several workspaces: peri acp --help";

pub const ACP: &str = "\
Examples:
  Zed, in settings.json:
    {\"agent_servers\": {\"Peri\": {\"type\": \"custom\", \"command\": \"peri\", \"args\": [\"acp\"]}}}
  JetBrains, in ~/.jetbrains/acp.json:
    {\"agent_servers\": {\"Peri\": {\"command\": \"/usr/local/bin/peri\", \"args\": [\"acp\"]}}}
  by hand:
    printf '%s\\n' '{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}' | peri acp

Workspaces:
  The client names the working directory of each session. Options hold for all of them. Settings files are read for each
  session: yours, and the workspace's own as far as it is trusted (peri trust). Relative paths of options start at the
  directory in which peri acp is started.

Exit codes:
  0  the client closed its end         129, 130, 143  hangup, interrupt, termination
  1  failure                           In every case turns are cancelled, sessions settled, and no child process is left
  2  usage";

pub const SESSIONS: &str = "\
Examples:
  peri sessions list
  peri sessions show 0197c2a0                        the beginning of an id will do
  peri sessions export 0197c2a0 -o session.json
  peri -p -r 0197c2a0 \"go on\"";

pub const CONFIG: &str = "\
Examples:
  peri config check                                  faults and warnings, each with its mend
  peri config show
  peri config path";

pub const SESSIONS_LIST: &str = "\
Examples:
  peri sessions list                                 those of this directory
  peri sessions list --all --limit 5                 the last five of any directory
  peri sessions list --output-format json | jq -r '.[0].session_id'";

pub const SESSIONS_SHOW: &str = "\
Example:
  peri sessions show 0197c2a0

Keys, headers and variables that the settings hold or name are replaced by [redacted], as in an export.";

pub const SESSIONS_EXPORT: &str = "\
Examples:
  peri sessions export 0197c2a0 -o session.json
  peri sessions export 0197c2a0 --output-format markdown | less

Keys, headers and variables that the settings hold or name are replaced by [redacted], eight letters or more. What else a
tool printed, or you pasted, is in the document: read it before you send it on.";

pub const SESSIONS_DELETE: &str = "\
Examples:
  peri sessions delete 0197c2a0                      shows it, then asks
  peri sessions list --all --output-format json | jq -r '.[].session_id' | xargs peri sessions delete --yes

A session that another Peri runs is deleted too; its turn ends there. Exit code 1 where a session is not there; then none
of those that were named is deleted.";

pub const CONFIG_SHOW: &str = "\
Example:
  peri config show | jq .setBy                       which file or option set what";

pub const CONFIG_PATH: &str = "\
Example:
  $EDITOR \"$(peri config path | sed -n 's/^user settings *//; s/  (not there)$//; 1p')\"";

pub const CONFIG_CHECK: &str = "\
Examples:
  peri config check                                  faults and warnings, each with its mend
  peri doctor                                        asks the endpoint as well";

pub const MAN: &str = "\
Examples:
  peri man | man -l -
  peri man sessions export | man -l -
  peri man --output-dir ~/.local/share/man/man1";

pub const MODELS: &str = "\
Examples:
  peri models                                        those of the chosen model's provider; * marks the chosen one
  peri models mine --output-format json | jq -r '.models[].id'

What the settings state of a model (contextWindow, maxOutputTokens) wins over what the endpoint says of it.";

pub const DOCTOR: &str = "\
Examples:
  peri doctor                                        each line: ok, warning or fault, with what to do about it
  peri doctor --model mine/other-model
  peri doctor --output-format json | jq '.checks[] | select(.level == \"fault\")'

The endpoint is asked for its list of models; nothing is sent to a model, and no MCP server is started. Exit code 1 if
there is a fault.";
