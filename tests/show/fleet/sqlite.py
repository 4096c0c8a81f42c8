"""sqlite.py - a SQLite file as a fleet's store."""
import contextlib
import sqlite3

BUSY_S = 30

# What the store itself saw: checkpoints that went back though nobody had set them.
WATCH = """
CREATE TABLE went_back (partition);
CREATE TRIGGER note AFTER UPDATE ON record
WHEN NEW.mark_sequence < OLD.mark_sequence AND NEW.rewinds = OLD.rewinds
BEGIN INSERT INTO went_back VALUES (NEW.partition); END;
"""


class Sqlite:
    def __init__(self, path):
        self.path, self.url = path, "sqlite:" + path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def watch_checkpoints(self):
        """From now on those that go back are noted. The tables must be there."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=BUSY_S)) as file:
            file.executescript(WATCH)

    def count_back(self):
        with contextlib.closing(sqlite3.connect(self.path, timeout=BUSY_S)) as file:
            return file.execute("SELECT count(*) FROM went_back").fetchone()[0]
