"""Commands that are never offered as a remedy: a table, one line for each thing not to say."""

DANGERS = r"""
# files and disks
destructive  rm unlink shred srm rimraf wipe
destructive  truncate dd blkdiscard wipefs mkswap swapoff
destructive  mkfs* mke2fs fsck* e2fsck xfs_repair btrfs-convert tune2fs
destructive  fdisk sfdisk cfdisk gdisk sgdisk parted lvremove vgremove pvremove
destructive  cryptsetup : luksFormat | erase | luksErase | luksKillSlot
destructive  zpool zfs : destroy | rollback | labelclear
destructive  mdadm : --zero-superblock | --stop
destructive  badblocks hdparm : -w | --security-erase*
forcing      mv cp ln install : -f | --force | --remove-destination
destructive  rsync : --del | --delete* | --remove-source-files
destructive  find fd fdfind : -delete
forcing      unzip 7z : -o | -y
forcing      umount : -f | -l | --force | --lazy
forcing      rmmod modprobe : -f | -r | --force | --remove

# rights and people
insecure     chmod : ~^[0-7]?[0-7]{2}[2367]$ | ~^[ugoa,]*[oa][ugoa]*[+=][rwxXst]*w
insecure     chmod : ~^[+=][rwxX]*w | ~^[ugoa]*[+=][rwxX]*s
destructive  chown chgrp : -R | --recursive
insecure     setenforce : 0 | ~(?i)^permissive$
destructive  userdel groupdel deluser delgroup visudo
insecure     passwd : -d | --delete | -u
destructive  crontab : -r
destructive  history : -c

# processes and machines
destructive  kill killall pkill skill xkill ipcrm
destructive  fuser : -k | --kill
destructive  shutdown reboot halt poweroff kexec
destructive  init telinit : ~^[0-6]$
destructive  systemctl : stop | disable | mask | poweroff | reboot | halt | isolate | kill
destructive  service : stop
insecure     iptables ip6tables nft : -F | --flush | flush | -X
insecure     ufw : disable | reset

# git and its hosts
forcing      git : push -f | push --force-with-lease | push --force-if-includes | push +*
forcing      git : push --mirror | commit -n | add -f | rebase --skip
destructive  git : push --delete | push -d | push :* | push --prune
destructive  git : reset --hard | reset --merge | clean -f | clean -x
destructive  git : branch -D | branch --delete | branch -f | branch -M
destructive  git : tag -d | tag --delete | tag -f
destructive  git : checkout -f | checkout -- | checkout . | checkout -B
destructive  git : restore !--staged | restore --worktree
destructive  git : switch -f | switch -C | switch --discard-changes
destructive  git : stash drop | stash clear | rm !--cached | filter-branch | filter-repo
destructive  git : update-ref -d | reflog expire | reflog delete | gc --prune*
destructive  git : worktree remove | submodule deinit | remote remove | remote rm
destructive  git : merge --abort | am --abort | rebase --abort | cherry-pick --abort
insecure     git : ~(?i)sslverify=(false|0|no|off) | ~(?i)sslverify$ ~(?i)^(false|0|no|off)$
insecure     git : ~(?i)^safe\.directory | ~(?i)^protocol\.file\.allow | ~(?i)^core\.sshcommand
destructive  gh : repo delete | release delete | secret delete | run delete | issue delete
forcing      gh : pr merge --admin | pr close
destructive  glab hub : delete

# packages
destructive  apt apt-get aptitude : remove | purge | autoremove | autopurge
insecure     apt apt-get aptitude : --allow-insecure-repositories | --force-yes | --allow-downgrades
insecure     apt apt-get aptitude : --allow-remove-essential
insecure     apt apt-get aptitude : ~(?i)allow-?(unauthenticated|insecure)
insecure     apt apt-get aptitude : ~(?i)verify-(peer|host)
forcing      dpkg : -r | -P | --remove
forcing      rpm : -e | --erase | --nodeps | --nosignature | --nodigest
destructive  yum dnf zypper microdnf : remove | erase | rm | autoremove
insecure     yum dnf zypper microdnf : --nogpgcheck*
destructive  pacman yay paru : ~^-R | --remove | -Scc
destructive  apk : del
destructive  brew snap flatpak : uninstall | remove | rm
insecure     snap : --dangerous | --devmode
insecure     pip pip3 uv : ~^http://(?!localhost|127\.) | config ~trusted-host
insecure     conda mamba : ~ssl_verify ~(?i)^(false|no)$ | -k
forcing      npm pnpm yarn bun : -f | --unsafe-perm | unpublish
insecure     npm pnpm yarn bun : ~strict-ssl=false | ~strict-ssl$ false | ~http://(?!localhost|127\.)
forcing      cargo : --allow-dirty | yank
insecure     go : -insecure | ~^(GOINSECURE|GONOSUMDB|GONOSUMCHECK)= | ~^GOFLAGS=.*insecure

# connections
insecure     curl : -k | --proxy-insecure | --ssl-no-revoke
insecure     wget : --no-hsts
insecure     ssh scp sftp sshfs rsync git ansible : ~(?i)StrictHostKeyChecking[=\s]+(no|off)
insecure     ssh scp sftp sshfs rsync git ansible : ~(?i)UserKnownHostsFile[=\s]+/dev/null
insecure     ssh-keygen : -R
insecure     ssh-keyscan
destructive  gpg gpg2 : --delete* | --yes

# containers, clusters, clouds
destructive  docker podman nerdctl : prune | volume rm | rm -f | rmi -f | rm -v | --rmi*
destructive  docker podman nerdctl docker-compose : down -v | down --volumes
destructive  docker podman nerdctl : swarm leave | system reset
insecure     docker podman nerdctl : --privileged | --cap-add=ALL
destructive  kubectl oc k : delete | drain | --grace-period=0
destructive  helm : uninstall | delete | rollback
destructive  terraform tofu terragrunt : destroy | -destroy | state rm | taint | force-unlock
forcing      terraform tofu terragrunt : -auto-approve | --auto-approve | -lock=false
destructive  pulumi cdk vagrant fly flyctl eksctl sam : destroy | delete
destructive  virsh : destroy | undefine | vol-delete
destructive  aws : ~^(delete|terminate|remove|purge|deregister|disable|empty)- | s3 rm | s3 rb
insecure     aws : --no-sign-request
destructive  gcloud az gsutil doctl : delete | purge | rm | rb
destructive  heroku : ~:destroy$ | pg:reset
destructive  vercel netlify firebase wrangler : remove | rm | delete | ~:(delete|disable)$

# databases
destructive  dropdb dropuser pg_resetwal pg_resetxlog
destructive  psql mysql mariadb sqlite3 duckdb : ~(?i)\b(drop|truncate)\s+\w | ~(?i)\bdelete\s+from
destructive  sqlcmd cqlsh clickhouse-client : ~(?i)\b(drop|truncate)\s+\w | ~(?i)\bdelete\s+from
destructive  mongosh mongo : ~(?i)\b(dropDatabase|deleteMany|drop|remove)\(
destructive  mysqladmin : drop
destructive  redis-cli valkey-cli : ~(?i)^flush(all|db)$ | ~(?i)^del$ | ~(?i)^shutdown$
destructive  rails rake : ~db:(drop|reset|schema:load|purge|migrate:reset)
destructive  artisan : ~^(migrate:(fresh|reset|refresh|rollback)|db:wipe)$
destructive  manage.py django-admin : flush | reset_db | sqlflush
destructive  alembic : downgrade
destructive  prisma : reset | --accept-data-loss

# whatever the program
forcing      * : --force | --force-* | --no-verify | --no-verify-commit | --skip-verify
forcing      * : --no-preserve-root | --overwrite | --yes-i-* | --dangerously-* | --disable-safety*
forcing      * : --skip-checks | --skip-checksum* | --ignore-checksum* | --no-hooks
forcing      * : --allow-root | --no-sandbox | --break-system-packages
insecure     * : --insecure | --insecure-* | --no-check-certificate* | --no-verify-ssl
insecure     * : --trusted-host | --allow-untrusted | --allow-unauthenticated | --disable-ssl*
insecure     * : --no-gpg-check* | --no-signature* | --no-ssl-verify
insecure     * : ~^--(ssl|tls|verify|check|validate)[\w-]*=(no|false|0|off|none)$
destructive  * : --purge | --delete-all | --wipe | --hard
"""
"""Harm, programs and, behind a colon, conditions of which any is enough; without, the program is.

A condition is words that must all be there: ``-f`` alone or among other short options, ``--force``
also as ``--force=value``, ``*`` as in file names, ``~`` a regular expression that a word must hold,
``!`` a word that must not be there.
"""

VARIABLES = r"""
insecure  (?i)GIT_SSL_NO_VERIFY=(?!(0|false|)$)
insecure  NODE_TLS_REJECT_UNAUTHORIZED=0
insecure  PYTHONHTTPSVERIFY=0
insecure  (GOINSECURE|GONOSUMDB|GONOSUMCHECK|PIP_TRUSTED_HOST|UV_INSECURE_HOST)=.
insecure  GOFLAGS=.*insecure|GOSUMDB=off
insecure  (?i)(npm_config_strict_ssl|YARN_ENABLE_STRICT_SSL)=false
insecure  (?i)ANSIBLE_HOST_KEY_CHECKING=(false|0|no)
insecure  (CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE|SSL_CERT_FILE)=(/dev/null)?$
insecure  GIT_SSH_COMMAND=.*(StrictHostKeyChecking|UserKnownHostsFile)
insecure  LD_PRELOAD=.
forcing   (PIP_BREAK_SYSTEM_PACKAGES|HUSKY_SKIP_HOOKS|SKIP_HOOKS|PRE_COMMIT_ALLOW_NO_CONFIG)=.
forcing   HUSKY=0|SKIP=.
"""
"""Assignments that switch a safeguard off, before a command or behind ``export`` and ``env``."""
