//! Broken specifications, one for each kind of finding: each is found, at its place.

use rlf_specification::{Format, Kind, Severity, check, check_text};

use crate::examples;

/// Replaces text in the lending library and returns the kinds, places and lines that are found.
fn broken(from: &str, to: &str) -> Vec<(Kind, String, Option<usize>)> {
    let library = library();
    assert!(library.contains(from), "{from}");
    let text = library.replacen(from, to, 1);
    let findings = check_text(&text, Format::Toml).findings;
    findings
        .into_iter()
        .map(|finding| (finding.kind, finding.place, finding.line))
        .collect()
}

fn library() -> String {
    let all = examples::all();
    all.into_iter()
        .find(|(name, _)| name == "LendingLibrary")
        .unwrap()
        .1
}

/// Broken specifications: the mistake, and the finding's kind and the beginning of its place.
const CASES: [(&str, &str, Kind, &str); 47] = [
    (
        "type = \"date\"",
        "type = \"day\"",
        Kind::Unreadable,
        "/values/0/type",
    ),
    (
        "read_only = true",
        "readonly = true",
        Kind::Unreadable,
        "/operations/0",
    ),
    ("name = \"LendingLibrary\"", "name = ", Kind::Unreadable, ""),
    (
        "counts = { book = 12,",
        "counts = { book = 12000,",
        Kind::TooLarge,
        "/scenarios/2/counts/book",
    ),
    (
        "name = \"text\", type = \"text\"",
        "name = \"text\", type = { list = { list = { list = { list = \"text\" } } } }",
        Kind::TooLarge,
        "/operations/0/parameters/0/type",
    ),
    (
        "name = \"LendingLibrary\"",
        "name = \"lending library\"",
        Kind::BadName,
        "/name",
    ),
    (
        "name = \"LendingLibrary\"",
        "name = \"List\"",
        Kind::BadName,
        "/name",
    ),
    (
        "name = \"find_books\"",
        "name = \"find-books\"",
        Kind::BadName,
        "/operations/0/name",
    ),
    (
        "prefix = \"B\"",
        "prefix = \"B1\"",
        Kind::BadName,
        "/entities/0/key/prefix",
    ),
    (
        "filter(m, members[m].full_name",
        "filter(lambda, members[lambda].full_name",
        Kind::BadExpression,
        "/operations/1/result/each/of",
    ),
    (
        "name = \"find_member\"",
        "name = \"find_books\"",
        Kind::DuplicateName,
        "/operations/1/name",
    ),
    (
        "collection = \"members\"",
        "collection = \"books\"",
        Kind::DuplicateName,
        "/entities/1/collection",
    ),
    (
        "name = \"today\"",
        "name = \"next_book\"",
        Kind::DuplicateName,
        "/entities/0/name",
    ),
    (
        "name = \"book_id\", type = { reference = \"book\" }, description = \"The book\"",
        "name = \"book_id\", type = { reference = \"boook\" }, description = \"The book\"",
        Kind::UnknownReference,
        "/entities/2/fields/0/type",
    ),
    (
        "entity = \"member\", key = \"member_id\", error",
        "entity = \"person\", key = \"member_id\", error",
        Kind::UnknownReference,
        "/operations/2/bindings/0/find/entity",
    ),
    (
        "out < book.copies",
        "out < book.copy",
        Kind::BadExpression,
        "/operations/3/preconditions/2/require",
    ),
    (
        "out < book.copies",
        "out < ",
        Kind::BadExpression,
        "/operations/3/preconditions/2/require",
    ),
    (
        "out < book.copies",
        "outt < book.copies",
        Kind::BadExpression,
        "/operations/3/preconditions/2/require",
    ),
    (
        "owes {member.fine} cents; pay_fine",
        "owes {member.fine cents; pay_fine",
        Kind::BadExpression,
        "/operations/3/preconditions/0/error",
    ),
    (
        "out < book.copies",
        "out < book.title",
        Kind::TypeMismatch,
        "/operations/3/preconditions/2/require",
    ),
    (
        "out < book.copies",
        "book.copies - out",
        Kind::TypeMismatch,
        "/operations/3/preconditions/2/require",
    ),
    (
        "loans[l].book_id == book_id)",
        "loans[l].book_id == member_id)",
        Kind::TypeMismatch,
        "/operations/3/bindings/2/compute/value",
    ),
    (
        "books[loans[l].book_id].title",
        "books[loans[l].member_id].title",
        Kind::TypeMismatch,
        "/operations/2/result/fields/2/value",
    ),
    (
        "addDays(today, days)",
        "addDays(days, today)",
        Kind::TypeMismatch,
        "/operations/3/effects/0/insert/values/due",
    ),
    (
        "default = 14",
        "default = 40",
        Kind::BadRange,
        "/operations/3/parameters/2/default",
    ),
    (
        "default = 14",
        "default = \"14\"",
        Kind::BadRange,
        "/operations/3/parameters/2/default",
    ),
    (
        "minimum = 1, maximum = 28",
        "minimum = 29, maximum = 28",
        Kind::BadRange,
        "/operations/3/parameters/2/minimum",
    ),
    (
        "enumeration = [\"novel\", \"essay\", \"travel\"]",
        "enumeration = []",
        Kind::BadRange,
        "/entities/0/fields/2/type",
    ),
    (
        "member.fine <= 500",
        "member.fine < 0",
        Kind::ImpossibleOperation,
        "/operations/3/preconditions/0/require",
    ),
    (
        "member.fine <= 500",
        "1 > 2",
        Kind::ImpossibleOperation,
        "/operations/3/preconditions/0/require",
    ),
    (
        "held < member.max_loans",
        "member.fine > 600",
        Kind::ImpossibleOperation,
        "/operations/3/preconditions/1/require",
    ),
    (
        "\"cents <= member.fine\"",
        "\"cents <= member.fine && cents < 1\"",
        Kind::ImpossibleOperation,
        "/operations/6/preconditions/0/require",
    ),
    (
        "{ name = \"loan_id\", type = { reference = \"loan\" }, value = \"l\", description = \"Number of the loan\" }",
        "{ name = \"loan_id\", type = \"text\", value = \"l\" }",
        Kind::Unreadable,
        "-",
    ),
    (
        "{ name = \"member_id\", type = { reference = \"member\" }, value = \"m\", description = \"Number on the card\" }",
        "{ name = \"card\", type = \"text\", value = \"m\" }",
        Kind::UnfillableParameter,
        "/operations/2/parameters/0",
    ),
    (
        "\"members.filter(m, members[m].full_name.contains(text))\"",
        "\"members\"",
        Kind::Unused,
        "/operations/1/parameters/0",
    ),
    (
        "value = \"members[m].max_loans\"",
        "value = \"members[m].fine\"",
        Kind::RepeatedResult,
        "/operations/1/result/fields/3/value",
    ),
    (
        "values = { fine = \"member.fine - cents\" }",
        "values = { fines = \"member.fine - cents\" }",
        Kind::BadEffect,
        "/operations/6/effects/0/set/values/fines",
    ),
    (
        "{ delete = { entity = \"loan\"",
        "{ delete = { entity = \"lend\"",
        Kind::BadEffect,
        "/operations/5/effects/1/delete/entity",
    ),
    (
        ", renewed = \"false\" }",
        " }",
        Kind::BadEffect,
        "/operations/3/effects/0/insert/values",
    ),
    (
        "description = \"Lend a free copy",
        "read_only = true\ndescription = \"Lend a free copy",
        Kind::BadEffect,
        "/operations/3",
    ),
    (
        "description = \"Part of the name\"",
        "description = \"Part of the name, as in Alma\"",
        Kind::LeakingDescription,
        "/operations/1/parameters/0/description",
    ),
    (
        "description = \"Number of the loan\" }]",
        "description = \"Number of the loan, as in L1\" }]",
        Kind::LeakingDescription,
        "/operations/4/parameters/0/description",
    ),
    (
        "description = \"List the open loans of a member.\"",
        "description = \"\"",
        Kind::MissingDescription,
        "/operations/2/description",
    ),
    (
        "generate = { word = \"titles\" }",
        "generate = { word = \"title\" }",
        Kind::BadScenario,
        "/entities/0/fields/0",
    ),
    (
        "unique = true, generate = { word = \"titles\" }",
        "unique = true",
        Kind::BadScenario,
        "/entities/0/fields/0",
    ),
    (
        "size = \"medium\"",
        "size = \"simple\"",
        Kind::BadScenario,
        "/scenarios/1/size",
    ),
    (
        "postconditions = [\n    { require = \"!(loan_id in loans)\" },\n    { require = \"members[loan.member_id].fine - owed == late * 20\" },\n]\n",
        "",
        Kind::Unguarded,
        "/operations/5",
    ),
];

