"""Keys that travel in the recorded timeline; they never change the run."""

from __future__ import annotations

from dataclasses import replace

from gradtui.rules.finding import Finding
from gradtui.tui.actions.host import Host


class TimeActions(Host):
    """Moving the cursor that all panes share."""

    def travel(self, seq: int) -> None:
        """Show the run as it was just after event `seq`."""
        story = self.session.story
        if story is None or not story.head:
            self.say("nothing recorded yet")
            return
        if seq >= story.head:
            story.live()
        else:
            story.seek(seq)
        self.session.say("")
        self.gate.ask()

    def travel_by(self, lines: int, to: str = "") -> None:
        """Move by so many lines of the timeline, or to its `start`, or `live`."""
        story = self.session.story
        if story is None:
            return
        if to == "live" or (lines > 0 and story.cursor >= story.head):
            self.travel(story.head)
        elif to == "start":
            first = story.rows_after(0, 1)
            self.travel(first[0].seq if first else 0)
        else:
            self.travel(story.neighbour(lines))

    def action_event(self, by: int) -> None:
        self.travel_by(by)

    def action_iteration(self, by: int) -> None:
        story = self.session.story
        if story is None:
            return
        seq = story.step_away(by)
        if seq == story.cursor:
            self.say(f"no optimizer step {'after' if by > 0 else 'before'} this")
        else:
            self.travel(seq)

    def action_live(self) -> None:
        if self.session.story:
            self.travel(self.session.story.head)

    def go_to_finding(self, finding: Finding) -> None:
        """To the event at which a finding first showed, with its first parameter picked out."""
        if finding.parameter_ids:
            self.session.selection = replace(self.session.selection, process=finding.process)
            self.session.pick(finding.parameter_ids[0])
        seq = finding.first.seq if finding.first and finding.first.seq else finding.seq
        self.travel(seq)
        self.say(f"{finding.rule}: first sign, event {seq}. H returns to now")
