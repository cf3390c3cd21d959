"""docs/deployment.md, docs/upgrade.md and the restore of docs/runbook.md, as printed, in a root shell."""

import re

import pytest

from common.exit_codes import Exit
from tests.deploy.machine import Machine
from tests.deploy.printed import blocks, installed, with_worker

pytestmark = [pytest.mark.needs("machine", "openssl", "git"), pytest.mark.timeout(300)]


def test_from_the_install_to_a_restore_as_printed(root: Machine) -> None:
    told = installed(root)
    assert re.search("^gateway +ok", told, re.MULTILINE), told
    assert '"success":true' in told
    root.must("ls /etc/systemd/system/timers.target.wants/order-gateway-backup.timer")
    root.must("systemctl is-active order-gateway-backup.timer")
    backup = blocks("deployment.md", "The gateway")[2]
    (copy,) = [line for line in root.must(backup).splitlines() if line.endswith(".db")]

    root.must('order-gateway pause --reason "after the backup"')
    mistyped = root.types("systemctl start order-gateway-restore@typo.db")
    assert mistyped.code != 0
    root.must("systemctl is-active order-gateway")
    restore = blocks("runbook.md", "Backup and restore")[2].replace("FILE", copy)
    assert "nothing to decide" in root.must(restore)
    told = root.must("cd /tmp\norder-gateway events")
    assert "restore" in told
    assert "after the backup" not in told, "the gateway reads what was restored"
    owners = set(root.must("find /var/lib/order-gateway/ -printf '%u %m %y\\n'").splitlines())
    assert {line for line in owners if not re.fullmatch("order-gateway (600 f|700 d)", line)} == set()


@pytest.mark.extended
def test_a_half_made_environment_and_a_strict_mask_do_no_harm(root: Machine) -> None:
    """As after an interrupted or refused `python3 -m venv`, typed in a shell with umask 077."""
    root.types("umask 077")
    root.must("mkdir -p /source/.venv/bin && ln -s /usr/bin/true /source/.venv/bin/python")
    clone, gateway, _ = blocks("deployment.md", "Install")
    root.must(clone)
    root.must("cp -a /source/.venv /opt/order-gateway/.venv")
    root.must(gateway)
    certificate, started, _ = blocks("deployment.md", "The gateway")
    root.must(certificate)
    assert re.search("^gateway +ok", root.must(started), re.MULTILINE)
    root.must("order-gateway --install-completion bash")
    root.must("grep -q order-gateway ~/.bashrc && ! ls -A /var/lib/order-gateway | grep bash")


@pytest.mark.extended
def test_the_worker_and_an_upgrade_as_printed(root: Machine) -> None:
    installed(root)
    assert "answers and takes the token" in with_worker(root)
    assert root.types("order-worker journal show po-1042").code == Exit.NOT_FOUND
    assert root.types("order-worker reclaim po-1042 --reason test --wait 0").code == 0
    assert "(set)" in root.must("order-worker config")
    for block in blocks("upgrade.md"):
        root.must(block)
    assert root.types("RAKUTEN_OPERATOR_TOKEN=somebody-elses-token order-gateway decisions").code == Exit.DENIED


@pytest.mark.extended
def test_what_the_command_does_not_understand_it_refuses(root: Machine) -> None:
    """The command reads the settings itself; whatever systemd might read in another way, it does not take."""
    clone, gateway, _ = blocks("deployment.md", "Install")
    root.must(clone)
    root.must(gateway)
    settings = "/etc/order-gateway/gateway.env"
    root.must(f"sed -i /TLS/d {settings}; cp {settings} {settings}.kept")
    root.must(f"printf '%s\\n' \"RAKUTEN_LOG_LEVEL='DEBUG'\" 'RAKUTEN_SITES=\"a,b\"' '; a comment' >> {settings}")
    shown = root.must("order-gateway config")
    assert re.search("^RAKUTEN_LOG_LEVEL +DEBUG +environment$", shown, re.MULTILINE), shown
    assert re.search("^RAKUTEN_SITES +a,b +environment$", shown, re.MULTILINE), "the last line counts, as for systemd"
    refused = ("SITES=a\\", "SITES='a'b", "RAKUTEN SITES=a", "SITES", "SITES= a", "X=$(id)'", "=a", "1X=a", "SITES=a\r")
    for line in refused:
        root.must(f"cp {settings}.kept {settings}; cat >> {settings} <<'END'\n{line}\nEND")
        typed = root.types("order-gateway config")
        assert typed.code == Exit.USAGE, typed
        assert re.match(rf"order-gateway: {settings}, line \d+: ", typed.out), typed
    assert "run it as root" in root.types("setpriv --reuid=order-gateway --clear-groups order-gateway health").out
    unnamed = root.types("sh /opt/order-gateway/deploy/install.sh gateway")
    assert (unnamed.code, "name the gateway's host" in unnamed.out) == (1, True), unnamed
