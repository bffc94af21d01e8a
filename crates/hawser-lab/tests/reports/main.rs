//! What the lab is told, and what it says: scenarios, recordings, reports and saved results.

#[path = "../browser/mod.rs"]
mod browser;
mod drives;
mod report;
mod report_page;
mod scenarios;
#[path = "../synthetic/mod.rs"]
mod synthetic;
