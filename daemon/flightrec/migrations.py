"""The database's schema as numbered steps; each runs once, in one transaction with its number."""

import sqlite3

from flightrec.errors import FlightrecError

_FIRST = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  session BLOB NOT NULL UNIQUE,          -- 128 bit
  parent BLOB,                           -- the run that started it
  shell TEXT NOT NULL,
  agent TEXT,
  tty TEXT NOT NULL,
  pid INTEGER NOT NULL,
  first_us INTEGER NOT NULL,             -- wall clock
  last_us INTEGER NOT NULL,
  ended_us INTEGER
);

CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run BLOB NOT NULL UNIQUE,              -- 128 bit: a message sent again changes nothing
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  parent BLOB,                           -- the run of which this one is a segment
  source INTEGER NOT NULL,
  shell TEXT NOT NULL,
  agent TEXT,
  tool_use_id TEXT,
  depth INTEGER NOT NULL,
  project TEXT NOT NULL,
  worktree TEXT NOT NULL,
  cwd TEXT NOT NULL,
  command TEXT NOT NULL,                 -- redacted
  truncated INTEGER NOT NULL,
  secret INTEGER NOT NULL,               -- the command held a secret
  word_kind INTEGER NOT NULL,
  boot TEXT NOT NULL,
  mono_us INTEGER NOT NULL,              -- order within one boot
  started_us INTEGER NOT NULL,           -- wall clock, for people
  exit INTEGER,                          -- NULL: nobody could see it
  signal INTEGER,
  pipestatus TEXT NOT NULL,              -- JSON list
  usec INTEGER,
  tail TEXT NOT NULL,                    -- redacted
  tail_source INTEGER NOT NULL,
  tail_total INTEGER NOT NULL,
  end_cwd TEXT NOT NULL,
  crc INTEGER NOT NULL
);
CREATE INDEX runs_by_session ON runs (session_id, id);
CREATE INDEX runs_by_time ON runs (started_us);

CREATE TABLE failures (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  segment INTEGER NOT NULL,              -- which simple command of the line failed, from 0
  kind TEXT NOT NULL,
  program TEXT NOT NULL,
  subcommand TEXT NOT NULL,
  signature TEXT NOT NULL,
  teachable INTEGER NOT NULL,
  UNIQUE (run_id, segment)
);
CREATE INDEX failures_by_signature ON failures (signature);

