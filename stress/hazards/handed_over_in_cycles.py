"""The same as `handed_over`, with every object in a reference cycle, which only the collector ends."""

from stress.hazards.handed_over import HandedOver


class Knot:
    """Refers to itself."""

    def __init__(self, thing, look):
        self.thing, self.own_look, self.myself = thing, look, self

    def look(self, thing):
        """As its object is looked at; the knot stays tied."""
        self.own_look(thing)


class HandedOverInCycles(HandedOver):
    """What nothing refers to, the collecting thread takes apart, in any order, while others use what it was made of."""

    oracle = HandedOver.oracle

    def packed(self, made):
        return Knot(made.thing, made.look)
