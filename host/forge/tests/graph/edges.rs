//! Edges of every kind, thresholds, and inputs that nothing can fill.

use std::error::Error;

use rlf_forge::graph::{
    FromUser, GraphError, Score, Similarity, ToolGraph, Unfillable, ValueType, Why, Wording,
};

use crate::{examples, from_user, graph, graph_of, input, key, optional, output, shown, tool};

fn one_of(values: &[&str]) -> ValueType {
    ValueType::Enumeration(values.iter().map(ToString::to_string).collect())
}

#[test]
fn edges_have_the_first_reason_that_holds() {
    let graph = graph(vec![
        tool(
            "Shop",
            "list_orders",
            vec![],
            vec![
                output("number", key("Shop.order")),
                output("state", one_of(&["open", "shipped"])),
                output("customer_name", ValueType::Text),
                output("total", ValueType::Number),
            ],
        ),
        tool(
            "Shop",
            "show_orders",
            vec![
                input("order_id", ValueType::List(Box::new(key("Shop.order")))),
                optional("wanted", one_of(&["shipped", "open"])),
                optional("customer_name", ValueType::Text),
                optional("total", ValueType::Integer),
            ],
            vec![],
        ),
        tool(
            "Club",
            "rename",
            vec![
                input("number", key("Club.order")),
                from_user("customerNames", ValueType::Text),
            ],
            vec![],
        ),
    ]);
    let expected = [
        // The names have nothing in common, and a key needs no similarity. The key of another server's order is another.
        "Shop-list_orders.number -> Shop-show_orders.order_id: key of Shop.order",
        "Shop-list_orders.state -> Shop-show_orders.wanted: same values",
        "Shop-list_orders.customer_name -> Shop-show_orders.customer_name: similarity 1.00",
        "Shop-list_orders.customer_name -> Club-rename.customerNames: similarity 1.00",
        // `total` has the same name on both sides, but a number is not always an integer.
    ];
    assert_eq!(shown(&graph), expected);
    assert_eq!(graph.dependents(0), [1, 2]);
    assert_eq!(graph.dependents(1), [] as [usize; 0]);
    let counts = graph.counts();
    assert_eq!(
        (
            counts.by_key,
            counts.by_type,
            counts.by_similarity,
            counts.depends
        ),
        (1, 1, 2, 2)
    );
    assert_eq!(
        (counts.servers, counts.tools, counts.inputs, counts.outputs),
        (2, 3, 6, 4)
    );
    assert_eq!(counts.edges(), 6 + 4 + 4 + 2);
}

#[test]
fn a_tool_does_not_fill_its_own_inputs() {
    let again = tool(
        "Shop",
        "next_page",
        vec![optional("page", ValueType::Integer)],
        vec![output("page", ValueType::Integer)],
    );
    assert_eq!(graph(vec![again]).links(), []);
}

#[test]
fn an_enumeration_of_one_value_says_nothing_by_its_type() {
    let graph = graph(vec![
        tool(
            "A",
            "give",
            vec![],
            vec![output("kind", one_of(&["order"]))],
        ),
        tool(
            "A",
            "take",
            vec![optional("topic", one_of(&["order"]))],
            vec![],
        ),
    ]);
    assert_eq!(graph.links(), []);
}

/// A measure that says one number.
struct Fixed {
    score: f64,
    threshold: f64,
}

impl Similarity for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn prepare<'a>(
        &'a self,
        wordings: &[Wording<'_>],
    ) -> Result<Score<'a>, Box<dyn Error + Send + Sync>> {
        assert_eq!(wordings[1].text(), "code (text): ");
        Ok(Box::new(|_, _| self.score))
    }
}

#[test]
fn a_score_at_the_threshold_makes_an_edge_and_one_below_does_not() {
    let tools = vec![
        tool("A", "take", vec![input("name", ValueType::Text)], vec![]),
        tool("A", "give", vec![], vec![output("code", ValueType::Text)]),
    ];
    let links = |score: f64| {
        let measure = Fixed {
            score,
            threshold: 0.85,
        };
        ToolGraph::new(tools.clone(), &measure)
            .unwrap()
            .links()
            .len()
    };
    assert_eq!(links(0.85), 1);
    assert_eq!(links(0.85_f64.next_down()), 0);
    assert_eq!(links(f64::NAN), 0);
}

/// A measure that cannot be asked.
struct Failing;

