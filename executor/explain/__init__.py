"""What an executor says of itself: state, explanations, advice, stages."""
