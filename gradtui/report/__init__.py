"""Findings and summaries without a screen: one file a format, each with one pure function `render`."""

from gradtui.report.report import Report, report_of

__all__ = ["Report", "report_of"]
