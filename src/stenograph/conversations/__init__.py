"""WHAT WAS SAID: workspaces, conversations, inputs, turns, candidate answers, forks."""
