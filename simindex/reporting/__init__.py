"""Reports for people and other programs: self-contained HTML pages, SARIF and JSON lines."""
