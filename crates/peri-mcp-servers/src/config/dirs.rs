//! The folders that Peri uses, by the XDG Base Directory Specification.
//!
//! Must not: look at the file system or make a folder. Invariant: every folder is absolute.

use std::path::{Path, PathBuf};

/// Where Peri keeps what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeriDirs {
    /// `settings.json`.
    pub config: PathBuf,
    /// What must not be lost: sessions, trust, the machine's id.
    pub data: PathBuf,
    /// What is worth keeping: logs, spilled output.
    pub state: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
}

/// No folders can be named.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DirsError {
    #[error("there is no place for Peri's files: HOME is not set to an absolute path; set HOME or PERI_HOME")]
    NoHome,
    #[error("PERI_HOME is `{0}`, which is not an absolute path; write it from the root, without `~`")]
    RelativePeriHome(String),
}

impl PeriDirs {
    /// The folders that these variables give. `PERI_HOME` takes everything below itself; else each XDG variable moves its
    /// part, where it is absolute (the specification wants others ignored).
    ///
    /// # Errors
    /// [`DirsError`], which names the variable to set.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<PeriDirs, DirsError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(home) = set("PERI_HOME") {
            return match Path::new(&home).is_absolute() {
                true => Ok(PeriDirs::below(Path::new(&home))),
                false => Err(DirsError::RelativePeriHome(home)),
            };
        }
        let absolute = |name: &str| set(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME");
        let folder = |name: &str, below_home: &str| {
            let base = absolute(name).or_else(|| home.as_ref().map(|home| home.join(below_home)));
            base.map(|base| base.join("peri")).ok_or(DirsError::NoHome)
        };
        Ok(PeriDirs {
            config: folder("XDG_CONFIG_HOME", ".config")?,
            data: folder("XDG_DATA_HOME", ".local/share")?,
            state: folder("XDG_STATE_HOME", ".local/state")?,
            cache: folder("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// Everything in one folder, as with `PERI_HOME`.
    pub fn below(home: &Path) -> PeriDirs {
        PeriDirs {
            config: home.to_owned(),
            data: home.join("data"),
            state: home.join("state"),
            cache: home.join("cache"),
        }
    }

    /// The user's settings, unless `--config-file` names another file.
    pub fn settings_file(&self) -> PathBuf {
        self.config.join("settings.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `config data state cache`, or the error.
    #[track_caller]
    fn check(variables: &[(&str, &str)], expect: &str) {
        let found = PeriDirs::of(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        let shown = match found {
            Ok(dirs) => {
                [dirs.config, dirs.data, dirs.state, dirs.cache].map(|path| path.display().to_string()).join(" ")
            }
            Err(error) => format!("{error:?}"),
        };
        assert_eq!(shown, expect, "{variables:?}");
    }

    #[test]
    fn folders() {
        let plain = "/h/.config/peri /h/.local/share/peri /h/.local/state/peri /h/.cache/peri";
        check(&[("HOME", "/h")], plain);
        check(&[("HOME", "/h"), ("XDG_CONFIG_HOME", ""), ("XDG_DATA_HOME", "rel/x")], plain);
        check(
            &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_CACHE_HOME", "/k")],
            "/c/peri /h/.local/share/peri /h/.local/state/peri /k/peri",
        );
        let all =
            [("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "/d"), ("XDG_STATE_HOME", "/s"), ("XDG_CACHE_HOME", "/k")];
        check(&all, "/c/peri /d/peri /s/peri /k/peri");
        check(&[("PERI_HOME", "/p"), ("HOME", "/h"), ("XDG_DATA_HOME", "/d")], "/p /p/data /p/state /p/cache");
        check(&[("PERI_HOME", ""), ("HOME", "/h")], plain);
        check(&[("PERI_HOME", "~/p"), ("HOME", "/h")], "RelativePeriHome(\"~/p\")");
        check(&[], "NoHome");
        check(&[("HOME", "h")], "NoHome");
    }
}
