//! Finds cycles in a graph.

use std::collections::{BTreeSet, VecDeque};

use super::graph::{Graph, Place};

/// Siblings that all depend on each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    pub(super) members: Vec<usize>,
    /// The arrows of a shortest path from one of them back to itself.
    pub(super) shortest: Vec<Arrow>,
}

/// A module that depends on a sibling.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The first place in `from` or a descendant that names `to` or a descendant.
    pub(super) place: Place,
}

/// The strongly connected components of `graph` that have more than one module.
pub(super) fn find(graph: &Graph) -> Vec<Cycle> {
    let ways: Vec<_> = (0..graph.arrows.len())
        .map(|from| ways(graph, from))
        .collect();
    let mut found = Vec::new();
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    for module in 0..ways.len() {
        if seen.contains(&module) || ways[module][module].is_none() {
            continue;
        }
        let members: Vec<_> = (module..ways.len())
            .filter(|&other| ways[module][other].is_some() && ways[other][module].is_some())
            .collect();
        seen.extend(&members);
        let way = members
            .iter()
            .filter_map(|&member| ways[member][member].as_ref());
        let shortest = way.min_by_key(|way| way.len()).cloned().unwrap_or_default();
        let arrows = shortest.windows(2).map(|pair| Arrow {
            from: pair[0],
            to: pair[1],
            place: graph.arrows[pair[0]][&pair[1]],
        });
        found.push(Cycle {
            shortest: arrows.collect(),
            members,
        });
    }
    found
}

/// A shortest path along arrows from `from` to each module, itself included; each path begins with `from`.
fn ways(graph: &Graph, from: usize) -> Vec<Option<Vec<usize>>> {
    let mut ways: Vec<Option<Vec<usize>>> = vec![None; graph.arrows.len()];
    let mut queue = VecDeque::from([vec![from]]);
    while let Some(way) = queue.pop_front() {
        let last = way[way.len() - 1];
        for &next in graph.arrows[last].keys() {
            if ways[next].is_none() {
                let mut longer = way.clone();
                longer.push(next);
                ways[next] = Some(longer.clone());
                queue.push_back(longer);
            }
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::modules::source;

    /// The cycles of a crate with these files, as `from -> to, ..`.
    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let modules = source::read(&folder.path().join("lib.rs")).unwrap();
        find(&Graph::new(&modules))
            .iter()
            .map(|cycle| {
                let arrows = cycle.shortest.iter().map(|arrow| {
                    format!(
                        "{} -> {} at {}",
                        modules[arrow.from].path.join("::"),
                        modules[arrow.to].path.join("::"),
                        arrow.place.line
                    )
                });
                arrows.collect::<Vec<_>>().join(", ")
            })
            .collect()
    }

    #[test]
    fn two_modules_that_name_each_other_are_a_cycle() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "\nuse crate::b::B; pub struct A;"),
            ("b.rs", "fn f(_: super::a::A) {} pub struct B;"),
        ];
        assert_eq!(cycles(&files), ["a -> b at 2, b -> a at 1"]);
    }

    #[test]
    fn one_direction_is_none() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::{b::B, c::C};"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            (
                "c.rs",
                "#[cfg(test)] mod tests { use crate::a; } pub struct C;",
            ),
        ];
        assert_eq!(cycles(&files), Vec::<String>::new());
    }

    #[test]
    fn parents_and_children_may_name_each_other() {
        let files = [
            ("lib.rs", "mod a; pub use a::A; use crate::a::b::B;"),
            ("a.rs", "mod b; use b::B; pub struct A;"),
            ("a/b.rs", "use super::A; use crate::a; pub struct B;"),
        ];
        assert_eq!(cycles(&files), Vec::<String>::new());
    }

    #[test]
    fn a_name_counts_for_the_module_that_defines_it() {
        let through_the_root = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
            ("a.rs", "use crate::B; pub struct A;"),
            ("b.rs", "use crate::A; pub struct B;"),
        ];
        assert_eq!(cycles(&through_the_root), ["a -> b at 1, b -> a at 1"]);
        let through_an_imported_module = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b; fn f() { b::c::g() } pub struct A;"),
            ("b.rs", "pub mod c;"),
            ("b/c.rs", "use crate::a::A; pub fn g() {}"),
        ];
        assert_eq!(
            cycles(&through_an_imported_module),
            ["a -> b at 1, b -> a at 1"]
        );
    }

    #[test]
    fn siblings_depend_on_each_other_through_their_children_too() {
        let through_a_child = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod x; pub struct A;"),
            ("a/x.rs", "\nuse crate::b::B;"),
            ("b.rs", "use crate::a::A; pub struct B;"),
        ];
        assert_eq!(cycles(&through_a_child), ["a -> b at 2, b -> a at 1"]);
        let through_different_children = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod x; pub mod y;"),
            ("a/x.rs", "use crate::b::y::B;"),
            ("a/y.rs", "pub struct A;"),
            ("b.rs", "mod x; pub mod y;"),
            ("b/x.rs", "use crate::a::y::A;"),
            ("b/y.rs", "pub struct B;"),
        ];
        assert_eq!(
            cycles(&through_different_children),
            ["a -> b at 1, b -> a at 1"]
        );
        let below_the_root = [
            ("lib.rs", "mod p;"),
            ("p.rs", "mod a; mod b;"),
            ("p/a.rs", "mod x; pub struct A;"),
            ("p/a/x.rs", "use super::super::b::B;"),
            ("p/b.rs", "use super::a::A; pub struct B;"),
        ];
        assert_eq!(
            cycles(&below_the_root),
            ["p::a -> p::b at 1, p::b -> p::a at 1"]
        );
    }

    #[test]
    fn a_child_may_depend_on_what_its_parent_does_not() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "mod x; pub struct A; use x::X;"),
            (
                "a/x.rs",
                "use super::A; use crate::{b::B, c::C}; pub struct X;",
            ),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", "pub struct C;"),
        ];
        assert_eq!(cycles(&files), Vec::<String>::new());
    }

    #[test]
    fn a_long_cycle_is_found_and_shown_by_its_shortest_way() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::c;"),
            ("c.rs", "use crate::{a, d};"),
            ("d.rs", "use crate::c;"),
        ];
        assert_eq!(cycles(&files), ["c -> d at 1, d -> c at 1"]);
    }

    #[test]
    fn names_of_other_crates_are_no_modules() {
        let files = [
            ("lib.rs", "mod tokio; mod a;"),
            ("tokio.rs", "use crate::a;"),
            ("a.rs", "use tokio::time; fn f() { tokio::spawn() }"),
        ];
        assert_eq!(cycles(&files), Vec::<String>::new());
    }
}
