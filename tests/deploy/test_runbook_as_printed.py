"""Every shell block of docs/runbook.md, typed in a root shell of the machine on which the parts are installed.

It replaces what a person would: the task, an alert's number, an order number, a worker's name, a file. tests/e2e has
the same flows in more depth; this is about what stands in the way between a root shell and the parts.
"""

import json
import re

import pytest

from tests.deploy.machine import Machine, Typed
from tests.deploy.printed import blocks, installed, with_worker

pytestmark = [pytest.mark.needs("machine", "openssl", "git"), pytest.mark.extended, pytest.mark.timeout(600)]

SHOP = "http://127.0.0.1:31120"
REST = "https://gateway.example:31109"


class Night:
    """The person in charge, the runbook, and what goes wrong in the meantime."""

    def __init__(self, root: Machine) -> None:
        self.root = root
        self.left = blocks("runbook.md")

    def follow(self, begins: str, **replaced: str) -> Typed:
        """Type the block that begins so, and take it off the list."""
        (block,) = [block for block in self.left if block.startswith(begins)]
        self.left.remove(block)
        for printed, meant in replaced.items():
            block = block.replace(printed.replace("_", "-"), meant)
        return self.root.types(block)

    def told(self, begins: str, **replaced: str) -> str:
        """The same, and the last command has to succeed."""
        typed = self.follow(begins, **replaced)
        assert typed.code == 0, typed
        return typed.out

    def submit(self, task_id: str, *, requires_approval: bool = False) -> None:
        """What an upstream does."""
        item = f"{SHOP}/item/sandbox-store/sencha-100g/"
        body = {"task_id": task_id, "site": "sandbox", "intent": {"item_url": item, "quantity": 1}}
        if requires_approval:
            body["requires_approval"] = True
        self.rest("UPSTREAM", f"-d '{json.dumps(body)}' {REST}/api/orders")

    def decides_about(self, task_id: str) -> None:
        """An order waits for an approval, gets it, and is denied after all."""
        self.submit(task_id, requires_approval=True)
        assert "is approved for up to 60,000 yen" in self.told("order-gateway approvals approve", po_1042=task_id)
        assert "is denied" in self.told("order-gateway approvals deny", po_1042=task_id)

    def rest(self, role: str, words: str) -> str:
        token = f"$(sed -n s/^RAKUTEN_{role}_TOKEN=//p /etc/order-gateway/gateway.env)"
        ask = "curl -sS --cacert /etc/order-gateway/tls/fullchain.pem -H 'Content-Type: application/json'"
        return self.root.must(f'{ask} -H "Authorization: Bearer {token}" {words}')

    def shop(self, words: str) -> str:
        ask = "curl -sS -H 'Content-Type: application/json'"
        return self.root.must(f"{ask} {words.replace('SHOP', f'{SHOP}/_control')}")

    def dies_at(self, task_id: str, step: str, after: str = "false") -> None:
        """An order hangs at a step on the site, and its worker is killed there."""
        before = json.loads(self.shop("SHOP/counters"))["requests"].get(step, 0)
        fault = json.dumps({"kind": "hang", "step": step, "after": after == "true"})
        self.shop(f"-d '{fault}' SHOP/faults")
        self.submit(task_id)
        waited = self.shop(f"'SHOP/wait?step={step}&requests={before + 1}&timeout=60'")
        assert json.loads(waited)["reached"], waited
        self.root.must("kill -9 $(cat /run/stand-in/order-worker.service.pid)")
        self.shop("-X DELETE SHOP/faults")


def looks_at_a_budget(night: Night) -> None:
    """It does not stand for long: under one for all orders a worker over REST gets none."""
    night.root.must('order-gateway budgets set household 30000 --period month --reason "what we agreed on"')
    assert "30000 a month" in night.told("order-gateway budgets show household")
    night.root.must('order-gateway budgets remove household --reason "tried it"')


def hears_a_report_too_late(night: Night) -> None:
    """A worker over REST reports after a person has ended its lease."""
    night.submit("po-5")
    night.rest("WORKER", f"'{REST}/api/orders/lease?worker_id=rest-1&wait=5'")
    night.root.must('order-gateway expire po-5 --reason "killed"')
    night.rest("WORKER", f"""-d '{{"worker_id": "rest-1", "state": "in_cart"}}' {REST}/api/orders/po-5/report""")
    (late,) = re.findall("^([0-9]+) +late_report", night.root.must("order-gateway alerts"), re.MULTILINE)
    told = night.told("order-gateway alerts\norder-gateway alerts --all", **{"clear 7": f"clear {late}"})
    assert f"alert {late} is cleared" in told


