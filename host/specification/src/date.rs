//! Days of the Gregorian calendar, from year 1 to 9999, as `YYYY-MM-DD`.

/// Day number of the text, counted from 1970-01-01. None if it is not a day.
pub fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let digits = |from: usize, to: usize| {
        let part = bytes.get(from..to)?;
        part.iter().try_fold(0i64, |value, byte| {
            byte.is_ascii_digit()
                .then(|| value * 10 + i64::from(byte - b'0'))
        })
    };
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let number = days(year, month, day);
    (year >= 1 && (1..=12).contains(&month) && format(number).as_deref() == Some(text))
        .then_some(number)
}

/// The text of a day number. None outside of the years 1 to 9999.
pub fn format(number: i64) -> Option<String> {
    // Within 20,000 years of 1970, so that nothing below overflows.
    if !(-800_000..=3_000_000).contains(&number) {
        return None;
    }
    // Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days.
    let shifted = number + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (1..=9_999)
        .contains(&year)
        .then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Day number of a date that may not exist. The month is from 1 to 12.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_texts_are_inverse_and_nothing_else_is_a_day() {
        assert_eq!(parse("1970-01-01"), Some(0));
        assert_eq!(parse("2024-02-29"), Some(19_782));
        for number in [-719_162, -1, 0, 59, 60, 19_782, 2_932_896] {
            assert_eq!(format(number).and_then(|text| parse(&text)), Some(number));
        }
        for wrong in [
            "",
            "2023-02-29",
            "2024-13-01",
            "2024-1-1",
            "0000-01-01",
            "2024-00-10",
            "2024-01-00",
            "20240101",
            "2024-01-0x",
            "\u{fc}024-01-0",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(format(2_932_897), None);
        assert_eq!(format(i64::MIN), None);
    }
}
