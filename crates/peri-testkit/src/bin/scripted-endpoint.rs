//! A scripted model endpoint in a process of its own, for benchmarks and for tests that kill things.
//!
//! `scripted-endpoint --script FILE [--log FILE]` prints its port as one line on standard output and serves until its
//! standard input ends (or it is killed). The script's form is that of `peri_testkit::model_server::ScriptFile`; the log
//! has a JSON object a line for each request, written before the request is answered.

use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

use peri_testkit::model_server::{CapturedRequest, FakeModelServer, ScriptFile};
use serde_json::json;

const USAGE: &str = "usage: scripted-endpoint --script FILE [--log FILE]";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("scripted-endpoint: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let (script, log) = parse(arguments)?;
    let json = std::fs::read(&script).map_err(|error| format!("cannot read {script}: {error}"))?;
    let script = ScriptFile::parse(&json).map_err(|error| format!("{script}: {error}"))?;
    let log = log.map(|path| File::create(&path).map_err(|error| format!("cannot write {path}: {error}")));
    let log = log.transpose()?.map(Mutex::new);
    let server = FakeModelServer::observed(script, move |request| {
        if let Some(log) = &log {
            write_line(log, request);
        }
    });
    println!("{}", server.port());
    // The end of standard input is the end of whoever started us.
    let mut until_end = Vec::new();
    std::io::stdin().read_to_end(&mut until_end).map_err(|error| error.to_string())?;
    Ok(())
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<(String, Option<String>), String> {
    let (mut script, mut log) = (None, None);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match option.as_str() {
            "--script" => script = Some(value),
            "--log" => log = Some(value),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok((script.ok_or(USAGE)?, log))
}

fn write_line(log: &Mutex<File>, request: &CapturedRequest) {
    let since_1970 = request.arrived_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let line = json!({
        "at_us": u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX),
        "number": request.number,
        "connection": request.connection,
        "method": request.method,
        "path": request.path,
        "body": request.json,
    });
    let mut log = log.lock().expect("no writer panicked");
    writeln!(log, "{line}").and_then(|()| log.flush()).expect("the log can be written");
}
