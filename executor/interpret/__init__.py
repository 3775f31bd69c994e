"""Running a graph op by op, and what is recorded meanwhile: types, values, sizes met."""