#[test]
fn every_broken_specification_is_found_at_its_place() {
    for (from, to, kind, place) in CASES {
        let found = broken(from, to);
        if place == "-" {
            // Another operation returns the key as well, so nothing is wrong.
            assert_eq!(found, [], "{to}");
            continue;
        }
        let hit = found
            .iter()
            .find(|(found, at, _)| *found == kind && at.starts_with(place));
        let (_, _, line) = hit.unwrap_or_else(|| panic!("{from} -> {to}: {found:?}"));
        assert!(line.is_some(), "{to}");
    }
}

#[test]
fn there_is_a_broken_specification_for_every_kind() {
    for kind in Kind::ALL {
        assert!(
            CASES.iter().any(|(_, _, found, _)| *found == kind),
            "{kind:?}"
        );
    }
}

#[test]
fn a_specification_without_operations_is_not_played() {
    let mut specification = rlf_specification::read(&library(), Format::Toml).unwrap();
    specification.operations.clear();
    let checked = check(&specification);
    assert!(checked.program.is_none());
    let finding = &checked.findings[0];
    assert_eq!(
        finding.to_string(),
        "/operations: there is no operation; write at least one"
    );
}

#[test]
fn a_finding_names_line_place_and_mend() {
    let text = library().replacen("out < book.copies", "out < book.copys", 1);
    let checked = check_text(&text, Format::Toml);
    assert!(checked.program.is_none());
    let finding = &checked.findings[0];
    let line = text
        .lines()
        .position(|line| line.contains("book.copys"))
        .unwrap()
        + 1;
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(
        finding.to_string(),
        format!(
            "line {line}, /operations/3/preconditions/2/require: book has no field `copys`; did you mean `copies`?"
        )
    );
}

