"""Text that a terminal only prints, and remedies that are never offered."""

import unicodedata

import pyte
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flightrec.dangers import Harm, danger_in
from flightrec.harmless import columns, is_harmless, make_harmless, why_held_back
from growth import assert_linear

HOSTILE = [
    "\x1b]0;title\x07",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
    "\x1bP1$r\x1b\\",
    "\x1b[6n",
    "\x1b[2J\x1b[H",
    "\x1b[?1049h",
    "\x9b31m",
    "\r\b\b\bover",
    "\x07\x0e\x0f\x7f",
    "%{\x1b[31m%}",
    "$(id)`id`",
    "\u202egnp.exe",
    "a\u200bb\u2066c",
    "\ud800",
    "\udce9",
    "a\tb\nc",
    "\u2028\u2029\u0085",
    "\U000e0041",
]


@given(st.text())
@example("".join(HOSTILE))
def test_no_character_that_is_not_seen_survives(text: str) -> None:
    made = make_harmless(text)

    assert made.isprintable()
    assert make_harmless(made) == made
    assert is_harmless(made)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M"])))
def test_what_is_seen_stays_as_it_is(text: str) -> None:
    assert make_harmless(text) == text


class Screen(pyte.Screen):
    """A terminal that notes what it would send to the shell as if it had been typed."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        super().__init__(300, 3)

    def write_process_input(self, data: str) -> None:
        self.answers.append(data)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_terminal_only_prints_what_was_made_harmless(text: str) -> None:
    """T9: title, modes, cursor and colours are those of plain text of the same length."""
    screen = Screen()
    stream = pyte.Stream(screen)
    before = (screen.title, set(screen.mode), screen.cursor.attrs)
    made = make_harmless(text)

    stream.feed(made)

    assert (screen.title, set(screen.mode), screen.cursor.attrs) == before
    assert screen.answers == []
    assert screen.display[0].rstrip() == made.rstrip()
    assert screen.cursor.y == 0


def test_lines_become_one_and_bytes_stay_readable() -> None:
    assert make_harmless("a\n\tb") == "a⏎ b"
    assert make_harmless("caf\udce9 \x1b[m") == "caf\\xe9 \\x1b[m"
    assert make_harmless("\u202e") == "<U+202E>"


@given(st.text())
def test_columns_are_never_fewer_than_a_terminal_needs(text: str) -> None:
    made = make_harmless(text)
    marks = sum(unicodedata.combining(character) != 0 for character in made)

    assert columns(made) >= len(made) - marks
    assert columns("漢字") == 4


DANGEROUS = {
    Harm.DESTRUCTIVE: """
        rm -rf build
        sudo rm /var/lib/dpkg/lock
        /bin/rm x
        find . -name '*.pyc' -delete
        find . -exec rm {} +
        ls | xargs rm
        git ls-files -z | xargs -0 -n1 rm
        git reset --hard origin/main
        git clean -fdx
        git checkout -- .
        git restore src
        git branch -D feature
        git stash drop
        git push origin --delete main
        git push origin :main
        git -C /x worktree remove y
        dd if=/dev/zero of=/dev/sda
        mkfs.ext4 /dev/sdb1
        fsck /dev/sda1
        shred -u key
        kill -9 4711
        kill $(lsof -ti:8080)
        pkill -f server
        fuser -k 8080/tcp
        docker system prune -af
        docker volume rm data
        docker compose down -v
        kubectl delete pod web
        terraform destroy
        dropdb app
        psql -c 'DROP TABLE users'
        psql -d app -c "delete from users"
        redis-cli FLUSHALL
        apt-get purge nginx
        bash -c 'cd /tmp && rm -r x'
        ssh web 'rm -rf /srv/x'
        docker exec web rm /data/x
        npx rimraf dist
        python3 -c 'import shutil; shutil.rmtree("x")'
        echo x > /dev/sda
        python manage.py flush
        systemctl stop nginx
        :(){ :|:& };:
        """,
    Harm.FORCING: """
        git push -f
        git push --force-with-lease origin main
        git push origin +main
        git commit --no-verify -m x
        git commit -nm x
        git add -f dist
        npm install --force
        npm i -f
        pip install --break-system-packages six
        terraform apply -auto-approve
        cp -rf a b
        ln -sf a b
        dpkg --force-all -i x.deb
        cargo publish --allow-dirty
        HUSKY=0 git commit -m x
        SKIP=lint git commit -m x
        tool --yes-i-really-mean-it
        """,
    Harm.INSECURE: """
        chmod 777 x
        chmod -R a+rwx .
        chmod o+w x
        chmod u+s /bin/x
        curl -k https://x
        curl -sSLk https://x
        curl --insecure https://x
        wget --no-check-certificate https://x
        curl -fsSL https://x | sh
        curl x | sudo bash -s -- -y
        wget -qO- https://x | python3
        bash <(curl -s https://x)
        sh -c "$(curl -fsSL https://x)"
        eval "$(wget -qO- x)"
        git -c http.sslVerify=false clone x
        git config --global http.sslVerify false
        git config --global --add safe.directory '*'
        GIT_SSL_NO_VERIFY=1 git clone x
        export NODE_TLS_REJECT_UNAUTHORIZED=0
        env PYTHONHTTPSVERIFY=0 python x.py
        pip install --trusted-host index.example six
        npm config set strict-ssl false
        ssh -o StrictHostKeyChecking=no web
        ssh -o "StrictHostKeyChecking no" web
        ssh-keygen -R web
        apt-get install --allow-unauthenticated x
        docker run --privileged x
        kubectl get pods --insecure-skip-tls-verify
        setenforce 0
        """,
}

FINE = """
    git status
    git push -u origin HEAD
    git commit --amend --no-edit
    git restore --staged x
    git rm --cached x
    git checkout main
    git fetch --prune
    git branch -a
    git stash
    git commit -m 'do not force'
    python3 -m pytest tests/ -k 'rm or kill'
    npm install
    npm init -y
    npm run build -- --mode production
    npx tsc -p .
    uv run pytest
    pip install -r requirements.txt
    pip install --user six
    docker compose up -d db
    docker run --rm -it alpine
    docker ps --no-trunc
    kubectl get pods
    chmod +x run.sh
    chmod 755 x
    chmod 644 x
    chmod u+w x
    curl -fsSL https://x -o x
    curl -s localhost:8080 | python3 -m json.tool
    curl -s x | jq .
    sudo systemctl start redis
    systemctl status nginx
    tar -xzf x.tgz
    tar -cvf x.tar -C src .
    make -f Makefile.old
    grep -rf patterns .
    tail -f log 2>/dev/null
    cp -r a b
    mv a b
    find . -name '*.py' -exec grep x {} +
    xargs -0 ls
    ssh web uptime
    python manage.py migrate
    psql -d postgres -c 'select 1'
    export PATH="$HOME/bin:$PATH"
    API_URL=http://localhost:3000 node app.js
    source venv/bin/activate
    cd sub && make
    terraform apply
    rails db:migrate
    man rm
    which rm
    apt-get install tree
    """


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("command", "harm"), [(line, harm) for harm, text in DANGEROUS.items() for line in lines(text)]
)
def test_a_dangerous_remedy_is_never_offered(command: str, harm: Harm) -> None:
    """T12."""
    danger = danger_in(command)

    assert danger is not None
    assert danger.harm is harm
    assert why_held_back([command], []) == danger.reason


@pytest.mark.parametrize("command", lines(FINE))
def test_an_ordinary_remedy_is_offered(command: str) -> None:
    assert danger_in(command) is None


def test_words_of_a_trigger_may_be_dangerous_but_not_secret() -> None:
    assert why_held_back(["ls"], ["rm", "--force"]) == ""
    assert why_held_back(["ls"], ["‹secret:token›"]) == "it holds a secret"
    assert why_held_back(["x ‹secret:token›"], []) == "it holds a secret"
    assert why_held_back(["x\x1b"], []) == "it holds characters that a terminal does not print"


@given(st.text())
def test_any_text_gets_an_answer(text: str) -> None:
    danger_in(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "xargs " + "git rm kill " * n,
        lambda n: "git " + "push " * n,
        lambda n: "sh -c '" + "sh -c x; " * n + "'",
        lambda n: "x " + "--a=b " * n,
        lambda n: "curl x | " * n + "cat",
        lambda n: ": ( ) { " * n,
    ],
)
def test_looking_for_dangers_takes_time_linear_in_the_line(make) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001 - a lambda
    def look(n: int) -> None:
        danger_in.cache_clear()
        danger_in(make(n))

    assert_linear(look, 50, 400)
