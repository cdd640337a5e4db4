//! Draws line charts as SVG.

use anyhow::Context;
use plotters::prelude::*;

/// One line of a chart.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Colours that people with red-green colour blindness can tell apart (Okabe and Ito 2008).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(80, 80, 80),
];

/// The colour of the `index`-th series, as CSS.
pub(crate) fn css_colour(index: usize) -> String {
    let RGBColor(r, g, b) = COLOURS[index % COLOURS.len()];
    format!("rgb({r},{g},{b})")
}

/// Draws `series` over a common x axis. The y axis covers `range`, or all points if it is `None`.
pub(crate) fn svg(
    series: &[Series],
    x_label: &str,
    range: Option<(f64, f64)>,
    size: (u32, u32),
) -> anyhow::Result<String> {
    let points = || series.iter().flat_map(|s| s.points.iter().copied());
    let finite = || points().filter(|(x, y)| x.is_finite() && y.is_finite());
    let (x_low, x_high) = bounds(finite().map(|(x, _)| x));
    let (y_low, y_high) = range.unwrap_or_else(|| bounds(finite().map(|(_, y)| y)));
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .x_label_area_size(28)
            .y_label_area_size(48)
            .build_cartesian_2d(x_low..x_high, y_low..y_high)
            .context("cannot lay out a chart")?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.08))
            .axis_style(BLACK.mix(0.4))
            .x_desc(x_label)
            .x_label_formatter(&axis_label)
            .y_label_formatter(&axis_label)
            .label_style(("sans-serif", 11))
            .draw()
            .context("cannot draw the axes of a chart")?;
        for (index, line) in series.iter().enumerate() {
            let style = COLOURS[index % COLOURS.len()].stroke_width(2);
            let kept = line
                .points
                .iter()
                .copied()
                .filter(|(x, y)| x.is_finite() && y.is_finite());
            chart
                .draw_series(
                    LineSeries::new(kept, style).point_size(if line.points.len() < 40 {
                        2
                    } else {
                        0
                    }),
                )
                .context("cannot draw a line of a chart")?;
        }
        area.present().context("cannot finish a chart")?;
    }
    Ok(text)
}

/// A number beside an axis, without the last digits that only its binary form has.
#[allow(clippy::trivially_copy_pass_by_ref)] // The signature of a formatter.
fn axis_label(value: &f64) -> String {
    let rounded: f64 = format!("{value:.6e}").parse().unwrap_or(*value);
    rounded.to_string()
}

/// Lowest and highest value, moved apart if all are equal.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
        (l.min(v), h.max(v))
    });
    if low > high {
        (0.0, 1.0)
    } else if high - low < 1e-12 {
        (low - 0.5, high + 0.5)
    } else {
        let margin = (high - low) * 0.05;
        (low - margin, high + margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_no_digits_of_the_binary_form() {
        let labels = [0.1 + 0.2, -0.000_1, 1200.0, 0.0].map(|value| axis_label(&value));
        assert_eq!(labels, ["0.3", "-0.0001", "1200", "0"]);
    }
}
