//! What of a session a client can choose: permission mode, model, effort, as ACP's config options and modes.
//!
//! Must not: choose. Invariant: every list is whole and holds the value in use, also one that settings do not list.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};
use peri_acp_types::{Effort, PermissionMode, SessionSettings};
use peri_controller::{ModelChoice, SettingChoice};

use crate::errors::invalid_params;

/// The option whose values are [`PermissionMode`]'s words.
const MODE: &str = "mode";
/// The option whose values are `PROVIDER/MODEL`.
const MODEL: &str = "model";
/// The option whose values are [`Effort`]'s words and [`BY_SETTINGS`].
const EFFORT: &str = "effort";
/// The effort where none is chosen.
const BY_SETTINGS: &str = "default";

/// Every option, with the values that can be chosen and the one in use.
pub(crate) fn config_options(settings: &SessionSettings, models: &[ModelChoice]) -> Vec<SessionConfigOption> {
    vec![mode_option(settings.permission_mode), model_option(&settings.model, models), effort_option(settings.effort)]
}

/// The modes for clients that do not know config options.
pub(crate) fn mode_state(mode: PermissionMode) -> SessionModeState {
    let shown = |mode: PermissionMode| {
        let (name, description) = mode_words(mode);
        SessionMode::new(mode.as_str(), name).description(description.to_owned())
    };
    SessionModeState::new(mode.as_str(), PermissionMode::ALL.into_iter().map(shown).collect())
}

/// What `session/set_config_option` chooses.
///
/// # Errors
/// -32602 for an option or a value that is not offered. Whether a model can be had is not known here.
pub(crate) fn chosen(option: &str, value: &SessionConfigOptionValue) -> Result<SettingChoice, Error> {
    if ![MODE, MODEL, EFFORT].contains(&option) {
        return Err(invalid_params(&format!(
            "there is no option `{option}`; there are `{MODE}`, `{MODEL}`, `{EFFORT}`"
        )));
    }
    let Some(value) = value.as_value_id() else {
        return Err(invalid_params(&format!("the value of option `{option}` is a text")));
    };
    match option {
        MODE => chosen_mode(&value.0),
        EFFORT if &*value.0 == BY_SETTINGS => Ok(SettingChoice::Effort(None)),
        EFFORT => match Effort::from_word(&value.0) {
            Some(effort) => Ok(SettingChoice::Effort(Some(effort))),
            None => {
                Err(not_offered("effort", &value.0, [BY_SETTINGS].into_iter().chain(Effort::ALL.map(Effort::as_str))))
            }
        },
        _ => Ok(SettingChoice::Model(value.0.to_string())),
    }
}

/// What `session/set_mode` chooses.
///
/// # Errors
/// -32602 for a mode that is not offered.
pub(crate) fn chosen_mode(word: &str) -> Result<SettingChoice, Error> {
    match PermissionMode::from_word(word) {
        Some(mode) => Ok(SettingChoice::PermissionMode(mode)),
        None => Err(not_offered("mode", word, PermissionMode::ALL.map(PermissionMode::as_str))),
    }
}

/// The refusal of a value: what it was, and what can be chosen instead.
fn not_offered<'a>(what: &str, value: &str, offered: impl IntoIterator<Item = &'a str>) -> Error {
    invalid_params(&format!("there is no {what} `{}`; there are {}", shown(value), enumerated(offered)))
}

/// The refusal of a model. Settings need not list a model, so the listed ones are not all that there are.
pub(crate) fn no_such_model(value: &str, suggestion: Option<String>, listed: &[ModelChoice]) -> Error {
    let suggestion = suggestion.map_or(String::new(), |model| format!(" Did you mean `{}`?", shown(&model)));
    let listed = enumerated(listed.iter().map(|model| model.id.as_str()));
    invalid_params(&format!(
        "there is no model `{}`.{suggestion} Any PROVIDER/MODEL of a configured provider can be chosen; listed are {listed}",
        shown(value)
    ))
}

/// A value at a bearable length.
fn shown(value: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    value.chars().take(SHOWN_CHARS).collect()
}

fn enumerated<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN_VALUES: usize = 20;
    let mut values = values.into_iter();
    let shown: Vec<String> = values.by_ref().take(SHOWN_VALUES).map(|value| format!("`{value}`")).collect();
    match values.count() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn mode_option(mode: PermissionMode) -> SessionConfigOption {
    let shown = |mode: PermissionMode| {
        let (name, description) = mode_words(mode);
        SessionConfigSelectOption::new(mode.as_str(), name).description(description.to_owned())
    };
    let values: Vec<_> = PermissionMode::ALL.into_iter().map(shown).collect();
    SessionConfigOption::select(MODE, "Permissions", mode.as_str(), values)
        .description("What runs without being asked about".to_owned())
        .category(SessionConfigOptionCategory::Mode)
}