impl Similarity for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn threshold(&self) -> f64 {
        0.5
    }

    fn prepare<'a>(&'a self, _: &[Wording<'_>]) -> Result<Score<'a>, Box<dyn Error + Send + Sync>> {
        Err("the endpoint does not answer".into())
    }
}

#[test]
fn a_measure_that_fails_and_tools_of_one_name_are_errors() {
    let error = ToolGraph::new(vec![], &Failing).unwrap_err();
    assert!(
        matches!(&error, GraphError::Similarity(why) if why.to_string() == "the endpoint does not answer")
    );
    let twice = vec![
        tool("A", "b", vec![], vec![]),
        tool("A", "b", vec![], vec![]),
    ];
    let error = ToolGraph::new(twice, &Failing).unwrap_err();
    assert_eq!(
        error.to_string(),
        "two tools are called A-b; give their servers different names"
    );
}

#[test]
fn inputs_that_nothing_can_fill_are_reported_also_behind_tools_that_cannot_be_called() {
    let graph = graph(vec![
        tool(
            "A",
            "open",
            vec![input("token", key("A.session"))],
            vec![output("door", key("A.door"))],
        ),
        tool("A", "pass", vec![input("door", key("A.door"))], vec![]),
        tool(
            "A",
            "ring",
            vec![
                optional("door", key("A.door")),
                from_user("text", ValueType::Text),
            ],
            vec![],
        ),
        tool("A", "look", vec![], vec![output("window", key("A.window"))]),
        tool("A", "wave", vec![input("window", key("A.window"))], vec![]),
    ]);
    let ranks: Vec<Option<usize>> = (0..5).map(|tool| graph.rank(tool)).collect();
    assert_eq!(ranks, [None, None, Some(0), Some(0), Some(1)]);
    let found: Vec<(&str, bool, Why)> = graph
        .unfillable()
        .iter()
        .map(
            |Unfillable {
                 name,
                 required,
                 why,
                 ..
             }| (name.as_str(), *required, *why),
        )
        .collect();
    let expected = [
        ("A-open.token", true, Why::NoOutput),
        ("A-pass.door", true, Why::OnlyFromTheUncallable),
        ("A-ring.door", false, Why::OnlyFromTheUncallable),
    ];
    assert_eq!(found, expected);
    assert_eq!(graph.counts().unfillable, 3);
}

#[test]
fn the_user_provides_what_a_specification_declares_and_what_is_no_key() {
    let mut clinic = examples().remove(0);
    clinic.operations[3].parameters[1].from_user = true;
    let graph = graph_of(&[clinic]);
    let book = &graph.tools()[graph.find("Clinic-book_appointment").unwrap()];
    let provided: Vec<Option<FromUser>> = book.inputs.iter().map(|input| input.from_user).collect();
    assert_eq!(
        provided,
        [
            None,
            Some(FromUser::Declared),
            Some(FromUser::ByRule),
            Some(FromUser::ByRule)
        ]
    );
    assert_eq!(graph.unfillable(), []);
}

#[test]
fn the_examples_have_the_edges_that_a_reader_expects() {
    let graph = graph_of(&examples());
    let edges = shown(&graph);
    let has = |edge: &str| edges.iter().any(|shown| shown.starts_with(edge));
    assert!(has(
        "LendingLibrary-find_books.book_id -> LendingLibrary-lend_book.book_id: key of LendingLibrary.book"
    ));
    assert!(has(
        "Clinic-list_doctors.doctor_id -> Clinic-book_appointment.doctor_id: key of Clinic.doctor"
    ));
    assert!(has(
        "Warehouse-list_orders.customer -> Warehouse-create_order.customer: similarity"
    ));
    assert!(has(
        "Warehouse-search_products.tags -> Warehouse-set_tags.tags: similarity"
    ));
    assert!(!has(
        "LendingLibrary-find_member.member_id -> LendingLibrary-lend_book.book_id"
    ));
    assert_eq!(graph.unfillable(), []);
    assert!((0..graph.tools().len()).all(|tool| graph.rank(tool).is_some()));
    let servers: Vec<(&str, usize)> = graph
        .servers()
        .into_iter()
        .map(|(name, tools)| (name, tools.len()))
        .collect();
    assert_eq!(
        servers,
        [("Clinic", 8), ("LendingLibrary", 7), ("Warehouse", 8)]
    );
}
