//! A cursor over a JSON value that reports what it does not find as it should be.
//!
//! Owns: type checks, unknown keys, where findings go. Must not: know any particular setting. Invariant: a message never
//! repeats a value, only names of keys and kinds of values, since any value may be a secret in the wrong place.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::path::{Path, shown_text};
use crate::{Diagnostic, Origin, Severity};

/// Findings that are kept per document; what a hostile document has beyond that is only counted.
const MAX_FINDINGS: usize = 50;
/// How far a misspelt key may be from a known one to be taken for it, in edits.
const NEAR_EDITS: usize = 3;
/// The longest duration that a document may ask for: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// Collects the findings of one document.
pub(crate) struct Sink {
    origin: Origin,
    found: RefCell<Vec<Diagnostic>>,
    beyond: Cell<usize>,
    /// All of them, kept or not.
    errors: Cell<usize>,
}

impl Sink {
    pub(crate) fn new(origin: Origin) -> Sink {
        Sink { origin, found: RefCell::new(Vec::new()), beyond: Cell::new(0), errors: Cell::new(0) }
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(crate) fn push(&self, diagnostic: Diagnostic) {
        let mut found = self.found.borrow_mut();
        if diagnostic.severity == Severity::Error {
            self.errors.set(self.errors.get() + 1);
        }
        // An error is never crowded out by warnings: it must stop the start.
        if found.len() < MAX_FINDINGS || (diagnostic.severity == Severity::Error && !has_error(&found)) {
            found.push(diagnostic);
        } else {
            self.beyond.set(self.beyond.get() + 1);
        }
    }

    pub(crate) fn whole_error(&self, message: String, hint: &str) {
        self.push(Diagnostic::whole(Severity::Error, &self.origin, message).with_hint(hint));
    }

    pub(crate) fn error_at(&self, key: String, message: impl Into<String>, hint: Option<String>) {
        let finding = Diagnostic::whole(Severity::Error, &self.origin, message).with_key(key);
        self.push(Diagnostic { hint, ..finding });
    }

    pub(crate) fn into_findings(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        match self.beyond.get() {
            0 => {}
            beyond => {
                found.push(Diagnostic::whole(Severity::Warning, &self.origin, format!("has {beyond} more such faults")))
            }
        }
        found
    }
}

fn has_error(found: &[Diagnostic]) -> bool {
    found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// A value and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    value: &'a Value,
    path: &'a Path<'a>,
    sink: &'a Sink,
}

impl<'a> Node<'a> {
    /// Reports an error here. Gives None, so that a reader can end with it.
    pub(crate) fn error<T>(self, message: impl Into<String>, hint: impl Into<String>) -> Option<T> {
        self.report(Severity::Error, message.into(), hint.into());
        None
    }

    pub(crate) fn warn(self, message: impl Into<String>, hint: impl Into<String>) {
        self.report(Severity::Warning, message.into(), hint.into());
    }

    fn report(self, severity: Severity, message: String, hint: String) {
        let finding = Diagnostic::whole(severity, self.sink.origin(), message);
        let hint = Some(hint).filter(|hint| !hint.is_empty());
        self.sink.push(Diagnostic { key: self.path.shown(), hint, ..finding });
    }

    fn wrong_kind<T>(self, wanted: &str) -> Option<T> {
        let hint = if self.value.is_null() { "to set nothing, leave the key out" } else { "" };
        self.error(format!("must be {wanted}, not {}", kind_of(self.value)), hint)
    }

    /// Errors in the whole document so far: what has not raised them was read without one.
    pub(crate) fn errors(self) -> usize {
        self.sink.errors.get()
    }

    pub(crate) fn truth(self) -> Option<bool> {
        match self.value {
            Value::Bool(truth) => Some(*truth),
            _ => self.wrong_kind("true or false"),
        }
    }

    pub(crate) fn text(self) -> Option<&'a str> {
        match self.value {
            Value::String(text) => Some(text),
            _ => self.wrong_kind("text"),
        }
    }

