"""What mends what: other programs for the same purpose, options, variables, runs in between.

Each entry is about a mechanism of a widely used tool; nothing here decides alone. A recovery needs
the failed command to pass, and these tables say whether what was done had to do with the error.
"""

# ruff: noqa: E501 - one row a line: a table is read by its columns

import re

from flightrec.failure_kinds import FailureKind, K
from flightrec.invocation import word_set

SAME_PURPOSE: tuple[frozenset[str], ...] = tuple(
    frozenset(group.split())
    for group in (
        "python python2 python3 py pypy3",
        "source .",
        "go golang",
        "pip pip2 pip3 pipx uv",
        "node nodejs bun deno",
        "npm yarn pnpm bun",
        "docker podman nerdctl",
        "docker-compose podman-compose docker podman",
        "netstat ss lsof",
        "ifconfig ip hostname",
        "route ip",
        "arp ip",
        "iwconfig iw nmcli ip",
        "hexdump od xxd hd",
        "service systemctl rc-service launchctl sv initctl supervisorctl",
        "pkill kill killall taskkill",
        "pgrep ps pidof",
        "ps pgrep top",
        "wget curl aria2c http https fetch xh",
        "nslookup dig host getent drill resolvectl",
        "telnet nc ncat netcat socat",
        "vim vi nvim nano emacs ed micro",
        "apt apt-get aptitude nala dnf yum apk zypper pacman brew microdnf",
        "locate find mlocate plocate fd fdfind",
        "tree find ls",
        "exa eza ls lsd ll l la",
        "bat batcat cat less more",
        "rg grep ag ack egrep git-grep ripgrep",
        "fd fdfind find",
        "make gmake bmake ninja cmake",
        "jq gojq jaq yq json.tool",
        "cc gcc clang tcc c99 c++ g++ clang++ CC",
        "sed gsed perl",
        "awk gawk mawk nawk",
        "tar gtar bsdtar",
        "unzip bsdtar 7z 7za jar unar python3",
        "zip 7z 7za bsdtar",
        "md5 md5sum openssl",
        "sha256 sha256sum shasum openssl sha256hmac",
        "shasum sha1sum sha256sum openssl",
        "open xdg-open gio start",
        "pbcopy xclip xsel wl-copy clip",
        "pbpaste xclip xsel wl-paste",
        "google-chrome chromium chrome chromium-browser google-chrome-stable firefox",
        "cls clear reset",
        "dir ls",
        "copy cp",
        "move mv ren",
        "del rm rmdir",
        "type cat",
        "tracert traceroute tracepath mtr",
        "ipconfig ifconfig ip",
        "realpath readlink",
        "greadlink readlink",
        "gdate date",
        "pytest py.test unittest nose2",
        "mysql mariadb",
        "mysqldump mariadb-dump",
        "psql pgcli",
        "kubectl k oc microk8s k3s",
        "terraform tofu",
        "ansible ansible-playbook",
        "virtualenv venv python3",
        "code vim nano vi subl",
        "jq yq gojq jaq",
        "ftp sftp lftp curl",
        "scp rsync sftp",
        "dos2unix sed tr",
        "uname hostnamectl lsb_release",
        "free vmstat top",
        "htop top btop",
        "convert magick",
        "gs ghostscript",
        "java openjdk",
        "mvn mvnw gradle gradlew",
        "gradle gradlew",
        "cargo cargo-nextest",
        "tac tail",
        "seq jot",
        "timeout gtimeout",
        "crontab systemctl",
        "nc ncat netcat",
        "su sudo doas",
        "rename mmv prename",
        "watch while",
        "bc dc expr awk python3",
        "xz unxz lzma",
    )
)
"""Programs that serve one purpose: where one is missing, another takes its place."""

