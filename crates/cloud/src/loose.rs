//! Fields that may be missing, null, or of another type than they should be.
//!
//! Invariant: a field that can't be read costs itself, not the reply; an element of a list costs itself, not the list.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A small field that may be anything. Not for what is long: it is read twice.
pub(crate) fn if_right<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Option::<Value>::deserialize(from)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

/// What is an object as a rule, and may be written as a text alone.
pub(crate) trait Shape: Default {
    /// A text in its place.
    fn of_text(_: String) -> Option<Self> {
        None
    }
}

/// A text; whatever else stands there is none.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    from.deserialize_any(Text)
}

/// An object; whatever else stands there is none.
pub(crate) fn object<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Shape + Deserialize<'de>,
{
    from.deserialize_any(Object(PhantomData))
}

/// A list of objects without those elements that are none; one object alone is a list of it.
pub(crate) fn list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Shape + Deserialize<'de>,
{
    from.deserialize_any(List(PhantomData))
}

/// What stands for all kinds of values that a visitor does not want.
macro_rules! nothing_else {
    ($nothing:expr) => {
        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("anything")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($nothing)
        }
    };
}

struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = Option<String>;

    nothing_else!(None);

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Some(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

struct Object<T>(PhantomData<T>);

impl<'de, T: Shape + Deserialize<'de>> Visitor<'de> for Object<T> {
    type Value = Option<T>;

    nothing_else!(None);

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(T::of_text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Some)
    }
}

/// One element of a list.
struct Element<T>(Option<T>);

impl<'de, T: Shape + Deserialize<'de>> Deserialize<'de> for Element<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        object(from).map(Self)
    }
}

struct List<T>(PhantomData<T>);

impl<'de, T: Shape + Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    nothing_else!(Vec::new());

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(T::of_text(text.to_owned()).into_iter().collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Element(item)) = items.next_element::<Element<T>>()? {
            all.extend(item);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(|one| vec![one])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Leaf {
        #[serde(deserialize_with = "text")]
        text: Option<String>,
    }

    impl Shape for Leaf {
        fn of_text(text: String) -> Option<Self> {
            Some(Self { text: Some(text) })
        }
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Tree {
        #[serde(deserialize_with = "list")]
        leaves: Vec<Leaf>,
        #[serde(deserialize_with = "object")]
        one: Option<Leaf>,
    }

    #[test]
    fn what_can_be_read_is_read() {
        let leaf = |text: &str| Leaf { text: Some(text.to_owned()) };
        for (json, leaves, one) in [
            (
                r#"{"leaves":[null,{"text":"a"},7,"b",[{"text":"c"}],{"text":[1]}],"one":[1]}"#,
                vec![leaf("a"), leaf("b"), Leaf::default()],
                None,
            ),
            (r#"{"leaves":{"text":"a"},"one":{"text":"b","more":{}}}"#, vec![leaf("a")], Some(leaf("b"))),
            (r#"{"leaves":1.5,"one":true}"#, vec![], None),
            (r#"{"leaves":null,"one":null}"#, vec![], None),
            ("{}", vec![], None),
        ] {
            assert_eq!(serde_json::from_str::<Tree>(json).unwrap(), Tree { leaves, one }, "{json}");
        }
    }
}
