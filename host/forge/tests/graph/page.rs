//! The page: whole, without external resources, and safe for any text.

use rlf_forge::graph::ValueType;

use crate::{examples, from_user, graph, graph_of, input, key, output, tool};

#[test]
fn the_page_has_every_tool_and_edge_and_loads_nothing() {
    let graph = graph_of(&examples());
    let page = graph.to_html("Three environments");
    assert!(page.starts_with("<!DOCTYPE html>"));
    for tool in graph.tools() {
        assert!(page.contains(&format!("<h2>{}</h2>", tool.full_name())));
    }
    assert_eq!(
        page.matches("<g class=\"card\"").count(),
        graph.tools().len()
    );
    assert_eq!(
        page.matches("<path class=\"edge").count(),
        graph.links().len()
    );
    // Each edge is explained twice: at its output and at its input.
    assert_eq!(
        page.matches("<span class=\"why ").count(),
        2 * graph.links().len()
    );
    let addresses = page
        .match_indices("http")
        .map(|(at, _)| page[at..].chars().take(32).collect::<String>());
    for address in addresses {
        assert!(
            address.starts_with("http://www.w3.org/2000/svg") || address.starts_with("http-equiv"),
            "{address}"
        );
    }
    assert!(!page.contains("src=") && !page.contains("@import") && !page.contains("url("));
    assert_eq!(page, graph.to_html("Three environments"));
}

#[test]
fn what_nothing_can_fill_is_marked_and_explained() {
    let graph = graph(vec![tool(
        "A",
        "open",
        vec![input("door", key("A.door"))],
        vec![],
    )]);
    let page = graph.to_html("Doors");
    assert!(page.contains("class=\"port unfillable\""));
    assert!(page.contains("no other tool gives it, and the user does not know it"));
    assert!(page.contains("It can never be called"));
}

#[test]
fn text_of_tools_cannot_become_markup() {
    let evil = "</script><script>alert(1)</script>\"'><img src=x>";
    let mut bad = tool(
        evil,
        evil,
        vec![from_user(evil, ValueType::Enumeration(vec![evil.into()]))],
        vec![output(evil, key(evil))],
    );
    bad.description = evil.into();
    let page = graph(vec![
        bad,
        tool("B", "b", vec![input("x", key(evil))], vec![]),
    ])
    .to_html(evil);
    assert_eq!(page.matches("<script>").count(), 1);
    assert_eq!(page.matches("</script>").count(), 1);
    assert!(!page.contains("<img"));
}

#[test]
fn a_graph_without_tools_has_a_page() {
    assert!(graph(vec![]).to_html("Nothing").contains("<svg"));
}
