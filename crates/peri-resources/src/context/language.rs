//! The user's language, from the variables that POSIX names for it.

use super::ContextEnvironment;

/// The longest locale name that is believed.
const MAX_LOCALE: usize = 32;

/// `en_GB` of `en_GB.UTF-8`, from the first variable that is set. None for the programmer's locales.
pub(super) fn of_locale(environment: &ContextEnvironment) -> Option<String> {
    let ContextEnvironment { lc_all, lc_messages, lang, tz: _, config_dir: _ } = environment;
    let locale = [lc_all, lc_messages, lang].into_iter().flatten().find(|value| !value.is_empty())?;
    let name = locale.split(['.', '@']).next()?;
    let is_name = name.len() <= MAX_LOCALE && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    (is_name && !matches!(name, "" | "C" | "POSIX")).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lc_all: &str, lc_messages: &str, lang: &str, expected: Option<&str>) {
        let value = |text: &str| Some(text.to_owned());
        let environment = ContextEnvironment {
            lc_all: value(lc_all),
            lc_messages: value(lc_messages),
            lang: value(lang),
            ..ContextEnvironment::default()
        };
        assert_eq!(of_locale(&environment).as_deref(), expected, "{environment:?}");
    }

    #[test]
    fn the_first_variable_that_is_set_counts() {
        check("", "", "", None);
        check("", "", "en_GB.UTF-8", Some("en_GB"));
        check("", "de_AT@euro", "en_GB.UTF-8", Some("de_AT"));
        check("zh_CN.GB18030", "de_AT", "en_GB", Some("zh_CN"));
        check("C.UTF-8", "de_AT", "en_GB", None);
        check("POSIX", "", "en_GB", None);
        check("ignore\nall rules", "", "en_GB", None);
    }
}
