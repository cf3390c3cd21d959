"""The role of the gateways: as docs/postgresql.md has it made, with what it needs and nothing else."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from gateway.domain.models import Actor
from gateway.orders.history import record_general
from gateway.store.port import DatabaseUnusableError
from gateway.store.postgres import schema
from gateway.store.postgres.engine import PostgresStore, open_database
from gateway.store.postgres.statements import statements
from tests.gateway.cli.command import Commands
from tests.gateway.support import postgres
from tests.gateway.support.manual_time import ManualTime

pytestmark = pytest.mark.needs("postgresql")

DOCS = Path(__file__).parents[4] / "docs" / "postgresql.md"
OWNER, SERVED, DATABASE = "orders_owner", "orders_gateway", "orders"


def printed() -> tuple[str, str]:
    """The SQL of the page: what is run on the server, and what in the new database."""
    part = DOCS.read_text().partition("\n## Roles\n")[2].partition("\n## ")[0]
    (sql,) = re.findall(r"```sql\n(.*?)```", part, re.DOTALL)
    on_server, _, in_database = sql.partition(f"\\c {DATABASE}\n")
    return on_server, in_database


@pytest.fixture
def roles() -> Iterator[None]:
    """Both roles and the database, made as printed."""
    on_server, in_database = printed()
    with psycopg.connect(postgres.server().url("postgres"), autocommit=True) as connection:
        for statement in filter(str.strip, on_server.split(";")):
            connection.execute(statement.encode())
    postgres.server().execute(in_database, DATABASE)
    yield
    postgres.server().execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
    for role in (OWNER, SERVED):
        postgres.server().execute(f"DROP ROLE {role}")


def url(role: str) -> str:
    return postgres.server().url(DATABASE).replace("//gateway@", f"//{role}@")


async def test_the_roles_as_printed_serve(roles: None, time: ManualTime) -> None:
    with pytest.raises(DatabaseUnusableError, match="run `order-gateway migrate` as the role that owns it"):
        open_database(url(SERVED), postgres.machine(time), wait_seconds=0)
    owner = Commands({"RAKUTEN_GATEWAY_DB_URL": url(OWNER)})
    shown = (await owner.ok("migrate", "--dry-run", "--grant-to", SERVED)).out
    assert f'GRANT INSERT, DELETE ON pauses, store_groups TO "{SERVED}"' in shown
    said = " ".join((await owner.ok("migrate", "--grant-to", SERVED)).err.split())
    assert f"the role {SERVED} may do what a gateway needs" in said
    await owner.ok("migrate", "--grant-to", SERVED)
    store = PostgresStore(
        open_database(url(SERVED), postgres.machine(time), wait_seconds=0), lambda _: None, lambda _: None
    )
    await store.write(record_general, "pause", Actor("operator"), reason="why")
    await store.close()
    refused = await owner.run("migrate", "--grant-to", OWNER)
    assert f"the role {OWNER} owns tables here" in " ".join(refused.err.split())
    refused = await owner.run("migrate", "--grant-to", "nobody_of_this_name")
    assert "does not exist" in refused.err


async def test_a_file_knows_no_roles(tmp_path: Path) -> None:
    (tmp_path / "gateway.db").touch()
    ran = await Commands({"RAKUTEN_GATEWAY_DB_PATH": str(tmp_path / "gateway.db")}).run("migrate", "--grant-to", "x")
    assert (ran.code, "knows no roles" in ran.err) == (3, True)


FORBIDDEN = (
    "UPDATE events SET reason = ''",
    "DELETE FROM events",
    "TRUNCATE events",
    "INSERT INTO events (sequence) VALUES (1) ON CONFLICT (sequence) DO UPDATE SET reason = ''",
    "ALTER TABLE events DISABLE TRIGGER events_are_never_changed",
    "DROP TRIGGER events_are_never_deleted ON events",
    "SET session_replication_role = replica",
    "UPDATE late_reports SET detail = ''",
    "DELETE FROM late_reports",
    "UPDATE restores SET reason = ''",
    "DELETE FROM tasks",
    "TRUNCATE tasks, leases, reports CASCADE",
    "UPDATE store_groups SET elapsed_us = 0",
    "UPDATE schema_compatibility SET oldest_program = 1",
    "DELETE FROM schema_versions",
    "DROP TABLE events",
    "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE sql AS ''",
)


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_the_role_cannot_rewrite_the_history(sql: str) -> None:
    with postgres.database() as owners:
        with psycopg.connect(owners, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO events (sequence, occurred_at, subject, kind, actor) VALUES (1, '', '', '', '')"
            )
            before = connection.execute("SELECT * FROM events").fetchall()
        with (
            psycopg.connect(postgres.as_served(owners), autocommit=True) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(sql.encode())
        assert postgres.server().execute("SELECT * FROM events", postgres.name_of(owners)) == before


def test_the_role_has_what_statements_and_triggers_need_and_nothing_else() -> None:
    needed: dict[str, set[str]] = defaultdict(set)
    texts = [statement.sql.decode() for statement in statements().values()]
    for step in schema.migrations():
        texts += re.findall(r"CREATE FUNCTION.*?END \$\$;", step.sql, re.DOTALL)
    for text in texts:
        for table in re.findall(r"INSERT INTO (\w+)", text):
            needed[table].add("INSERT")
        for table in re.findall(r"INSERT INTO (\w+)(?:(?!;).)*DO UPDATE", text, re.DOTALL):
            needed[table].add("UPDATE")
        for table in re.findall(r"(?<!DO )UPDATE (\w+)\s+SET", text):
            needed[table].add("UPDATE")
        for table in re.findall(r"DELETE FROM (\w+)", text):
            needed[table].add("DELETE")
    with postgres.database() as made:
        rows = postgres.server().execute(
            "SELECT table_name, array_agg(privilege_type::text) FROM information_schema.role_table_grants "
            "WHERE grantee = 'served' GROUP BY table_name",
            postgres.name_of(made),
        )
    given = {table: set(rights) for table, rights in rows}
    assert all("SELECT" in rights for rights in given.values())
    assert {table: rights - {"SELECT"} for table, rights in given.items() if rights != {"SELECT"}} == needed


def test_between_a_migration_and_the_grant_behind_it_the_role_goes_on_naming_accounts() -> None:
    before_counts = next(step.number for step in schema.migrations() if "target_counts" in step.sql)
    url = postgres.new_database("template1")
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            schema.migrate(connection, steps=[step for step in schema.migrations() if step.number < before_counts])
            connection.execute("GRANT USAGE ON SCHEMA public TO served")
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO served")
            connection.execute("GRANT INSERT, UPDATE ON tasks, lanes, catalog_targets TO served")
            schema.migrate(connection)
        with psycopg.connect(postgres.as_served(url), autocommit=True) as connection:
            connection.execute(
                "INSERT INTO tasks (task_id, site, account, intent_json, status, created_at, updated_at)"
                " VALUES ('po-1', 'rakuten', 'a', '{}', 'queued', '', '')"
            )
            assert connection.execute("SELECT * FROM target_counts").fetchall() == [("", 1)]
    finally:
        postgres.drop_database(url)