PROGRAM_OF_PACKAGE = {
    "ng": "angular-cli",
    "cdk": "aws-cdk",
    "compose": "docker-compose",
    "fd": "fd-find",
    "firebase": "firebase-tools",
    "rg": "ripgrep",
    "sam": "aws-sam-cli",
    "sls": "serverless",
    "tsc": "typescript",
    "bs4": "beautifulsoup4",
    "cv2": "opencv",
    "crypto": "pycryptodome",
    "dateutil": "python-dateutil",
    "dig": "dnsutils",
    "dns": "dnspython",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "g++": "build-essential",
    "gcc": "build-essential",
    "gi": "pygobject",
    "git.exc": "gitpython",
    "google.protobuf": "protobuf",
    "ifconfig": "net-tools",
    "ip": "iproute2",
    "jwt": "pyjwt",
    "killall": "psmisc",
    "ldap": "python-ldap",
    "make": "build-essential",
    "magic": "python-magic",
    "mysqldb": "mysqlclient",
    "netstat": "net-tools",
    "nslookup": "dnsutils",
    "openssl": "pyopenssl",
    "pil": "pillow",
    "ping": "iputils",
    "pkg_resources": "setuptools",
    "pptx": "python-pptx",
    "ps": "procps",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "usb": "pyusb",
    "xxd": "vim-common",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Names under which a thing is installed that say little of the name under which it is missed."""

INSTALLERS: dict[str, str] = {
    "apk": "system",
    "apt": "system",
    "apt-get": "system",
    "aptitude": "system",
    "brew": "system",
    "bun": "node",
    "bundle": "ruby",
    "bundler": "ruby",
    "cabal": "haskell",
    "cargo": "rust",
    "choco": "system",
    "composer": "php",
    "conda": "python",
    "corepack": "node",
    "cpan": "perl",
    "cpanm": "perl",
    "dnf": "system",
    "dotnet": "dotnet",
    "dpkg": "system",
    "easy_install": "python",
    "flatpak": "system",
    "flutter": "dart",
    "gem": "ruby",
    "go": "go",
    "hatch": "python",
    "luarocks": "lua",
    "mamba": "python",
    "micromamba": "python",
    "microdnf": "system",
    "mise": "",
    "mix": "elixir",
    "nix-env": "system",
    "npm": "node",
    "npx": "node",
    "nvm": "node",
    "pacman": "system",
    "pdm": "python",
    "pip": "python",
    "pip3": "python",
    "pipenv": "python",
    "pipx": "python",
    "pnpm": "node",
    "poetry": "python",
    "port": "system",
    "pyenv": "python",
    "rpm": "system",
    "rustup": "rust",
    "rye": "python",
    "sdk": "java",
    "snap": "system",
    "stack": "haskell",
    "uv": "python",
    "yarn": "node",
    "yay": "system",
    "yum": "system",
    "zypper": "system",
}
"""Programs that install, and whose world they install into."""

INSTALLING = re.compile(
    r"^(?:-S\w*|-iA?|-U|add|ci|create|deps\.get|develop|download|enable|exec|fetch|get|global"
    r"|i|in|install|link|mod|pip|restore|require|reinstall|sync|target|component|tool|toolchain"
    r"|update|upgrade|vendor|x)$"
)
SETTING_UP = re.compile(
    r"(?i)(?:^|[/_.:-])(?:install|setup|set-up|bootstrap|deps|dependencies|init|prepare|configure"
    r"|provision|requirements|develop)(?:[/_.:-]|$)"
)
"""A project's own way to install what it needs: ``make deps``, ``./setup.sh``, ``bin/bootstrap``."""

BUILDING = re.compile(
    r"^(?:make|gmake|cmake --build|ninja|meson compile|bazel build|(?:cargo|go|zig|swift|dotnet|"
    r"stack|cabal|flutter|docker|docker compose|podman|hugo|gatsby|next|vite|ng) (?:build|install|"
    r"publish)|npm (?:run|run-script) \S*(?:build|compile|generate|dist|prepare|bundle)\S*|"
    r"(?:yarn|pnpm|bun)(?: run)? \S*(?:build|compile|generate|dist|bundle)\S*|tsc|webpack|rollup|"
    r"esbuild|mvn .{0,40}(?:package|install|compile)|(?:\./)?gradlew? .{0,40}(?:build|assemble|jar)|"
    r"(?:gcc|cc|clang|g\+\+|clang\+\+|rustc|javac|ghc|gfortran) |\S*(?:build|compile|generate)\S*\.sh"
    r"|just \S*build|protoc |python3? setup\.py build|python3? -m build)"
)
"""Runs that make files."""

ACTIVATING = re.compile(
    r"^(?:source |\. |set -a|eval |nvm (?:use|install)|fnm use|conda activate|mamba activate"
    r"|pyenv (?:shell|local|global)|rbenv (?:shell|local|global)|asdf (?:shell|local|global|reshim)"
    r"|mise (?:use|shell)|workon |direnv (?:allow|reload)|module (?:load|add)|sdk use|hash -r|rehash"
    r"|pipenv shell|poetry shell|jenv |volta |deactivate|corepack enable|pyenv rehash)"
)
"""Runs that change the shell's own environment without naming a variable."""

_START = (
    r"(?:systemctl|service|rc-service|initctl|supervisorctl|launchctl|pg_ctlcluster|sv)\b.*\b"
    r"(?:start|restart|enable|reload|load|kickstart|up)\b"
    r"|/etc/init\.d/\S+ (?:re)?start|brew services (?:re)?start|pg_ctl\b.*\b(?:re)?start"
    r"|(?:docker|podman)(?: compose| container)? (?:up|start|run|restart)\b"
    r"|docker-compose (?:up|start|run|restart)|(?:minikube|colima|multipass|vagrant|limactl) (?:start|up)"
    r"|podman machine (?:init|start)|kind create|k3d cluster|ollama serve|open -a docker"
    r"|(?:\S*/)?(?:redis-server|mongod|mysqld|mysqld_safe|mariadbd|postgres|dockerd|memcached|nginx|sshd"
    r"|rabbitmq-server|consul|vault server|etcd|elasticsearch|httpd|apache2ctl|caddy|haproxy)\b"
    r"|supervisord|ssh-agent|pulseaudio|adb (?:start-server|connect)|tmux (?:new|start|new-session)"
    r"|(?:kubectl|k) port-forward|ssh -\w*[fNLDR]|minio server|ngrok|Xvfb|screen -|emulator "
    r"|wg-quick up|openvpn|nmcli .*up|aws sso login|kubectl config use-context|kubectx"
)
_STOP = (
    r"(?:kill|pkill|killall|fuser)\b|npx kill-port|kill-port"
    r"|(?:systemctl|service|rc-service|launchctl|brew services|supervisorctl|pg_ctl)\b.*\b(?:stop|unload|disable)"
    r"|(?:docker|podman)(?: compose| container)? (?:stop|down|rm|kill|pause)|docker-compose (?:stop|down|rm)"
    r"|nginx -s (?:stop|quit)|apachectl stop|tmux kill-\S+|redis-cli shutdown|fuser -k"
)
_REMOVE = r"(?:rm|rmdir|mv|unlink|trash|git (?:rm|clean|mv))\b"

MENDING_RUNS: dict[FailureKind, re.Pattern[str]] = {
    kind: re.compile(rf"^(?:{pattern})")
    for kind, pattern in {
        K.NOTHING_STAGED: r"git (?:add|rm|mv|stage)\b",
        K.NO_IDENTITY: r"git config\b.*\buser\.",
        K.UNSAFE_OWNERSHIP: r"git config\b.*safe\.directory|chown\b|sudo chown",
        K.UNCOMMITTED: r"git (?:stash(?! list| show)|commit|restore|checkout(?! -[bB])|reset|clean|rm)\b|rm\b|mv\b",
        K.REJECTED: r"git (?:pull|fetch|rebase|merge|config)\b",
        K.NO_UPSTREAM: r"git (?:branch\b.*(?:-u\b|--set-upstream)|config\b.*push\.|push\b.*(?:-u\b|--set-upstream))",
        K.UNKNOWN_REVISION: r"git (?:fetch|pull|branch|tag|checkout|switch|commit|remote|push)\b",
        K.NOT_A_REPOSITORY: r"(?:git|hg|svn) (?:init|clone|checkout)\b|gh repo clone",
        K.IN_PROGRESS: rf"git (?:rebase|merge|cherry-pick|am|revert|bisect|commit|stash)\b|{_REMOVE}",
        K.LOCKED: rf"{_STOP}|{_REMOVE}|umount|.*\b(?:unlock|force-unlock|close|release|break-lock)\b|git (?:checkout|switch|worktree)\b",
        K.PORT_IN_USE: _STOP,
        K.PERMISSION: r"(?:chmod|chown|chgrp|setfacl|usermod|gpasswd|adduser|newgrp|ssh-add|visudo|setcap)\b|sudo (?:chmod|chown)|.*\blogin\b|(?:psql|mysql)\b.*\bgrant\b|npm config set prefix",
        K.NOT_EXECUTABLE: r"(?:chmod|chown|dos2unix|fromdos)\b|sed -i|git update-index --chmod",
        K.AUTHENTICATION: r"(?:ssh-add|ssh-agent|kinit|ssh-keygen|ssh-copy-id|gpg|vault|op)\b|.*\b(?:login|log-in|auth|signin|authorize|configure|logon|set-credential|credential\S*|add-user|adduser)\b|git config\b",
        K.API_KEY: r".*\b(?:login|auth|configure|set-key|config set|keys set|init)\b",
        K.HOST_KEY: r"ssh-keygen -[Rr]|ssh-keyscan|ssh -o|rm .*known_hosts",
        K.NOT_INITIALISED: r".*\b(?:init|initiali[sz]e|migrate|setup|create|install|upgrade)\b",
        K.LOCKFILE: r"(?:npm|yarn|pnpm|bun|cargo|poetry|uv|bundle|composer|pipenv|pdm|go)\b.*\b(?:install|i|lock|update|generate-lockfile|add|sync|tidy|build|check)\b",
        K.DEPENDENCIES: rf"(?:apt|apt-get|dpkg|npm|pip|pip3|yarn|pnpm|conda)\b.*(?:install|configure|update|upgrade|autoremove|remove|uninstall|-f\b)|{_REMOVE}",
        K.DISK_FULL: r"(?:rm|truncate)\b|.*\b(?:prune|clean|purge|autoremove|gc|vacuum|clear|delete|cleanup)\b",
        K.WRONG_VERSION: r"(?:nvm|fnm|pyenv|rbenv|asdf|mise|rustup|sdk|jenv|volta|corepack|n|brew|apt|apt-get|update-alternatives|conda|uv)\b",
        K.MISSING_MODEL: r".*\b(?:pull|download\w*|fetch|install)\b",
        K.ENCODING: r"locale-gen|localedef|update-locale|dpkg-reconfigure|(?:apt|apt-get) .*locales",
        K.NO_DISPLAY: r"Xvfb|xhost|vncserver|startx",
        K.NOT_RUNNING: _START,
        K.CONNECTION: _START,
        K.ALREADY_EXISTS: rf"{_REMOVE}|dropdb\b|dropuser\b|.*\b(?:rm|remove|delete|prune|down|drop|kill-session|uninstall|unregister|-[dD])\b",
        K.NOT_EMPTY: r"rm\b|mv\b|find\b.*-delete",
        K.TLS: r"update-ca-certificates|trust |git config\b.*ssl|(?:npm|pip|yarn|conda) config set|security add-trusted|mkcert|openssl|(?:apt|apt-get) .*ca-certificates|ntpdate|chronyd|date -s|pip install .*certifi|export ",
        K.MISSING_PACKAGE: r"(?:apt|apt-get|brew|dnf|yum|apk|pacman|zypper|helm repo|conda|snap|npm|cargo|add-apt-repository|pip|pip3|gem|composer|nix-channel|flatpak)\b.*(?:update|-Sy|refresh|add|upgrade|tap|config|remote-add|ppa:|login|enable|sources)|curl\b.*sources|echo\b.*sources",
        K.MISSING_TARGET: r"(?:psql|mysql|mariadb|sqlite3|duckdb|sqlcmd)\b.* (?:-f|-e|-c|\.read|create|insert)\b|createdb|createuser|git (?:remote|fetch|init)\b|kubectl (?:create|apply|config)\b|helm (?:repo|install)|tmux new|.*\b(?:create|migrate|migration|upgrade|seed|setup|load|import|restore|push|pull|build|tag|init|add|register|new|deploy|use-context|set-context|up)\b",
        K.MISSING_MANIFEST: r"\S+(?: -\S+)*(?: \S+)? (?:init|new|create|clone|generate|bootstrap)(?![\w./-])|\S*(?:configure|autogen\.sh|bootstrap\S*)\b|(?:cp|ln|mv|touch|cmake|qmake|premake\d?|autoreconf)\b|meson setup",
        K.UNKNOWN_SUBCOMMAND: r"(?:systemctl daemon-reload|systemctl link)",
        K.MISSING_FILE: r"git (?:-c \S+ )?(?:submodule (?:update|init)|lfs pull|lfs checkout|pull|restore|clone|stash (?:pop|apply)|checkout (?!-[bB])|switch (?!-c)|sparse-checkout)|autoreconf|\S*autogen\.sh|\S*bootstrap\S*|\S+ (?:\S+ )?(?:init|generate|download|fetch|pull|extract|unpack)(?![\w./-])|unzip|tar ",
        K.MISSING_LIBRARY: r"ldconfig|(?:git) submodule",
        K.OUT_OF_MEMORY: r"swapon|docker .*prune",
        K.NO_TERMINAL: r"sudo -v",
    }.items()
}
"""Runs in between that have to do with a kind of error; matched at the start of the command."""

OTHER_TOOLS: dict[FailureKind, dict[str, frozenset[str]]] = {
    kind: {name: word_set(others) for name, others in table.items()}
    for kind, table in {
        K.IS_A_DIRECTORY: {"cat": "ls tree", "rm": "rmdir"},
        K.NOT_A_DIRECTORY: {"rmdir": "rm unlink"},
        K.NOT_EMPTY: {"rmdir": "rm trash"},
        K.WRONG_FORMAT: {
            "bunzip2": "tar gunzip unzip xz",
            "gunzip": "tar unzip bunzip2 xz unzstd",
            "tar": "gunzip unzip bunzip2 xz 7z unzstd",
            "unrar": "unzip tar 7z",
            "unzip": "tar gunzip bunzip2 xz 7z unrar",
        },
    }.items()
}
"""Tools for the same thing where it is of another sort than the failed tool is for."""

MAKING_VERBS = word_set("add create new install init import put")
CHANGING_VERBS = word_set("set-url set update replace upgrade apply edit attach attach-session use")
"""Subcommands that fail where a thing is there, and those that take it as it is."""

READ_ONLY = re.compile(
    r"^(?:ls|cat|head|tail|less|more|bat|file|stat|find|grep|rg|ag|wc|pwd|cd|echo|printf|which|type"
    r"|command|whereis|man|info|history|tree|du|df|ps|top|env|printenv|id|whoami|hostname|uname|date"
    r"|sleep|true|jq|diff|test|\[|wait|clear|lsof|ss|netstat|ping|dig|curl|realpath|readlink|sort"
    r"|(?:git (?:status|log|diff|show|branch(?: -a| -v| -vv| --list| -r)?$|remote -v|blame|reflog|ls-files|rev-parse))"
    r"|(?:npm|pip|pip3|pnpm|yarn|conda|gem|cargo|brew|apt|apt-cache|dpkg|rpm|snap) (?:ls|list|show|view|info|search|freeze|outdated|tree|policy|-l|-s|-L|root|prefix|bin|config list|config get|cache)"
    r"|(?:docker|podman)(?: compose)? (?:ps|images|logs|inspect|info|version|stats|top)"
    r"|(?:kubectl|helm|terraform) (?:get|describe|logs|list|status|show|output|version|plan|validate)"
    r"|systemctl (?:status|list-\S+|is-\S+|show)|service \S+ status|journalctl|redis-cli ping)\b"
)
"""Runs that look and change nothing."""

OPTIONS_THAT_MEND: dict[FailureKind, dict[str, frozenset[str]]] = {
    kind: {name: frozenset(options.split()) for name, options in table.items()}
    for kind, table in {
        K.IS_A_DIRECTORY: {
            "*": "-r -R --recursive -a --archive -d --directory",
            "ln": "-s -sf -sfn -sn --symbolic -T",
            "rm": "-r -R -rf -fr -Rf -d --recursive",
        },
        K.UNKNOWN_SUBCOMMAND: {"make": "-f --file", "ninja": "-f", "rake": "-f --rakefile"},
        K.NOT_EMPTY: {"rmdir": "--ignore-fail-on-non-empty"},
        K.MISSING_FILE: {
            "mkdir": "-p --parents",
            "install": "-D",
            "cp": "--parents",
            "curl": "--create-dirs",
        },
        K.ALREADY_EXISTS: {
            "mkdir": "-p --parents",
            "ln": "-f -sf -sfn -fs -snf --force -nsf",
            "git": "-f --force -B -C -u",
            "createdb": "--if-not-exists",
            "docker": "--force -f --rm --replace",
            "kubectl": "--dry-run --force -f",
            "python3": "--clear --upgrade",
            "virtualenv": "--clear",
            "tmux": "-A -d",
            "*": "-f --force --overwrite --exist-ok -p --upgrade --reinstall",
        },
        K.CONNECTION: {},
        K.NOT_RUNNING: {
            "psql": "-h --host",
            "mysql": "-h --host --protocol",
            "docker": "-H --host --context",
        },
        K.TLS: {
            "curl": "-k --insecure --cacert --cert -sk -ksS -skL -kL -sSk -sSfk -fsSLk",
            "wget": "--no-check-certificate --ca-certificate",
            "pip": "--trusted-host --cert",
            "pip3": "--trusted-host --cert",
            "*": "-k --insecure --insecure-skip-tls-verify --tls-verify --no-verify-ssl --no-check-certificate"
            " --no-verify --skip-tls-verify --cacert --ca-file --verify",
        },
        K.REJECTED: {
            "git": "--rebase --no-rebase --ff-only --ff --force --force-with-lease -f --no-ff -r"
        },
        K.NO_UPSTREAM: {"git": "-u --set-upstream -o"},
        K.NOTHING_STAGED: {"git": "-a -A --all -am --allow-empty -p --patch --include -i"},
        K.UNCOMMITTED: {
            "git": "--autostash -f --force -m --merge --discard-changes --include-untracked -a"
        },
        K.REFUSED: {
            "git": "-f --force -D --cached --allow-unrelated-histories -m -ff --mainline",
            "*": "-f --force -y --yes --overwrite",
        },
        K.LOCKED: {
            "docker": "-f --force",
            "podman": "-f --force",
            "git": "--ignore-other-worktrees -f --force --detach -d -b -B",
            "terraform": "-lock -lock=false",
            "umount": "-l -f",
        },
        K.DEPENDENCIES: {
            "npm": "--legacy-peer-deps --force -f --ignore-scripts",
            "apt": "-f --fix-broken --fix-missing",
            "apt-get": "-f --fix-broken --fix-missing",
            "pip": "--use-deprecated --no-deps --upgrade -U --ignore-installed",
        },
        K.LOCKFILE: {
            "*": "--no-frozen-lockfile --no-immutable --no-locked --update --refresh-lockfile",
        },
        K.MANAGED_ENVIRONMENT: {
            "*": "--break-system-packages --system --user --target -t --python --prefix"
        },
        K.WRONG_VERSION: {
            "*": "--ignore-engines --ignore-requires-python --python -p --engine-strict -version"
        },
        K.NO_TERMINAL: {
            "docker": "-i -t -T",
            "podman": "-i -t",
            "kubectl": "-i",
            "sudo": "-S -n -A",
            "ssh": "-t -tt -T",
            "*": "--no-tty --non-interactive --batch --yes -y --no-input --noninteractive",
        },
        K.WRONG_FORMAT: {
            "tar": "-xf -xjf -xJf -xvf -xvjf -xvJf xf xjf xJf xvf xvjf xvJf -tf tf -xzf -xvzf --zstd"
        },
        K.HOST_KEY: {"*": "-o"},
        K.AUTHENTICATION: {
            "ansible-playbook": "-K --ask-become-pass -k --ask-pass",
            "ansible": "-K --ask-become-pass -k --ask-pass",
            "*": "-u --user -p --password -i --identity -P -U --username --token --key -n --netrc --profile -E -W -h --host --no-sign-request -a --anonymous --header -H",
        },
        K.PERMISSION: {
            "npm": "--prefix",
            "pip": "--user",
            "pip3": "--user",
            "gem": "--user-install",
            "*": "--user",
        },
        K.MISSING_MODULE: {
            "ruby": "-I -r",
            "perl": "-I",
            "java": "-cp -classpath --class-path -jar",
            "node": "--experimental-specifier-resolution -r",
            "pip": "--no-build-isolation",
            "uv": "--with",
            "pytest": "--import-mode -p --rootdir",
        },
        K.MISSING_LIBRARY: {"gcc": "-lm", "*": "-I -L -lm -pthread -lpthread -ldl --std -std"},
        K.EMPTY_RESULT: {
            "prove": "-r --recurse",
            "*": "-r --recursive --passWithNoTests --all -k --pyargs",
        },
        K.OUT_OF_MEMORY: {"node": "--max-old-space-size", "java": "-Xmx"},
        K.IN_PROGRESS: {"git": "--abort --continue --skip --quit"},
        K.MISSING_TARGET: {
            "cargo": "--bin --example -p --package --features --all-features",
            "psql": "-d --dbname --database -U --username -h -p",
            "createdb": "-U --username -h -O",
            "mysql": "-D --database -u --user -h",
            "kubectl": "-n --namespace --context --create-namespace -A --all-namespaces",
            "helm": "-n --namespace --create-namespace --install --repo",
            "docker": "--file -f --name --pull --platform --build",
            "heroku": "--app -a --remote -r",
            "gcloud": "--project --zone --region",
            "aws": "--region --profile",
            "az": "--resource-group -g --subscription",
            "*": "--create --if-exists",
        },
        K.MISSING_VARIABLE: {
            "aws": "--region --profile",
            "gcloud": "--project --zone --region",
            "terraform": "-var -var-file",
            "*": "--env --env-file -e",
        },
        K.PORT_IN_USE: {"*": "--port -p -P -l --listen --http-port --address --bind -b"},
        K.DNS: {},
        K.UNKNOWN_REVISION: {"git": "--always --tags -c -C -b -B --create --orphan --track -t"},
        K.API_KEY: {"*": "--api-key --key --token"},
        K.MISSING_MANIFEST: {
            "*": "-f --file --manifest-path --project-directory --config -p --project"
        },
    }.items()
}
"""Options that, added to the same command, answer a kind of error; ``*`` is any program."""

DIRECTORY_OPTIONS = word_set(
    "-C --prefix --cwd --dir --directory --manifest-path --project-directory --chdir -chdir --root"
    " --rootdir --work-tree --git-dir --project --source -S --workspace --filter"
)
DIRECTORY_OPTIONS_OF: dict[str, frozenset[str]] = {
    "gradle": frozenset(("-p", "--project-dir")),
    "hg": frozenset(("-R", "--repository")),
    "mvn": frozenset(("-f", "--file", "-pl", "--projects")),
    "npm": frozenset(("-w",)),
    "pnpm": frozenset(("-F",)),
}
FILE_OPTIONS = frozenset(("-f", "--file"))
DIRECTORY_KINDS = frozenset(
    (K.MISSING_FILE, K.MISSING_MANIFEST, K.NOT_A_REPOSITORY, K.MISSING_MODULE, K.EMPTY_RESULT,
     K.UNKNOWN_SUBCOMMAND, K.NOT_A_DIRECTORY, K.NOT_INITIALISED,
     K.MISSING_TARGET)
)  # fmt: skip
"""Kinds that can be a matter of where a command runs."""

VARIABLES_THAT_MEND: dict[FailureKind, re.Pattern[str]] = {
    kind: re.compile(rf"^(?:{pattern})$")
    for kind, pattern in {
        K.AUTHENTICATION: r"\w*(?:PASS|PWD|TOKEN|KEY|SECRET|AUTH|CREDENTIAL|USER|LOGIN|PROFILE|SSH_|GPG_TTY|IDENTITY|KUBECONFIG|ASKPASS)\w*",
        K.API_KEY: r"\w*(?:KEY|TOKEN|SECRET|AUTH)\w*",
        K.PORT_IN_USE: r"\w*(?:PORT|LISTEN|ADDR|BIND)\w*",
        K.TLS: r"\w*(?:SSL|TLS|CERT|CA_|VERIFY|INSECURE|HTTPS|OPENSSL|NODE_OPTIONS|CAINFO|CABUNDLE)\w*",
        K.MISSING_MODULE: r"PYTHONPATH|NODE_PATH|RUBYLIB|PERL5LIB|GOPATH|GOFLAGS|GO111MODULE|CLASSPATH|LUA_PATH|VIRTUAL_ENV|JULIA_LOAD_PATH|R_LIBS\w*|DJANGO_SETTINGS_MODULE|GOWORK",
        K.MISSING_LIBRARY: r"LD_LIBRARY_PATH|DYLD_\w+|PKG_CONFIG_PATH|C(?:PLUS_)?INCLUDE_PATH|CPATH|LIBRARY_PATH|CFLAGS|CXXFLAGS|LDFLAGS|CPPFLAGS|LDLIBS|\w+_(?:DIR|ROOT|HOME|PATH)|CGO_\w+|LD_PRELOAD",
        K.COMMAND_NOT_FOUND: r"PATH|\w+_(?:HOME|ROOT|BIN|PATH)|CC|CXX|EDITOR|SHELL|PAGER|VISUAL|BROWSER",
        K.MISSING_VARIABLE: r"AWS_(?:DEFAULT_)?(?:REGION|PROFILE)|KUBECONFIG|TF_VAR_\w+",
        K.OUT_OF_MEMORY: r"NODE_OPTIONS|JAVA_OPTS|_JAVA_OPTIONS|JAVA_TOOL_OPTIONS|MAVEN_OPTS|GRADLE_OPTS|\w*HEAP\w*|\w*MEM\w*|CARGO_BUILD_JOBS|MAKEFLAGS|MAX_JOBS",
        K.ENCODING: r"LC_\w+|LANG|LANGUAGE|PYTHONIOENCODING|PYTHONUTF8|RUBYOPT",
        K.NO_DISPLAY: r"DISPLAY|QT_QPA_PLATFORM|MPLBACKEND|SDL_VIDEODRIVER|WAYLAND_DISPLAY|XAUTHORITY",
        K.WRONG_VERSION: r"JAVA_HOME|NODE_VERSION|PYENV_VERSION|RUSTUP_TOOLCHAIN|GOTOOLCHAIN|PATH|PYTHON|ASDF_\w+|CC|CXX|RBENV_VERSION|GOFLAGS",
        K.NOT_RUNNING: r"\w*(?:HOST|PORT|URL|SOCKET|ADDR)\w*",
        K.CONNECTION: r"\w*(?:HOST|PORT|URL|SOCKET|ADDR|KUBECONFIG|ENDPOINT|PROXY|proxy)\w*",
        K.DNS: r"\w*(?:HOST|URL|PROXY|proxy|ENDPOINT)\w*",
        K.MANAGED_ENVIRONMENT: r"PIP_BREAK_SYSTEM_PACKAGES|VIRTUAL_ENV|PIP_USER|PIP_TARGET|UV_SYSTEM_PYTHON",
        K.NO_TERMINAL: r"DEBIAN_FRONTEND|TERM|GPG_TTY|SUDO_ASKPASS|CI|GIT_TERMINAL_PROMPT",
        K.NO_IDENTITY: r"GIT_(?:AUTHOR|COMMITTER)_\w+|EMAIL",
        K.MISSING_TARGET: r"\w*(?:DATABASE|DB|USER|HOST|URL|KUBECONFIG|CONTEXT|NAMESPACE|PROFILE|REGION|PROJECT)\w*",
        K.NOT_A_REPOSITORY: r"GIT_DIR|GIT_WORK_TREE",
        K.RUNNING_AS_ROOT: r"FORCE_UNSAFE_CONFIGURE|COMPOSER_ALLOW_SUPERUSER|\w*ALLOW\w*|\w*ROOT\w*",
        K.HOST_KEY: r"GIT_SSH_COMMAND|ANSIBLE_HOST_KEY_CHECKING",
        K.PERMISSION: r"DOCKER_HOST|HOME|TMPDIR|XDG_\w+|NPM_CONFIG_PREFIX|GEM_HOME|GOPATH|CARGO_HOME|npm_config_\w+|PREFIX|\w*CACHE\w*",
        K.DEPENDENCIES: r"NPM_CONFIG_LEGACY_PEER_DEPS|npm_config_\w+|PIP_\w+",
    }.items()
}
"""Variables whose name fits a kind of error though the error does not name them."""

PRIVILEGE_KINDS = frozenset(
    (K.PERMISSION, K.COMMAND_NOT_FOUND, K.LOCKED, K.MISSING_TARGET, K.AUTHENTICATION,
     K.NOT_RUNNING, K.REFUSED, K.NOT_EXECUTABLE, K.NO_TERMINAL, K.OTHER)
)  # fmt: skip
"""Kinds that another user's rights can mend."""

SCRIPT_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun", "composer"))
"""Tools in which a project's own script is called through ``run``."""

SYNONYMS: tuple[frozenset[str], ...] = tuple(
    frozenset(group.split())
    for group in (
        "list ls versions show get",
        "remove rm uninstall delete del erase purge",
        "install add require i get",
        "update upgrade up",
        "start up run",
        "stop down kill halt",
        "main master trunk",
        "search find",
        "info show describe status",
        "create new init add make",
        "switch checkout use",
        "log logs history",
        "diff compare",
        "copy cp",
        "move mv rename",
        "edit config",
        "exec run",
        "build compile",
        "quit exit abort",
        "login auth signin",
    )
)
"""Subcommands that different tools call differently."""
