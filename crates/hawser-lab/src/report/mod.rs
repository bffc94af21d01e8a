//! Tables and plots from what runs found.
