//! The table that the tool `lookup` serves: real countries and generated ones, one row each.

use std::collections::HashMap;
use std::fmt::Write as _;

use rlf_dialogue::split::Split;

use crate::decimal::Decimal;
use crate::facts::Country;

/// What can be asked of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Column {
    /// Thousands of square kilometres, a whole number.
    Area,
    /// Millions of people, at most one digit behind the point.
    Population,
    /// Name of a city.
    Capital,
    /// One of six.
    Continent,
    /// Name of another entity of the table: one of those across a land border.
    Neighbour,
}

impl Column {
    /// In the order of the table, behind the name.
    pub const ALL: [Self; 5] = [
        Self::Area,
        Self::Population,
        Self::Capital,
        Self::Continent,
        Self::Neighbour,
    ];
    /// Those whose values can be computed with.
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

/// One entity.
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
    /// Where it may be asked about.
    pub split: Split,
    /// Whether it was made up.
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

    /// A column that can be computed with; none for the others.
    pub(crate) fn number(&self, column: Column) -> Option<Decimal> {
        match column {
            Column::Area => Some(Decimal::new(i128::from(self.area), 0)),
            Column::Population => Some(Decimal::new(i128::from(self.population), 1)),
            Column::Capital | Column::Continent | Column::Neighbour => None,
        }
    }
}

/// All entities of a world.
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

    /// The entities, real ones first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The entity of this name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.positions
            .get(name)
            .map(|&position| &self.rows[position])
    }

    /// The cell as the table writes it; none where it is empty.
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

    /// The file to bind to the lookup plugin: CSV with a header, `name` first. No cell needs quoting.
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
