"""The part of OperationsService that is about callbacks; operations.proto says what each method does."""

from typing import Final

from ordergateway.v1 import operations_pb2

from gateway.api.answers import accepted
from gateway.api.call import Call
from gateway.api.codec.callbacks import callback_message, callback_status
from gateway.api.codec.page_tokens import make_page_token, page_token
from gateway.callbacks.manage import list_callbacks, replay, send_test
from gateway.domain import fields
from gateway.domain.models import Actor
from gateway.domain.refusals import invalid
from gateway.store.port import Store

_MAX_CALLBACK_ID_CHARACTERS: Final = 128


class CallbackOperations:
    """Look at callbacks, send one again, send a test."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list_callbacks(
        self, request: operations_pb2.ListCallbacksRequest, call: Call
    ) -> operations_pb2.ListCallbacksResponse:
        """Return one page of callbacks."""
        status = callback_status(request.status)
        task_id = fields.key("task_id", request.task_id) if request.task_id else None
        filters = [status or "", task_id or ""]
        below = page_token(request.page_token, filters)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.read(list_callbacks, status, task_id, below, size)
        return operations_pb2.ListCallbacksResponse(
            callbacks=[callback_message(callback) for callback in page.items],
            next_page_token=make_page_token(page.next_after, filters),
        )

    async def replay_callback(
        self, request: operations_pb2.ReplayCallbackRequest, call: Call
    ) -> operations_pb2.ReplayCallbackResponse:
        """Send a callback again, with its old id."""
        callback_id = fields.text("callback_id", request.callback_id, limit=_MAX_CALLBACK_ID_CHARACTERS, required=True)
        done = accepted(await self._store.write(replay, callback_id, Actor(call.identity.name)))
        return operations_pb2.ReplayCallbackResponse(callback=callback_message(done))

    async def send_test_callback(
        self, request: operations_pb2.SendTestCallbackRequest, call: Call
    ) -> operations_pb2.SendTestCallbackResponse:
        """File a test."""
        url = fields.callback_url("url", request.url)
        if not url:
            raise invalid("url", "is required")
        filed = await self._store.write(send_test, url, Actor(call.identity.name))
        return operations_pb2.SendTestCallbackResponse(callback=callback_message(filed))
