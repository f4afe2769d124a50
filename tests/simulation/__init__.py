"""The whole engine in a seeded world: every call may fail, answer late or never; whoever calls may die or sleep."""
