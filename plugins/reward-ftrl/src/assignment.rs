//! The assignment problem: rows to columns, one to one, with the greatest sum of weights.
//!
//! Kuhn's Hungarian algorithm with potentials, one shortest augmenting path per row: in time O(r² c) with r the
//! smaller side (Jonker and Volgenant 1987, without their initialisation).

/// The column of each row; none for rows without one, if there are fewer columns. Weights are finite, and rows have
/// the same length.
pub(crate) fn assign(weights: &[Vec<f64>]) -> Vec<Option<usize>> {
    let columns = weights.first().map_or(0, Vec::len);
    if weights.len() <= columns {
        let columns = narrow(weights.len(), columns, |row, column| -weights[row][column]);
        return columns.into_iter().map(Some).collect();
    }
    let mut assigned = vec![None; weights.len()];
    let rows = narrow(columns, weights.len(), |row, column| -weights[column][row]);
    for (column, row) in rows.into_iter().enumerate() {
        assigned[row] = Some(column);
    }
    assigned
}

/// The column of each row at the least cost; there are at most as many rows as columns.
///
/// Reduced costs, cost - potential of row - potential of column, stay at or above 0, and are 0 where a row has its column.
fn narrow(rows: usize, columns: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    let mut row_potential = vec![0.0; rows];
    // The path of a new row begins at the column after the last one.
    let start = columns;
    let mut column_potential = vec![0.0; columns + 1];
    let mut row_of: Vec<Option<usize>> = vec![None; columns + 1];
    for row in 0..rows {
        row_of[start] = Some(row);
        let mut distance = vec![f64::INFINITY; columns];
        let mut previous = vec![start; columns];
        let mut visited = vec![false; columns + 1];
        let mut at = start;
        while let Some(row) = row_of[at] {
            visited[at] = true;
            let mut next = (f64::INFINITY, start);
            for column in (0..columns).filter(|column| !visited[*column]) {
                let reduced = cost(row, column) - row_potential[row] - column_potential[column];
                if reduced < distance[column] {
                    distance[column] = reduced;
                    previous[column] = at;
                }
                if distance[column] < next.0 {
                    next = (distance[column], column);
                }
            }
            let (step, nearest) = next;
            for column in 0..=columns {
                if visited[column] {
                    if let Some(row) = row_of[column] {
                        row_potential[row] += step;
                    }
                    column_potential[column] -= step;
                } else if let Some(distance) = distance.get_mut(column) {
                    *distance -= step;
                }
            }
            at = nearest;
        }
        // Back along the path, every column gets the row of the previous one.
        while at != start {
            row_of[at] = row_of[previous[at]];
            at = previous[at];
        }
    }
    let mut assigned = vec![0; rows];
    for (column, row) in row_of.into_iter().take(columns).enumerate() {
        if let Some(row) = row {
            assigned[row] = column;
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(weights: &[Vec<f64>], assigned: &[Option<usize>]) -> f64 {
        let pairs = weights.iter().zip(assigned);
        pairs
            .filter_map(|(row, column)| Some(row[(*column)?]))
            .sum()
    }

    /// The greatest sum over all ways to give the rows distinct columns, or none.
    fn brute_force(weights: &[Vec<f64>], taken: &mut Vec<usize>) -> f64 {
        let Some((row, rest)) = weights.split_first() else {
            return 0.0;
        };
        let mut best = brute_force(rest, taken);
        for (column, weight) in row.iter().enumerate() {
            if !taken.contains(&column) {
                taken.push(column);
                best = best.max(weight + brute_force(rest, taken));
                taken.pop();
            }
        }
        best
    }

    fn matrix() -> impl Strategy<Value = Vec<Vec<f64>>> {
        (0_usize..6, 0_usize..6).prop_flat_map(|(rows, columns)| {
            // Few values, so that there are ties.
            let weight = prop_oneof![Just(0.0), Just(0.5), Just(1.0), 0.0..1.0_f64];
            prop::collection::vec(prop::collection::vec(weight, columns), rows)
        })
    }

    #[test]
    fn what_is_best_for_one_gives_way_to_what_is_best_for_all() {
        assert_eq!(
            assign(&[vec![0.9, 0.8], vec![0.9, 0.1]]),
            [Some(1), Some(0)]
        );
        assert_eq!(
            assign(&[vec![0.2], vec![0.9], vec![0.1]]),
            [None, Some(0), None]
        );
        assert_eq!(assign(&[]), []);
        assert_eq!(assign(&[vec![], vec![]]), [None, None]);
    }

    proptest! {
        #[test]
        fn no_other_assignment_weighs_more(weights in matrix()) {
            let assigned = assign(&weights);
            prop_assert_eq!(assigned.len(), weights.len());
            let mut columns: Vec<usize> = assigned.iter().flatten().copied().collect();
            let given = columns.len();
            columns.sort_unstable();
            columns.dedup();
            prop_assert_eq!(columns.len(), given);
            let best = brute_force(&weights, &mut Vec::new());
            prop_assert!((sum(&weights, &assigned) - best).abs() < 1e-9);
        }
    }
}
