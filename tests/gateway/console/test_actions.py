"""Nothing can be done in the console that gRPC and the command line cannot do, by the same roles."""

import ast
from pathlib import Path

import ordergateway.client.blocking
import pytest
from google.protobuf.message_factory import GetMessageClass
from ordergateway.v1 import catalog_pb2, operations_pb2, orders_pb2

import gateway.cli.commands
import gateway.console
from gateway.api.auth.access import ACCESS
from gateway.api.auth.authenticator import Role
from gateway.console.actions import ACTIONS, Kind, fill_in
from gateway.console.forms import Form
from gateway.domain.refusals import RefusedError

METHODS = {
    f"/{service.full_name}/{method.name}": method
    for file in (orders_pb2, operations_pb2, catalog_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


def test_each_action_is_a_method_of_the_contract_that_an_operator_may_call() -> None:
    for action in ACTIONS.values():
        assert action.method in METHODS, action.name
        assert Role.OPERATOR in ACCESS[action.method], action.name


def test_each_action_is_a_command() -> None:
    called = {
        name
        for module in Path(gateway.cli.commands.__file__).parent.glob("*.py")
        for name in attributes(ast.parse(module.read_text()))
    }
    # Commands for upstreams go through the library for upstreams.
    library = ast.parse(Path(ordergateway.client.blocking.__file__).read_text())
    for function in ast.walk(library):
        if isinstance(function, ast.FunctionDef) and function.name in called:
            called |= attributes(function)
    for action in ACTIONS.values():
        assert action.method.rpartition("/")[2] in called, action.name


def attributes(tree: ast.AST) -> set[str]:
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_a_form_asks_only_for_what_the_method_takes() -> None:
    for action in ACTIONS.values():
        fields = METHODS[action.method].input_type.fields_by_name
        asked = [field.name for field in action.fields] + [name for name, _ in action.preset]
        assert {name.partition(".")[0] for name in asked} <= set(fields), action.name
        assert len(set(asked)) == len(asked), action.name
        if "reason" in fields:
            assert "reason" in asked, action.name


def test_nothing_of_the_console_writes_by_itself() -> None:
    for module in Path(gateway.console.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("write", "write_many"), module.name


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("approve", "task_id=t&reason=r&max_total_yen=12.5", "max_total_yen"),
        ("approve", f"task_id=t&reason=r&max_total_yen={2**53}", "max_total_yen"),
        ("approve", "task_id=t&reason=r&max_total_yen=-1", "max_total_yen"),
        ("approve", "task_id=t&reason=r&valid_for=0", "valid_for"),
        ("approve", "task_id=t&reason=r&valid_for=nan", "valid_for"),
        ("approve", "task_id=t&reason=r&valid_for=8761", "valid_for"),
        ("resolve_failed", "task_id=t&reason=r&state=unspecified", "state"),
        ("requeue", "task_id=t", "reason"),
        ("requeue", "task_id=t&reason=%20", "reason"),
        ("requeue", "reason=r", "task_id"),
        ("requeue", "task_id=t&reason=" + "x" * 1001, "reason"),
        ("clear_alert", "alert_id=x&reason=r", "alert_id"),
    ],
)  # fmt: skip
def test_bad_input_is_told_with_its_field(name: str, text: str, field: str) -> None:
    action = ACTIONS[name]
    message = GetMessageClass(METHODS[action.method].input_type)()
    with pytest.raises(RefusedError) as refused:
        fill_in(message, action, Form(text))
    assert [violation.field for violation in refused.value.refusal.violations] == [field]


def test_a_form_becomes_a_request() -> None:
    message = operations_pb2.ApproveOrderRequest()
    fill_in(
        message,
        ACTIONS["approve"],
        Form("task_id=po-1&max_total_yen=%C2%A512%2C300&valid_for=1.5&reason=fine%0D%0Aby+me"),
    )
    assert (message.task_id, message.max_total_yen, message.valid_for.seconds) == ("po-1", 12_300, 5_400)
    assert message.reason == "fine\nby me"
    stated = operations_pb2.ResolveOrderRequest()
    fill_in(
        stated,
        ACTIONS["resolve_succeeded"],
        Form("task_id=po-1&state=paid&although_impossible=on&reason=r&outcome=failed"),
    )
    assert stated.outcome == orders_pb2.TASK_STATUS_SUCCEEDED, "what an action says always is not asked for"
    assert stated.state == orders_pb2.ORDER_STATE_PAID
    assert stated.although_impossible
    assert not stated.HasField("site_order_id")
    assert all(
        field.kind is not Kind.SUBJECT or field.required or field.name in ("site", "account")
        for a in ACTIONS.values()
        for field in a.fields
    )
