"""What ``record.py`` types, and what a person judges is to be learned from it."""

# ruff: noqa: E501, S604 - one session a line: a table is read by its columns; shell= is its shell
# fmt: off

from dataclasses import dataclass, field
from typing import Any

Step = str | tuple[Any, ...]


@dataclass
class Scenario:
    """One session: files that are there before, what is typed, and its label.

    A step is a command, ``("edit", path, text)`` for a change in an editor, ``("stop", command,
    seconds)`` for a command ended by Ctrl-C, or ``("wait", seconds)``. ``agent`` is empty for a
    person at a prompt, ``split`` or ``merged`` for an agent whose output streams are two or one.
    """

    family: str
    name: str
    setup: str
    steps: list[Step]
    pairs: list[dict[str, Any]] = field(default_factory=list)
    nothing: str | None = None
    negative: str | None = None
    shell: str = "bash"
    agent: str = ""
    language: str = ""
    root: bool = False
    environment: dict[str, str] = field(default_factory=dict)


SCENARIOS: list[Scenario] = []


def fixed(
    family: str, name: str, setup: str, steps: list[Step], *pairs: dict[str, Any], **more: Any  # noqa: ANN401 - fields of Scenario
) -> None:
    """Add a session from which something is to be learned."""
    SCENARIOS.append(Scenario(family, name, setup, steps, list(pairs), **more))


def clean(
    negative: str, name: str, setup: str, steps: list[Step], reason: str, **more: Any  # noqa: ANN401 - fields of Scenario
) -> None:
    """Add a session from which nothing is to be learned."""
    pairs = list(more.pop("pairs", ()))
    SCENARIOS.append(
        Scenario(f"not-{negative}", name, setup, steps, pairs, reason, negative, **more)
    )


