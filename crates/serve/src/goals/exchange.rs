//! Exchanges between a coordinator of several servers and one server, as JSON.
//!
//! ```text
//! coordinator ──Question: orders──────────────> server
//!             <─ServerAnswer: notes, the server's time──
//! ```
//!
//! Each request crosses the socket, and no sums over requests. Bounds depend on the order of requests across all servers. So a coordinator
//! derives the same bounds as a planner within the server.
//!
//! Notes have numbers from 0 on. An answer repeats the notes that no question has confirmed, so no note is lost with an answer.

use super::feed::{Note, What};
use super::options::Seeks;
use headtime_engine::{GateOrder, GateSpec};
use headtime_sched::{Op, ServiceCurve};
use headtime_units::{Extent, Millionths, Nanos, Sectors, Time};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Display;
use std::sync::Arc;

/// Version of exchanges.
const VERSION: u32 = 1;

/// Question of a coordinator, with orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Number of the coordinator, which no other one has.
    pub coordinator: u64,
    /// Number of the session. If the server has another session of this coordinator, or none, the server starts this session. With 0 the
    /// coordinator only asks for disks and programs.
    pub session: u64,
    /// Number of the question. Ascends; a server refuses a question that was overtaken.
    pub number: u64,
    /// Number of notes that the coordinator has, of this session.
    pub taken: u64,
    /// Orders to the gates of all disks, in the server's time. A server that starts a session ignores them.
    #[serde(serialize_with = "orders_out", deserialize_with = "orders_in")]
    pub orders: Vec<GateOrder>,
}

/// Answer of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerAnswer {
    /// Time of the server when it answered.
    #[serde(serialize_with = "time_out", deserialize_with = "time_in")]
    pub now: Time,
    /// Number of the first note.
    pub first: u64,
    /// Disks by number, with their notes.
    #[serde(serialize_with = "notes_out", deserialize_with = "notes_in")]
    pub notes: Vec<(u16, Note)>,
    /// Requests since the server started that are in no note.
    pub unseen: u64,
    /// Present if the session starts with this answer, or if there is none.
    pub started: Option<About>,
}

/// Disks and programs of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Gate of all disks with programs.
    #[serde(serialize_with = "text_out", deserialize_with = "gate_in")]
    pub gate: GateSpec,
    /// Names of the disks with programs, at least one.
    pub disks: Vec<String>,
    /// Names of the programs, in order.
    pub programs: Vec<String>,
    /// Time of seeks of the first disk, if known.
    #[serde(serialize_with = "seeks_out", deserialize_with = "seeks_in")]
    pub seek: Option<Seeks>,
}

impl Question {
    /// As text.
    pub fn to_text(&self) -> String {
        write(self)
    }

    /// Reads what [`Question::to_text`] wrote.
    ///
    /// # Errors
    ///
    /// If the text is of another version, or damaged.
    pub fn from_text(text: &str) -> Result<Question, String> {
        read(text)
    }
}

impl ServerAnswer {
    /// As text.
    pub fn to_text(&self) -> String {
        write(self)
    }

    /// Reads what [`ServerAnswer::to_text`] wrote.
    ///
    /// # Errors
    ///
    /// If the text is of another version, or damaged.
    pub fn from_text(text: &str) -> Result<ServerAnswer, String> {
        read(text)
    }
}

/// Version of a text.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

fn write(part: &impl Serialize) -> String {
    let mut value = serde_json::to_value(part).expect("numbers and texts");
    value["version"] = VERSION.into();
    value.to_string()
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let damaged = |error: serde_json::Error| {
        format!(
            "no exchange of a coordinator: {error}; give the control socket of `headtime serve`"
        )
    };
    let Versioned { version } = serde_json::from_str(text).map_err(damaged)?;
    if version != VERSION {
        return Err(format!(
            "version {version} of coordination, and this program has version {VERSION}; use the same version of headtime for the coordinator and all servers"
        ));
    }
    serde_json::from_str(text).map_err(damaged)
}

fn text_out<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn gate_in<'de, D: Deserializer<'de>>(from: D) -> Result<GateSpec, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

fn orders_out<S: Serializer>(orders: &[GateOrder], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(orders.iter().map(GateOrder::to_string))
}

