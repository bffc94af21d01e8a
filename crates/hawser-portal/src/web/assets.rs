//! What the page is made of: a fixed table, so that no name leads anywhere else.

/// A file of the page. Constant.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// What it is asked for by.
    pub path: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! assets {
    ($($path:literal, $file:literal, $kind:expr;)*) => {
        &[$(Asset { path: $path, kind: $kind, bytes: include_bytes!(concat!("page/", $file)) }),*]
    };
}

/// All of them. `uplot` is a dependency (page/vendor/README.md says which, and how to follow it).
const ASSETS: &[Asset] = assets![
    "/", "index.html", HTML;
    "/page.css", "page.css", CSS;
    "/page.js", "page.js", JS;
    "/charts.js", "charts.js", JS;
    "/view.js", "view.js", JS;
    "/words.js", "words.js", JS;
    "/icon.svg", "icon.svg", SVG;
    "/uplot.js", "vendor/uPlot.iife.min.js", JS;
    "/uplot.css", "vendor/uPlot.min.css", CSS;
];

/// The file that a path stands for.
pub fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of all files together, as they are in the program: not compressed, and still less than compressed ones may
    /// have.
    const BYTES_MAX: usize = 150_000;

    #[test]
    fn the_page_is_small_and_asks_nobody_else() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes");
        for asset in ASSETS {
            let text = std::str::from_utf8(asset.bytes).expect("text");
            let addresses =
                text.match_indices("://").map(|(at, _)| &text[at.saturating_sub(5)..text.len().min(at + 40)]);
            let others: Vec<_> =
                addresses.filter(|address| !address.contains("www.w3.org") && !address.contains("uPlot")).collect();
            assert!(others.is_empty(), "{}: {others:?}", asset.path);
        }
    }

    #[test]
    fn nothing_else_is_found() {
        for path in ["", "/index.html", "/../Cargo.toml", "/page.css/..", "//", "/%2e%2e/page.css", "/vendor/README.md"]
        {
            assert!(find(path).is_none(), "{path}");
        }
        assert!(find("/").is_some());
    }
}