def pair(failed: int, fix: int, kind: str = "replace", *prereq: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a pair
    """Return one labelled pair."""
    row: dict[str, Any] = {"failed": failed, "fix": fix, "kind": kind}
    if prereq:
        row["prereq"] = list(prereq)
    return {**row, "value": "durable", **more}


GIT = "git init -q; echo one > a.txt; git add .; git commit -qm one; "
REMOTE = "git init -q --bare ~/hub.git; git remote add origin ~/hub.git; git push -q origin main; "
C_HELLO = "printf '#include <stdio.h>\\nint main(void){puts(\"hi\");return 0;}\\n' > hello.c; "
PY_TEST = "mkdir -p tests; printf 'def test_one():\\n    assert 1 == 1\\n' > tests/test_one.py; "
PYTEST = {"PYTHONPATH": "/tmp/flightrec-recording/pytest"}

# git ---------------------------------------------------------------------------------------------

fixed("git", "git-cherypick", GIT + "git switch -qc side; echo x > b.txt; git add .; git commit -qm side; git switch -q main",
      ["git log --oneline --all", "git cherypick side", "git cherry-pick side"], pair(1, 2))
fixed("git", "git-worktre", GIT, ["git worktre list", "git worktree list"], pair(0, 1))
fixed("git", "git-stauts-agent", GIT, ["git stauts --short", "git status --short"], pair(0, 1), agent="merged")
fixed("git", "git-worktree-taken", GIT + "git branch fix", ["git worktree add ../fix fix", "git worktree add ../fix2 fix", "git worktree add --detach ../fix2 fix"],
      pair(1, 2, optional=True))
fixed("git", "git-branch-in-worktree", GIT + "git worktree add -q ../wt -b topic", ["git branch -D topic", "git worktree remove ../wt", "git branch -D topic"],
      pair(0, 2, "prerequisite", 1, caution="destructive"))
fixed("git", "git-not-merged", GIT + "git switch -qc side; echo x > b.txt; git add .; git commit -qm side; git switch -q main",
      ["git branch -d side", "git branch -D side"], pair(0, 1, caution="destructive"))
fixed("git", "git-push-behind", GIT + REMOTE + "git clone -q ~/hub.git ~/other; cd ~/other; echo two > c.txt; git add .; git commit -qm two; git push -q; cd ~/proj; echo three > d.txt; git add .; git commit -qm three",
      ["git push origin main", "git pull --rebase origin main", "git push origin main"], pair(0, 2, "prerequisite", 1))
fixed("git", "git-pull-divergent", GIT + REMOTE + "git clone -q ~/hub.git ~/other; cd ~/other; echo two > c.txt; git add .; git commit -qm two; git push -q; cd ~/proj; echo three > d.txt; git add .; git commit -qm three",
      ["git pull origin main", "git pull --rebase origin main"], pair(0, 1))
fixed("git", "git-remote-missing", GIT + "git init -q --bare ~/hub.git", ["git push origin main", "git remote -v", "git remote add origin ~/hub.git", "git push origin main"], pair(0, 3, "prerequisite", 2))
fixed("git", "git-no-upstream-de", GIT + REMOTE + "git switch -qc neu", ["git push", "git push --set-upstream origin neu"], pair(0, 1), language="de")
fixed("git", "git-log-grpah", GIT, ["git log --grpah", "git log --graph"], pair(0, 1))
fixed("git", "git-commit-amned", GIT, ["git commit --amned --no-edit", "git commit --amend --no-edit"], pair(0, 1))
fixed("git", "git-ignored", GIT + "echo '*.log' > .gitignore; echo x > run.log; git add .gitignore; git commit -qm i", ["git add run.log", "git add -f run.log", "git status --short"], pair(0, 1))
fixed("git", "git-rm-modified", GIT + "echo two >> a.txt", ["git rm a.txt", "git rm -f a.txt"], pair(0, 1, caution="destructive"))
fixed("git", "git-checkout-dirty", GIT + "git switch -qc side; echo side > a.txt; git commit -qam side; git switch -q main; echo dirty > a.txt",
      ["git checkout side", "git diff --stat", "git commit -qam wip", "git checkout side"], pair(0, 3, "prerequisite", 2))
fixed("git", "git-master-main", GIT, ["git checkout master", "git branch", "git checkout main"], pair(0, 2))
fixed("git", "git-not-a-repo", "mkdir lib; git -C lib init -q", ["git status", "cd lib", "git status"], pair(0, 2, "directory", 1))
fixed("git", "git-not-a-repo-init", "echo x > x.txt", ["git add x.txt", "git init -q", "git add x.txt"], pair(0, 2, "prerequisite", 1))
fixed("git", "git-not-a-repo-fr", "mkdir lib; git -C lib init -q", ["git log -1 --format=%h --all", "git -C lib log -1 --format=%h --all"], pair(0, 1, "directory", kind_also=["replace"]), language="fr")
fixed("git", "git-nothing-staged-de", GIT + "echo two >> a.txt", ["git commit -m zwei", "git add a.txt", "git commit -m zwei"], pair(0, 2, "prerequisite", 1), language="de")
fixed("git", "git-nothing-staged-a", GIT + "echo two >> a.txt", ["git commit -m two", "git commit -am two"], pair(0, 1))
fixed("git", "git-identity-env", GIT + "git config --global --unset user.name; git config --global --unset user.email; git config --global user.useConfigOnly true; echo x > n.txt; git add n.txt",
      ["git commit -qm n", "GIT_AUTHOR_NAME=Sam GIT_AUTHOR_EMAIL=s@example.org GIT_COMMITTER_NAME=Sam GIT_COMMITTER_EMAIL=s@example.org git commit -qm n"], pair(0, 1, "environment", kind_also=["replace"]))
fixed("git", "git-bisect-status", GIT, ["git bissect log", "git bisect start", "git bisect reset"], pair(0, 1, optional=True))
fixed("git", "git-clone-exists", GIT + "git clone -q . ~/copy", ["git clone -q . ~/copy", "rm -rf ~/copy", "git clone -q . ~/copy"], pair(0, 2, "prerequisite", 1, caution="destructive"))
fixed("git", "git-revert-merge", GIT + "git switch -qc s; echo s > s.txt; git add .; git commit -qm s; git switch -q main; git merge -q --no-ff -m m s", ["git revert --no-edit HEAD", "git revert --no-edit -m 1 HEAD"], pair(0, 1))
fixed("git", "git-unrelated", GIT + "git init -q ~/alien; cd ~/alien; echo z > z.txt; git add .; git commit -qm z", ["git pull --no-rebase ~/alien main", "git pull --no-rebase --allow-unrelated-histories --no-edit ~/alien main"], pair(0, 1))
fixed("git", "git-tag-exists-force", GIT + "git tag v1; echo 2 >> a.txt; git commit -qam two", ["git tag v1", "git tag -f v1"], pair(0, 1, caution="destructive"))
fixed("git", "git-lock-left", GIT + "touch .git/index.lock; echo 2 >> a.txt", ["git add a.txt", "rm .git/index.lock", "git add a.txt"], pair(0, 2, "prerequisite", 1))
fixed("git", "hg-typo", "hg init -q . ", ["hg sumary", "hg summary"], pair(0, 1))
fixed("git", "svn-typo", "svnadmin create ~/svn; svn checkout -q file://$HOME/svn wc", ["cd wc", "svn statsu", "svn status"], pair(1, 2))

# C, make, cmake ----------------------------------------------------------------------------------

fixed("build", "gcc-math", "printf '#include <math.h>\\n#include <stdio.h>\\nint main(int c,char**v){printf(\"%f\\\\n\",sqrt(c+1.0));return 0;}\\n' > m.c", ["gcc -o m m.c", "gcc -o m m.c -lm", "./m"], pair(0, 1))
fixed("build", "gcc-optoin", C_HELLO, ["gcc -Wall --standard=c11 -o hello hello.c", "gcc -Wall --std=c11 -o hello hello.c"], pair(0, 1))
fixed("build", "gcc-file-typo", C_HELLO, ["gcc -o hello helo.c", "gcc -o hello hello.c"], pair(0, 1))
fixed("build", "gcc-include-dir", "mkdir include; echo '#define N 3' > include/cfg.h; printf '#include \"cfg.h\"\\nint main(void){return N-3;}\\n' > p.c", ["gcc -o p p.c", "gcc -Iinclude -o p p.c"], pair(0, 1))
fixed("build", "make-target-typo", "printf 'install:\\n\\t@echo ok\\nclean:\\n\\t@true\\n' > Makefile", ["make instal", "make install"], pair(0, 1))
fixed("build", "make-wrong-dir", "mkdir src; printf 'all:\\n\\t@echo built\\n' > src/Makefile", ["make", "ls", "cd src", "make"], pair(0, 3, "directory", 2))
fixed("build", "make-C", "mkdir src; printf 'all:\\n\\t@echo built\\n' > src/Makefile", ["make all", "make -C src all"], pair(0, 1, "directory", kind_also=["replace"]))
fixed("build", "make-needs-dir", "printf 'out/app: \\n\\tcp Makefile out/app\\n' > Makefile", ["make", "mkdir out", "make"], pair(0, 2, "prerequisite", 1))
fixed("build", "make-needs-configure", "printf '#!/bin/sh\\nprintf \"all:\\\\n\\\\t@echo ok\\\\n\" > Makefile\\n' > configure; chmod +x configure", ["make", "./configure", "make"], pair(0, 2, "prerequisite", 1))
fixed("build", "cmake-no-build-dir", "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x NONE)\\nadd_custom_target(hello ALL COMMAND true)\\n' > CMakeLists.txt",
      ["cmake --build build", "cmake -S . -B build", "cmake --build build"], pair(0, 2, "prerequisite", 1))
fixed("build", "cmake-wrong-dir", "mkdir b app; printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x NONE)\\n' > app/CMakeLists.txt", ["cmake -B b", "cmake -S app -B b"], pair(0, 1, "directory", kind_also=["replace"]))
fixed("build", "cmake-generator", "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x NONE)\\n' > CMakeLists.txt", ["cmake -G ninja -B b .", "cmake -G Ninja -B b ."], pair(0, 1))
fixed("build", "ninja-no-file", "mkdir b; printf 'rule t\\n command = touch $out\\nbuild x: t\\n' > b/build.ninja", ["ninja", "ninja -C b"], pair(0, 1, "directory", kind_also=["replace"]))
fixed("build", "binary-not-built", C_HELLO + "printf 'hello: hello.c\\n\\tgcc -o hello hello.c\\n' > Makefile", ["./hello", "make", "./hello"], pair(0, 2, "prerequisite", 1))
fixed("build", "meson-typo", "printf \"project('x')\\n\" > meson.build", ["meson steup b", "meson setup b"], pair(0, 1))

# python ------------------------------------------------------------------------------------------

fixed("python", "py-pip-missing-module", "echo 'import tinytable; print(tinytable.VERSION)' > app.py; python3 -m venv .venv", ["source .venv/bin/activate", "python app.py", "pip install tinytable", "python app.py"], pair(1, 3, "prerequisite", 2))
fixed("python", "py-other-name", "echo 'import confkit; print(confkit.VERSION)' > app.py; python3 -m venv .venv", ["source .venv/bin/activate", "python app.py", "pip install confkit", "pip install pyconfkit", "python app.py"], pair(1, 4, "prerequisite", 3), pair(2, 3))
fixed("python", "py-requirements", "echo tinytable > requirements.txt; echo 'import tinytable' > app.py; python3 -m venv .venv; . .venv/bin/activate", ["source .venv/bin/activate", "python app.py", "cat requirements.txt", "pip install -r requirements.txt", "python app.py"], pair(1, 4, "prerequisite", 3))
fixed("python", "py-version-too-high", "python3 -m venv .venv", ["source .venv/bin/activate", "pip install tinytable==3.0", "pip install tinytable==2.1"], pair(1, 2, optional=True))
fixed("python", "py-managed-venv-merged", "", ["pip install mdcheck", "python3 -m venv env && env/bin/pip install -q mdcheck"], pair(0, 1, kind_also=["environment", "prerequisite"]), agent="merged")
fixed("python", "py-tool-in-venv", "python3 -m venv .venv; .venv/bin/pip install -q mdcheck", ["mdcheck", ".venv/bin/mdcheck"], pair(0, 1))
fixed("python", "py-tool-source", "python3 -m venv .venv; .venv/bin/pip install -q mdcheck", ["mdcheck", ". .venv/bin/activate", "mdcheck"], pair(0, 2, "environment", 1, kind_also=["prerequisite"]))
fixed("python", "py-pytest-m", PY_TEST, ["pytest -q tests", "python3 -m pytest -q tests"], pair(0, 1), environment=PYTEST)
fixed("python", "py-pytest-m-agent", PY_TEST, ["cd ~/proj && pytest -q 2>&1 | tail -5", "cd ~/proj && python3 -m pytest -q 2>&1 | tail -5"], pair(0, 1, optional=True), environment=PYTEST, agent="merged")
fixed("python", "py-pytest-path", PY_TEST, ["python3 -m pytest -q test/test_one.py", "python3 -m pytest -q tests/test_one.py"], pair(0, 1), environment=PYTEST)
fixed("python", "py-pytest-option", PY_TEST, ["python3 -m pytest --quite tests", "python3 -m pytest --quiet tests"], pair(0, 1), environment=PYTEST)
fixed("python", "py-pytest-dir", "mkdir pkg; cd pkg; " + PY_TEST, ["python3 -m pytest -q tests", "cd pkg && python3 -m pytest -q tests"], pair(0, 1, "directory", kind_also=["replace"]), environment=PYTEST, agent="split")
fixed("python", "py-argparse", "printf 'import argparse\\np=argparse.ArgumentParser()\\np.add_argument(\"--out-dir\")\\np.add_argument(\"name\")\\np.parse_args()\\nprint(1)\\n' > t.py", ["python3 t.py --outdir x sam", "python3 t.py --out-dir x sam"], pair(0, 1))
fixed("python", "py-argparse-missing", "printf 'import argparse\\np=argparse.ArgumentParser()\\np.add_argument(\"name\")\\np.parse_args()\\nprint(1)\\n' > t.py", ["python3 t.py", "python3 t.py sam"], pair(0, 1))
fixed("python", "py-argparse-choice", "printf 'import argparse\\np=argparse.ArgumentParser()\\np.add_argument(\"--level\", choices=[\"low\", \"high\"])\\np.parse_args()\\nprint(1)\\n' > t.py", ["python3 t.py --level hihg", "python3 t.py --level high"], pair(0, 1))
fixed("python", "py-script-path", "mkdir scripts; echo 'print(1)' > scripts/report.py", ["python3 script/report.py", "python3 scripts/report.py"], pair(0, 1))
fixed("python", "py-script-dir", "mkdir tools; echo 'print(1)' > tools/gen.py", ["python3 gen.py", "cd tools", "python3 gen.py"], pair(0, 2, "directory", 1))
fixed("python", "py-module-path", "mkdir -p src/core; touch src/core/__init__.py; echo 'print(1)' > src/core/run.py", ["python3 -m core.run", "PYTHONPATH=src python3 -m core.run"], pair(0, 1, "environment", kind_also=["replace"]))
fixed("python", "py-module-export", "mkdir -p src/core; touch src/core/__init__.py; echo 'print(1)' > src/core/run.py", ["python3 -m core.run", "export PYTHONPATH=src", "python3 -m core.run"], pair(0, 2, "environment", 1, kind_also=["prerequisite"]))
fixed("python", "py-env-keyerror", "echo 'import os; print(os.environ[\"REPORT_DIR\"])' > r.py", ["python3 r.py", "export REPORT_DIR=/tmp", "python3 r.py"], pair(0, 2, "environment", 1, kind_also=["prerequisite"]))
fixed("python", "py-file-missing", "echo 'print(open(\"data/in.csv\").read())' > r.py; mkdir data; echo 1 > data/in.csv.example", ["python3 r.py", "cp data/in.csv.example data/in.csv", "python3 r.py"], pair(0, 2, "prerequisite", 1))
fixed("python", "uv-venv-missing", "", ["uv pip install --offline -f /tmp/flightrec-recording/wheels tinytable", "uv venv -q --offline", "uv pip install --offline -f /tmp/flightrec-recording/wheels tinytable"], pair(0, 2, "prerequisite", 1, kind_also=["environment"]))
fixed("python", "uv-typo", "", ["uv piip list", "uv pip list"], pair(0, 1))
fixed("python", "py-unittest-m", "printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test_a(self):\\n        pass\\n' > test_a.py", ["unittest test_a", "python3 -m unittest test_a"], pair(0, 1))
fixed("python", "py-pip-instal", "python3 -m venv .venv", ["source .venv/bin/activate", "pip instal tinytable", "pip install tinytable"], pair(1, 2))
fixed("python", "py-http-port", "python3 - <<'X'\nX\n", ["python3 -m http.server 8765 --bind 127.0.0.1 &", "timeout 2 python3 -m http.server 8765 --bind 127.0.0.1", "timeout 1 python3 -m http.server 8766 --bind 127.0.0.1 || true"], pair(1, 2, optional=True))

# node, ruby, perl, php, go, rust -----------------------------------------------------------------

NODE_PKG = "printf '{\"name\":\"p\",\"version\":\"1.0.0\",\"scripts\":{\"build\":\"node -e 1\",\"serve\":\"node -e 1\",\"test:unit\":\"node -e 1\"},\"dependencies\":{\"tiny-pad\":\"file:./vendor/tiny-pad\"}}' > package.json; mkdir -p vendor/tiny-pad; printf '{\"name\":\"tiny-pad\",\"version\":\"1.0.0\",\"bin\":{\"tinypad\":\"cli.js\"}}' > vendor/tiny-pad/package.json; echo 'module.exports=1' > vendor/tiny-pad/index.js; printf '#!/usr/bin/env node\\nconsole.log(1)\\n' > vendor/tiny-pad/cli.js; chmod +x vendor/tiny-pad/cli.js; "
fixed("node", "npm-run-typo", NODE_PKG, ["npm run serv", "npm run serve"], pair(0, 1))
fixed("node", "npm-serve", NODE_PKG, ["npm serve", "npm run serve"], pair(0, 1))
fixed("node", "npm-unistall", NODE_PKG, ["npm i --silent", "npm unistal tiny-pad", "npm uninstall tiny-pad"], pair(1, 2))
fixed("node", "node-module", NODE_PKG + "echo 'console.log(require(\"tiny-pad\"))' > i.js", ["node i.js", "npm install", "node i.js"], pair(0, 2, "prerequisite", 1))
fixed("node", "node-module-agent", NODE_PKG + "echo 'console.log(require(\"tiny-pad\"))' > i.js", ["node i.js", "ls", "npm ci || npm install --silent", "node i.js"], pair(0, 3, "prerequisite", 2), agent="split")
fixed("node", "npx-tool", NODE_PKG, ["npm i --silent", "tinypad", "npx tinypad"], pair(1, 2))
fixed("node", "npx-tool-bin", NODE_PKG, ["npm i --silent", "tinypad", "node_modules/.bin/tinypad"], pair(1, 2))
fixed("node", "npm-wrong-dir", "mkdir web; cd web; " + NODE_PKG, ["npm run build", "cd web", "npm run build"], pair(0, 2, "directory", 1))
fixed("node", "npm-ci-out-of-sync", NODE_PKG + "npm i --silent; sed -i 's/\"tiny-pad\"/\"tiny-pad2\":\"file:.\\/vendor\\/tiny-pad\",\"tiny-pad\"/' package.json", ["npm ci", "npm install", "npm ci"], pair(0, 1, optional=True), pair(0, 2, "prerequisite", 1))
fixed("node", "node-option", "echo 'console.log(1)' > i.js", ["node --trace-warning i.js", "node --trace-warnings i.js"], pair(0, 1))
fixed("node", "node-env", "echo 'const t=process.env.CACHE_DIR; if(!t){console.error(\"CACHE_DIR must be set\");process.exit(1)}' > i.js", ["node i.js", "CACHE_DIR=/tmp node i.js"], pair(0, 1, "environment", kind_also=["replace"]))
fixed("node", "node-dotenv-file", "echo 'if(!process.env.DB_FILE){console.error(\"missing env DB_FILE\");process.exit(1)}' > i.js; echo DB_FILE=x > .env", ["node i.js", "node --env-file=.env i.js"], pair(0, 1, kind_also=["environment"]))
fixed("lang", "ruby-gem-typo", "", ["gem lst", "gem list"], pair(0, 1))
fixed("lang", "rake-task", "printf 'task :build do\\n puts 1\\nend\\n' > Rakefile", ["rake biuld", "rake build"], pair(0, 1))
fixed("lang", "rake-dir", "mkdir app; printf 'task :build do\\n puts 1\\nend\\n' > app/Rakefile", ["rake build", "cd app && rake build"], pair(0, 1, "directory", kind_also=["replace"]), agent="split")
fixed("lang", "ruby-require-path", "mkdir lib; echo 'X=1' > lib/helper.rb; echo 'require \"helper\"; puts X' > main.rb", ["ruby main.rb", "ruby -Ilib main.rb"], pair(0, 1))
fixed("lang", "perl-lib", "mkdir -p lib/My; printf 'package My::Mod;\\n1;\\n' > lib/My/Mod.pm; echo 'use My::Mod; print 1' > m.pl", ["perl m.pl", "perl -Ilib m.pl"], pair(0, 1))
fixed("lang", "perl-option", "echo 'print 1' > m.pl", ["perl --version-x m.pl", "perl m.pl"], pair(0, 1, optional=True))
fixed("lang", "php-artisan", "echo '<?php echo 1;' > run.php", ["php rnu.php", "php run.php"], pair(0, 1))
fixed("lang", "go-no-mod", "printf 'package main\\nimport \"fmt\"\\nfunc main(){fmt.Println(1)}\\n' > main.go", ["go build", "go mod init example.org/x", "go build"], pair(0, 2, "prerequisite", 1))
fixed("lang", "go-typo", "printf 'package main\\nfunc main(){}\\n' > main.go; go mod init example.org/x 2>/dev/null", ["go bulid ./...", "go build ./..."], pair(0, 1))
fixed("lang", "go-subdir", "mkdir cmd; cd cmd; printf 'package main\\nfunc main(){}\\n' > main.go; go mod init example.org/x 2>/dev/null", ["go vet ./...", "cd cmd", "go vet ./..."], pair(0, 2, "directory", 1))
fixed("lang", "go-flag", "printf 'package main\\nfunc main(){}\\n' > main.go; go mod init example.org/x 2>/dev/null", ["go build -out app .", "go build -o app ."], pair(0, 1))
CARGO = {"PATH": "/root/.cargo/bin:/usr/local/bin:/usr/bin:/bin", "RUSTUP_HOME": "/root/.rustup", "CARGO_HOME": "/tmp/flightrec-recording/cargo"}
fixed("lang", "cargo-typo", "cargo init -q --vcs none --name k .", ["cargo chekc", "cargo check"], pair(0, 1), root=True, environment=CARGO)
fixed("lang", "cargo-dir", "cargo new -q --vcs none k", ["cargo build", "cd k", "cargo build"], pair(0, 2, "directory", 1), root=True, environment=CARGO)
fixed("lang", "cargo-manifest", "cargo new -q --vcs none k", ["cargo check", "cargo check --manifest-path k/Cargo.toml"], pair(0, 1, "directory", kind_also=["replace"]), root=True, environment=CARGO, agent="merged")
fixed("lang", "cargo-option", "cargo init -q --vcs none --name k .", ["cargo build --relase", "cargo build --release"], pair(0, 1), root=True, environment=CARGO)
fixed("lang", "cargo-locked", "cargo init -q --vcs none --name k .", ["cargo build --locked", "cargo generate-lockfile", "cargo build --locked"], pair(0, 2, "prerequisite", 1), root=True, environment=CARGO)
fixed("lang", "cargo-test-name", "cargo init -q --vcs none --lib --name k .", ["cargo test --test api", "cargo test"], pair(0, 1, optional=True), root=True, environment=CARGO)
fixed("lang", "cargo-bin-name", "cargo init -q --vcs none --name server .", ["cargo run --bin sevrer", "cargo run --bin server"], pair(0, 1), root=True, environment=CARGO)

# files, text tools, archives ---------------------------------------------------------------------

fixed("files", "mkdir-p", "", ["mkdir build/out/tmp", "mkdir -p build/out/tmp"], pair(0, 1))
fixed("files", "mkdir-p-es", "", ["mkdir datos/nuevos", "mkdir -p datos/nuevos"], pair(0, 1), language="es")
fixed("files", "cp-dir", "mkdir src; touch src/a", ["cp src backup", "cp -r src backup"], pair(0, 1))
fixed("files", "cp-dir-de", "mkdir src; touch src/a", ["cp src kopie", "cp -r src kopie"], pair(0, 1), language="de")
fixed("files", "rm-dir", "mkdir old; touch old/x", ["rm old", "rm -r old"], pair(0, 1, caution="destructive"))
fixed("files", "rmdir-full", "mkdir old; touch old/x", ["rmdir old", "rm -r old"], pair(0, 1, optional=True, caution="destructive"))
fixed("files", "mv-target-dir", "touch f", ["mv f archive/2026/", "mkdir -p archive/2026", "mv f archive/2026/"], pair(0, 2, "prerequisite", 1))
fixed("files", "redirect-dir", "", ["echo 1 > logs/run.txt", "mkdir logs", "echo 1 > logs/run.txt"], pair(0, 2, "prerequisite", 1))
fixed("files", "touch-dir-fr", "", ["touch notes/jour/a.md", "mkdir -p notes/jour", "touch notes/jour/a.md"], pair(0, 2, "prerequisite", 1), language="fr")
fixed("files", "ln-exists", "touch a b; ln -s a link", ["ln -s b link", "ln -sf b link"], pair(0, 1))
fixed("files", "ln-directory", "mkdir d", ["ln d e", "ln -s d e"], pair(0, 1))
fixed("files", "grep-dir", "mkdir d; echo needle > d/x", ["grep needle d", "grep -r needle d"], pair(0, 1))
fixed("files", "ls-option", "", ["ls --sort-by=size", "ls --sort=size"], pair(0, 1))
fixed("files", "ls-option-de", "", ["ls --colour=never --humna", "ls --color=never --human"], pair(0, 1), language="de")
fixed("files", "tar-typo", "mkdir d; touch d/a", ["tar --creat --gzp -f d.tgz d", "tar --create --gzip -f d.tgz d"], pair(0, 1))
fixed("files", "tar-format", "mkdir d; touch d/a; tar -cJf d.tar.xz d; rm -r d", ["tar -xzf d.tar.xz", "tar -xJf d.tar.xz"], pair(0, 1))
fixed("files", "tar-no-f", "mkdir d; touch d/a", ["tar -c d.tar", "tar -cf d.tar d"], pair(0, 1))
fixed("files", "unzip-missing-zip", "echo x > x; zip -q pack.zip x; rm x", ["unzip -q packs.zip", "unzip -q pack.zip"], pair(0, 1))
fixed("files", "find-order", "touch a.md b.md", ["find . -name *.md", "find . -name '*.md'"], pair(0, 1))
fixed("files", "find-predicate", "touch a.md", ["find . -nmae a.md", "find . -name a.md"], pair(0, 1))
fixed("files", "find-exec", "touch a.md", ["find . -name a.md -exec ls {}", "find . -name a.md -exec ls {} ;", "find . -name a.md -exec ls {} \\;"], pair(0, 2), pair(1, 2))
fixed("files", "sed-unterminated", "echo a > f", ["sed 's/a/b' f", "sed 's/a/b/' f"], pair(0, 1))
fixed("files", "sed-delimiter", "echo /var/log > f", ["sed 's//var/log//srv/log/' f", "sed 's|/var/log|/srv/log|' f"], pair(0, 1))
fixed("files", "awk-brace", "echo 1 2 > f", ["awk '{ print $2 ' f", "awk '{ print $2 }' f"], pair(0, 1))
fixed("files", "grep-pcre", "echo a1 > f", ["grep -E '(a' f", "grep -E '[(]a' f; grep -c a f"], pair(0, 1, optional=True))
fixed("files", "grep-bracket", "echo 'x[1]' > f", ["grep 'x[' f", "grep 'x\\[' f"], pair(0, 1))
fixed("files", "jq-quote", "echo '{\"a\": {\"b\": 1}}' > f.json", ["jq .a.b] f.json", "jq .a.b f.json"], pair(0, 1))
fixed("files", "sort-key", "echo 1 > f", ["sort -k f", "sort -k1 f"], pair(0, 1))
fixed("files", "head-n", "seq 9 > f", ["head -n x f", "head -n 3 f"], pair(0, 1))
fixed("files", "cut-no-field", "echo a:b > f", ["cut -d: f", "cut -d: -f1 f"], pair(0, 1))
fixed("files", "date-format", "", ["date +%Y -d yesterdya", "date +%Y -d yesterday"], pair(0, 1))
fixed("files", "chmod-mode", "touch f", ["chmod u+z f", "chmod u+x f"], pair(0, 1))
fixed("files", "chown-user", "touch f", ["chown smm f", "chown sam f"], pair(0, 1))
fixed("files", "split-space", "touch 'my file.txt'; mkdir d", ["mv my file.txt d/", "mv 'my file.txt' d/"], pair(0, 1))
fixed("files", "paren-syntax", "touch 'a (1).txt'", ["ls a (1).txt", "ls 'a (1).txt'"], pair(0, 1))
fixed("files", "paren-syntax-es", "touch 'a (1).txt'", ["cat a (1).txt", "cat 'a (1).txt'"], pair(0, 1), language="es")
fixed("files", "rsync-dir", "mkdir s; touch s/a", ["rsync s/ d/", "rsync -r s/ d/"], pair(0, 1, optional=True))
fixed("files", "rsync-option", "mkdir s; touch s/a", ["rsync -a --exlude=b s/ d/", "rsync -a --exclude=b s/ d/"], pair(0, 1))
fixed("files", "cp-missing-operand", "touch a", ["cp a", "cp a b"], pair(0, 1))
fixed("files", "cp-missing-operand-fr", "touch a", ["cp a", "cp a b"], pair(0, 1), language="fr")
fixed("files", "sqlite-table", "sqlite3 app.db 'create table users(id int)'", ["sqlite3 app.db .tabels", "sqlite3 app.db .tables"], pair(0, 1))
fixed("files", "7z-typo", "echo x > x", ["7z ad x.7z x", "7z a x.7z x"], pair(0, 1))
fixed("files", "base64-decode", "echo aGk= > f", ["base64 --decod f", "base64 --deocde f", "base64 --decode f"], pair(1, 2))

# missing programs --------------------------------------------------------------------------------

fixed("missing", "no-bat", "echo x > f", ["bat f", "cat f"], pair(0, 1, optional=True))
fixed("missing", "no-fd", "touch a.md", ["fd a.md", "fdfind a.md"], pair(0, 1))
fixed("missing", "no-ll", "touch a", ["ll", "ls -l"], pair(0, 1))
fixed("missing", "nodee", "echo 'console.log(1)' > i.js", ["nodee i.js", "node i.js"], pair(0, 1))
fixed("missing", "no-python-de", "echo 'print(1)' > i.py", ["python i.py", "python3 i.py"], pair(0, 1), language="de")
fixed("missing", "no-python-fr", "echo 'print(1)' > i.py", ["python i.py", "python3 i.py"], pair(0, 1), language="fr")
fixed("missing", "no-python-ja", "echo 'print(1)' > i.py", ["python i.py", "python3 i.py"], pair(0, 1), language="ja")
fixed("missing", "no-python-dash", "echo 'print(1)' > i.py", ["python i.py", "python3 i.py"], pair(0, 1), agent="merged", shell="sh")
fixed("missing", "no-python-zsh", "echo 'print(1)' > i.py", ["python i.py", "python3 i.py"], pair(0, 1), shell="zsh")
fixed("missing", "grpe", "echo a > f", ["grpe a f", "grep a f"], pair(0, 1))
fixed("missing", "mkdri", "", ["mkdri -p x/y", "mkdir -p x/y"], pair(0, 1))
fixed("missing", "sl", "", ["sl", "ls"], pair(0, 1))
fixed("missing", "cd..", "mkdir -p a", ["cd a", "cd..", "cd .."], pair(1, 2))
fixed("missing", "gitstatus", GIT, ["gitstatus", "git status"], pair(0, 1))
fixed("missing", "dokcer", "", ["dokcer --version", "docker --version"], pair(0, 1))
fixed("missing", "own-script-path", "mkdir bin; printf '#!/bin/sh\\necho 1\\n' > bin/deploy; chmod +x bin/deploy", ["deploy", "bin/deploy"], pair(0, 1))
fixed("missing", "own-script-path-export", "mkdir bin; printf '#!/bin/sh\\necho 1\\n' > bin/deploy; chmod +x bin/deploy", ["deploy --dry", "export PATH=$PWD/bin:$PATH", "deploy --dry"], pair(0, 2, "environment", 1, kind_also=["prerequisite"]))
fixed("missing", "dot-slash", "printf '#!/bin/sh\\necho 1\\n' > go.sh; chmod +x go.sh", ["go.sh", "./go.sh"], pair(0, 1))
fixed("missing", "yarn-npm", NODE_PKG, ["yarn run build", "npm run build"], pair(0, 1))
fixed("missing", "ifconfig-ip", "", ["ifconfig lo", "ip addr show lo"], pair(0, 1), environment={"PATH": "/usr/local/bin:/usr/bin:/bin"})
fixed("missing", "shebang", "printf '#!/usr/bin/env pythn3\\nprint(1)\\n' > t.py; chmod +x t.py", ["./t.py", "python3 t.py"], pair(0, 1))
fixed("missing", "chain-middle", "echo 'print(1)' > i.py", ["echo start && python i.py && echo done", "echo start && python3 i.py && echo done"], pair(0, 1), agent="split")
fixed("missing", "pipe-front", "echo '{\"a\":1}' > f.json", ["catt f.json | jq .a", "cat f.json | jq .a"], pair(0, 1, optional=True))

# rights ------------------------------------------------------------------------------------------

fixed("rights", "chmod-script", "printf '#!/bin/sh\\necho 1\\n' > run.sh", ["./run.sh", "chmod +x run.sh", "./run.sh"], pair(0, 2, "prerequisite", 1))
fixed("rights", "chmod-script-zsh", "printf '#!/bin/sh\\necho 1\\n' > run.sh", ["./run.sh", "chmod u+x run.sh", "./run.sh"], pair(0, 2, "prerequisite", 1), shell="zsh")
fixed("rights", "chmod-script-de", "printf '#!/bin/sh\\necho 1\\n' > run.sh", ["./run.sh", "chmod +x run.sh", "./run.sh"], pair(0, 2, "prerequisite", 1), language="de")
fixed("rights", "bash-script", "printf 'echo 1\\n' > run.sh", ["./run.sh", "bash run.sh"], pair(0, 1))
fixed("rights", "sudo-cat", "", ["cat /etc/sudoers", "sudo cat /etc/sudoers"], pair(0, 1, "privilege", kind_also=["replace"], caution="privilege"))
fixed("rights", "sudo-mkdir", "", ["mkdir /srv/fr-site", "sudo mkdir /srv/fr-site", "sudo rmdir /srv/fr-site"], pair(0, 1, "privilege", kind_also=["replace"], caution="privilege"))
fixed("rights", "sudo-mkdir-fr", "", ["mkdir /srv/fr-site", "sudo mkdir /srv/fr-site", "sudo rmdir /srv/fr-site"], pair(0, 1, "privilege", kind_also=["replace"], caution="privilege"), language="fr")
fixed("rights", "sudo-tee", "", ["echo x > /etc/fr-test.conf", "echo x | sudo tee /etc/fr-test.conf", "sudo rm /etc/fr-test.conf"], pair(0, 1, "privilege", kind_also=["replace"], caution="privilege"))
fixed("rights", "sudo-sbin", "", ["useradd -D", "sudo useradd -D"], pair(0, 1, "privilege", kind_also=["replace"], caution="privilege"))
fixed("rights", "sudo-apt", "", ["apt-get -qq clean", "sudo apt-get -qq clean"], pair(0, 1, "privilege", kind_also=["replace"], caution="privilege"))
fixed("rights", "sudo-chown", "", ["chown root /etc/hostname", "sudo chown root /etc/hostname"], pair(0, 1, "privilege", kind_also=["replace"], caution="privilege"))
fixed("rights", "sudo-u", "sudo rm -rf /home/flr; true", ["mkdir /var/lib/postgresql/fr", "sudo -u postgres mkdir /var/lib/postgresql/fr", "sudo -u postgres rmdir /var/lib/postgresql/fr"], pair(0, 1, "privilege", kind_also=["replace"], caution="privilege"))
fixed("rights", "unreadable", "echo x > f; chmod 000 f", ["cat f", "chmod u+r f", "cat f"], pair(0, 2, "prerequisite", 1))
fixed("rights", "write-protected", "echo x > f; chmod 444 f", ["echo y >> f", "chmod u+w f", "echo y >> f"], pair(0, 2, "prerequisite", 1))
fixed("rights", "ssh-key-open", "ssh-keygen -q -t ed25519 -N '' -f k; chmod 644 k", ["ssh-keygen -y -f k", "chmod 600 k", "ssh-keygen -y -f k"], pair(0, 2, "prerequisite", 1))

# environment, services, servers ------------------------------------------------------------------

fixed("env", "sh-unbound", "printf '#!/bin/bash\\nset -u\\necho $RELEASE_TAG\\n' > rel.sh; chmod +x rel.sh", ["./rel.sh", "RELEASE_TAG=v1 ./rel.sh"], pair(0, 1, "environment", kind_also=["replace"]))
fixed("env", "sh-required", "printf '#!/bin/bash\\n: \"${API_HOST:?is required}\"\\necho ok\\n' > call.sh; chmod +x call.sh", ["./call.sh", "export API_HOST=localhost", "./call.sh"], pair(0, 2, "environment", 1, kind_also=["prerequisite"]))
fixed("env", "sh-required-es", "printf '#!/bin/bash\\n: \"${API_HOST:?no definida}\"\\necho ok\\n' > call.sh; chmod +x call.sh", ["./call.sh", "API_HOST=localhost ./call.sh"], pair(0, 1, "environment", kind_also=["replace"]), language="es")
fixed("env", "dotenv", "printf '#!/bin/bash\\n[ -n \"$QUEUE_URL\" ] || { echo \"QUEUE_URL is not set\" >&2; exit 1; }\\necho ok\\n' > w.sh; chmod +x w.sh; echo QUEUE_URL=x > .env", ["./w.sh", "set -a; . ./.env; set +a", "./w.sh"], pair(0, 2, "environment", 1, kind_also=["prerequisite"]))
fixed("env", "dotenv-agent", "printf '#!/bin/bash\\n[ -n \"$QUEUE_URL\" ] || { echo \"QUEUE_URL is not set\" >&2; exit 1; }\\necho ok\\n' > w.sh; chmod +x w.sh; echo QUEUE_URL=x > .env", ["./w.sh", "cat .env", "env $(cat .env) ./w.sh"], pair(0, 2, "environment", kind_also=["replace"]), agent="split")
fixed("env", "shared-library", "printf 'int f(void){return 0;}\\n' > f.c; gcc -shared -fPIC -o libf.so f.c; printf 'int f(void);int main(void){return f();}\\n' > m.c; gcc -o m m.c -L. -lf", ["./m", "LD_LIBRARY_PATH=. ./m"], pair(0, 1, "environment", kind_also=["replace"]))
fixed("env", "locale", "", ["python3 -c 'import locale; locale.setlocale(locale.LC_ALL, \"\")'", "LC_ALL=C.UTF-8 python3 -c 'import locale; locale.setlocale(locale.LC_ALL, \"\")'"], pair(0, 1, "environment", kind_also=["replace"]), environment={"LC_ALL": "xx_XX.UTF-8"})
fixed("env", "redis-down", "sudo service redis-server stop >/dev/null 2>&1; true", ["redis-cli dbsize", "sudo service redis-server start", ("wait", 3), "redis-cli dbsize", "sudo service redis-server stop"], pair(0, 2, "prerequisite", 1))
fixed("env", "redis-port", "", ["redis-server --port 7391 --daemonize yes", "redis-cli ping", "redis-cli -p 7391 ping", "redis-cli -p 7391 shutdown nosave"], pair(1, 2, optional=True))
fixed("env", "pg-down", "sudo service postgresql stop >/dev/null 2>&1; true", ["psql -l", "sudo service postgresql start", ("wait", 5), "sudo -u postgres psql -l"], pair(0, 2, optional=True))
fixed("env", "pg-role", "sudo service postgresql start >/dev/null 2>&1; sleep 3; sudo -u postgres dropuser --if-exists sam", ["psql -d postgres -c 'select 1'", "sudo -u postgres createuser -s sam", "psql -d postgres -c 'select 1'"], pair(0, 2, "prerequisite", 1))
fixed("env", "pg-database", "sudo service postgresql start >/dev/null 2>&1; sleep 3; sudo -u postgres createuser -s sam 2>/dev/null || true; dropdb --if-exists shop", ["psql -d shop -c 'select 1'", "createdb shop", "psql -d shop -c 'select 1'", "dropdb shop"], pair(0, 2, "prerequisite", 1))
fixed("env", "pg-table", "sudo service postgresql start >/dev/null 2>&1; sleep 3; sudo -u postgres createuser -s sam 2>/dev/null || true; dropdb --if-exists shop; createdb shop; echo 'create table orders(id int);' > schema.sql", ["psql -d shop -c 'select count(*) from orders'", "psql -d shop -f schema.sql", "psql -d shop -c 'select count(*) from orders'", "dropdb shop"], pair(0, 2, "prerequisite", 1))
fixed("env", "server-first", "echo hi > index.html", ["curl -s http://127.0.0.1:8741/index.html", "python3 -m http.server 8741 --bind 127.0.0.1 >/dev/null 2>&1 &", ("wait", 2), "sleep 1", "curl -s http://127.0.0.1:8741/index.html"], pair(0, 3, "prerequisite", 1))
fixed("env", "port-taken", "printf 'import socket,os,sys\\ns=socket.socket();s.bind((\"127.0.0.1\",int(os.environ.get(\"PORT\",\"8742\"))));s.listen();print(1)\\n' > s.py", ["python3 -m http.server 8742 --bind 127.0.0.1 >/dev/null 2>&1 &", "sleep 1; python3 s.py", "PORT=8743 python3 s.py"], pair(1, 2, "environment", kind_also=["replace"]))
fixed("env", "port-killed", "", ["python3 -m http.server 8744 --bind 127.0.0.1 >/dev/null 2>&1 &", "sleep 1", "python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\",8744))'", "kill %1", "python3 -c 'import socket; s=socket.socket(); s.setsockopt(1,2,1); s.bind((\"127.0.0.1\",8744))'"], pair(2, 4, "prerequisite", 3, optional=True))
fixed("env", "tmux-no-server", "tmux kill-server 2>/dev/null || true", ["tmux ls", "tmux new-session -d -s work", "tmux ls", "tmux kill-server"], pair(0, 2, "prerequisite", 1))
fixed("env", "tmux-typo", "tmux kill-server 2>/dev/null || true; tmux new-session -d -s work", ["tmux list-sesions", "tmux list-sessions", "tmux kill-server"], pair(0, 1))
fixed("env", "curl-scheme", "", ["curl -s htp://127.0.0.1:1/", "curl -s file:///etc/hostname"], pair(0, 1, optional=True))
fixed("env", "curl-option", "echo x > f", ["curl --sielnt file://$PWD/f", "curl --silent file://$PWD/f"], pair(0, 1))
fixed("env", "wget-option", "", ["wget --no-chek-certificate --version", "wget --version"], pair(0, 1, optional=True))
fixed("env", "ssh-option", "", ["ssh -o StrictHostKeyCheking=no -G localhost", "ssh -o StrictHostKeyChecking=no -G localhost"], pair(0, 1))

# containers and clouds, the clients --------------------------------------------------------------

fixed("cloud", "docker-contianer", "", ["docker contianer --help", "docker container --help"], pair(0, 1, optional=True))
fixed("cloud", "kubectl-typo", "", ["kubectl confg view", "kubectl config view"], pair(0, 1))
fixed("cloud", "kubectl-context", "", ["kubectl config use-context prod", "kubectl config set-context prod --cluster=c", "kubectl config use-context prod"], pair(0, 2, "prerequisite", 1))
fixed("cloud", "kubectl-flag", "", ["kubectl config view --ouput=json", "kubectl config view --output=json"], pair(0, 1))
fixed("cloud", "kubectl-dry-run", "", ["kubectl create configmap c --from-literal=a=b -o yaml --dryrun=client", "kubectl create configmap c --from-literal=a=b -o yaml --dry-run=client"], pair(0, 1))
fixed("cloud", "terraform-typo", "touch main.tf", ["terraform vaildate", "terraform validate"], pair(0, 1))
fixed("cloud", "terraform-init", "printf 'terraform {\\n  backend \"local\" { path = \"s.tfstate\" }\\n}\\noutput \"x\" {\\n  value = 1\\n}\\n' > main.tf", ["terraform plan -no-color", "terraform init -no-color", "terraform plan -no-color"], pair(0, 2, "prerequisite", 1))
fixed("cloud", "terraform-dir", "mkdir infra; printf 'output \"x\" {\\n  value = 1\\n}\\n' > infra/main.tf", ["terraform plan -no-color", "terraform -chdir=infra plan -no-color"], pair(0, 1, "directory", kind_also=["replace"]))
fixed("cloud", "gh-login", "", ["gh --versoin", "gh --version"], pair(0, 1))
fixed("cloud", "hugo-typo", "", ["hugo verison", "hugo version"], pair(0, 1))
fixed("cloud", "ansible-option", "printf -- '- hosts: localhost\\n' > p.yml", ["ansible-playbook p.yml --sintax-check", "ansible-playbook p.yml --syntax-check"], pair(0, 1))
fixed("cloud", "composer-typo", "echo '{}' > composer.json", ["composer validat --no-check-all", "composer validate --no-check-all"], pair(0, 1, optional=True))

# zsh ---------------------------------------------------------------------------------------------

fixed("zsh", "zsh-glob-none", "", ["ls *.nosuch", "ls"], pair(0, 1, optional=True), shell="zsh")
fixed("zsh", "zsh-brackets", "python3 -m venv .venv", ["source .venv/bin/activate", "pip install tinytable[all]", "pip install 'tinytable[all]'"], pair(1, 2), shell="zsh")
fixed("zsh", "zsh-question", "echo x > index.html", ["curl -s file:///home/sam/proj/index.html?v=1", "curl -s 'file:///home/sam/proj/index.html?v=1'"], pair(0, 1), shell="zsh")
fixed("zsh", "zsh-caret", GIT + "echo 2 >> a.txt; git commit -qam two", ["setopt extendedglob", "git show HEAD^ --stat", "git show HEAD\\^ --stat"], pair(1, 2), shell="zsh")
fixed("zsh", "zsh-rake-args", "printf 'task :greet, [:who] do |t, a|\\n puts a[:who]\\nend\\n' > Rakefile", ["rake greet[sam]", "noglob rake greet[sam]"], pair(0, 1, kind_also=["environment"]), shell="zsh")
fixed("zsh", "zsh-typo", GIT, ["gti log -1", "git log -1"], pair(0, 1), shell="zsh")
fixed("zsh", "zsh-cd-missing", "mkdir documents", ["cd documnets", "cd documents"], pair(0, 1), shell="zsh")
fixed("zsh", "zsh-permission", "", ["mkdir /srv/fr-z", "sudo mkdir /srv/fr-z", "sudo rmdir /srv/fr-z"], pair(0, 1, "privilege", kind_also=["replace"], caution="privilege"), shell="zsh")
fixed("zsh", "zsh-agent-eval", "", ["ls out/*.json", "mkdir -p out && touch out/a.json", "ls out/*.json"], pair(0, 2, "prerequisite", 1, optional=True), shell="zsh", agent="merged")

# worktrees and directories -----------------------------------------------------------------------

fixed("directory", "worktree-elsewhere", GIT + "mkdir web; cd web; " + NODE_PKG + "cd ..; git add -A; git commit -qm web; git worktree add -q ../wt", ["cd ../wt", "npm run build", "cd web", "npm run build"], pair(1, 3, "directory", 2))
fixed("directory", "worktree-untracked-env", GIT + "printf '#!/bin/sh\\n. ./.env\\necho $A\\n' > run.sh; chmod +x run.sh; git add .; git commit -qm r; echo A=1 > .env; git worktree add -q ../wt", ["./run.sh", "cd ../wt", "./run.sh", "cp ../proj/.env .", "./run.sh"], pair(2, 4, "prerequisite", 3))
fixed("directory", "worktree-branch-checked-out", GIT + "git branch topic; git worktree add -q ../wt topic", ["git switch topic", "cd ../wt", "git status --short"], pair(0, 1, optional=True))
fixed("directory", "up-to-root", "mkdir -p src/deep; printf 'all:\\n\\t@echo 1\\n' > Makefile", ["cd src/deep", "make all", "cd ../..", "make all"], pair(1, 3, "directory", 2))
fixed("directory", "subshell", "mkdir app; printf 'all:\\n\\t@echo 1\\n' > app/Makefile", ["make all", "(cd app && make all)"], pair(0, 1, "directory", kind_also=["replace"]))
fixed("directory", "pushd", "mkdir app; printf 'all:\\n\\t@echo 1\\n' > app/Makefile", ["make all", "pushd app", "make all"], pair(0, 2, "directory", 1))
fixed("directory", "terraform-cd", "mkdir infra; printf 'output \"x\" {\\n  value = 1\\n}\\n' > infra/main.tf", ["terraform plan -no-color", "cd infra && terraform plan -no-color"], pair(0, 1, "directory", kind_also=["replace"]), agent="merged")
fixed("directory", "script-in-parent", "mkdir sub; printf '#!/bin/sh\\necho 1\\n' > gen.sh; chmod +x gen.sh", ["cd sub", "./gen.sh", "cd ..", "./gen.sh"], pair(1, 3, "directory", 2))
fixed("directory", "requirements-elsewhere", "mkdir api; echo tinytable > api/requirements.txt; python3 -m venv .venv", ["source .venv/bin/activate", "pip install -r requirements.txt", "pip install -r api/requirements.txt"], pair(1, 2, kind_also=["directory"]))

# long agent sessions -----------------------------------------------------------------------------

fixed("agent", "agent-noisy-python", GIT + PY_TEST + "printf 'import tinytable\\n\\n\\ndef add(a, b):\\n    return a - b\\n' > calc.py; printf 'from calc import add\\n\\n\\ndef test_add():\\n    assert add(1, 2) == 3\\n' > tests/test_calc.py; git add -A; git commit -qm calc", [
    "ls -la && git log --oneline -3",
    "cat calc.py tests/test_calc.py",
    "python -m pytest -q 2>&1 | tail -5",
    "python3 -m pytest -q 2>&1 | tail -15",
    "python3 -m venv .venv && .venv/bin/pip install -q tinytable && .venv/bin/python -c 'import tinytable; print(tinytable.VERSION)'",
    "PYTHONPATH=$PYTHONPATH:. .venv/bin/python -m pytest -q 2>&1 | tail -8",
    "grep -rn 'def add' --include=*.py .",
    "grep -rn 'subtract' --include=*.py . ; echo \"exit: $?\"",
    ("edit", "calc.py", "import tinytable\n\n\ndef add(a, b):\n    return a + b\n"),
    "PYTHONPATH=$PYTHONPATH:. .venv/bin/python -m pytest -q 2>&1 | tail -8",
    "git diff --stat && git stauts --short",
    "git diff --stat && git status --short",
    "git commit -m 'Fix add'",
    "git add calc.py && git commit -qm 'Fix add'",
    "git log --oneline -1; git push 2>&1 | tail -2",
    ], pair(9, 10), pair(11, 12, "prerequisite", kind_also=["replace"]), pair(2, 3, optional=True), agent="merged", environment=PYTEST)
fixed("agent", "agent-noisy-node", NODE_PKG + GIT, [
    "cat package.json",
    "node -v && npm -v",
    "npm run 2>&1 | head -20",
    "npm run unit",
    "npm run test:unit",
    "ls node_modules 2>/dev/null | head",
    "node -e \"console.log(require('tiny-pad'))\" 2>&1 | head -3",
    "npm install 2>&1 | tail -3",
    "node -e \"console.log(require('tiny-pad'))\"",
    "npx --no-install eslint . 2>&1 | tail -2 || true",
    "for i in 1 2 3; do node -e 1; done; echo ok",
    "cat nope.txt || echo 'not there'",
    "test -d dist && echo yes || echo no",
    "npm run build && ls dist",
    "git add -A && git commit -qm deps && git log --oneline | head -2",
    ], pair(3, 4), pair(6, 8, "prerequisite", 7, optional=True), agent="merged")
fixed("agent", "agent-noisy-c", C_HELLO + GIT + "printf 'hello: hello.c\\n\\tgcc -Wall -o hello hello.c\\n' > Makefile", [
    "ls && cat Makefile",
    "make 2>&1 | tail -3 && ./hello",
    "valgrind ./hello",
    "./hello | hexdump -C | head -2",
    "./hello --version; echo $?",
    ("edit", "hello.c", '#include <stdio.h>\nint main(void){puts("hi") return 0;}\n'),
    "make",
    ("edit", "hello.c", '#include <stdio.h>\nint main(void){puts("hi there"); return 0;}\n'),
    "make && ./hello",
    "gdb -batch -ex run ./hello",
    "gcc -Wall -Wextra -fsanitize=adress -o hello hello.c",
    "gcc -Wall -Wextra -fsanitize=address -o hello hello.c && ./hello",
    "strip --strip-all hello && ls -l hello | awk '{print $5}'",
    "git add -A; git commit -qm 'hello'; git describe",
    "git describe --always",
    ], pair(8, 9), pair(11, 12), agent="split")
fixed("agent", "agent-long-hunt", GIT + "mkdir -p deep/a/b; echo mode=1 > deep/a/b/app.conf", [
    "cat app.conf", "cat config/app.conf", "cat etc/app.conf", "find . -name app.conf", "cat deep/a/b/app.conf",
    "grep -n mode deep/a/b/app.conf", "grep -n secret deep/a/b/app.conf", "sed -i 's/mode=1/mode=2' deep/a/b/app.conf",
    "sed -i 's/mode=1/mode=2/' deep/a/b/app.conf", "cat deep/a/b/app.conf", "git diff --stat", "git status --short"],
    pair(7, 8), agent="split")
fixed("agent", "agent-sh-chain", "", ["mkdir -p a && cd a && hexdumpp -C /etc/hostname", "cd /home/sam/proj/a && hexdump -C /etc/hostname | head -2"], pair(0, 1, optional=True), agent="merged", shell="sh")
fixed("agent", "agent-or-true", "echo 'print(1)' > i.py", ["python i.py 2>&1 || true", "python i.py", "python3 i.py"], pair(1, 2), agent="split")
fixed("agent", "agent-heredoc-python", "", ["python - <<'EOF'\nprint('report')\nEOF", "python3 - <<'EOF'\nprint('report')\nEOF"], pair(0, 1), agent="split")
fixed("agent", "agent-cd-every-time", "mkdir -p svc; cd svc; " + NODE_PKG, ["cd /home/sam/proj/svc && npm run biuld 2>&1", "cd /home/sam/proj/svc && npm run build 2>&1"], pair(0, 1), agent="merged")
fixed("agent", "agent-export-lost", "printf '#!/bin/bash\\nset -u\\necho $STAGE\\n' > s.sh; chmod +x s.sh", ["./s.sh", "export STAGE=dev", "./s.sh", "STAGE=dev ./s.sh"], pair(0, 3, "environment", kind_also=["replace"]), pair(2, 3, "environment", kind_also=["replace"]), agent="split")

# nothing to learn --------------------------------------------------------------------------------

clean("red-green", "rg-unittest", "printf 'import unittest\\nfrom c import f\\nclass T(unittest.TestCase):\\n    def test_a(self):\\n        self.assertEqual(f(), 2)\\n' > test_c.py; printf 'def f():\\n    return 1\\n' > c.py", ["python3 -m unittest", ("edit", "c.py", "def f():\n    return 2\n"), "python3 -m unittest"], "an edit mended it")
clean("red-green", "rg-unittest-v", "printf 'import unittest\\nfrom c import f\\nclass T(unittest.TestCase):\\n    def test_a(self):\\n        self.assertEqual(f(), 2)\\n' > test_c.py; printf 'def f():\\n    return 1\\n' > c.py", ["python3 -m unittest", "python3 -m unittest -v", ("edit", "c.py", "def f():\n    return 2\n"), "python3 -m unittest -v test_c"], "an edit mended it; -v only shows more")
clean("red-green", "rg-go-test", "printf 'package x\\nfunc F() int { return 1 }\\n' > x.go; printf 'package x\\nimport \"testing\"\\nfunc TestF(t *testing.T) { if F() != 2 { t.Fatal(1) } }\\n' > x_test.go; go mod init example.org/x 2>/dev/null", ["go test ./...", ("edit", "x.go", "package x\n\nfunc F() int { return 2 }\n"), "go test ./..."], "an edit mended it")
clean("red-green", "rg-cargo-test", "cargo init -q --vcs none --lib --name k .; printf 'pub fn f()->u8{1}\\n#[test]\\nfn t(){assert_eq!(f(),2);}\\n' > src/lib.rs", ["cargo test", ("edit", "src/lib.rs", "pub fn f()->u8{2}\n#[test]\nfn t(){assert_eq!(f(),2);}\n"), "cargo test"], "an edit mended it", root=True, environment=CARGO)
clean("red-green", "rg-pytest-then-subset", PY_TEST + "printf 'def test_two():\\n    assert 1 == 2\\n' > tests/test_two.py", ["python3 -m pytest -q", "python3 -m pytest -q tests/test_one.py"], "another selection of tests", environment=PYTEST)
clean("red-green", "rg-pytest-deselect", PY_TEST + "printf 'def test_two():\\n    assert 1 == 2\\n' > tests/test_two.py", ["python3 -m pytest -q", "python3 -m pytest -q --deselect tests/test_two.py::test_two"], "leaving a test out mends nothing", environment=PYTEST)
clean("red-green", "rg-node-test", "echo 'const t=require(\"node:test\"),a=require(\"assert\");t(\"x\",()=>a.equal(require(\"./v\"),2))' > a.test.js; echo 'module.exports=1' > v.js", ["node --test", ("edit", "v.js", "module.exports=2\n"), "node --test"], "an edit mended it")
clean("red-green", "rg-make-check", "printf 'check:\\n\\t@grep -q yes flag\\n' > Makefile; echo no > flag", ["make check", ("edit", "flag", "yes\n"), "make check"], "an edit mended it")
clean("compile-edit", "ce-gcc-undeclared", "printf 'int main(void){return x;}\\n' > m.c", ["gcc m.c", ("edit", "m.c", "int main(void){return 0;}\n"), "gcc m.c"], "an edit mended it")
clean("compile-edit", "ce-gcc-output", "printf 'int main(void){return x;}\\n' > m.c", ["gcc m.c", ("edit", "m.c", "int main(void){return 0;}\n"), "gcc -O2 -o m m.c"], "an edit mended it; the options are another matter")
clean("compile-edit", "ce-go", "printf 'package main\\nfunc main(){ x }\\n' > main.go; go mod init example.org/x 2>/dev/null", ["go build ./...", ("edit", "main.go", "package main\n\nfunc main() {}\n"), "go build ./..."], "an edit mended it")
clean("compile-edit", "ce-python-syntax", "printf 'def f(:\\n  pass\\n' > m.py", ["python3 m.py", ("edit", "m.py", "def f():\n    pass\n"), "python3 m.py"], "an edit mended it")
clean("compile-edit", "ce-cargo-type", "cargo init -q --vcs none --name k .; printf 'fn main(){let x:u8=\"a\";}\\n' > src/main.rs", ["cargo build", ("edit", "src/main.rs", "fn main(){}\n"), "cargo build --quiet"], "an edit mended it", root=True, environment=CARGO)
clean("compile-edit", "ce-json", "echo '{\"a\":}' > c.json", ["jq . c.json", ("edit", "c.json", '{"a": 1}\n'), "jq . c.json"], "an edit mended it")
clean("compile-edit", "ce-makefile", "printf 'all:\\n  echo x\\n' > Makefile", ["make", ("edit", "Makefile", "all:\n\t@echo x\n"), "make"], "an edit mended it")
clean("compile-edit", "ce-shell-script", "printf 'if true; then echo x\\n' > s.sh", ["bash s.sh", ("edit", "s.sh", "if true; then echo x; fi\n"), "bash s.sh"], "an edit mended it")
clean("compile-edit", "ce-import-edit", "echo 'import tinytabel' > m.py", ["python3 m.py", ("edit", "m.py", "import json\n"), "python3 m.py"], "the wrong import was edited")
clean("expected-nonzero", "en-grep-count", "echo a > f", ["grep -c b f", "grep -c a f"], "no match is an answer")
clean("expected-nonzero", "en-rg", "echo a > f", ["rg b f", "rg a f"], "no match is an answer")
clean("expected-nonzero", "en-diff-q", "echo a > f; echo b > g; echo a > h", ["diff -q f g", "diff -q f h"], "a difference is an answer")
clean("expected-nonzero", "en-diff-r", "mkdir x y; echo a > x/f; echo b > y/f", ["diff -r x y", "diff x/f x/f"], "a difference is an answer")
clean("expected-nonzero", "en-bracket", "touch f", ["[ -s f ]", "[ -e f ]"], "a test is an answer")
clean("expected-nonzero", "en-double-bracket", "", ["[[ abc == x* ]]", "[[ abc == a* ]]"], "a test is an answer")
clean("expected-nonzero", "en-git-diff-quiet", GIT + "echo 2 >> a.txt", ["git diff --quiet", "git checkout -q a.txt", "git diff --quiet"], "a difference is an answer")
clean("expected-nonzero", "en-which-type", "", ["which kubectx", "type kubectx", "which git"], "not there is an answer")
clean("expected-nonzero", "en-pgrep", "", ["pgrep -f no-such-daemon-here", "pgrep -x bash"], "not running is an answer")
clean("expected-nonzero", "en-git-grep", GIT, ["git grep -n nothing", "git grep -n one"], "no match is an answer")
clean("expected-nonzero", "en-pip-show", "", ["pip show nosuch", "pip list"], "not installed is an answer")
clean("expected-nonzero", "en-npm-outdated", NODE_PKG, ["npm ls tiny-pad", "npm run"], "not installed is an answer")
clean("expected-nonzero", "en-cmp-chain", "echo a > f; echo b > g", ["cmp -s f g && echo same", "cmp -s f f && echo same"], "a difference is an answer")
clean("expected-nonzero", "en-systemctl", "", ["false", "true"], "false is false")
clean("expected-nonzero", "en-agent-probe", "", ["test -d node_modules", "ls", "test -f package.json && cat package.json || echo none"], "probing", agent="merged")
clean("interrupted", "int-sleep", "", [("stop", "sleep 60", 0.8), "sleep 0.1"], "Ctrl-C")
clean("interrupted", "int-server", "", [("stop", "python3 -m http.server 8751 --bind 127.0.0.1", 1.0), "python3 -m http.server --help | head -1"], "Ctrl-C")
clean("interrupted", "int-tail", "echo x > log", [("stop", "tail -f log", 0.8), "tail -n 1 log"], "Ctrl-C")
clean("interrupted", "int-make", "printf 'all:\\n\\t@sleep 30\\nquick:\\n\\t@true\\n' > Makefile", [("stop", "make all", 1.0), "make quick"], "Ctrl-C")
clean("interrupted", "int-cat-zsh", "echo x > log", [("stop", "cat", 0.8), "cat log"], "Ctrl-C", shell="zsh")
clean("sigpipe", "pipe-seq", "", ["seq 1 9999999 | head -n 1", "seq 1 9 | head -n 1"], "the pipe was closed")
clean("sigpipe", "pipe-pipefail", "", ["set -o pipefail", "yes | head -n 2", "yes ok | head -n 1"], "the pipe was closed")
clean("exploration", "ex-ls-guess", "mkdir source docs", ["ls lib", "ls sources", "ls", "ls docs"], "looking around", pairs=[pair(1, 3, optional=True)])
clean("exploration", "ex-cat-kinds", "echo x > setup.cfg", ["cat pyproject.toml", "cat setup.py", "cat setup.cfg"], "which project is it")
clean("exploration", "ex-cd-guess", "mkdir server client", ["cd backend", "cd server"], "looking around")
clean("exploration", "ex-head-guess", "echo x > CHANGES.rst", ["head -5 CHANGELOG.md", "head -5 CHANGES.rst"], "looking around", agent="split")
clean("exploration", "ex-python-import", "", ["python3 -c 'import pandas'", "python3 -c 'import csv'"], "is it there")
clean("exploration", "ex-versions", "", ["bun --version", "deno --version", "node --version"], "is it there", agent="merged")
clean("exploration", "ex-help", "", ["tar --helpme", "tar --version"], "only asked for the version", pairs=[pair(0, 1, optional=True)])
clean("exploration", "ex-git-show", GIT, ["git show v9", "git show HEAD --stat"], "another thing shown")
clean("exploration", "ex-sed-print", "seq 9 > f", ["sed -n 1,3p g", "sed -n 1,3p f"], "another file")
clean("exploration", "ex-find-zsh", "mkdir src; touch src/a.c", ["ls *.py", "ls src/*.c"], "looking around", shell="zsh")
clean("exploration", "ex-wc", "echo x > b.txt", ["wc -l a.txt", "wc -l b.txt"], "another file")
clean("same-binary", "sb-git-push-log", GIT + REMOTE + "git switch -qc t", ["git push", "git log --oneline", "git branch -vv"], "the push was given up")
clean("same-binary", "sb-git-merge-status", GIT + "git switch -qc s; echo s > a.txt; git commit -qam s; git switch -q main; echo m > a.txt; git commit -qam m", ["git merge s", "git status --short", "git merge --abort"], "the merge was given up")
clean("same-binary", "sb-pip-list", "", ["pip install no-such-thing-at-all", "pip list", "pip --version"], "the install was given up")
clean("same-binary", "sb-npm-other-script", NODE_PKG, ["npm run publish-docs", "npm run build"], "another script")
clean("same-binary", "sb-docker", "", ["docker ps", "docker --version", "docker context ls"], "the daemon stays down")
clean("same-binary", "sb-kubectl", "", ["kubectl get pods", "kubectl config view", "kubectl version --client"], "the cluster stays away")
clean("same-binary", "sb-terraform", "echo 'x = ' > main.tf", ["terraform validate", "terraform version", "terraform fmt -check || true"], "the file stays broken")
clean("same-binary", "sb-cargo-new", "", ["cargo build", "cargo --version", "cargo new -q --vcs none z"], "nothing was built", root=True, environment=CARGO)
clean("same-binary", "sb-make-other", "printf 'lint:\\n\\t@false\\nfmt:\\n\\t@true\\n' > Makefile", ["make lint", "make fmt"], "another target")
clean("same-binary", "sb-curl-other", "echo x > f", ["curl -s http://127.0.0.1:1/", "curl -s file://$PWD/f"], "another address")
clean("same-binary", "sb-git-clone-fails", GIT, ["git clone -q ~/nowhere.git x", "git init -q x"], "another way, not a correction", pairs=[pair(0, 1, optional=True)])
clean("same-binary", "sb-systemd-typo", GIT, ["git comit", "git status --short"], "the slip was never mended")
clean("parameter", "pa-mkdir-other", "mkdir one", ["mkdir one", "mkdir two"], "another name")
clean("parameter", "pa-branch-other", GIT + "git branch x", ["git branch x", "git branch y"], "another name")
clean("parameter", "pa-tag-next", GIT + "git tag 1.0", ["git tag 1.0", "git tag 1.1"], "another name")
clean("parameter", "pa-exit-codes", "printf 'import sys; sys.exit(int(sys.argv[1]))' > e.py", ["python3 e.py 3", "python3 e.py 0"], "another argument")
clean("parameter", "pa-divide", "", ["expr 4 / 0", "expr 4 / 2"], "another argument")
clean("parameter", "pa-index", "printf 'import sys; print([1,2][int(sys.argv[1])])' > e.py", ["python3 e.py 7", "python3 e.py 1"], "another argument")
clean("parameter", "pa-port", "", ["nc -z 127.0.0.1 1", "nc -z 127.0.0.1 2 || true"], "another port")
clean("parameter", "pa-stdin", "echo x > a; echo 1 > b; printf 'import sys; int(sys.stdin.read())' > i.py", ["python3 i.py < a", "python3 i.py < b"], "another input")
clean("parameter", "pa-worktree-name", GIT + "mkdir ../wt; touch ../wt/x", ["git worktree add ../wt", "git worktree add ../wt-b"], "another directory")
clean("parameter", "pa-kill", "", ["kill -0 999999", "kill -0 $$"], "another process")
clean("polling", "po-file", "", ["test -f done", ("wait", 20), "test -f done", ("edit", "done", "x"), "test -f done"], "waiting")
clean("polling", "po-curl", "", ["curl -sf http://127.0.0.1:8761/", ("wait", 20), "curl -sf http://127.0.0.1:8761/ || true"], "waiting")
clean("polling", "po-cat", "", ["cat result.json", ("edit", "result.json", "{}"), "cat result.json"], "made elsewhere")
clean("polling", "po-make-retry", "printf 'all:\\n\\t@test -e .once || { touch .once; echo flaky; exit 1; }\\n' > Makefile", ["make all", "make all"], "it passes the second time")
clean("transient", "tr-flaky-script", "printf '#!/bin/sh\\ntest -e .once || { touch .once; echo \"network is unreachable\" >&2; exit 1; }\\n' > f.sh; chmod +x f.sh", ["./f.sh", "./f.sh"], "it passes the second time")
clean("transient", "tr-flaky-verbose", "printf '#!/bin/sh\\ntest -e .once || { touch .once; echo \"temporary failure\" >&2; exit 1; }\\n' > f.sh; chmod +x f.sh", ["./f.sh", "./f.sh -v"], "it passes the second time")
clean("transient", "tr-flaky-ls-between", "printf '#!/bin/sh\\ntest -e .once || { touch .once; echo \"connection reset by peer\" >&2; exit 1; }\\n' > f.sh; chmod +x f.sh", ["./f.sh", "ls", "git --version", "./f.sh"], "it passes the second time")
clean("transient", "tr-module-reappears", "printf 'import os,sys\\nif not os.path.exists(\".once\"):\\n    open(\".once\",\"w\"); import nosuchmodule\\nprint(1)\\n' > m.py", ["python3 m.py", "ls -a", "python3 m.py"], "nothing was installed")
clean("transient", "tr-pip-other-package", "printf 'import os\\nif not os.path.exists(\".once\"):\\n    open(\".once\",\"w\"); import nosuchmodule\\nprint(1)\\n' > m.py; python3 -m venv .venv", ["source .venv/bin/activate", "python m.py", "pip list", "python m.py"], "nothing was installed")
clean("unrelated", "un-typo-left", GIT, ["gti push", "ls", "git log -1"], "the slip was never mended")
clean("unrelated", "un-other-work", "", ["pyhton3 server.py --port 80", "python3 -c 'print(1)'"], "other work")
clean("unrelated", "un-npm", NODE_PKG, ["npm run deplyo", "npm run build"], "other work")
clean("unrelated", "un-missing-editor", "echo 'print(1)' > a.py", ["subl a.py", "python3 a.py"], "not the same purpose")
clean("unrelated", "un-missing-tool", "echo '{}' > a.json", ["prettyjson a.json", "rm a.json"], "not the same purpose")
clean("unrelated", "un-tree-rm", "mkdir d", ["tree d", "rmdir d"], "not the same purpose")
clean("chain", "ch-test-deploy", "printf 'all:\\n\\t@false\\nclean:\\n\\t@true\\n' > Makefile", ["make all && echo deployed", "make clean && echo cleaned"], "another target")
clean("chain", "ch-cd-grep", "mkdir s; echo a > s/f", ["cd s && grep -n zzz f", "cd ~/proj/s && grep -n a f"], "no match is an answer", agent="merged")
clean("chain", "ch-first-hidden", "", ["cat nothing; ls", "ls"], "the exit code is that of ls")
clean("chain", "ch-or-echo", "", ["cat nothing || echo fallback", "echo fallback"], "meant to fall back")
clean("chain", "ch-false-then", GIT, ["git push -q; git status --short; false", "git status --short"], "only status was repeated")
clean("masked", "ma-pipe-head", "", ["cat nothing | head -1", "echo x | head -1"], "nothing was mended")
clean("masked", "ma-or-true", "", ["ls --wrong || true", "ls --wrong 2>/dev/null || true"], "the error was only hidden")
clean("masked", "ma-pipe-hides-fix", "echo x > f", ["frobnicate f", "frobnicate f | cat"], "still missing")
clean("masked", "ma-pytest-tail", PY_TEST + "printf 'def test_two():\\n    assert 1 == 2\\n' > tests/test_two.py", ["python3 -m pytest -q 2>&1 | tail -3", "python3 -m pytest -q tests/test_two.py", "python3 -m pytest -q tests/test_one.py 2>&1 | tail -3"], "another selection of tests", agent="merged", environment=PYTEST)
clean("other-project", "op-make", "mkdir a b; printf 'all:\\n\\t@false\\n' > a/Makefile; printf 'all:\\n\\t@true\\n' > b/Makefile", ["cd a", "make", "cd ../b", "make"], "another project")
clean("other-project", "op-make-C", "mkdir a b; printf 'all:\\n\\t@false\\n' > a/Makefile; printf 'all:\\n\\t@true\\n' > b/Makefile", ["make -C a", "make -C b"], "another project")
clean("other-project", "op-worktree-test", GIT + PY_TEST + "printf 'def test_two():\\n    assert 1 == 2\\n' > tests/test_two.py; git add -A; git commit -qm t; git worktree add -q ../wt; rm ../wt/tests/test_two.py", ["python3 -m pytest -q", "cd ../wt", "python3 -m pytest -q"], "another checkout", environment=PYTEST)
clean("other-project", "op-git-C", GIT + "git init -q ~/b", ["git -C ~/b log -1", "git log -1 --format=%s"], "another repository", pairs=[pair(0, 1, optional=True)])
clean("heredoc", "hd-python", "", ["python3 - <<'E'\nprint(1/0)\nE", "python3 - <<'E'\nprint(1)\nE"], "inline code was edited")
clean("heredoc", "hd-bash-c", "", ["bash -c 'exit 4'", "bash -c 'exit 0'"], "inline code was edited")
clean("heredoc", "hd-node-e", "", ["node -e 'foo()'", "node -e 'console.log(1)'"], "inline code was edited")
clean("heredoc", "hd-perl-e", "", ["perl -e 'die 1'", "perl -e 'print 1'"], "inline code was edited")
clean("heredoc", "hd-sql", "", ["sqlite3 :memory: 'selct 1'", "sqlite3 :memory: 'select 1'"], "inline code was edited", pairs=[pair(0, 1, optional=True)])
clean("heredoc", "hd-cat-script", "", ["cat > s.sh <<'E'\nexit 3\nE", "bash s.sh", "cat > s.sh <<'E'\nexit 0\nE", "bash s.sh"], "a file was rewritten", agent="split")
clean("heredoc", "hd-python-import", "", ["python3 -c 'import requestz; print(1)'", "python3 -c 'import json; print(1)'"], "inline code was edited")
clean("heredoc", "hd-ruby", "", ["ruby -e 'raise \"x\"'", "ruby -e 'puts 1'"], "inline code was edited")
SERVER = "printf 'import http.server as h\\nclass H(h.BaseHTTPRequestHandler):\\n    def do_GET(s):\\n        ok=\"GOOD\" in (s.headers.get(\"Authorization\") or \"\")+s.path\\n        s.send_response(200 if ok else 401); s.end_headers()\\n    def log_message(s,*a): pass\\nh.HTTPServer((\"127.0.0.1\",8771),H).serve_forever()\\n' > srv.py; "
clean("secret", "se-header", SERVER, ["python3 srv.py &", "sleep 1", "curl -sSf -H 'Authorization: Bearer ghp_BAD0000000000000000000000000000000000' http://127.0.0.1:8771/", "curl -sSf -H 'Authorization: Bearer ghp_GOOD000000000000000000000000000000000' http://127.0.0.1:8771/"], "only the secret differs")
clean("secret", "se-query", SERVER, ["python3 srv.py &", "sleep 1", "curl -sSf 'http://127.0.0.1:8771/?api_key=BAD00000000000000'", "curl -sSf 'http://127.0.0.1:8771/?api_key=GOOD0000000000000'"], "only the secret differs")
clean("secret", "se-env", "printf '#!/bin/sh\\n[ \"$APP_TOKEN\" = good-token-1 ] || { echo \"invalid token\" >&2; exit 1; }\\n' > t.sh; chmod +x t.sh", ["APP_TOKEN=bad-token-1 ./t.sh", "APP_TOKEN=good-token-1 ./t.sh"], "only the secret differs")
clean("fixed-outside", "ou-created", "", ["cat plan.md", ("edit", "plan.md", "x\n"), "cat plan.md"], "made in an editor")
clean("fixed-outside", "ou-script-created", "", ["python3 gen.py", ("edit", "gen.py", "print(1)\n"), "python3 gen.py"], "made in an editor")
clean("fixed-outside", "ou-config", "echo 'print(open(\"conf.ini\").read())' > a.py", ["python3 a.py", "ls", ("edit", "conf.ini", "x\n"), "python3 a.py"], "made in an editor")
clean("fixed-outside", "ou-env-file", "", [". ./.env", ("edit", ".env", "A=1\n"), ". ./.env"], "made in an editor")
clean("fixed-outside", "ou-makefile", "", ["make", ("edit", "Makefile", "all:\n\t@true\n"), "make"], "made in an editor")
clean("unresolved", "ur-last", "", ["true", "ls --nope"], "the end")
clean("unresolved", "ur-all", "", ["docker images", "sudo docker images", "docker info >/dev/null"], "never mended")
clean("unresolved", "ur-regress", PY_TEST, ["python3 -m pytest -q", ("edit", "tests/test_one.py", "def test_one():\n    assert 0\n"), "python3 -m pytest -q", "git --version"], "got worse", environment=PYTEST)
clean("unresolved", "ur-install-fails", "echo 'import nosuch' > a.py", ["python3 a.py", "pip install nosuch", "pip install --user nosuch", "ls"], "never mended")
clean("clean", "cl-work", GIT, ["ls", "git status --short", "echo 2 >> a.txt", "git commit -qam two", "git log --oneline"], "nothing failed")
clean("clean", "cl-agent", GIT, ["git status 2>/dev/null || echo none", "ls -la | head -5", "git log --oneline | head -3", "grep -c o a.txt"], "nothing failed", agent="merged")
clean("clean", "cl-words", "", ["echo 'error: this is only text'", "printf 'bash: foo: command not found\\n'", "echo fatal | cat"], "words are no failure")
clean("clean", "cl-log", "printf 'ERROR: No such file or directory\\nTraceback (most recent call last):\\n' > app.log", ["cat app.log | tail -2", "grep -i error app.log | head -1"], "words are no failure", agent="merged")

# more of the same makes, written down after the first ones had been looked at ---------------------

GO = "printf 'package main\\nimport \"fmt\"\\nfunc main(){fmt.Println(1)}\\n' > main.go; go mod init example.org/x 2>/dev/null; "
fixed("git-2", "git-reset-option", GIT, ["git reset --sfot HEAD", "git reset --soft HEAD"], pair(0, 1))
fixed("git-2", "git-tga", GIT, ["git tga v3", "git tag v3"], pair(0, 1))
fixed("git-2", "git-swtich", GIT, ["git swtich -c work", "git switch -c work"], pair(0, 1))
fixed("git-2", "git-switch-missing-c", GIT, ["git switch work", "git switch -c work"], pair(0, 1))
fixed("git-2", "git-branch-typo", GIT + "git branch release", ["git switch relase", "git switch release"], pair(0, 1))
fixed("git-2", "git-stash-pop-conflict", GIT + "echo 2 >> a.txt; git stash -q; echo 3 >> a.txt", ["git stash pop", "git commit -qam three", "git stash drop -q"], pair(0, 1, optional=True))
fixed("git-2", "git-pull-no-tracking", GIT + REMOTE + "git switch -qc t; git push -q origin t", ["git pull", "git pull origin t"], pair(0, 1))
fixed("git-2", "git-pull-set-upstream", GIT + REMOTE + "git switch -qc t; git push -q origin t", ["git pull", "git branch --set-upstream-to=origin/t", "git pull"], pair(0, 2, "prerequisite", 1))
fixed("git-2", "git-apply-dir", GIT + "mkdir sub; echo 2 >> a.txt; git diff > sub/p.patch; git checkout -q a.txt", ["git apply p.patch", "git apply sub/p.patch"], pair(0, 1, kind_also=["directory"]))
fixed("git-2", "git-clone-typo", GIT + "git init -q --bare ~/tools.git", ["git clone -q ~/tolls.git t", "git clone -q ~/tools.git t"], pair(0, 1))
fixed("git-2", "git-diff-ambiguous", GIT + "git branch notes; echo x > notes", ["git diff notes", "git diff notes --"], pair(0, 1))
fixed("git-2", "git-submodule", GIT + "git init -q ~/dep; (cd ~/dep; echo 1 > v.txt; git add .; git commit -qm v); git -c protocol.file.allow=always submodule add -q ~/dep dep; git commit -qm sub; git clone -q . ~/copy", ["cd ~/copy", "cat dep/v.txt", "git -c protocol.file.allow=always submodule update --init -q", "cat dep/v.txt"], pair(1, 3, "prerequisite", 2))
fixed("git-2", "git-merge-untracked", GIT + "git switch -qc s; echo s > n.txt; git add .; git commit -qm s; git switch -q main; echo mine > n.txt", ["git merge -q s", "mv n.txt ~/n.keep", "git merge -q s"], pair(0, 2, "prerequisite", 1))
fixed("git-2", "git-rebase-dirty-stash", GIT + "git switch -qc s; git commit -q --allow-empty -m s; echo 9 >> a.txt", ["git rebase main", "git stash", "git rebase main", "git stash pop"], pair(0, 2, "prerequisite", 1))
fixed("git-2", "git-rebase-autostash", GIT + "git switch -qc s; git commit -q --allow-empty -m s; echo 9 >> a.txt", ["git rebase main", "git rebase --autostash main"], pair(0, 1))
fixed("git-2", "git-config-key", GIT, ["git config usr", "git config user.name"], pair(0, 1, optional=True))
fixed("git-2", "git-blame-path", "mkdir src; " + GIT + "echo 1 > src/mod.py; git add .; git commit -qm m", ["git blame src/mdo.py", "git blame src/mod.py"], pair(0, 1))
fixed("build-2", "gcc-pthread", "printf '#include <pthread.h>\\nstatic void*f(void*p){return p;}\\nint main(void){pthread_t t;pthread_create(&t,0,f,0);return 0;}\\n' > t.c; printf 'int ext(void);int main(void){return ext();}\\n' > u.c; echo 'int ext(void){return 0;}' > ext.c", ["gcc u.c", "gcc u.c ext.c"], pair(0, 1))
fixed("build-2", "gcc-header-typo-path", "mkdir inc; touch inc/api.h; printf '#include \"api.h\"\\nint main(void){return 0;}\\n' > m.c", ["gcc m.c", "CPATH=inc gcc m.c"], pair(0, 1, "environment", kind_also=["replace"]))
fixed("build-2", "gcc-lib-path", "mkdir lib; echo 'int ext(void){return 0;}' > lib/ext.c; gcc -shared -fPIC -o lib/libext.so lib/ext.c; printf 'int ext(void);int main(void){return ext();}\\n' > u.c", ["gcc u.c -lext", "gcc u.c -Llib -lext"], pair(0, 1))
fixed("build-2", "make-var", "printf 'all:\\n\\t@test -n \"$(OUT)\" || { echo \"OUT is not set\"; exit 1; }\\n' > Makefile", ["make", "make OUT=x"], pair(0, 1, kind_also=["environment"]))
fixed("build-2", "make-f", "printf 'all:\\n\\t@true\\n' > build.mk", ["make", "make -f build.mk"], pair(0, 1, kind_also=["directory"]))
fixed("build-2", "make-flag", "printf 'all:\\n\\t@true\\n' > Makefile", ["make --jbos=2", "make --jobs=2"], pair(0, 1))
fixed("build-2", "cmake-option", "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x NONE)\\n' > CMakeLists.txt", ["cmake --buld .", "cmake -B out ."], pair(0, 1, optional=True))
fixed("build-2", "cmake-no-source", "mkdir app; printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x NONE)\\n' > app/CMakeLists.txt", ["cmake .", "cd app", "cmake ."], pair(0, 2, "directory", 1))
fixed("build-2", "ctest-dir", "printf 'cmake_minimum_required(VERSION 3.10)\\nproject(x NONE)\\nenable_testing()\\nadd_test(NAME t COMMAND true)\\n' > CMakeLists.txt; cmake -S . -B b >/dev/null", ["ctest --test-dir bb", "ctest --test-dir b"], pair(0, 1))
fixed("build-2", "generated-source", "printf '#include \"gen.h\"\\nint main(void){return N;}\\n' > m.c; printf '#!/bin/sh\\necho \"#define N 0\" > gen.h\\n' > generate.sh; chmod +x generate.sh", ["gcc m.c", "./generate.sh", "gcc m.c"], pair(0, 2, "prerequisite", 1))
fixed("lang-2", "go-run-dir", GO, ["go run mian.go", "go run main.go"], pair(0, 1))
fixed("lang-2", "go-mod-verb", GO, ["go mod tdiy", "go mod tidy"], pair(0, 1))
fixed("lang-2", "go-env", "mkdir sub; cd sub; " + GO, ["go build ./...", "go build -C sub ./..."], pair(0, 1, optional=True))
fixed("lang-2", "cargo-run-arg", "cargo init -q --vcs none --name k .", ["cargo run --verbsoe", "cargo run --verbose"], pair(0, 1), root=True, environment=CARGO)
fixed("lang-2", "cargo-example", "cargo init -q --vcs none --name k .; mkdir examples; echo 'fn main(){}' > examples/demo.rs", ["cargo run --example dmeo", "cargo run --example demo"], pair(0, 1), root=True, environment=CARGO)
fixed("lang-2", "cargo-workspace", "cargo new -q --vcs none a; cargo new -q --vcs none b; printf '[workspace]\\nmembers=[\"a\",\"b\"]\\n' > Cargo.toml", ["cargo run", "cargo run -p a"], pair(0, 1), root=True, environment=CARGO)
fixed("lang-2", "rustc-edition", "echo 'fn main(){ let x = async { 1 }; drop(x); }' > m.rs", ["rustc m.rs", "rustc --edition 2021 m.rs"], pair(0, 1), root=True, environment=CARGO)
fixed("lang-2", "node-missing-ext", "echo 'console.log(1)' > tool.cjs", ["node tool.js", "node tool.cjs"], pair(0, 1))
fixed("lang-2", "npm-workspace", NODE_PKG, ["npm run build --worksapce=x", "npm run build"], pair(0, 1, optional=True))
fixed("lang-2", "npm-init-first", "", ["npm run build", "npm init -y", "npm pkg set scripts.build='node -e 1'", "npm run build"], pair(0, 3, optional=True))
fixed("lang-2", "npm-exec-typo", NODE_PKG + "npm i --silent", ["npx tinypda", "npx tinypad"], pair(0, 1))
fixed("lang-2", "ruby-file", "mkdir bin; echo 'puts 1' > bin/tool.rb", ["ruby tool.rb", "ruby bin/tool.rb"], pair(0, 1))
fixed("lang-2", "rake-missing-file", "mkdir app; printf 'task :x do\\nend\\n' > app/Rakefile", ["rake x", "rake -f app/Rakefile x"], pair(0, 1, "directory", kind_also=["replace"]))
fixed("lang-2", "perl-syntax-option", "echo 'print 1' > a.pl", ["perl -wx3 a.pl", "perl -w a.pl"], pair(0, 1, optional=True))
fixed("python-2", "py-m-typo", "", ["python3 -m jsno.tool /dev/null", "python3 -m json.tool --help"], pair(0, 1, optional=True))
fixed("python-2", "py-venv-python", "python3 -m venv .venv; .venv/bin/pip install -q tinytable; echo 'import tinytable; print(1)' > a.py", ["python3 a.py", ".venv/bin/python a.py"], pair(0, 1, kind_also=["environment"]))
fixed("python-2", "py-venv-activate", "python3 -m venv .venv; .venv/bin/pip install -q tinytable; echo 'import tinytable; print(1)' > a.py", ["python3 a.py", "source .venv/bin/activate", "python3 a.py"], pair(0, 2, "environment", 1, kind_also=["prerequisite"]))
fixed("python-2", "py-user-managed", "", ["pip install --user tinytable", "pip install --user --break-system-packages tinytable"], pair(0, 1, caution="insecure"))
fixed("python-2", "pip-uninstal", "python3 -m venv .venv; .venv/bin/pip install -q tinytable", ["source .venv/bin/activate", "pip uninstal -y tinytable", "pip uninstall -y tinytable"], pair(1, 2))
fixed("python-2", "pip-option", "python3 -m venv .venv", ["source .venv/bin/activate", "pip install --upgrad tinytable", "pip install --upgarde tinytable", "pip install --upgrade tinytable"], pair(2, 3), pair(1, 3, optional=True))
fixed("python-2", "pytest-marker-path", PY_TEST, ["python3 -m pytest -q tests/test_oen.py::test_one", "python3 -m pytest -q tests/test_one.py::test_one"], pair(0, 1), environment=PYTEST)
fixed("python-2", "pytest-import", "mkdir tests; echo 'import tinytable\ndef test_a():\n    assert tinytable.VERSION' > tests/test_a.py; python3 -m venv .venv", ["source .venv/bin/activate", "python -m pytest -q", "pip install tinytable", "python -m pytest -q"], pair(1, 3, "prerequisite", 2), environment=PYTEST)
fixed("python-2", "py-argparse-required", "printf 'import argparse\\np=argparse.ArgumentParser()\\np.add_argument(\"--out\", required=True)\\np.parse_args()\\nprint(1)\\n' > t.py", ["python3 t.py", "python3 t.py --out x"], pair(0, 1))
fixed("python-2", "py-subcommand", "printf 'import argparse\\np=argparse.ArgumentParser()\\ns=p.add_subparsers(dest=\"command\")\\ns.add_parser(\"export\");s.add_parser(\"import\")\\np.parse_args()\\nprint(1)\\n' > t.py", ["python3 t.py exprot", "python3 t.py export"], pair(0, 1))
fixed("python-2", "uv-run-missing", "", ["uv pip instal x", "uv pip list"], pair(0, 1, optional=True))
fixed("shell-2", "cat-spaces", "echo x > 'release notes.md'", ["cat release notes.md", 'cat "release notes.md"'], pair(0, 1))
fixed("shell-2", "rm-spaces", "touch 'old file'", ["rm old file", "rm 'old file'"], pair(0, 1, caution="destructive"))
fixed("shell-2", "commit-message", GIT + "echo 2 >> a.txt", ["git commit -a -m second line", "git commit -a -m 'second line'"], pair(0, 1))
fixed("shell-2", "grep-dash", "echo '--force' > f", ["grep --force f", "grep -- --force f"], pair(0, 1))
fixed("shell-2", "tr-args", "echo a > f", ["tr a-z < f", "tr a-z A-Z < f"], pair(0, 1))
fixed("shell-2", "sed-in-place", "echo a > f", ["sed --in-plcae s/a/b/ f", "sed --in-place s/a/b/ f"], pair(0, 1))
fixed("shell-2", "awk-function", "echo 1 > f", ["awk '{ print $1 +  }' f", "awk '{ print $1 + 1 }' f"], pair(0, 1))
fixed("shell-2", "jq-filter", "echo '{\"a\":1}' > f.json", ["jq '.a |' f.json", "jq '.a' f.json"], pair(0, 1))
fixed("shell-2", "xargs-null", "touch \"it's.txt\"", ["ls | xargs ls -l", "ls | xargs -d '\\n' ls -l"], pair(0, 1, optional=True))
fixed("shell-2", "cp-into-missing", "touch a", ["cp a new/dir/", "mkdir -p new/dir && cp a new/dir/"], pair(0, 1, "prerequisite", kind_also=["replace"]))
fixed("shell-2", "ls-long-option", "", ["ls --human-redable -l", "ls --human-readable -l"], pair(0, 1))
fixed("shell-2", "du-option", "", ["du --max-deph=1", "du --max-depth=1"], pair(0, 1))
fixed("shell-2", "tail-count", "seq 9 > f", ["tail -n f", "tail -n 2 f"], pair(0, 1))
fixed("shell-2", "sort-option", "seq 9 > f", ["sort --numeric f | head -1", "sort --numreic-sort f", "sort --numeric-sort f"], pair(1, 2))
fixed("shell-2", "ps-option", "", ["ps --forst", "ps --forest"], pair(0, 1))
fixed("shell-2", "kill-signal", "", ["sleep 300 &", "kill -HPU $!", "kill -HUP $!"], pair(1, 2))
fixed("shell-2", "chmod-octal", "touch f", ["chmod 689 f", "chmod 644 f"], pair(0, 1))
fixed("shell-2", "zip-option", "touch a", ["zip --recrse x.zip a", "zip -r x.zip a"], pair(0, 1, optional=True))
fixed("shell-2", "find-maxdepth-value", "", ["find . -maxdepth -name '*.c'", "find . -maxdepth 1 -name '*.c'"], pair(0, 1))
fixed("shell-2", "ln-target", "mkdir -p a", ["ln -s", "ln -s a b"], pair(0, 1))
fixed("shell-2", "source-missing", "mkdir env; echo A=1 > env/dev.sh", ["source dev.sh", "source env/dev.sh"], pair(0, 1, kind_also=["directory"]))
fixed("shell-2", "cd-typo", "mkdir -p deploy/scripts", ["cd deploy/scirpts", "cd deploy/scripts"], pair(0, 1))
fixed("shell-2", "zsh-plus", "", ["echo a+(b)", "echo 'a+(b)'"], pair(0, 1, optional=True), shell="zsh")
fixed("shell-2", "zsh-equals", "", ["echo ==x", "echo '==x'"], pair(0, 1), shell="zsh")
fixed("shell-2", "zsh-tilde", GIT, ["setopt extendedglob", "git log --oneline HEAD~1..HEAD^{tree}", "git log --oneline 'HEAD'"], pair(1, 2, optional=True), shell="zsh")
fixed("shell-2", "zsh-star-url", "echo x > a.txt", ["curl -s file://$PWD/a.tx*", 'curl -s "file://$PWD/a.txt"'], pair(0, 1, optional=True), shell="zsh")
SSHD = "mkdir -p ~/.ssh; ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/lab; ssh-keygen -q -t ed25519 -N '' -f host; cat ~/.ssh/lab.pub > keys; chmod 700 ~ ~/.ssh; chmod 600 keys; printf 'Port 7722\\nListenAddress 127.0.0.1\\nHostKey %s/host\\nAuthorizedKeysFile %s/keys\\nPidFile %s/pid\\nStrictModes no\\nUsePAM no\\n' \"$PWD\" \"$PWD\" \"$PWD\" > conf; "
fixed("ssh", "ssh-identity", SSHD + "$(command -v /usr/sbin/sshd) -f conf", ["ssh -p 7722 -o BatchMode=yes -o StrictHostKeyChecking=no 127.0.0.1 true", "ssh -i ~/.ssh/lab -p 7722 -o BatchMode=yes -o StrictHostKeyChecking=no 127.0.0.1 true", "kill $(cat pid)"], pair(0, 1))
fixed("ssh", "ssh-down", SSHD, ["ssh -i ~/.ssh/lab -p 7722 -o BatchMode=yes -o StrictHostKeyChecking=no 127.0.0.1 true", "/usr/sbin/sshd -f $PWD/conf", "ssh -i ~/.ssh/lab -p 7722 -o BatchMode=yes -o StrictHostKeyChecking=no 127.0.0.1 true", "kill $(cat pid)"], pair(0, 2, "prerequisite", 1))
fixed("ssh", "ssh-hostkey-unknown", SSHD + "/usr/sbin/sshd -f $PWD/conf", ["ssh -i ~/.ssh/lab -p 7722 -o BatchMode=yes 127.0.0.1 true", "ssh-keyscan -p 7722 127.0.0.1 >> ~/.ssh/known_hosts", "ssh -i ~/.ssh/lab -p 7722 -o BatchMode=yes 127.0.0.1 true", "kill $(cat pid)"], pair(0, 2, "prerequisite", 1))
fixed("ssh", "scp-recursive", SSHD + "/usr/sbin/sshd -f $PWD/conf; mkdir up; touch up/a", ["scp -O -q -i ~/.ssh/lab -P 7722 -o StrictHostKeyChecking=no up 127.0.0.1:/tmp/fr-up", "scp -O -q -r -i ~/.ssh/lab -P 7722 -o StrictHostKeyChecking=no up 127.0.0.1:/tmp/fr-up", "kill $(cat pid); rm -r /tmp/fr-up"], pair(0, 1))
fixed("service-2", "service-name", "", ["sudo service postgres start", "sudo service postgresql start", "sudo service postgresql stop"], pair(0, 1))
fixed("service-2", "service-verb", "", ["sudo service redis-server strat", "sudo service redis-server start", "sudo service redis-server stop"], pair(0, 1))
fixed("service-2", "systemctl-service", "", ["sudo systemctl start redis-server", "sudo service redis-server start", "sudo service redis-server stop"], pair(0, 1))
fixed("service-2", "redis-option", "", ["redis-server --port 7392 --daemonize yes", "redis-cli --prot 7392 ping", "redis-cli -p 7392 ping", "redis-cli -p 7392 shutdown nosave"], pair(1, 2))
fixed("service-2", "redis-command", "redis-server --port 7393 --daemonize yes >/dev/null", ["redis-cli -p 7393 gett a", "redis-cli -p 7393 get a", "redis-cli -p 7393 shutdown nosave"], pair(0, 1, optional=True))
fixed("service-2", "psql-user", "sudo service postgresql start >/dev/null 2>&1; sleep 3; sudo -u postgres dropuser --if-exists sam", ["createuser web", "sudo -u postgres createuser web", "sudo -u postgres dropuser web"], pair(0, 1, "privilege", kind_also=["replace"]))
fixed("service-2", "psql-db-typo", "sudo service postgresql start >/dev/null 2>&1; sleep 3; sudo -u postgres createuser -s sam 2>/dev/null || true; dropdb --if-exists billing; createdb billing", ["psql -d biling -c 'select 1'", "psql -d billing -c 'select 1'", "dropdb billing"], pair(0, 1))
fixed("service-2", "psql-option", "sudo service postgresql start >/dev/null 2>&1; sleep 3; sudo -u postgres createuser -s sam 2>/dev/null || true", ["psql --dbnmae=postgres -c 'select 1'", "psql --dbname=postgres -c 'select 1'", "sudo service postgresql stop"], pair(0, 1))
fixed("service-2", "sqlite-create", "printf 'create table t(id int);' > schema.sql", ["sqlite3 app.db 'select count(*) from t'", "sqlite3 app.db '.read schema.sql'", "sqlite3 app.db 'select count(*) from t'"], pair(0, 2, "prerequisite", 1))
fixed("multi-2", "two-prerequisites", "printf '#!/bin/sh\\ntest -d out || { echo \"out: No such file or directory\" >&2; exit 1; }\\n: \"${MODE:?not set}\"\\necho ok\\n' > go.sh", ["./go.sh", "chmod +x go.sh", "./go.sh", "mkdir out", "./go.sh", "MODE=a ./go.sh"], pair(0, 5, "prerequisite", 1, optional=True), pair(2, 5, "prerequisite", 3, optional=True), pair(4, 5, "environment", kind_also=["replace"]))
fixed("multi-2", "typo-then-typo", GIT, ["gti swtich -c x", "git swtich -c x", "git switch -c x"], pair(0, 2), pair(1, 2))
fixed("multi-2", "work-in-between", GIT + "echo 2 >> a.txt", ["git commit -m two", "git status --short", "git diff --stat", "ls", "git add a.txt", "git status --short", "git commit -m two"], pair(0, 6, "prerequisite", 4))
fixed("multi-2", "same-again-later", "echo 'print(1)' > a.py", ["python a.py", "python3 a.py", ("wait", 900), "python a.py", "python3 a.py"], pair(0, 1), pair(2, 3))
fixed("multi-2", "wrong-guess-first", "mkdir sub; printf 'all:\\n\\t@true\\n' > sub/Makefile", ["make", "make install", "cd sub", "make"], pair(0, 3, "directory", 2))
clean("same-binary", "sb2-git-branch", GIT, ["git branch -d nothing", "git branch", "git branch --list"], "there was nothing to delete")
clean("same-binary", "sb2-cargo", "cargo init -q --vcs none --name k .; echo 'fn main(){ x }' > src/main.rs", ["cargo build", "cargo --version", "cargo tree"], "the build stays broken", root=True, environment=CARGO)
clean("same-binary", "sb2-go", "printf 'package main\\nfunc main(){ x }\\n' > main.go; go mod init example.org/x 2>/dev/null", ["go build", "go version", "go env GOPATH"], "the build stays broken")
clean("same-binary", "sb2-npm", NODE_PKG + "sed -i 's/node -e 1/node -e \\\\\"process.exit(3)\\\\\"/' package.json", ["npm run build", "npm run serve", "npm --version"], "the script stays broken")
clean("same-binary", "sb2-make", "printf 'all:\\n\\t@exit 4\\nhelp:\\n\\t@echo targets\\n' > Makefile", ["make all", "make help", "make --version | head -1"], "another target")
clean("same-binary", "sb2-psql", "sudo service postgresql start >/dev/null 2>&1; sleep 3; sudo -u postgres createuser -s sam 2>/dev/null || true", ["psql -d postgres -c 'select * from nothing'", "psql -d postgres -c 'select 1'"], "another question")
clean("same-binary", "sb2-ssh", "", ["ssh -o BatchMode=yes -p 1 127.0.0.1 true", "ssh -V", "ssh -G localhost | head -1"], "nothing was reached")
clean("exploration", "ex2-go-doc", GO, ["go doc Nothing", "go doc fmt.Println"], "looking around", pairs=[pair(0, 1, optional=True)])
clean("exploration", "ex2-git-show-file", GIT, ["git show HEAD:b.txt", "git show HEAD:a.txt"], "another file")
clean("exploration", "ex2-ls-many", "mkdir pkg", ["ls src", "ls lib", "ls app", "ls pkg"], "looking around", agent="merged")
clean("exploration", "ex2-grep-dirs", "mkdir conf; echo port=1 > conf/a.ini", ["grep -rn port etc", "grep -rn port config", "grep -rn port conf"], "looking around", agent="split")
clean("exploration", "ex2-python-attr", "", ["python3 -c 'import os; print(os.nothing)'", "python3 -c 'import os; print(os.sep)'"], "inline code")
clean("exploration", "ex2-type", "", ["type rustup", "type git", "type cd"], "is it there")
clean("parameter", "pa2-seq", "", ["seq x", "seq 3"], "another argument", pairs=[pair(0, 1, optional=True)])
clean("parameter", "pa2-git-worktree", GIT + "git worktree add -q ../w1", ["git worktree add ../w1", "git worktree add ../w2"], "another directory")
clean("parameter", "pa2-createdb", "sudo service postgresql start >/dev/null 2>&1; sleep 3; sudo -u postgres createuser -s sam 2>/dev/null || true; createdb one 2>/dev/null || true", ["createdb one", "createdb two", "dropdb one; dropdb two"], "another name")
clean("parameter", "pa2-useradd", "", ["mkdir a/b/c/../x 2>/dev/null || mkdir q", "mkdir q", "mkdir r"], "another name")
clean("parameter", "pa2-script-args", "printf '#!/bin/sh\\n[ \"$1\" = prod ] && { echo \"refusing prod\" >&2; exit 1; }\\necho ok\\n' > d.sh; chmod +x d.sh", ["./d.sh prod", "./d.sh staging"], "another argument")
clean("red-green", "rg2-pytest-maxfail", PY_TEST + "printf 'def test_two():\\n    assert 1 == 2\\n' > tests/test_two.py", ["python3 -m pytest -q", "python3 -m pytest -q --maxfail=1", ("edit", "tests/test_two.py", "def test_two():\n    assert 1 == 1\n"), "python3 -m pytest -q --maxfail=1"], "an edit mended it", environment=PYTEST)
clean("red-green", "rg2-shell-test", "printf '#!/bin/bash\\n[ \"$(cat v)\" = 2 ] || { echo \"FAIL: want 2\" >&2; exit 1; }\\n' > test.sh; chmod +x test.sh; echo 1 > v", ["./test.sh", ("edit", "v", "2\n"), "./test.sh"], "an edit mended it")
clean("red-green", "rg2-echo-fix", "printf '#!/bin/bash\\n[ \"$(cat v)\" = 2 ] || { echo \"FAIL: want 2\" >&2; exit 1; }\\n' > test.sh; chmod +x test.sh; echo 1 > v", ["./test.sh", "cat v", "echo 2 > v", "./test.sh"], "the data was edited")
clean("compile-edit", "ce2-sed-edit", "printf 'int main(void){return x;}\\n' > m.c", ["gcc m.c", "sed -i 's/x;/0;/' m.c", "gcc m.c"], "the source was edited")
clean("compile-edit", "ce2-git-checkout", GIT + "printf 'int main(void){return 0;}\\n' > m.c; git add .; git commit -qm m; printf 'int main(void){return x;}\\n' > m.c", ["gcc m.c", "git checkout m.c", "gcc m.c"], "the source was taken back")
clean("compile-edit", "ce2-patch", "printf 'def f(:\\n  pass\\n' > m.py; printf 'def f():\\n  pass\\n' > n.py", ["python3 m.py", "cp n.py m.py", "python3 m.py"], "the source was replaced", pairs=[pair(0, 2, "prerequisite", 1, optional=True)])
clean("transient", "tr2-random", "printf '#!/bin/sh\\ntest -e .once || { touch .once; echo \"Temporary failure in name resolution\" >&2; exit 1; }\\n' > f.sh; chmod +x f.sh", ["./f.sh", "git --version", "./f.sh --retry 3"], "it passes the second time")
clean("transient", "tr2-lock", "printf '#!/bin/sh\\ntest -e .once || { touch .once; echo \"database is locked\" >&2; exit 1; }\\n' > f.sh; chmod +x f.sh", ["./f.sh", "sleep 1", "./f.sh"], "it passes the second time")
clean("unrelated", "un2-git", GIT, ["git pusj", "git log --oneline", "git status --short"], "the slip was never mended")
clean("unrelated", "un2-cargo", "", ["crago build", "ls", "git --version"], "the slip was never mended")
clean("unrelated", "un2-dokcer", "", ["dokcer run -it alpine", "docker --version"], "other work")
clean("unrelated", "un2-option", "touch a b", ["ls --sotr=size", "ls"], "only looked", pairs=[pair(0, 1, optional=True)])
clean("chain", "ch2-build-then-run", "printf 'all:\\n\\t@true\\n' > Makefile", ["make all && ./missing-binary", "make all && ls"], "the program stays missing")
clean("chain", "ch2-semicolon", "", ["mkdir x; cd nowhere", "mkdir y; cd y"], "another directory")
clean("masked", "ma2-grep-pipe", "", ["cat nothing | grep -c x", "echo x | grep -c x"], "nothing was mended")
clean("masked", "ma2-or-echo", "", ["python nothing.py || echo failed", "echo ok"], "nothing was mended", agent="merged")
clean("other-project", "op2-npm", "mkdir a b; cd a; " + NODE_PKG + "sed -i 's/node -e 1/false/' package.json; cd ../b; " + NODE_PKG, ["cd a", "npm run build", "cd ../b", "npm run build"], "another project")
clean("other-project", "op2-cargo", "cargo new -q --vcs none a; cargo new -q --vcs none b; echo 'fn main(){ x }' > a/src/main.rs", ["cd a", "cargo build", "cd ../b", "cargo build"], "another project", root=True, environment=CARGO)
clean("interrupted", "int2-cargo", "printf 'all:\\n\\t@sleep 20\\n' > Makefile", [("stop", "make all", 0.8), "make -n all"], "Ctrl-C")
clean("fixed-outside", "ou2-module", "echo 'import helper' > a.py", ["python3 a.py", ("edit", "helper.py", "X = 1\n"), "python3 a.py"], "made in an editor")
clean("fixed-outside", "ou2-script-mode", "printf 'print(open(\"in.txt\").read())\\n' > a.py", ["python3 a.py", "ls", ("edit", "in.txt", "x\n"), "ls", "python3 a.py"], "made in an editor")
