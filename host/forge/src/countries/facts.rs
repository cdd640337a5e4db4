//! The real countries that ship with the crate, compiled by this project. The file explains how numbers are rounded.

use std::collections::BTreeMap;

const COUNTRIES: &str = include_str!("data/countries.csv");
const HEADER: &str = "name,capital,continent,area,population,neighbours";

/// One real country.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Country {
    /// Lower-case ASCII letters and spaces, like every name here.
    pub name: String,
    /// Its capital.
    pub capital: String,
    /// One of six continents.
    pub continent: String,
    /// Thousands of square kilometres.
    pub area: u32,
    /// Tenths of a million people.
    pub population: u32,
    /// Countries of the table that share a land border with it.
    pub neighbours: Vec<String>,
}

/// The reason why the shipped table of countries cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountryTableError {
    /// The first line that is not a comment does not name the right columns.
    #[error("countries.csv: the columns must be `{HEADER}`")]
    Header,
    /// A row that cannot be read.
    #[error("countries.csv:{line}: {problem}")]
    Row {
        /// Counted from 1, comments included.
        line: usize,
        /// The problem, and the right form.
        problem: String,
    },
    /// A border that only one side names, or a neighbour that is not in the table.
    #[error(
        "countries.csv: `{name}` names the neighbour `{neighbour}`, which does not name it back"
    )]
    OneSidedBorder {
        /// The country that names it.
        name: String,
        /// The neighbour.
        neighbour: String,
    },
}

/// The real countries, in the order of the file.
pub fn real_countries() -> Result<Vec<Country>, CountryTableError> {
    parse(COUNTRIES)
}

fn parse(text: &str) -> Result<Vec<Country>, CountryTableError> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#'));
    if lines.next().map(|(_, line)| line) != Some(HEADER) {
        return Err(CountryTableError::Header);
    }
    let mut countries: Vec<Country> = Vec::new();
    for (index, line) in lines {
        let country = parse_row(line).map_err(|problem| CountryTableError::Row {
            line: index + 1,
            problem,
        })?;
        if countries.iter().any(|other| other.name == country.name) {
            let problem = format!("a second row for `{}`", country.name);
            return Err(CountryTableError::Row {
                line: index + 1,
                problem,
            });
        }
        countries.push(country);
    }
    let borders: BTreeMap<&str, &[String]> = countries
        .iter()
        .map(|country| (country.name.as_str(), &*country.neighbours))
        .collect();
    for (&name, neighbours) in &borders {
        for neighbour in *neighbours {
            if !borders
                .get(neighbour.as_str())
                .is_some_and(|back| back.iter().any(|other| other == name))
            {
                return Err(CountryTableError::OneSidedBorder {
                    name: name.into(),
                    neighbour: neighbour.clone(),
                });
            }
        }
    }
    Ok(countries)
}

fn parse_row(line: &str) -> Result<Country, String> {
    let fields: Vec<&str> = line.split(',').collect();
    let [name, capital, continent, area, population, neighbours] = fields[..] else {
        return Err(format!(
            "{} fields where 6 are due; no field may hold a comma",
            fields.len()
        ));
    };
    for text in [name, capital, continent] {
        let words = text.split(' ');
        if !words
            .clone()
            .all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()))
        {
            return Err(format!(
                "`{text}` must be lower-case ASCII words with one space between them"
            ));
        }
    }
    let area = area
        .parse()
        .map_err(|_| format!("the area `{area}` must be a whole number"))?;
    let tenths = population
        .split_once('.')
        .filter(|(_, tenths)| tenths.len() == 1);
    let population = tenths
        .and_then(|(whole, tenths)| format!("{whole}{tenths}").parse().ok())
        .ok_or_else(|| {
            format!("the population `{population}` must have one digit behind the point")
        })?;
    Ok(Country {
        name: name.into(),
        capital: capital.into(),
        continent: continent.into(),
        area,
        population,
        neighbours: neighbours
            .split(';')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_is_sound_and_large() {
        let countries = real_countries().unwrap();
        assert_eq!(countries.len(), 169);
        assert!(
            countries
                .iter()
                .all(|country| country.area > 0 && country.population > 0)
        );
        let continents: std::collections::BTreeSet<&str> =
            countries.iter().map(|c| c.continent.as_str()).collect();
        assert_eq!(continents.len(), 6, "{continents:?}");
        assert!(
            COUNTRIES.contains("Licence:"),
            "the file names its source and licence"
        );
    }

    #[test]
    fn a_few_facts_that_everyone_can_check() {
        let countries = real_countries().unwrap();
        let of = |name: &str| {
            countries
                .iter()
                .find(|country| country.name == name)
                .unwrap()
        };
        assert_eq!(of("france").capital, "paris");
        assert_eq!(of("russia").area, 17_098);
        assert_eq!(of("japan").neighbours, Vec::<String>::new());
        assert_eq!(of("portugal").neighbours, ["spain"]);
        assert_eq!(of("bolivia").population, 124);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let row = |row: &str| {
            parse(&format!("# comment\n{HEADER}\n{row}\n"))
                .unwrap_err()
                .to_string()
        };
        assert!(row("a,b,asia,1").starts_with("countries.csv:3: 4 fields"));
        assert!(row("Aland,b,asia,1,1.0,").contains("`Aland` must be lower-case"));
        assert!(row("a,b,asia,1.5,1.0,").contains("area `1.5`"));
        assert!(row("a,b,asia,1,10,").contains("population `10`"));
        assert!(row("a,b,asia,1,1.0,c").contains("does not name it back"));
        assert_eq!(parse("name\n"), Err(CountryTableError::Header));
    }
}
