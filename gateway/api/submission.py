"""Filing an order, the same for every transport: what takes long of it is done beside the event loop and the writer."""

from gateway.api.offload import LARGE_BYTES, off_the_loop
from gateway.domain.models import Actor, Policy, Submission, Submitted
from gateway.orders.submit import submit, submitted_again
from gateway.store.port import Store


async def file_order(store: Store, policy: Policy, wanted: Submission, actor: Actor) -> Submitted:
    """File an order. An intent that is large is compared with the one that the task has in a thread of its own."""
    done = await store.write(submit, policy, wanted, actor, compare_up_to=LARGE_BYTES)
    return done if isinstance(done, Submitted) else await off_the_loop(lambda: submitted_again(done, wanted))
