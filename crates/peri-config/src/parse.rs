//! From bytes to a JSON object, for documents that anyone may have written.
//!
//! Invariant: an object comes out only if the document says one thing: no key twice, nothing cut off, nothing behind it.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::path::Path;
use crate::reader::Sink;

/// The largest document that is read, in bytes.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// The object in the document; an empty document is an empty object. None, with the reason in the sink, for anything else.
pub(crate) fn parse_object(bytes: &[u8], sink: &Sink) -> Option<Map<String, Value>> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        sink.whole_error(
            format!("is larger than {MAX_DOCUMENT_BYTES} bytes"),
            "settings are short; is this the right file?",
        );
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => {
            let place = error.valid_up_to();
            sink.whole_error(format!("is not valid UTF-8 (at byte {place})"), "save it as UTF-8");
            return None;
        }
    };
    if text.trim().is_empty() {
        return Some(Map::new());
    }
    let repeated = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = AnyValue { path: &Path::ROOT, repeated: &repeated }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    let value = match value {
        Ok(value) => value,
        Err(error) => {
            // The parser's own words end in ` at line L column C`; they hold no text of the document.
            sink.whole_error(
                format!("is not valid JSON: {error}"),
                "mend it there (JSON has no comments and no trailing commas)",
            );
            return None;
        }
    };
    let repeated = repeated.into_inner();
    for key in &repeated {
        sink.error_at(key.clone(), "is there twice", Some("keep one of them".to_owned()));
    }
    match value {
        Value::Object(map) if repeated.is_empty() => Some(map),
        Value::Object(_) => None,
        _ => {
            sink.whole_error("must be a JSON object".to_owned(), "write `{ ... }`");
            None
        }
    }
}

/// Reads any JSON value and notes keys that an object has twice, where serde_json would keep the last in silence.
/// The depth is bounded by serde_json (128).
#[derive(Clone, Copy)]
struct AnyValue<'a> {
    path: &'a Path<'a>,
    repeated: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for AnyValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = self.path.index(items.len());
            match access.next_element_seed(AnyValue { path: &path, repeated: self.repeated })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = self.path.key(&key);
            let value = access.next_value_seed(AnyValue { path: &path, repeated: self.repeated })?;
            if map.contains_key(&key) {
                self.repeated.borrow_mut().extend(path.shown());
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
