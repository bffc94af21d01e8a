//! A drawing as SVG: text stays text, colours are the page's variables, and each has a title and a description.

use super::style;

/// Width of every drawing, in its own units.
pub(super) const WIDTH: f64 = 760.0;
/// Height of a line of text.
pub(super) const LINE: f64 = 18.0;
const FONT: f64 = 13.0;
/// Shares of the font's size that letters take in usual sans-serif fonts, rather more than less: narrow, usual, wide.
const LETTERS: [f64; 3] = [0.34, 0.6, 0.92];
/// Half the size of a point's mark.
const DOT: f64 = 4.2;
/// Half the length of an error bar's caps.
const CAP: f64 = 4.0;

/// A drawing that is made. Starts empty; one owner.
#[derive(Default)]
pub struct Canvas {
    /// What its file and its element in a page are called: unique among reports.
    pub name: String,
    pub title: String,
    /// What is to be seen, in words.
    pub description: String,
    pub(super) height: f64,
    body: String,
}

impl Canvas {
    pub(super) fn new(title: String) -> Self {
        Self { title, ..Self::default() }
    }

    /// A text that starts at its point; with class `middle` or `end` it has that there.
    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.body += &format!("\n<text x=\"{x:.1}\" y=\"{y:.1}\"{class}>{}</text>", escaped(text));
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.shape("line", class, &format!("x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\""), "");
    }

    /// A line, flat or upright, with a cap at each end.
    pub(super) fn error_bar(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.line(class, from, to);
        let (width, height) = if from.0 == to.0 { (CAP, 0.0) } else { (0.0, CAP) };
        for (x, y) in [from, to] {
            self.line(class, (x - width, y - height), (x + width, y + height));
        }
    }

    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: &str) {
        let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"");
        self.shape("rect", class, &place, tip);
    }

    pub(super) fn curve(&mut self, class: &str, points: &[(f64, f64)], tip: &str) {
        self.shape("path", class, &format!("d=\"{}\"", through(points)), tip);
    }

    /// What lies within points.
    pub(super) fn area(&mut self, class: &str, points: &[(f64, f64)], tip: &str) {
        self.shape("path", class, &format!("d=\"{}Z\"", through(points)), tip);
    }

    /// A point's mark; each slot has a shape, too.
    pub(super) fn dot(&mut self, slot: usize, (x, y): (f64, f64), tip: &str) {
        const SHAPES: [&[(f64, f64)]; 4] = [
            &[],
            &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            &[(0.0, -1.2), (1.15, 0.85), (-1.15, 0.85)],
            &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        ];
        let class = format!("dot {}", style::class(slot));
        let points: Vec<(f64, f64)> =
            SHAPES[slot % SHAPES.len()].iter().map(|(dx, dy)| (x + dx * DOT, y + dy * DOT)).collect();
        match points.is_empty() {
            true => self.shape("circle", &class, &format!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{DOT}\""), tip),
            false => self.area(&class, &points, tip),
        }
    }

    /// The mark of a published figure: a hollow diamond.
    pub(super) fn published(&mut self, (x, y): (f64, f64), tip: &str) {
        let size = DOT * 1.2;
        self.area("published", &[(x, y - size), (x + size, y), (x, y + size), (x - size, y)], tip);
    }

    /// An element, with what is told of it when the pointer rests on it.
    fn shape(&mut self, name: &str, class: &str, place: &str, tip: &str) {
        let tip = if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(tip)) };
        self.body += &format!("\n<{name} class=\"{class}\" {place}>{tip}</{name}>");
    }

    /// For a page that has [`style::SHEET`].
    pub fn inline(&self) -> String {
        self.element(&escaped(&self.name), "", "")
    }

    /// A file of its own.
    pub fn file(&self) -> String {
        let style =
            format!("<style>{}</style><rect width=\"100%\" height=\"100%\" fill=\"var(--surface)\"/>", style::SHEET);
        self.element("plot", " xmlns=\"http://www.w3.org/2000/svg\"", &style)
    }

    fn element(&self, id: &str, namespace: &str, before: &str) -> String {
        let Self { title, description, height, body, .. } = self;
        let (title, description) = (escaped(title), escaped(description));
        format!(
            "<svg{namespace} class=\"plot\" role=\"img\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" \
             aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{description}</desc>{before}{body}</svg>\n"
        )
    }
}

fn through(points: &[(f64, f64)]) -> String {
    let start = |place| if place == 0 { "M" } else { "L" };
    points.iter().enumerate().map(|(place, (x, y))| format!("{}{x:.1} {y:.1}", start(place))).collect()
}

/// For text and attributes of HTML and SVG.
pub fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// About how wide a text is: fonts differ.
pub(super) fn wide(text: &str) -> f64 {
    let [narrow, usual, wide] = LETTERS;
    let share = |letter: char| match letter {
        _ if "ijlItfr.,:;'|!() ".contains(letter) => narrow,
        _ if "mwMW%@".contains(letter) => wide,
        _ => usual,
    };
    text.chars().map(share).sum::<f64>() * FONT
}

/// A text of at most that width, with an ellipsis where some is cut.
pub(super) fn fitted(text: &str, width: f64) -> String {
    if wide(text) <= width {
        return text.to_owned();
    }
    let mut kept = text.to_owned();
    while wide(&kept) + wide("…") > width && kept.pop().is_some() {}
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out_of_its_element() {
        let mut canvas = Canvas::new("<b>\"title\"".to_owned());
        canvas.text(0.0, 0.0, "", "</text><script>alert('x')</script>");
        for svg in [canvas.inline(), canvas.file()] {
            assert!(!svg.contains("<script") && !svg.contains("<b>"), "{svg}");
            assert!(svg.contains("&lt;b&gt;&quot;title&quot;</title>"), "{svg}");
        }
    }

    #[test]
    fn a_long_text_is_cut_to_its_room() {
        assert_eq!(fitted("short", 100.0), "short");
        let cut = fitted("a title much longer than there is room for", 120.0);
        assert!(cut.ends_with('…') && wide(&cut) <= 120.0 && cut.len() > 10, "{cut}");
    }
}
