//! `peri demo`: a real print run on a small sample project, with a scripted model.
//!
//! Owns: the sample, the script, and what is told around the run. Must not: touch the user's settings, sessions or trust,
//! or run anything by another way than a print run does.
//! Invariant: it succeeds only if the sample's tests pass after the run, by a test run of its own.

mod endpoint;
mod project;
mod script;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use peri_acp_types::PermissionMode;
use peri_config::{CommandLineOverlay, SettingsArgument};
use serde_json::json;
use tempfile::TempDir;

use crate::composition::{Environment, Host, HostPlan, Persistence, Places, system_ids};
use crate::console::{Console, Tone};
use crate::exit::{Exit, Failure};
use crate::print::{self, ChosenBy, Format, Intake, PrintJob, SessionChoice, Surroundings, WorkDir};
use crate::signals::StopSignals;
use endpoint::Endpoint;
use project::{SampleProject, TEST_COMMAND};

/// What becomes of the sample project.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Afterwards {
    Remove,
    Keep,
}

/// Runs the demo and says how the process should exit.
pub async fn run(afterwards: Afterwards, console: &mut Console) -> Exit {
    match perform(afterwards, console).await {
        Ok(exit) => exit,
        Err(failure) => {
            console.failure(&failure).await;
            failure.exit
        }
    }
}

async fn perform(afterwards: Afterwards, console: &mut Console) -> Result<Exit, Failure> {
    let folder = tempfile::Builder::new().prefix("peri-demo-").tempdir().map_err(|error| {
        Failure::run(format!("no temporary folder can be made: {error}"))
            .hint("set TMPDIR to a folder that can be written")
    })?;
    let stage =
        Stage::set(&folder).await.map_err(|error| Failure::run(format!("the demo cannot be set up: {error}")))?;
    introduce(&stage, console).await?;
    let exit = stage.play(console).await?;
    let passed = conclude(&stage.project, console).await?;
    if afterwards == Afterwards::Keep {
        let kept = folder.keep();
        say(console, &format!("\nThe sample project is in {}", kept.join("sample").display())).await;
    }
    Ok(match (exit, passed) {
        (Exit::Success, true) => {
            say(console, OWN_ENDPOINT).await;
            Exit::Success
        }
        (Exit::Success, false) => Exit::Failure,
        (exit, _) => exit,
    })
}

/// Everything that the run needs.
struct Stage {
    project: SampleProject,
    endpoint: Endpoint,
    environment: Environment,
}

impl Stage {
    async fn set(folder: &TempDir) -> io::Result<Stage> {
        // The temporary folder may lie behind a link; the script names files as the session does.
        let folder = folder.path().canonicalize()?;
        let project = SampleProject::write(folder.join("sample"))?;
        let endpoint = Endpoint::start(project.root().display().to_string()).await?;
        let variables = BTreeMap::from([("PERI_HOME".to_owned(), folder.join("peri").display().to_string())]);
        Ok(Stage { project, endpoint, environment: Environment::Fixed(Arc::new(variables)) })
    }

    /// A print run like any other, with the options that the introduction shows.
    async fn play(&self, console: &mut Console) -> Result<Exit, Failure> {
        let places = Places::of_directory(self.project.root(), self.environment.clone())?;
        let mut signals =
            StopSignals::listen().map_err(|error| Failure::run(format!("signals cannot be taken: {error}")))?;
        let ids = system_ids()?;
        let work_dir = WorkDir { path: places.cwd().to_owned(), chosen: ChosenBy::Option };
        let host = Host::start(HostPlan {
            places,
            overlay: self.overlay(),
            persistence: Persistence::Kept,
            ids: ids.clone(),
        })?;
        let job = PrintJob {
            input: Intake::of_prompt(script::PROMPT.to_owned()),
            session: SessionChoice::New(None),
            work_dir,
            format: Format::Text,
        };
        let around = Surroundings { console, signals: &mut signals, ids, processes: host.processes() };
        let exit = print::print(job, host.connect(), around).await;
        for trouble in host.end().await {
            console.notice(&trouble).await;
        }
        Ok(exit)
    }

    fn overlay(&self) -> CommandLineOverlay {
        let settings = json!({"providers": {"demo": {"protocol": "anthropic", "baseUrl": self.endpoint.base_url()}}});
        CommandLineOverlay {
            settings: Some(SettingsArgument::Inline(settings.to_string())),
            model: Some(format!("demo/{}", script::MODEL)),
            permission_mode: Some(PermissionMode::AcceptEdits),
            allowed_tools: vec![format!("Bash({TEST_COMMAND})")],
            ..CommandLineOverlay::default()
        }
    }
}

async fn introduce(stage: &Stage, console: &mut Console) -> Result<(), Failure> {
    let tests = stage.project.run_tests().map_err(no_shell)?;
    let intro = format!(
        "Peri demo. The model is SCRIPTED: a small server in this process ({}) gives prepared answers.\n\
         All the rest is real: the session, the tools, the permission rules, the edit, the test run.\n\
         \n\
         A sample project was written to {}. Its tests fail:\n\n{}\n\
         $ peri -p --permission-mode accept-edits --allowed-tools 'Bash({TEST_COMMAND})' \"{}\"\n",
        stage.endpoint.base_url(),
        stage.project.root().display(),
        indented(&tests.output),
        script::PROMPT,
    );
    say(console, &intro).await;
    Ok(())
}

/// Shows what changed, and runs the tests: their word counts, not the model's.
async fn conclude(project: &SampleProject, console: &mut Console) -> Result<bool, Failure> {
    let diff = project.diff().map_err(|error| Failure::run(format!("the sample cannot be read: {error}")))?;
    let tests = project.run_tests().map_err(no_shell)?;
    say(console, &format!("\nWhat changed:\n\n{}\n", indented(&diff))).await;
    say(console, &format!("The sample's tests, run once more by this demo:\n\n{}", indented(&tests.output))).await;
    match tests.passed {
        true => console.progress(Tone::Good, "The tests pass.").await,
        false => console.failure(&Failure::run("the sample's tests still fail")).await,
    }
    Ok(tests.passed)
}

const OWN_ENDPOINT: &str = "
Your turn, in a repository of yours:

  export ANTHROPIC_API_KEY=...
  peri -p \"why does the build fail?\"

or with an endpoint of your own, in ~/.config/peri/settings.json:

  {\"model\": \"mine/some-model\",
   \"providers\": {\"mine\": {\"protocol\": \"anthropic\", \"baseUrl\": \"http://127.0.0.1:18080\", \"apiKeyEnv\": \"MY_KEY\"}}}
";

fn no_shell(error: io::Error) -> Failure {
    Failure::run(format!("`sh` cannot be started: {error}")).hint("the demo needs a POSIX shell in PATH")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// A reader that is gone needs no demo; the exit code still tells how it went.
async fn say(console: &mut Console, text: &str) {
    drop(console.text(text).await);
}
