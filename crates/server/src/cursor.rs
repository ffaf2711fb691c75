//! Opaque cursors: what `next` gives and `after` takes.

use serde_json::{Value, json};
use tidegate::store::Page;

use crate::Problem;

/// Rows of a page when the request does not say.
const DEFAULT_LIMIT: usize = 50;
/// Rows of a page at most: an answer stays in the size of a body.
const MAX_LIMIT: usize = 1000;
/// Marks the form of a cursor, so that a later form can be told from it.
const FORM: char = 'c';

/// The page that a request asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paging {
    after: Option<u64>,
    limit: usize,
}

impl Paging {
    /// Reads `limit` and `after`.
    pub(crate) fn of(limit: Option<usize>, after: Option<&str>) -> Result<Self, Problem> {
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            let detail = format!("`limit` is {limit}; it must be from 1 to {MAX_LIMIT}");
            return Err(Problem::bad_request("invalid-limit", detail));
        }
        Ok(Self {
            after: after.map(decode).transpose()?,
            limit,
        })
    }

    /// The position that the page begins after.
    pub(crate) fn after(self) -> Option<u64> {
        self.after
    }

    /// One row more than asked for: it tells whether there is a next page.
    pub(crate) fn fetch(self) -> usize {
        self.limit + 1
    }

    /// As the store takes it.
    pub(crate) fn page(self) -> Page {
        Page {
            after: self.after,
            limit: self.fetch(),
        }
    }

    /// The answer from the rows of [`Self::fetch`].
    pub(crate) fn answer<T>(
        self,
        rows: Vec<T>,
        position: impl Fn(&T) -> u64,
        view: impl Fn(T) -> Value,
    ) -> axum::Json<Value> {
        self.answer_so_far(rows, position, view, None)
    }

    /// The same, where the rows were looked for up to a position only: the next page goes on behind it.
    pub(crate) fn answer_so_far<T>(
        self,
        mut rows: Vec<T>,
        position: impl Fn(&T) -> u64,
        view: impl Fn(T) -> Value,
        looked_to: Option<u64>,
    ) -> axum::Json<Value> {
        let has_more = rows.len() > self.limit;
        rows.truncate(self.limit);
        let next = match rows.last() {
            Some(last) if has_more => Some(encode(position(last))),
            _ => looked_to.map(encode),
        };
        let items: Vec<_> = rows.into_iter().map(view).collect();
        axum::Json(json!({ "items": items, "next": next }))
    }
}

fn encode(position: u64) -> String {
    format!("{FORM}{position:x}")
}

fn decode(text: &str) -> Result<u64, Problem> {
    let position = text
        .strip_prefix(FORM)
        .and_then(|digits| u64::from_str_radix(digits, 16).ok());
    position.ok_or_else(|| {
        Problem::bad_request(
            "invalid-cursor",
            "`after` is no cursor of this server: pass the `next` of the page before, unchanged",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_next_page_exists_only_when_a_row_is_left_over() {
        let paging = Paging::of(Some(2), None).unwrap();
        let answer = |rows: Vec<u64>| paging.answer(rows, |row| *row, Value::from).0;
        assert_eq!(answer(vec![9, 8]), json!({ "items": [9, 8], "next": null }));
        let page = answer(vec![9, 8, 7]);
        assert_eq!(page["items"], json!([9, 8]));
        let next = Paging::of(None, page["next"].as_str()).unwrap();
        assert_eq!(next.after(), Some(8));
        for bad in ["", "8", "cx", "c-1", "c"] {
            assert!(Paging::of(None, Some(bad)).is_err(), "{bad}");
        }
        assert!(Paging::of(Some(0), None).is_err() && Paging::of(Some(1001), None).is_err());
    }
}
