//! Functions and constants that an expression may name.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::ToPrimitive;

use crate::evaluate::Problem;
use crate::number::{Number, NumberError};

/// The names that are shown if a name is unknown.
pub(crate) const NAMES: &str = "abs, min, max, sum, mean, round, floor, ceil, trunc, sqrt, gcd, lcm, \
                                factorial, exp, ln, log, log2, log10, sin, cos, tan, pi and e";

/// 449! has 1,000 digits.
const MAX_FACTORIAL: u32 = 449;

/// Applies a function to its arguments; a constant has none.
pub(crate) fn apply(name: &str, arguments: &[Number]) -> Result<Number, Problem> {
    let result = match (name, arguments) {
        ("pi", []) => {
            Number::decimal("3141592653589793238462643383279503", 33).and_then(|x| inexact(&x))
        }
        ("e", []) => {
            Number::decimal("2718281828459045235360287471352662", 33).and_then(|x| inexact(&x))
        }

        ("abs", [x]) => Ok(x.absolute()),
        ("floor", [x]) => Ok(x.floor()),
        ("ceil", [x]) => Ok(x.ceiling()),
        ("trunc" | "int", [x]) => Ok(x.truncate()),
        ("round", [x]) => x.round(0),
        ("round", [x, decimals]) => match decimals.to_integer().and_then(|n| n.to_i32()) {
            Some(decimals) => x.round(decimals),
            None => Err(NumberError::Undefined(
                "the decimals of round are a whole number",
            )),
        },
        ("sqrt", [x]) => x.square_root(),

        ("min", [first, rest @ ..]) => Ok(extreme(first, rest, Ordering::Less)),
        ("max", [first, rest @ ..]) => Ok(extreme(first, rest, Ordering::Greater)),
        ("sum", [first, rest @ ..]) => sum(first, rest),
        ("mean" | "average" | "avg", [first, rest @ ..]) => {
            sum(first, rest).and_then(|sum| sum.divide(&Number::integer(arguments.len())?))
        }

        ("gcd", [a, b]) => whole(a, b, Integer::gcd),
        ("lcm", [a, b]) => whole(a, b, Integer::lcm),
        ("factorial", [n]) => factorial(n),

        ("exp", [x]) => x.to_f64().and_then(|x| Number::approximate(x.exp())),
        ("sin", [x]) => x.to_f64().and_then(|x| Number::approximate(x.sin())),
        ("cos", [x]) => x.to_f64().and_then(|x| Number::approximate(x.cos())),
        ("tan", [x]) => x.to_f64().and_then(|x| Number::approximate(x.tan())),
        ("ln", [x]) => logarithm(x, f64::ln),
        ("log2", [x]) => logarithm(x, f64::log2),
        ("log10", [x]) => logarithm(x, f64::log10),
        ("log", [x, base]) => {
            logarithm(base, f64::ln).and_then(|below| logarithm(x, f64::ln)?.divide(&below))
        }
        ("log", [_]) => Err(NumberError::Undefined(
            "log takes a number and a base, as in log(8, 2); or write ln, log2 or log10",
        )),

        _ => return Err(mismatch(name, arguments.len())),
    };
    result.map_err(Problem::Number)
}

fn inexact(constant: &Number) -> Result<Number, NumberError> {
    constant.divide(&Number::integer(1)?)
}

fn extreme(first: &Number, rest: &[Number], wanted: Ordering) -> Number {
    rest.iter()
        .fold(first, |best, next| {
            if next.compare(best) == wanted {
                next
            } else {
                best
            }
        })
        .clone()
}

fn sum(first: &Number, rest: &[Number]) -> Result<Number, NumberError> {
    rest.iter()
        .try_fold(first.clone(), |sum, next| sum.add(next))
}

fn whole(
    a: &Number,
    b: &Number,
    combine: impl FnOnce(&BigInt, &BigInt) -> BigInt,
) -> Result<Number, NumberError> {
    match (a.to_integer(), b.to_integer()) {
        (Some(a), Some(b)) => Number::integer(combine(&a, &b)),
        _ => Err(NumberError::Undefined("gcd and lcm take whole numbers")),
    }
}

fn factorial(n: &Number) -> Result<Number, NumberError> {
    let count = n
        .to_integer()
        .ok_or(NumberError::Undefined("factorial takes a whole number"))?;
    if n.negate().is_positive() {
        return Err(NumberError::Undefined("factorial takes no negative number"));
    }
    let count = count
        .to_u32()
        .filter(|count| *count <= MAX_FACTORIAL)
        .ok_or(NumberError::TooLarge)?;
    Number::integer((1..=count).fold(BigInt::from(1), |product, factor| product * factor))
}

fn logarithm(x: &Number, function: fn(f64) -> f64) -> Result<Number, NumberError> {
    if !x.is_positive() {
        return Err(NumberError::Undefined(
            "the logarithm of zero or a negative number is not real",
        ));
    }
    Number::approximate(function(x.to_f64()?))
}

/// A known name with another number of arguments, or an unknown one.
fn mismatch(name: &str, given: usize) -> Problem {
    const KNOWN: [(&str, &str); 25] = [
        ("pi", "no arguments"),
        ("e", "no arguments"),
        ("abs", "1 argument"),
        ("floor", "1 argument"),
        ("ceil", "1 argument"),
        ("trunc", "1 argument"),
        ("int", "1 argument"),
        ("round", "1 or 2 arguments"),
        ("sqrt", "1 argument"),
        ("min", "1 or more arguments"),
        ("max", "1 or more arguments"),
        ("sum", "1 or more arguments"),
        ("mean", "1 or more arguments"),
        ("average", "1 or more arguments"),
        ("avg", "1 or more arguments"),
        ("gcd", "2 arguments"),
        ("lcm", "2 arguments"),
        ("factorial", "1 argument"),
        ("exp", "1 argument"),
        ("sin", "1 argument"),
        ("cos", "1 argument"),
        ("tan", "1 argument"),
        ("ln", "1 argument"),
        ("log2", "1 argument"),
        ("log10", "1 argument"),
    ];
    match KNOWN.iter().find(|(known, _)| *known == name) {
        Some((function, takes)) => Problem::Arguments {
            function,
            takes,
            given,
        },
        None if name == "log" => Problem::Arguments {
            function: "log",
            takes: "2 arguments",
            given,
        },
        None => Problem::UnknownName(name.to_owned()),
    }
}
