//! The figures as drawings: bars of ratios, and curves of costs.

use crate::{
    curves::{Along, Point},
    figures::{Figures, Goal, Row, Section},
    svg::{Anchor, FAINT, INK, RULE, Svg},
    table::{number, whole},
};

const COLOURS: [&str; 7] = ["#59636e", "#0969da", "#bc4c00", "#8250df", "#1a7f37", "#9a6700", "#cf222e"];
const LIMIT: usize = 0;

fn colour(column: usize) -> &'static str {
    COLOURS.get(column).copied().unwrap_or(FAINT)
}

/// A logarithmic scale whose ends are round numbers.
#[derive(Clone, Copy, Debug)]
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// One that has room for one and for all of these.
    fn over(values: impl Iterator<Item = f64>, (from, to): (f64, f64)) -> Self {
        let (min, max) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((1.0, 1.0), |(min, max): (f64, f64), value| (min.min(value), max.max(value)));
        let low = ROUND.into_iter().rfind(|number| *number <= min).unwrap_or(min);
        let high = ROUND.into_iter().find(|number| *number >= max && *number > low).unwrap_or(max);
        Self { low, high, from, to }
    }

    fn at(self, value: f64) -> f64 {
        let share = (value / self.low).log10() / (self.high / self.low).log10();
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Powers of ten, and the others too if there are few.
    fn ticks(self) -> impl Iterator<Item = f64> {
        let short = self.high / self.low <= 200.0;
        ROUND
            .into_iter()
            .filter(move |tick| self.low <= *tick && *tick <= self.high)
            .filter(move |tick| short || (tick.log10() - tick.log10().round()).abs() < 1e-9)
    }
}

const ROUND: [f64; 21] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3,
    1e4, 2e4, 5e4,
];

const LABELS: f64 = 300.0;
const WIDTH: f64 = 860.0;
const TOP: f64 = 44.0;
const BAR: f64 = 11.0;
const GAP: f64 = 10.0;

/// For each row a bar for each column but the first: how many times the first's cost. A tick is the goal.
pub(crate) fn bars(figures: &Figures, section: Section, title: &str) -> Option<String> {
    let rows: Vec<_> = figures.of(section).filter(|(at, _)| figures.times(*at, LIMIT).is_some()).collect();
    if rows.is_empty() {
        return None;
    }
    let columns = 1..figures.names.len();
    let times = |at: usize| columns.clone().filter_map(move |column| figures.times(at, column));
    let scale = Scale::over(rows.iter().flat_map(|(at, _)| times(*at)), (LABELS, WIDTH - 60.0));
    let tall = BAR * columns.len() as f64 + GAP;
    let height = TOP + tall * rows.len() as f64 + 30.0;
    let mut svg = Svg::new(WIDTH, height);
    svg.text((12.0, 18.0), Anchor::Start, INK, title);
    legend(&mut svg, figures, 1, 34.0);
    for tick in scale.ticks() {
        let x = scale.at(tick);
        svg.line((x, TOP), (x, height - 26.0), RULE, 1.0);
        svg.text((x, height - 10.0), Anchor::Middle, FAINT, &format!("{tick} ×"));
    }
    for (nth, (at, row)) in rows.iter().enumerate() {
        let y = TOP + GAP / 2.0 + tall * nth as f64;
        svg.text((LABELS - 8.0, y + (tall - GAP) / 2.0 + 4.0), Anchor::End, INK, &row.name);
        for (place, column) in columns.clone().enumerate() {
            let y = y + BAR * place as f64;
            let Some(times) = figures.times(*at, column) else {
                svg.text((scale.at(1.0) + 4.0, y + 9.0), Anchor::Start, FAINT, "–");
                continue;
            };
            let (one, end) = (scale.at(1.0), scale.at(times));
            svg.bar((one.min(end), y + 1.0), ((end - one).abs().max(1.0), BAR - 2.0), colour(column));
            svg.text((one.max(end) + 4.0, y + 9.0), Anchor::Start, INK, &number(times));
        }
        if let Some(goal) = goal(figures, *at, row) {
            let x = scale.at(goal);
            svg.line((x, y - 2.0), (x, y + BAR + 2.0), INK, 2.0);
        }
    }
    let one = scale.at(1.0);
    svg.line((one, TOP), (one, height - 26.0), INK, 1.0);
    Some(svg.finish())
}

/// As a ratio, whatever it was given as.
fn goal(figures: &Figures, at: usize, row: &Row) -> Option<f64> {
    match row.goal? {
        Goal::Times(times) => Some(times),
        Goal::Max(max) => Some(max / figures.cost(at, LIMIT)?).filter(|times| times.is_finite()),
    }
}

fn legend(svg: &mut Svg, figures: &Figures, first: usize, y: f64) {
    let mut x = 12.0;
    for (column, name) in figures.names.iter().enumerate().skip(first) {
        svg.bar((x, y - 8.0), (10.0, 8.0), colour(column));
        svg.text((x + 14.0, y), Anchor::Start, INK, name);
        x += 28.0 + 7.0 * name.chars().count() as f64;
    }
}

