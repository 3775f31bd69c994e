"""The world that outlives the call, as a trace sees it: places, objects, effects, draws, substitutes."""
