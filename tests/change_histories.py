"""Change tables and the answers they lead to."""

import random
from collections import Counter

SCHEMA = "_change_type string, _change_at long, price double, name string"


def histories(seed, batches=6, rows=8):
    """Micro-batches of changes full of equal rows, and the answer after each."""
    chance = random.Random(seed)
    answer, told = Counter(), []
    for at in range(batches):
        changes = []
        for _ in range(chance.randrange(rows)):
            row = (float(chance.randrange(3)), chance.choice(["a", None]))
            if answer[row] and chance.random() < 0.5:
                answer[row] -= 1
                changes.append(("delete", at, *row))
            else:
                answer[row] += 1
                changes.append(("insert", at, *row))
        told.append((changes, +answer))
    return told


def counted(rows):
    return Counter((row["price"], row["name"]) for row in rows)