fn mode_words(mode: PermissionMode) -> (&'static str, &'static str) {
    match mode {
        PermissionMode::Default => ("Ask", "Asks before anything that is not read-only"),
        PermissionMode::AcceptEdits => {
            ("Accept edits", "Edits inside the workspace pass; other changes are asked about")
        }
        PermissionMode::Bypass => ("Bypass", "Asks nothing; deny rules still apply"),
    }
}

fn model_option(in_use: &str, models: &[ModelChoice]) -> SessionConfigOption {
    let unlisted = models.iter().all(|model| model.id != in_use).then_some(in_use);
    let ids = unlisted.into_iter().chain(models.iter().map(|model| model.id.as_str()));
    let values: Vec<_> = ids.map(|id| SessionConfigSelectOption::new(id.to_owned(), id)).collect();
    SessionConfigOption::select(MODEL, "Model", in_use.to_owned(), values)
        .description("The model that answers, from the next turn on".to_owned())
        .category(SessionConfigOptionCategory::Model)
}

fn effort_option(effort: Option<Effort>) -> SessionConfigOption {
    let by_settings = SessionConfigSelectOption::new(BY_SETTINGS, "Default").description("As settings say".to_owned());
    let chosen =
        Effort::ALL.into_iter().map(|effort| SessionConfigSelectOption::new(effort.as_str(), effort_name(effort)));
    let values: Vec<_> = [by_settings].into_iter().chain(chosen).collect();
    SessionConfigOption::select(EFFORT, "Effort", effort.map_or(BY_SETTINGS, Effort::as_str), values)
        .description("How much the model thinks before it answers".to_owned())
        .category(SessionConfigOptionCategory::ThoughtLevel)
}

fn effort_name(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "Low",
        Effort::Medium => "Medium",
        Effort::High => "High",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settings() -> SessionSettings {
        SessionSettings { model: "mine/own".to_owned(), permission_mode: PermissionMode::AcceptEdits, effort: None }
    }

    fn told(models: &[&str]) -> Vec<Value> {
        let models: Vec<_> = models.iter().map(|id| ModelChoice { id: (*id).to_owned() }).collect();
        let options = config_options(&settings(), &models);
        options.iter().map(|option| serde_json::to_value(option).expect("JSON")).collect()
    }

    fn values(option: &Value) -> Vec<&str> {
        let options = option["options"].as_array().expect("options");
        options.iter().filter_map(|value| value["value"].as_str()).collect()
    }

    #[test]
    fn every_option_holds_the_value_in_use() {
        let told = told(&["mine/small", "other/big"]);
        let named: Vec<_> =
            told.iter().map(|option| (&option["id"], &option["category"], &option["currentValue"])).collect();
        assert_eq!(
            named,
            [
                (&json!("mode"), &json!("mode"), &json!("accept-edits")),
                (&json!("model"), &json!("model"), &json!("mine/own")),
                (&json!("effort"), &json!("thought_level"), &json!("default")),
            ]
        );
        assert_eq!(values(&told[0]), ["default", "accept-edits", "bypass"]);
        assert_eq!(values(&told[1]), ["mine/own", "mine/small", "other/big"], "an unlisted one comes first");
        assert_eq!(values(&told[2]), ["default", "low", "medium", "high"]);
    }

    #[test]
    fn a_listed_model_is_listed_once() {
        assert_eq!(values(&told(&["mine/small", "mine/own"])[1]), ["mine/small", "mine/own"]);
    }

    #[test]
    fn every_value_that_is_offered_can_be_chosen() {
        for option in told(&["mine/small"]) {
            let id = option["id"].as_str().expect("an id");
            for value in values(&option) {
                assert!(chosen(id, &value.into()).is_ok(), "{id} {value}");
            }
        }
    }

    #[test]
    fn a_model_that_cannot_be_had_is_refused_without_saying_that_the_listed_ones_are_all() {
        let listed = [ModelChoice { id: "mine/small".to_owned() }];
        let error = no_such_model("m2", Some("mine/m2".to_owned()), &listed);
        assert_eq!(
            error.message,
            "there is no model `m2`. Did you mean `mine/m2`? Any PROVIDER/MODEL of a configured provider can be chosen; \
             listed are `mine/small`"
        );
    }

    #[test]
    fn what_is_not_offered_is_refused_with_what_is() {
        for (option, value, part) in [
            ("colour", SessionConfigOptionValue::value_id("red"), "`mode`, `model`, `effort`"),
            ("mode", SessionConfigOptionValue::value_id("yolo"), "`default`, `accept-edits`, `bypass`"),
            ("mode", SessionConfigOptionValue::boolean(true), "a text"),
            ("effort", SessionConfigOptionValue::value_id("max"), "`default`, `low`, `medium`, `high`"),
        ] {
            let error = chosen(option, &value).expect_err("it is not offered");
            assert!(error.message.contains(part), "{option}: {}", error.message);
        }
    }
}
