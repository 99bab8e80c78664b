"""Owns a run: launches the debuggee, takes its facts, judges them, keeps the timeline, holds the gate, serves clients. No torch here."""
