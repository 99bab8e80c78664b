"""Packets: how facts, requests and replies travel as bytes. `encode` needs the standard library only (the probe uses it)."""
