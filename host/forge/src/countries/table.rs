//! The table that the tool `lookup` serves: real and made-up countries, one row each.

use std::collections::HashMap;
use std::fmt::Write as _;

use rlf_dialogue::split::Split;

use super::decimal::Decimal;
use super::facts::Country;

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Column {
    /// Thousands of square kilometres, a whole number.
    Area,
    /// Millions of people, with at most one digit after the point.
    Population,
    /// Name of a city.
    Capital,
    /// One of six continents.
    Continent,
    /// Name of another country of the table that shares a land border.
    Neighbour,
}

impl Column {
    /// All columns after the name, in the order of the table.
    pub const ALL: [Self; 5] = [
        Self::Area,
        Self::Population,
        Self::Capital,
        Self::Continent,
        Self::Neighbour,
    ];
    /// The columns with numbers.
    pub const NUMERIC: [Self; 2] = [Self::Area, Self::Population];

    /// The name in the table, in questions and in calls.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Area => "area",
            Self::Population => "population",
            Self::Capital => "capital",
            Self::Continent => "continent",
            Self::Neighbour => "neighbour",
        }
    }

    /// The column of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.as_str() == name)
    }
}

/// One country.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The key: lower-case ASCII letters and spaces.
    pub name: String,
    /// Its capital.
    pub capital: String,
    /// Its continent.
    pub continent: String,
    /// Thousands of square kilometres.
    pub area: u32,
    /// Tenths of a million people.
    pub population: u32,
    /// Position of its neighbour in the table, always of the same split.
    pub neighbour: Option<usize>,
    /// The split whose questions may name it.
    pub split: Split,
    /// True if it was made up.
    pub generated: bool,
}

impl Row {
    pub(crate) fn real(country: &Country, split: Split, neighbour: Option<usize>) -> Self {
        Self {
            name: country.name.clone(),
            capital: country.capital.clone(),
            continent: country.continent.clone(),
            area: country.area,
            population: country.population,
            neighbour,
            split,
            generated: false,
        }
    }

    /// The value of a numeric column; none for the others.
    pub(crate) fn number(&self, column: Column) -> Option<Decimal> {
        match column {
            Column::Area => Some(Decimal::new(i128::from(self.area), 0)),
            Column::Population => Some(Decimal::new(i128::from(self.population), 1)),
            Column::Capital | Column::Continent | Column::Neighbour => None,
        }
    }
}

/// All countries, with an index by name.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Row>,
    positions: HashMap<String, usize>,
}

impl Table {
    pub(crate) fn new(rows: Vec<Row>) -> Self {
        let positions = rows
            .iter()
            .enumerate()
            .map(|(position, row)| (row.name.clone(), position))
            .collect();
        Self { rows, positions }
    }

    /// The countries, real ones first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The country of this name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.positions
            .get(name)
            .map(|&position| &self.rows[position])
    }

    /// The cell as the table writes it; none if it is empty.
    pub fn cell(&self, row: &Row, column: Column) -> Option<String> {
        match column {
            Column::Capital => Some(row.capital.clone()),
            Column::Continent => Some(row.continent.clone()),
            Column::Neighbour => row
                .neighbour
                .map(|neighbour| self.rows[neighbour].name.clone()),
            Column::Area | Column::Population => {
                row.number(column).map(|number| number.to_string())
            }
        }
    }

    /// The file for the lookup plugin: CSV with a header, `name` first. No cell needs quoting.
    pub fn to_csv(&self) -> String {
        let mut csv = String::from("name");
        for column in Column::ALL {
            csv.push(',');
            csv.push_str(column.as_str());
        }
        csv.push('\n');
        for row in &self.rows {
            csv.push_str(&row.name);
            for column in Column::ALL {
                let cell = self.cell(row, column).unwrap_or_default();
                write!(csv, ",{cell}").expect("writing to a string cannot fail");
            }
            csv.push('\n');
        }
        csv
    }
}