fn orders_in<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<GateOrder>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let read = |text: &String| {
        let order: GateOrder = text.parse()?;
        match order {
            GateOrder::Assign { .. } | GateOrder::Keep { .. } => Ok(order),
            GateOrder::Window { from, span, .. } if span <= Time::LATEST - from => Ok(order),
            _ => Err("allowed are assign, keep, and window up to the latest time".to_owned()),
        }
    };
    let read = |text: &String| read(text).map_err(|error| format!("order `{text}`: {error}"));
    let orders = texts.iter().map(read).collect::<Result<_, String>>();
    orders.map_err(D::Error::custom)
}

fn time_out<S: Serializer>(time: &Time, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(time.as_nanos())
}

fn time_in<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
    time(u64::deserialize(from)?).map_err(D::Error::custom)
}

fn time(nanos: u64) -> Result<Time, String> {
    let time = Some(Time::from_nanos(nanos)).filter(|time| *time <= Time::LATEST);
    time.ok_or_else(|| {
        format!(
            "the time is {nanos}; allowed is up to {}",
            Time::LATEST.as_nanos()
        )
    })
}

/// Names of operations.
const OPS: [(&str, Op); 4] = [
    ("read", Op::Read),
    ("write", Op::Write),
    ("flush", Op::Flush),
    ("discard", Op::Discard),
];

/// Name of the end of a request.
const DONE: &str = "done";

/// Largest address in notes.
const SECTORS_MAX: u64 = 1 << 54;

/// Largest size of a request in notes, in sectors or bytes, so that sums over requests stay within 64 bits.
const SIZE_MAX: u64 = 1 << 32;

/// Disk, program, time, kind. Then the first sector and the number of sectors, or bytes and 0.
type NoteRow<K> = (u16, u16, u64, K, u64, u64);

fn notes_out<S: Serializer>(notes: &[(u16, Note)], to: S) -> Result<S::Ok, S::Error> {
    let row = |(disk, note): &(u16, Note)| -> NoteRow<&str> {
        let (kind, one, other) = match note.what {
            What::Asked { op, extent } => {
                let name = OPS.iter().find(|(_, other)| *other == op);
                let (name, _) = name.expect("all operations have names");
                (*name, extent.start.get(), extent.len.get())
            }
            What::Done { bytes } => (DONE, bytes, 0),
        };
        (*disk, note.program, note.at.as_nanos(), kind, one, other)
    };
    to.collect_seq(notes.iter().map(row))
}

fn notes_in<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u16, Note)>, D::Error> {
    let rows = Vec::<NoteRow<String>>::deserialize(from)?;
    let note = |(disk, program, at, kind, one, other): NoteRow<String>| {
        let most = if kind == DONE { SIZE_MAX } else { SECTORS_MAX };
        for (number, most) in [(one, most), (other, SIZE_MAX)] {
            if number > most {
                return Err(format!("a note has {number}; allowed is up to {most}"));
            }
        }
        let what = match OPS.iter().find(|(name, _)| *name == kind) {
            Some((_, op)) => What::Asked {
                op: *op,
                extent: Extent::at(one, other),
            },
            None if kind == DONE => What::Done { bytes: one },
            None => {
                return Err(format!(
                    "`{kind}` is no kind of note; allowed are read, write, flush, discard and done"
                ));
            }
        };
        let at = time(at)?;
        Ok((disk, Note { at, program, what }))
    };
    let notes = rows.into_iter().map(note).collect::<Result<_, String>>();
    notes.map_err(D::Error::custom)
}

/// Sectors of a note in a sector of the disk, backward factor in millionths, distances and times.
type SeekParts = (u64, u64, Vec<(u64, u64)>);

fn seeks_out<S: Serializer>(seek: &Option<Seeks>, to: S) -> Result<S::Ok, S::Error> {
    let parts = seek.as_ref().map(|seek| -> SeekParts {
        let (curve, scale) = seek.parts();
        let points = curve.points().iter();
        let points = points.map(|(distance, time)| (distance.get(), time.as_nanos()));
        (scale, curve.backward().0, points.collect())
    });
    parts.serialize(to)
}

fn seeks_in<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Seeks>, D::Error> {
    let parts = Option::<SeekParts>::deserialize(from)?;
    let seeks = |(scale, backward, points): SeekParts| {
        let points = points.into_iter();
        let points =
            points.map(|(distance, time)| (Sectors::new(distance), Nanos::from_nanos(time)));
        let curve = ServiceCurve::new(points.collect(), Millionths(backward))?;
        Ok(Seeks::new(Arc::new(curve), scale))
    };
    let seeks = parts.map(seeks).transpose();
    seeks.map_err(|error: headtime_sched::CurveError| D::Error::custom(format!("seek: {error}")))
}

#[cfg(test)]
mod tests;
