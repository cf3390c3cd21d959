/** An upstream's client of the gateway, for Node and for browsers: the same calls over any transport of Connect. */

import { create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import { createClient, type Client, type Interceptor, type Transport } from "@connectrpc/connect";
import {
  type ListOrdersRequestSchema,
  OrderService,
  type SubmitOrderRequestSchema,
  type SubmitOrderResponse,
  type SubmitOrdersResult,
  type Task,
  TaskSchema,
  TaskStatus,
} from "./gen/ordergateway/v1/orders_pb.js";
import { pauseBeforeRetry } from "./refusals.js";

export type Order = MessageInitShape<typeof SubmitOrderRequestSchema> & { taskId: string };

/** One try gets no longer than this of a call's deadline: a connection may be dead without saying so. */
const TRY_MS = 10_000;

/** A watch says something every 10 s; when it has been silent for three times as long, its connection is dead. */
const SILENCE_MS = 30_000;

const ENDED: ReadonlySet<TaskStatus> = new Set([TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.NEEDS_HUMAN]);

export function hasEnded(task: Task): boolean {
  return ENDED.has(task.status);
}

/** Sends the token with every call. */
export function bearer(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}

export class Gateway {
  readonly #orders: Client<typeof OrderService>;

  /** `deadlineMs` bounds each call with all of its repeats; when it has passed, the last error is thrown. */
  constructor(
    transport: Transport,
    readonly deadlineMs = 30_000,
  ) {
    this.#orders = createClient(OrderService, transport);
  }

  /**
   * Files an order. A lost answer is healed by sending the same request again, which needs a task_id of your own: keep
   * it with the thing that is to be bought, before the first call.
   */
  submit(order: Order): Promise<SubmitOrderResponse> {
    return this.#repeated((options) => this.#orders.submitOrder(order, options));
  }

  /** Files up to 500 orders by one commit; each result tells of the order in its place. */
  async submitMany(orders: Order[]): Promise<SubmitOrdersResult[]> {
    const { results } = await this.#repeated((options) => this.#orders.submitOrders({ orders }, options));
    return results;
  }

  async get(taskId: string): Promise<Task> {
    const { task } = await this.#repeated((options) => this.#orders.getOrder({ taskId }, options));
    return task ?? create(TaskSchema);
  }

  /** All tasks that match, newest first, fetched page by page as they are wanted. */
  async *list(wanted: MessageInitShape<typeof ListOrdersRequestSchema>): AsyncGenerator<Task> {
    let pageToken = "";
    do {
      const page = await this.#repeated((options) => this.#orders.listOrders({ ...wanted, pageToken }, options));
      yield* page.tasks; // a page may be empty and yet not be the last one
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /** Ends a task that no worker has taken yet, as failed. */
  async cancel(taskId: string, reason: string): Promise<Task> {
    const { task } = await this.#repeated((options) => this.#orders.cancelOrder({ taskId, reason }, options));
    return task ?? create(TaskSchema);
  }

  /**
   * The task as it is, then after each change, until it has ended. Where the stream breaks it is opened again, and what
   * was seen already is not told twice. Throws when `deadlineMs` has passed.
   */
  async *watch(taskId: string, deadlineMs = 3_600_000): AsyncGenerator<Task> {
    const deadline = performance.now() + deadlineMs;
    let seen: Task | undefined;
    for (let tries = 0; ; tries++) {
      const silence = new Silence();
      try {
        const options = { signal: silence.signal, timeoutMs: left(deadline) };
        for await (const { event } of this.#orders.watchOrder({ taskId }, options)) {
          silence.broken();
          tries = 0;
          if (event.case !== "task" || (seen && equals(TaskSchema, seen, event.value))) continue;
          seen = event.value;
          yield seen;
        }
        if (seen && hasEnded(seen)) return;
      } catch (error) {
        await pauseOrThrow(error, tries, deadline);
      } finally {
        silence.end();
      }
    }
  }

  /** Sends a call until it is answered, refused for good, or the deadline has passed. */
  async #repeated<T>(call: (options: { timeoutMs: number }) => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.deadlineMs;
    for (let tries = 0; ; tries++) {
      try {
        return await call({ timeoutMs: Math.min(TRY_MS, left(deadline)) });
      } catch (error) {
        await pauseOrThrow(error, tries, deadline);
      }
    }
  }
}

/** Milliseconds until the deadline, as it travels with a call: whole ones. */
function left(deadline: number): number {
  return Math.max(1, Math.ceil(deadline - performance.now()));
}

/** Waits until the call may be sent again; throws its error where it may not, or not before the deadline. */
async function pauseOrThrow(error: unknown, tries: number, deadline: number): Promise<void> {
  const pause = pauseBeforeRetry(error, tries);
  if (pause === undefined || performance.now() + pause >= deadline) throw error;
  await new Promise((wake) => setTimeout(wake, pause));
}

/** Aborts its signal when nothing was heard for SILENCE_MS. */
class Silence {
  readonly #controller = new AbortController();
  #timer = this.#started();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  broken(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#started();
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #started(): ReturnType<typeof setTimeout> {
    return setTimeout(() => this.#controller.abort(), SILENCE_MS);
  }
}
