//! Lines of a picture as short SVG path data: whole numbers, each relative to the one before.

use std::fmt::Write;

/// A line, from left to right. The unit is a quarter of a pixel at the natural size, so whole numbers are fine enough.
#[derive(Debug, Default)]
pub(super) struct Path {
    data: String,
    at: Option<(i64, i64)>,
}

impl Path {
    /// Begins a new line at a point.
    pub(super) fn move_to(&mut self, x: f64, y: f64) {
        let (x, y) = (whole(x), whole(y));
        self.command('M', &[x, y]);
        self.at = Some((x, y));
    }

    /// Goes straight to a point; the first one begins the line.
    pub(super) fn line_to(&mut self, x: f64, y: f64) {
        let Some((from_x, from_y)) = self.at else { return self.move_to(x, y) };
        let (x, y) = (whole(x), whole(y));
        match (x - from_x, y - from_y) {
            (0, 0) => {}
            (dx, 0) => self.command('h', &[dx]),
            (0, dy) => self.command('v', &[dy]),
            (dx, dy) => self.command('l', &[dx, dy]),
        }
        self.at = Some((x, y));
    }

    /// Goes to the right on the same level.
    pub(super) fn line_to_level(&mut self, x: f64) {
        if let Some((_, y)) = self.at {
            self.line_to(x, y as f64);
        }
    }

    /// Goes up or down first, then to the right: a step of a staircase.
    pub(super) fn step_to(&mut self, x: f64, y: f64) {
        if let Some((from_x, _)) = self.at {
            self.line_to(from_x as f64, y);
        }
        self.line_to(x, y);
    }

    /// Goes back to the beginning.
    pub(super) fn close(&mut self) {
        self.data.push('z');
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at.is_none()
    }

    /// The path data.
    pub(super) fn into_data(self) -> String {
        self.data
    }

    fn command(&mut self, command: char, numbers: &[i64]) {
        self.data.push(command);
        for (index, number) in numbers.iter().enumerate() {
            // A minus separates numbers as well as a comma.
            if index > 0 && *number >= 0 {
                self.data.push(',');
            }
            let _ = write!(self.data, "{number}");
        }
    }
}

/// The nearest whole number; pictures are far smaller than its range.
pub(super) fn whole(value: f64) -> i64 {
    format!("{value:.0}").parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_short_and_exact() {
        let mut path = Path::default();
        assert!(path.is_empty());
        path.line_to(10.2, 20.0);
        path.line_to(15.0, 20.3);
        path.line_to(15.4, 20.0);
        path.step_to(30.0, 4.0);
        path.line_to_level(31.0);
        path.line_to(35.0, -6.0);
        path.move_to(1.0, -2.0);
        path.close();
        assert_eq!(path.into_data(), "M10,20h5v-16h15h1l4-10M1-2z");
    }

    #[test]
    fn rounding_does_not_add_up() {
        let mut path = Path::default();
        path.move_to(0.0, 0.0);
        (1..=10).for_each(|i| path.line_to(f64::from(i) * 0.4, 0.0));
        assert_eq!(path.into_data(), "M0,0h1h1h1h1");
    }
}