    pub(crate) fn nonempty_text(self) -> Option<&'a str> {
        match self.text()? {
            "" => self.error("must not be empty", ""),
            text => Some(text),
        }
    }

    /// Text that one of the readers of this crate takes apart; its error reads on from the key.
    pub(crate) fn parsed<T: std::str::FromStr>(self) -> Option<T>
    where
        T::Err: std::fmt::Display,
    {
        match self.text()?.parse() {
            Ok(value) => Some(value),
            Err(error) => self.error(error.to_string(), ""),
        }
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(self, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let hint = nearest(text, &known).map(|word| format!("did you mean `{word}`?")).unwrap_or_default();
        self.error(format!("must be one of {}", known.join(", ")), hint)
    }

    pub(crate) fn integer<T: TryFrom<u64>>(self, range: RangeInclusive<u64>) -> Option<T> {
        let wanted = || format!("a whole number from {} to {}", range.start(), range.end());
        let Value::Number(number) = self.value else { return self.wrong_kind(&wanted()) };
        let inside =
            number.as_u64().filter(|number| range.contains(number)).and_then(|number| T::try_from(number).ok());
        match inside {
            Some(value) => Some(value),
            None => self.error(format!("must be {}", wanted()), ""),
        }
    }

    /// A number of seconds above 0, fractions allowed.
    pub(crate) fn seconds(self) -> Option<Duration> {
        let wanted = format!("a number of seconds above 0, {MAX_SECONDS} at most");
        let Value::Number(number) = self.value else { return self.wrong_kind(&wanted) };
        match number.as_f64().filter(|seconds| *seconds > 0.0 && *seconds <= MAX_SECONDS).map(Duration::from_secs_f64) {
            Some(duration) if !duration.is_zero() => Some(duration),
            _ => self.error(format!("must be {wanted}"), ""),
        }
    }

    pub(crate) fn list<T>(self, read: impl Fn(Node<'_>) -> Option<T>) -> Option<Vec<T>> {
        let Value::Array(items) = self.value else { return self.wrong_kind("a list") };
        let read_item = |(index, value): (usize, &Value)| {
            let path = self.path.index(index);
            read(Node { value, path: &path, sink: self.sink })
        };
        Some(items.iter().enumerate().filter_map(read_item).collect())
    }

    /// An object whose content nobody here looks at.
    pub(crate) fn object(self) -> Option<&'a Map<String, Value>> {
        match self.value {
            Value::Object(map) => Some(map),
            _ => self.wrong_kind("an object"),
        }
    }

    /// An object whose keys are names of the user's choice. The reader gets each name with its value.
    pub(crate) fn map<T>(self, read: impl Fn(&str, Node<'_>) -> Option<T>) -> Option<BTreeMap<String, T>> {
        let map = self.object()?;
        let read_entry = |(name, value): (&String, &Value)| {
            let path = self.path.key(name);
            let value = read(name, Node { value, path: &path, sink: self.sink })?;
            Some((name.clone(), value))
        };
        Some(map.iter().filter_map(read_entry).collect())
    }

    /// An object with keys that we define.
    pub(crate) fn fields(self) -> Option<Fields<'a>> {
        Some(Fields { map: self.object()?, path: self.path, sink: self.sink, asked: Vec::new() })
    }
}

/// The keys of an object, each asked for by name; what nobody asked for is unknown.
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: &'a Path<'a>,
    sink: &'a Sink,
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of_document(map: &'a Map<String, Value>, sink: &'a Sink) -> Fields<'a> {
        Fields { map, path: &Path::ROOT, sink, asked: Vec::new() }
    }

    /// Reads the value of that key. None where it is not there, or (reported) not as it should be.
    pub(crate) fn get<T>(&mut self, name: &'static str, read: impl FnOnce(Node<'_>) -> Option<T>) -> Option<T> {
        self.asked.push(name);
        let value = self.map.get(name)?;
        let path = self.path.key(name);
        read(Node { value, path: &path, sink: self.sink })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Reports an error about the key `name`, which may be missing.
    pub(crate) fn error_at(&self, name: &str, message: impl Into<String>, hint: impl Into<String>) {
        let key = self.path.key(name).shown().unwrap_or_default();
        self.sink.error_at(key, message, Some(hint.into()));
    }

    /// Says something about the key `name`, which may be missing.
    pub(crate) fn warn_at(&self, name: &str, message: &str, hint: &str) {
        let finding = Diagnostic::whole(Severity::Warning, self.sink.origin(), message);
        let hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
        self.sink.push(Diagnostic { key: self.path.key(name).shown(), hint, ..finding });
    }

    /// Reports the keys that nobody asked for. To be called last.
    pub(crate) fn finish(self) {
        for name in self.map.keys().filter(|name| !self.asked.contains(&name.as_str())) {
            let key = self.path.key(name).shown().unwrap_or_default();
            let finding = Diagnostic::whole(Severity::Warning, self.sink.origin(), "is not known and has no effect");
            let hint = nearest(name, &self.asked).map(|known| format!("did you mean `{known}`?"));
            self.sink.push(Diagnostic { hint, ..finding.with_key(key) });
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The known word that was probably meant: few edits away, letter case aside.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // A word longer than any known one is not compared: the comparison costs the product of both lengths.
    let word = shown_text(word).to_lowercase();
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
    let (distance, candidate) =
        known.iter().map(|candidate| (distance(candidate), *candidate)).min_by_key(|(d, _)| *d)?;
    (distance <= NEAR_EDITS && distance * 2 < candidate.len()).then_some(candidate)
}
