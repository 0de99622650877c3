//! From the options of `peri acp` to the agent that is served.

use super::{end, persistence, told};
use crate::acp::{self, Traffic};
use crate::args::AcpArgs;
use crate::composition::overlay::{self, RunOptions};
use crate::composition::{Environment, Host, HostPlan, PlaceChoice, Places, system_ids};
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::signals::{StopSignals, leave_at_once};

/// Serves a client until it goes away.
pub(super) async fn run(args: &AcpArgs, checked: Result<(), Failure>, console: &mut Console) -> Exit {
    let (host, mut signals) = match checked.and_then(|()| prepare(args)) {
        Ok(prepared) => prepared,
        Err(failure) => return told(console, failure).await,
    };
    let traffic = if args.verbose { Traffic::Told } else { Traffic::Silent };
    let exit = acp::serve(&host, traffic, console, &mut signals).await;
    tokio::select! {
        biased;
        signal = signals.next() => leave_at_once(signal),
        () = end(host, console) => exit,
    }
}

fn prepare(args: &AcpArgs) -> Result<(Host, StopSignals), Failure> {
    let choice = PlaceChoice {
        cwd: None,
        config_file: args.settings.config_file.as_deref(),
        db_path: args.store.db_path.as_deref(),
    };
    let places = Places::find(choice, Environment::Process)?;
    let overlay = overlay::of_run(options_of(args), places.start_dir())?;
    let signals = StopSignals::listen().map_err(|error| Failure::run(format!("signals cannot be taken: {error}")))?;
    let persistence = persistence(args.no_session_persistence);
    let host = Host::start(HostPlan { places, overlay, persistence, ids: system_ids()? })?;
    Ok((host, signals))
}

fn options_of(args: &AcpArgs) -> RunOptions<'_> {
    RunOptions {
        model: &args.model,
        permission: &args.permission,
        trust_workspace: args.trust_workspace,
        settings: &args.settings,
    }
}
