//! The date where the user is. Nothing here asks or changes the process's own idea of a time zone, which no program with
//! several threads can do safely.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::small_file;

/// What the system is set to, where the environment says nothing.
const SYSTEM_ZONE: &str = "/etc/localtime";
/// Where the files of named zones are.
const ZONE_DIRECTORIES: [&str; 2] = ["/usr/share/zoneinfo", "/etc/zoneinfo"];
/// The largest file that is taken for a zone.
const ZONE_FILE_LIMIT: u64 = 1024 * 1024;

/// `YYYY-MM-DD` at that time, in the zone that `TZ` names. UTC where it cannot be told, which is then named.
pub(super) fn local_date(now_ms: i64, tz: Option<&str>, left_out: &mut Vec<String>) -> String {
    let zone = zone(tz).unwrap_or_else(|| {
        if let Some(tz) = tz {
            left_out.push(format!("TZ={tz:?} is no time zone that this system knows; the date is taken in UTC"));
        }
        TimeZone::UTC
    });
    let now = Timestamp::from_millisecond(now_ms).unwrap_or_default();
    zone.to_datetime(now).date().to_string()
}

/// By the rules of POSIX: unset is the system's zone, empty is UTC; else a name, a file or a rule, after a colon or not.
fn zone(tz: Option<&str>) -> Option<TimeZone> {
    let Some(tz) = tz else { return zone_of_file(Path::new(SYSTEM_ZONE)) };
    let tz = tz.strip_prefix(':').unwrap_or(tz);
    match tz {
        "" => Some(TimeZone::UTC),
        path if path.starts_with('/') => zone_of_file(Path::new(path)),
        name => named_zone(name).or_else(|| TimeZone::posix(name).ok()),
    }
}

/// Read from its one file: a database of all zones would be listed first, and a start has no time for that.
fn named_zone(name: &str) -> Option<TimeZone> {
    if name.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
        return None;
    }
    ZONE_DIRECTORIES.iter().find_map(|directory| zone_of_file(&Path::new(directory).join(name)))
}

fn zone_of_file(path: &Path) -> Option<TimeZone> {
    let file = small_file::find(&fs::canonicalize(path).ok()?).ok()??;
    TimeZone::tzif("local", &small_file::read(&file, ZONE_FILE_LIMIT).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01T00:30:00Z.
    const NEW_YEAR: i64 = 1_767_227_400_000;

    fn check(tz: &str, expected: &str) {
        let mut left_out = Vec::new();
        assert_eq!(local_date(NEW_YEAR, Some(tz), &mut left_out), expected, "{tz}");
        assert!(left_out.is_empty(), "{left_out:?}");
    }

    #[test]
    fn the_date_is_the_one_where_the_user_is() {
        check("", "2026-01-01");
        check("UTC", "2026-01-01");
        // Rules, which need no files of the system.
        check("EST5EDT,M3.2.0,M11.1.0", "2025-12-31");
        check("<+14>-14", "2026-01-01");
        check(":<-01>1", "2025-12-31");
    }

    #[test]
    fn a_name_or_a_file_of_the_system_is_a_zone() {
        // Where the system has no zones (a bare container), there is none to name.
        if Path::new("/usr/share/zoneinfo/America/New_York").exists() {
            check("America/New_York", "2025-12-31");
            check(":America/New_York", "2025-12-31");
            check("/usr/share/zoneinfo/America/New_York", "2025-12-31");
        }
    }

    #[test]
    fn an_unknown_zone_is_named_and_utc_is_taken() {
        for tz in ["Atlantis/Capital", "/no/such/file", "../../etc/passwd", "\u{1f980}"] {
            let mut left_out = Vec::new();
            assert_eq!(local_date(NEW_YEAR, Some(tz), &mut left_out), "2026-01-01", "{tz}");
            assert_eq!(left_out.len(), 1, "{tz}");
        }
    }

    #[test]
    fn without_a_variable_the_system_decides() {
        let date = local_date(NEW_YEAR, None, &mut Vec::new());
        assert!(matches!(date.as_str(), "2025-12-31" | "2026-01-01"), "{date}");
    }
}