#[test]
fn json_is_read_like_toml() {
    for (name, text) in examples::all() {
        let toml = rlf_specification::read(&text, Format::Toml).unwrap();
        let json = serde_json::to_string_pretty(&toml).unwrap();
        assert_eq!(
            rlf_specification::read(&json, Format::Json).unwrap(),
            toml,
            "{name}"
        );
    }
    let error = rlf_specification::read("{\"name\": 1}", Format::Json).unwrap_err();
    assert_eq!((error.place.as_str(), error.line), ("/name", Some(1)));
}

#[test]
fn a_number_that_is_not_finite_is_refused_at_its_line() {
    let line = library()
        .lines()
        .position(|line| line.contains("name = \"copies\""));
    let place = "/entities/0/fields/1/generate/constant".to_owned();
    for number in ["nan", "inf", "-inf"] {
        let generator = format!("generate = {{ constant = {number} }}");
        let found = broken(
            "generate = { range = { minimum = 1, maximum = 3 } }",
            &generator,
        );
        let expected = (Kind::Unreadable, place.clone(), Some(line.unwrap() + 1));
        assert_eq!(found, [expected]);
    }
}

#[test]
fn a_count_and_a_file_of_another_form_say_what_they_have_to_be() {
    let text = library().replacen("counts = { book = 12,", "counts = { book = -1,", 1);
    let found = check_text(&text, Format::Toml).findings[0].to_string();
    assert!(
        found.contains("a number from 0 to 500, or [least, most]"),
        "{found}"
    );
    for text in ["[]", "\n\"Doors\"", "7"] {
        let finding = rlf_specification::read(text, Format::Json).unwrap_err();
        assert_eq!((finding.kind, finding.line), (Kind::Unreadable, Some(1)));
        assert!(finding.message.contains("is an object"), "{finding}");
    }
}

#[test]
fn a_prefix_that_cannot_be_seen_is_refused() {
    for prefix in ["", "B\\u200b", "\\u202eB", "\\u0000"] {
        let found = broken("prefix = \"B\"", &format!("prefix = \"{prefix}\""));
        let (kind, place, _) = &found[0];
        let expected = (&Kind::BadName, "/entities/0/key/prefix");
        assert_eq!((kind, place.as_str()), expected, "{prefix}");
    }
}