CREATE TABLE rules (
  id TEXT PRIMARY KEY,                   -- ERR-20261130-001
  uid BLOB NOT NULL UNIQUE,              -- 128 bit identity across stores
  key TEXT NOT NULL UNIQUE,              -- trigger, remedy and scope in normal form
  status TEXT NOT NULL,
  kind TEXT NOT NULL,                    -- kind of recovery
  failure_kind TEXT NOT NULL,
  program TEXT NOT NULL,                 -- the trigger's
  scope TEXT NOT NULL,                   -- user | project
  project TEXT NOT NULL,                 -- where it was born
  upstream TEXT NOT NULL,                -- a hash of the origin that the project names
  seen_in TEXT NOT NULL,                 -- JSON list: projects that confirmed it
  origin TEXT NOT NULL,                  -- recorded | person | import:NAME
  trigger TEXT NOT NULL,                 -- JSON
  remedy TEXT NOT NULL,                  -- JSON
  proven INTEGER NOT NULL,               -- an error text says that this is the remedy
  verdict TEXT NOT NULL,                 -- the person's word: approved | rejected | retired; gone
  flagged INTEGER NOT NULL,              -- the person wants it shared
  guard TEXT NOT NULL,                   -- the person's word: off | ask | deny | rewrite
  pardoned INTEGER NOT NULL,             -- contradictions that the person overruled
  held_back TEXT NOT NULL,               -- why it is never offered; empty: it may be
  r INTEGER NOT NULL,
  c INTEGER NOT NULL,
  d INTEGER NOT NULL,
  used INTEGER NOT NULL,
  failures INTEGER NOT NULL,             -- how often the trigger failed
  failed INTEGER NOT NULL,               -- its last outcome anywhere
  outcome_us INTEGER NOT NULL,
  created_us INTEGER NOT NULL,
  last_us INTEGER NOT NULL,
  promoted_us INTEGER,
  shared_us INTEGER,
  archived_us INTEGER,
  crc INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX rules_by_status ON rules (status);

-- Words under which a rule is looked up: its trigger's, its remedy's.
CREATE TABLE anchors (
  anchor TEXT NOT NULL,
  rule_id TEXT NOT NULL REFERENCES rules (id) ON DELETE CASCADE,
  PRIMARY KEY (anchor, rule_id)
) WITHOUT ROWID;
CREATE INDEX anchors_by_rule ON anchors (rule_id);

CREATE TABLE recoveries (
  id INTEGER PRIMARY KEY,
  failure_id INTEGER NOT NULL UNIQUE REFERENCES failures (id) ON DELETE CASCADE,
  run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,  -- the run that worked
  kind TEXT NOT NULL,
  needed TEXT NOT NULL,                  -- JSON list of runs.id: what had to happen in between
  also_tried TEXT NOT NULL,              -- JSON list of runs.id: what failed in between
  rule_id TEXT REFERENCES rules (id) ON DELETE SET NULL
);

-- One row per real event: stores merge, and messages come twice, without counting twice.
CREATE TABLE evidence (
  id INTEGER PRIMARY KEY,
  rule_id TEXT NOT NULL REFERENCES rules (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('first', 'R', 'C', 'D')),
  event TEXT NOT NULL,                   -- hex run id, or person:VERB:TIME
  origin TEXT NOT NULL,                  -- recorded | person | import:NAME
  reason TEXT NOT NULL,
  session BLOB,
  project TEXT NOT NULL,
  at_us INTEGER NOT NULL,
  UNIQUE (rule_id, kind, event, origin)
);
-- A trigger counts as failed again once in a session, and not in the one that it was born in.
CREATE UNIQUE INDEX evidence_once ON evidence (rule_id, session) WHERE kind IN ('first', 'R');

-- What became of a rule's trigger where it was run last.
CREATE TABLE outcomes (
  rule_id TEXT NOT NULL REFERENCES rules (id) ON DELETE CASCADE,
  project TEXT NOT NULL,
  worktree TEXT NOT NULL,
  failed INTEGER NOT NULL,               -- the last outcome: 1 failed, 0 passed
  mended INTEGER NOT NULL,               -- something of the remedy ran since it failed
  session BLOB NOT NULL,                 -- where it failed last
  signature TEXT NOT NULL,
  failures INTEGER NOT NULL,             -- how often it failed here
  at_us INTEGER NOT NULL,
  PRIMARY KEY (rule_id, project, worktree)
) WITHOUT ROWID;

CREATE TABLE hints (
  id INTEGER PRIMARY KEY,
  rule_id TEXT NOT NULL REFERENCES rules (id) ON DELETE CASCADE,
  session BLOB NOT NULL,
  run BLOB NOT NULL,                     -- the command that it was shown for
  phase INTEGER NOT NULL,
  remedy TEXT NOT NULL,
  at_us INTEGER NOT NULL,
  gate TEXT NOT NULL,                    -- what a guard did: ask | deny | rewrite | let; or empty
  outcome TEXT,                          -- followed, ignored, failed, insisted, passed, recurred
  UNIQUE (run, gate)
);
CREATE INDEX hints_by_session ON hints (session, rule_id);
CREATE INDEX hints_open ON hints (session) WHERE outcome IS NULL;

-- Projects that are guarded by all their rules.
CREATE TABLE guards (
  project TEXT PRIMARY KEY,
  mode TEXT NOT NULL,                    -- ask | deny | rewrite
  at_us INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE exports (
  path TEXT NOT NULL,
  project TEXT NOT NULL,                 -- whose rules stand there; empty: those of all
  agent TEXT NOT NULL,                   -- empty: a file that the person named
  kind TEXT NOT NULL,                    -- memory | local | user | team | own
  boundary TEXT NOT NULL,                -- no link there may lead out of it
  wanted TEXT NOT NULL,                  -- asked | auto | stopped
  at_us INTEGER NOT NULL,
  PRIMARY KEY (path, project)
) WITHOUT ROWID;

CREATE VIRTUAL TABLE runs_fts USING fts5 (
  command, tail, content = 'runs', content_rowid = 'id', tokenize = "unicode61 tokenchars '-_./'"
);
CREATE TRIGGER runs_fts_insert AFTER INSERT ON runs BEGIN
  INSERT INTO runs_fts (rowid, command, tail) VALUES (new.id, new.command, new.tail);
END;
CREATE TRIGGER runs_fts_delete AFTER DELETE ON runs BEGIN
  INSERT INTO runs_fts (runs_fts, rowid, command, tail)
  VALUES ('delete', old.id, old.command, old.tail);
END;
CREATE TRIGGER runs_fts_update AFTER UPDATE OF command, tail ON runs BEGIN
  INSERT INTO runs_fts (runs_fts, rowid, command, tail)
  VALUES ('delete', old.id, old.command, old.tail);
  INSERT INTO runs_fts (rowid, command, tail) VALUES (new.id, new.command, new.tail);
END;
"""

MIGRATIONS: tuple[str, ...] = (_FIRST,)
"""Step n brings a database from version n to n + 1. A released step never changes."""

VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to ``VERSION``. Raises FlightrecError where it is newer than this program.

    ``connection`` must be in autocommit mode (``isolation_level=None``).
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > VERSION:
        raise FlightrecError(
            f"the database has version {found}, made by a newer flightrec; this one knows"
            f" {VERSION}: upgrade flightrec (nothing was changed)"
        )
    for number, script in enumerate(MIGRATIONS[found:], start=found + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;"
        )