def confirms_what_another_proposes(night: Night) -> None:
    """Ken would approve more than one person may; mika, whose token the root shell has, confirms it."""
    file = "/etc/order-gateway/gateway.env"
    night.root.must(f"sed -i 's/^\\(RAKUTEN_OPERATOR_TOKEN=.*\\)/\\1,ken=the-secret-of-ken/' {file}")
    night.root.must(f"echo RAKUTEN_SECOND_PERSON=true >> {file}; systemctl restart order-gateway")
    night.submit("po-7", requires_approval=True)
    body = json.dumps({"taskId": "po-7", "reason": "for the office", "maxTotalYen": "200000"})
    approve = f"{REST}/ordergateway.v1.OperationsService/ApproveOrder"
    told = night.root.must(
        "curl -sS --cacert /etc/order-gateway/tls/fullchain.pem -H 'Content-Type: application/json' "
        f"-H 'Authorization: Bearer the-secret-of-ken' -d '{body}' {approve}"
    )
    assert "needs a second person" in told
    (number,) = re.findall("^([0-9]+) ", night.root.must("order-gateway proposals list"), re.MULTILINE)
    assert "200,000 yen: confirmed" in night.told("order-gateway proposals list", **{"confirm 7": f"confirm {number}"})


def test_every_block_of_the_runbook_works_as_it_stands(root: Machine) -> None:
    installed(
        root,
        "RAKUTEN_SITES=rakuten,sandbox",
        "RAKUTEN_PERMIT_SETTLE_SECONDS=0.5",
        "RAKUTEN_OPERATOR_TOKEN=mika=the-secret-of-mika",
    )
    root.background("/opt/order-gateway/.venv/bin/order-worker sandbox")
    with_worker(root, f"RAKUTEN_SANDBOX_URL={SHOP}", "RAKUTEN_SCREENSHOTS=false")
    root.must(f"curl -sS --retry 50 --retry-connrefused --retry-delay 1 -o /dev/null {SHOP}/")
    night = Night(root)

    # An order that was clicked, and the worker that comes back with its journal.
    night.dies_at("po-1042", "submit", after="true")
    assert "is now stale" in night.told("order-gateway expire")
    assert "An order is possible" in night.told("order-gateway decisions\n")
    assert "expire" in night.told("order-gateway tasks show po-1042\norder-gateway events")
    assert re.search("^clicked +True$", night.told("order-worker journal show po-1042"), re.MULTILINE)
    root.must("systemctl start order-worker")
    assert "needs_human" in night.told("order-worker reclaim po-1042").partition("watch")[0]
    assert "00-verify.html" in night.told("order-gateway tasks show po-1042\norder-worker evidence")
    task = json.loads(root.must("order-gateway tasks show po-1042 --json"))["task"]
    number = task["reports"][-1]["site_order_id"]
    assert number in night.told("order-gateway alerts --kind site_order_id_conflict")
    assert "is now succeeded" in night.told("order-gateway resolve po-1042 succeeded", **{"250_1042": number})

    # Orders that were never clicked.
    night.dies_at("po-2", "confirm")
    root.must('order-gateway expire po-2 --reason "killed"')
    assert "is now queued" in night.told("order-gateway requeue", po_1042="po-2")
    assert "is now stale" in night.told("order-gateway withdraw", po_1042="po-2")
    withdrawn = 'order-gateway resolve po-1042 failed --reason "withdrawn'
    assert "is now failed" in night.told(withdrawn, po_1042="po-2")
    root.must("systemctl start order-worker")
    night.dies_at("po-3", "confirm")
    root.must('order-gateway expire po-3 --reason "killed"')
    assert "is now failed" in night.told('order-gateway resolve po-1042 failed --reason "not on', po_1042="po-3")

    # Dispatch stands still, and a task is cancelled.
    assert "looking into" in night.told("order-gateway pause")
    night.submit("po-4")
    assert "po-4" in night.told("order-gateway health\norder-gateway tasks list")
    assert "is now failed" in night.told("order-gateway cancel", po_1042="po-4")
    night.decides_about("po-6")
    assert "not paused" in night.told("order-gateway resume")

    looks_at_a_budget(night)

    hears_a_report_too_late(night)

    assert "local-01" in night.told("order-gateway workers list\norder-gateway health")
    assert "answers" in night.told("order-gateway health\n")
    assert "is forgotten" in night.told("order-gateway workers forget", worker_1="local-01")
    assert "no callbacks" in night.told("order-gateway callbacks list")
    confirms_what_another_proposes(night)
    assert "sha256" in night.told("order-gateway backup")
    (copy, *_) = root.must("ls /var/lib/order-gateway/backups").split()
    assert "the backup is whole" in night.told("order-gateway restore --check", FILE=copy)
    assert "po-5" in night.told("systemctl start order-gateway-restore", FILE=copy)
    assert night.left == []
