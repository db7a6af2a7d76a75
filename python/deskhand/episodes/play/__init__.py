"""Playing one episode: agents, attempts, budgets, replay."""
