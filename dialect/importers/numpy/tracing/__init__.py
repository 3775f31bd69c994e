"""One trace: traced values, the recorder, trace guards, control flow, argument trees."""
