//! The pipes of a command's standard streams.
//!
//! Owns: making them, and which end is whose. Invariant: the command's ends are blocking, as programs expect; ours are not.

use std::io;
use std::os::fd::OwnedFd;

use peri_acp_types::ports::{ProcessOutput, ProcessSpec, ProcessStdin};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::{Receiver, Sender};

/// Our ends.
pub(crate) struct OurEnds {
    pub stdin: Option<Sender>,
    pub stdout: Option<Receiver>,
    pub stderr: Option<Receiver>,
}

/// Makes the pipes that `spec` asks for: our ends, and the command's in the order input, output, error.
///
/// # Errors
/// Where no descriptor is free.
pub(crate) fn open(spec: &ProcessSpec) -> io::Result<(OurEnds, Vec<OwnedFd>)> {
    let mut theirs = Vec::new();
    let stdin = match spec.stdin {
        ProcessStdin::Null => None,
        ProcessStdin::Piped => {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            theirs.push(read);
            Some(Sender::from_owned_fd(write)?)
        }
    };
    let mut output = || {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        theirs.push(write);
        Receiver::from_owned_fd(read)
    };
    let stdout = Some(output()?);
    let stderr = match spec.output {
        ProcessOutput::Merged => None,
        ProcessOutput::Separate => Some(output()?),
    };
    Ok((OurEnds { stdin, stdout, stderr }, theirs))
}
