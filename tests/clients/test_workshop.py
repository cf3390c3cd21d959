"""The copy in which clients are built follows its source, keeps what was built, and is touched only where it must."""

from pathlib import Path

import pytest

from clients.workshop import default_cache, mirror, workshop


def test_the_copy_follows_its_source_and_keeps_what_was_built(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / "src").mkdir(parents=True)
    (source / "src/main.go").write_text("1")
    (source / "src/old.go").write_text("1")
    mirror(source, copy)
    (copy / "target").mkdir()
    (copy / "target/built").write_text("1")
    unchanged = (copy / "src/main.go").stat().st_mtime_ns

    (source / "src/old.go").rename(source / "src/new.go")
    mirror(source, copy)

    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()) == [
        "src/main.go",
        "src/new.go",
        "target/built",
    ]
    assert (copy / "src/main.go").stat().st_mtime_ns == unchanged

    (source / "src/main.go").write_text("2")
    mirror(source, copy)
    assert (copy / "src/main.go").read_text() == "2"


def test_it_lies_in_the_cache_of_the_user_beside_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    contract = tmp_path / "proto"
    contract.mkdir()
    (contract / "orders.proto").write_text("1")
    with workshop(contract) as folder:
        assert folder == default_cache() == tmp_path / "cache/order-gateway-clients"
        assert (folder / "proto/orders.proto").read_text() == "1"
