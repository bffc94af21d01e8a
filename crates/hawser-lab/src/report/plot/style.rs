//! Colours, and what plots look like: light and dark, each for every kind of eye.

/// How many curves have a colour of their own; further ones take the same again, dashed.
pub const SLOTS: usize = 8;

/// The style sheet of plots, for a page or for a file of its own.
pub const SHEET: &str = include_str!("plot.css");

/// The classes of a curve's parts.
pub(super) fn class(slot: usize) -> String {
    let again = if slot < SLOTS { "" } else { " again" };
    format!("c{}{again}", slot % SLOTS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Least contrast of what is drawn against what is behind it. Source: WCAG 2.2, 1.4.11.
    const DRAWN: f64 = 3.0;
    /// And of text. Source: WCAG 2.2, 1.4.3.
    const TEXT: f64 = 4.5;
    /// Colours this far apart in OKLab are told apart side by side (one step that is just noticed is about 0.02).
    const APART: f64 = 0.07;
    /// What is seen of linear red, green and blue by whom. Source: Machado, Oliveira and Fernandes 2009, severity 1.0.
    const EYES: [(&str, [[f64; 3]; 3]); 4] = [
        ("most", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        ),
        (
            "deuteranopia",
            [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_82, 0.042_94, 0.968_881]],
        ),
        (
            "tritanopia",
            [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_9]],
        ),
    ];

    /// Linear red, green and blue. Source: IEC 61966-2-1.
    fn linear(color: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let part = f64::from(u8::from_str_radix(&color[at..at + 2], 16).expect("two digits")) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// Source: WCAG 2.2, relative luminance and contrast ratio.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |color| {
            let [r, g, b] = linear(color);
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        let (a, b) = (luminance(a), luminance(b));
        a.max(b) / a.min(b)
    }

    fn times(matrix: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| (row[0] * v[0] + row[1] * v[1] + row[2] * v[2]).max(0.0))
    }

    /// Source: Ottosson 2020, "A perceptual color space for image processing".
    fn oklab(rgb: [f64; 3]) -> [f64; 3] {
        const CONES: [[f64; 3]; 3] = [
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ];
        let [l, m, s] = times(&CONES, rgb).map(f64::cbrt);
        [
            0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
        ]
    }

    /// Surface, texts and curves of light pages and of dark ones.
    fn themes() -> [(&'static str, [&'static str; 2], [&'static str; SLOTS]); 2] {
        let mut blocks = SHEET.split(":root{").skip(1).map(|rest| rest.split('}').next().expect("a block"));
        [(); 2].map(|()| {
            let rules = blocks.next().expect("two blocks").split([';', '\n']);
            let colors: BTreeMap<_, _> = rules.filter_map(|rule| rule.strip_prefix("--")?.split_once(':')).collect();
            let curves = std::array::from_fn(|slot| colors[format!("c{slot}").as_str()]);
            (colors["surface"], [colors["ink"], colors["muted"]], curves)
        })
    }

    #[test]
    fn everything_stands_out_from_what_is_behind_it() {
        for (surface, texts, curves) in themes() {
            for (color, least) in texts.map(|text| (text, TEXT)).into_iter().chain(curves.map(|curve| (curve, DRAWN))) {
                let ratio = contrast(color, surface);
                assert!(ratio >= least, "{color} on {surface}: {ratio:.2}");
            }
        }
    }

    #[test]
    fn curves_are_told_apart_by_every_eye() {
        for (_, _, curves) in themes() {
            for (who, eye) in EYES {
                let seen = curves.map(|color| oklab(times(&eye, linear(color))));
                for (i, a) in seen.iter().enumerate() {
                    for (j, b) in seen.iter().enumerate().take(i) {
                        let apart = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                        assert!(apart >= APART, "{who}: {} and {}: {apart:.3}", curves[i], curves[j]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_curve_beyond_the_colours_is_dashed() {
        assert_eq!((class(1).as_str(), class(SLOTS + 1).as_str()), ("c1", "c1 again"));
    }
}
