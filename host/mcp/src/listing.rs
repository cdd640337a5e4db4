//! The tools that a server lists, read one by one: a definition that cannot be read costs its own tool and no other.

use rlf_plugins::offered_tools::{MAX_TOOLS, printable_name};
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::{Peer, RoleClient};
use serde_json::Value;

use crate::error::reason;

/// Maximum number of answers that a list of tools is spread over.
const MAX_PAGES: usize = 64;
/// Maximum length of the problem of a definition, in characters.
const PROBLEM_CHARS: usize = 200;

/// The tools of a server, as it listed them.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Tool>,
    pub(crate) unreadable: Vec<Unreadable>,
}

/// A definition that cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The name of the tool, if the definition has one.
    pub(crate) name: Option<String>,
    /// The place in the list, from 1.
    number: usize,
    problem: String,
}

impl Unreadable {
    /// The problem, for a warning or an error that names the server.
    pub(crate) fn what(&self) -> String {
        let tool = match &self.name {
            Some(name) => format!("its tool `{}`", printable_name(name)),
            None => format!("tool {} of its list", self.number),
        };
        format!(
            "{tool} cannot be offered: its definition cannot be read: {}",
            self.problem
        )
    }
}

impl Listing {
    /// Lists the tools of a server.
    pub(crate) async fn of(peer: &Peer<RoleClient>) -> Result<Self, String> {
        let mut listing = Self::default();
        let mut params = None;
        for _ in 0..MAX_PAGES {
            let request = ListToolsRequest {
                params,
                ..ListToolsRequest::default()
            };
            let request = ClientRequest::ListToolsRequest(request);
            let page = peer.send_request(request).await;
            let next = listing.add(page.map_err(|error| reason(&error))?)?;
            if listing.len() > MAX_TOOLS {
                return Err(format!("it has more than {MAX_TOOLS} of them"));
            }
            let Some(cursor) = next else {
                return Ok(listing);
            };
            params = Some(PaginatedRequestParams::default().with_cursor(Some(cursor)));
        }
        Err(format!("the list has more than {MAX_PAGES} pages"))
    }

    /// Number of definitions.
    fn len(&self) -> usize {
        self.tools.len() + self.unreadable.len()
    }

    /// Adds the tools of one answer to `tools/list`. Returns where the next page begins, if there is one.
    fn add(&mut self, page: ServerResult) -> Result<Option<String>, String> {
        match page {
            ServerResult::ListToolsResult(page) => {
                self.tools.extend(page.tools);
                Ok(page.next_cursor)
            }
            // The protocol's library reads a list as a whole. It keeps an answer that it cannot read as it is.
            ServerResult::CustomResult(page) => self.add_one_by_one(page.0),
            _ => Err("the answer is no list of tools".to_owned()),
        }
    }

    fn add_one_by_one(&mut self, mut page: Value) -> Result<Option<String>, String> {
        let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
            return Err("the answer is no list of tools".to_owned());
        };
        for tool in tools {
            let name = tool.get("name").and_then(Value::as_str);
            let name = name.map(str::to_owned);
            let number = self.len() + 1;
            match serde_json::from_value::<Tool>(tool) {
                Ok(tool) => self.tools.push(tool),
                Err(error) => {
                    let problem = rlf_sandbox::safe_text(error.to_string().as_bytes());
                    self.unreadable.push(Unreadable {
                        name,
                        number,
                        problem: problem.chars().take(PROBLEM_CHARS).collect(),
                    });
                }
            }
        }
        let next = page.get("nextCursor").and_then(Value::as_str);
        Ok(next.map(str::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn add(listing: &mut Listing, page: Value) -> Result<Option<String>, String> {
        listing.add(serde_json::from_value(page).unwrap())
    }

    #[test]
    fn a_definition_that_cannot_be_read_costs_its_own_tool() {
        let good = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        // Both revisions of the protocol: the newer one gives the kind of a result.
        for kind in [Value::Null, json!("complete")] {
            let mut listing = Listing::default();
            assert_eq!(add(&mut listing, json!({"tools": [good("a")]})), Ok(None));
            let tools = json!([{"name": "b"}, good("c"), {"inputSchema": {}}, 7]);
            let mut page = json!({"tools": tools, "nextCursor": "more"});
            if !kind.is_null() {
                page["resultType"] = kind;
            }
            assert_eq!(add(&mut listing, page), Ok(Some("more".to_owned())));
            let names: Vec<&str> = listing.tools.iter().map(|tool| &*tool.name).collect();
            assert_eq!(names, ["a", "c"]);
            let what: Vec<String> = listing.unreadable.iter().map(Unreadable::what).collect();
            assert_eq!(listing.len(), 5);
            assert_eq!(
                what[0],
                "its tool `b` cannot be offered: its definition cannot be read: missing field `inputSchema`"
            );
            assert!(
                what[1].starts_with("tool 4 of its list cannot be offered: "),
                "{what:?}"
            );
        }
    }

    #[test]
    fn an_answer_without_a_list_is_refused() {
        for page in [json!({"tools": {}}), json!({"things": []}), json!({})] {
            assert!(add(&mut Listing::default(), page).is_err());
        }
    }
}
