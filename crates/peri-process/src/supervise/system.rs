//! The three things for which the system has no safe call: fork, signal dispositions, and closing what was inherited.
//!
//! Owns: all unsafe code of this crate. Must not: be called outside the supervisor and its forks, which have one thread.

use std::io;
use std::os::fd::RawFd;

use nix::libc;
use nix::unistd::ForkResult;
use rustix::process::Pid;

/// Which side of a fork this is.
pub(super) enum Forked {
    Parent(Pid),
    Child,
}

/// Splits this process in two.
///
/// # Errors
/// Where the system has no room for another process.
pub(super) fn fork() -> io::Result<Forked> {
    #[expect(unsafe_code, reason = "fork is unsafe since only the calling thread lives on in the child")]
    // SAFETY: the supervisor has made sure at its start that it has one thread, and neither it nor its forks make another.
    let forked = unsafe { nix::unistd::fork() }?;
    match forked {
        ForkResult::Child => Ok(Forked::Child),
        ForkResult::Parent { child } => {
            Pid::from_raw(child.as_raw()).map(Forked::Parent).ok_or_else(|| io::Error::other("fork gave no process id"))
        }
    }
}

/// Sets every signal back to its default action, whatever peri's own parent had ignored.
pub(super) fn reset_dispositions() {
    for signal in 1..=libc::SIGRTMAX() {
        #[expect(unsafe_code, reason = "setting a handler is unsafe, the default action is not a handler")]
        // SAFETY: no handler is installed. Numbers that cannot be set (SIGKILL, SIGSTOP, those of the C library) are refused.
        unsafe {
            libc::signal(signal, libc::SIG_DFL)
        };
    }
}

/// Closes every descriptor but the standard ones.
///
/// # Errors
/// Where `/proc` cannot be read.
pub(super) fn close_inherited() -> io::Result<()> {
    let inherited: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > libc::STDERR_FILENO)
        .collect();
    for descriptor in inherited {
        #[expect(unsafe_code, reason = "closing by number is unsafe where somebody owns the number")]
        // SAFETY: this is the first thing that the supervisor does, so nothing in this process owns a descriptor yet. The
        // one that listed them is among the numbers and already closed: the call refuses it.
        unsafe {
            libc::close(descriptor)
        };
    }
    Ok(())
}
