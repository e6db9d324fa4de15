//! The drawing: length of the message against the time of one way, both by their logarithms.

use crate::batch::Source;
use crate::report::{Cell, bytes, contestants};
use crate::{Result, SIZES, perftest};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use std::ops::Range;
use std::path::Path;

const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
/// In the order of the contestants; told apart by people who see colours otherwise (after Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x88, 0x88, 0x88),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xa8, 0xb8, 0x30),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xcc, 0x79, 0xa7),
];

/// A panel for each kind of source.
pub(crate) fn draw(path: &Path, floor: f64, cells: &[Cell<'_>]) -> Result<()> {
    let root = SVGBackend::new(path, (1200, 600)).into_drawing_area();
    root.fill(&WHITE)?;
    let slowest = cells.iter().map(|cell| cell.p10).fold(floor, f64::max);
    let range = 10_f64.min(floor / 1.5)..1.5 * slowest;
    for (area, source) in root.split_evenly((1, 2)).iter().zip(Source::ALL) {
        let cells: Vec<_> = cells.iter().filter(|cell| cell.source == source).collect();
        panel(area, source, floor, range.clone(), &cells)?;
    }
    Ok(root.present()?)
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    source: Source,
    floor: f64,
    range: Range<f64>,
    cells: &[&Cell<'_>],
) -> Result<()> {
    let sizes = SIZES.map(|size| size as f64);
    let (least, most) = (sizes[0], sizes[sizes.len() - 1]);
    let decades: Vec<f64> = (0..9).map(|power| 10_f64.powi(power)).filter(|at| range.contains(at)).collect();
    let title = match source {
        Source::Warm => "the same message again and again",
        Source::Rewritten => "written anew before each send",
    };
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .caption(title, ("sans-serif", 20))
        .build_cartesian_2d(
            // Without 32, whose label has no room.
            (least..most).log_scale().with_key_points(sizes.iter().copied().filter(|&size| size != 32.0).collect()),
            range.log_scale().with_key_points(decades),
        )?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(INK.mix(0.15))
        .axis_style(INK)
        .label_style(("sans-serif", 14))
        .x_label_formatter(&|size| bytes(*size as usize))
        .y_label_formatter(&|time| if *time < 1e3 { format!("{time:.0} ns") } else { format!("{:.0} µs", time / 1e3) })
        .x_desc("message")
        .y_desc("one way, 10th percentile")
        .draw()?;
    chart
        .draw_series(DashedLineSeries::new([(least, floor), (most, floor)], 6, 5, INK.stroke_width(2)))?
        .label(format!("floor: a cache line alone, {floor:.0} ns"))
        .legend(|(x, y)| DashedPathElement::new([(x, y), (x + 20, y)], 6, 5, INK.stroke_width(2)));
    for (name, colour) in contestants().into_iter().zip(COLOURS) {
        let of = cells.iter().filter(|cell| cell.contestant == name);
        let mut points: Vec<_> = of.map(|cell| (cell.size as f64, cell.p10)).collect();
        // UCX's other line would hide the first.
        if points.is_empty() || name == perftest::NAME {
            continue;
        }
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let width = if name.starts_with("rdma") { 3 } else { 2 };
        let style = colour.stroke_width(width);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(INK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(())
}