const PANEL: (f64, f64) = (280.0, 230.0);

/// Three panels, each with what a call costs as something grows.
pub(crate) fn curves(figures: &Figures, points: &[Point]) -> Option<String> {
    let costs = (0..points.len())
        .flat_map(|at| (0..figures.names.len()).filter_map(move |column| figures.cost(at, column)));
    let max = costs.fold(0.0, f64::max);
    if max <= 0.0 {
        return None;
    }
    let mut svg = Svg::new(PANEL.0 * Along::ALL.len() as f64 + 20.0, PANEL.1 + 60.0);
    svg.text((12.0, 18.0), Anchor::Start, INK, "CPU µs of a small call in a session, as something grows");
    legend(&mut svg, figures, 0, 34.0);
    let (top, bottom) = (56.0, PANEL.1 + 16.0);
    let step = step(max);
    let highest = (max / step).ceil() * step;
    let height = |cost: f64| bottom - (bottom - top) * cost / highest;
    for (nth, along) in Along::ALL.into_iter().enumerate() {
        let left = 44.0 + PANEL.0 * nth as f64;
        let right = left + PANEL.0 - 56.0;
        let of: Vec<_> = points.iter().enumerate().filter(|(_, point)| point.along == along).collect();
        let scale = Scale::over(of.iter().map(|(_, point)| point.at as f64), (left, right));
        let mut level = 0.0;
        while level <= highest {
            svg.line((left, height(level)), (right, height(level)), RULE, 1.0);
            svg.text((left - 6.0, height(level) + 4.0), Anchor::End, FAINT, &format!("{level}"));
            level += step;
        }
        for (_, point) in &of {
            let x = scale.at(point.at as f64);
            svg.text((x, bottom + 16.0), Anchor::Middle, FAINT, &whole(point.at));
        }
        svg.text(((left + right) / 2.0, bottom + 34.0), Anchor::Middle, INK, along.name());
        for column in 0..figures.names.len() {
            let places: Vec<_> = of
                .iter()
                .filter_map(|(at, point)| {
                    Some((scale.at(point.at as f64), height(figures.cost(*at, column)?)))
                })
                .collect();
            svg.curve(&places, colour(column));
        }
    }
    Some(svg.finish())
}

/// A round number that goes into it four to ten times.
fn step(max: f64) -> f64 {
    let power = 10_f64.powf(max.log10().floor());
    [0.1, 0.2, 0.5, 1.0].into_iter().map(|part| part * power).find(|step| max / step <= 10.0).unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{curves, figures::tests::some, tally::Sample};

    #[test]
    fn ten_times_as_much_is_as_far_again() {
        let scale = Scale::over([3.0, 80.0].into_iter(), (100.0, 300.0));
        assert_eq!([1.0, 10.0, 100.0].map(|value| scale.at(value)), [100.0, 200.0, 300.0]);
        assert_eq!(scale.ticks().collect::<Vec<_>>(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        let below = Scale::over([0.7, 3.0].into_iter(), (0.0, 1.0));
        assert_eq!(below.ticks().collect::<Vec<_>>(), [0.5, 1.0, 2.0, 5.0]);
        let wide = Scale::over([300.0, 1.0].into_iter(), (0.0, 1.0));
        assert_eq!(wide.ticks().collect::<Vec<_>>(), [1.0, 10.0, 100.0]);
    }

    #[test]
    fn every_row_has_its_bars_and_what_is_missing_a_dash() {
        let svg = bars(&some(), Section::Http, "HTTP").unwrap();
        for words in [">small<", ">question<", ">1.50<", ">5.00<", ">–<", ">pintle<", ">rmcp<"] {
            assert!(svg.contains(words), "{words}: {svg}");
        }
        assert_eq!(bars(&some(), Section::Stdio, "stdio"), None);
    }

    #[test]
    fn three_panels_show_how_costs_grow() {
        let points: Vec<_> = curves::points().collect();
        let rows = points.iter().map(|point| point.row());
        let mut figures = Figures::new(["limit", "pintle"].map(str::to_owned).to_vec(), rows);
        assert_eq!(super::curves(&figures, &points), None);
        for at in 0..points.len() {
            for column in 0..2 {
                figures.add(at, column, 0, Ok(Sample { cost: 9.0 + column as f64, wall: None }));
            }
        }
        let svg = super::curves(&figures, &points).unwrap();
        assert_eq!(svg.matches("<polyline").count(), 6);
        for words in [">tools<", ">sessions<", ">in flight<", ">10,000<"] {
            assert!(svg.contains(words), "{words}: {svg}");
        }
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([9.0, 12.0, 45.0, 100.0].map(step), [1.0, 2.0, 5.0, 10.0]);
    }
}
