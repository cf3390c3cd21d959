/** What every client of these examples shows, over whatever transport it was given. */

import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "./gen/ordergateway/v1/errors_pb.js";
import { OrderState, TaskStatus } from "./gen/ordergateway/v1/orders_pb.js";
import type { Gateway, Order } from "./gateway.js";
import { refusalOf } from "./refusals.js";

/** The same gateway by several ways; those that a browser cannot go are absent there. */
export interface Ways {
  /** As it should be. */
  plain: Gateway;
  /** With a token that nobody knows. */
  wrongToken: Gateway;
  /** Through a proxy that loses the first two answers about each task whose id begins with `lost-`. */
  lossy?: Gateway;
  /** With TLS, trusting the CA that signed the gateway's certificate. */
  tls?: Gateway;
  /** With TLS, trusting the public CAs alone. */
  tlsOfStrangers?: Gateway;
}

/** Counts what was found right, and keeps what was not. */
export class Checks {
  readonly failures: string[] = [];
  passed = 0;

  that(what: string, holds: boolean): void {
    if (holds) this.passed++;
    else this.failures.push(what);
  }

  /** The error that a call ends with; a call that succeeds is a failure of the check. */
  async failing(what: string, call: Promise<unknown>): Promise<ConnectError> {
    const error = await call.then(
      () => undefined,
      (reason: unknown) => ConnectError.from(reason),
    );
    this.that(`${what}: is refused`, error !== undefined);
    return error ?? new ConnectError("was not refused");
  }

  get summary(): string {
    return `${this.passed} passed, ${this.failures.length} failed`;
  }
}

const QUEUE = "rakuten"; // no worker serves this site here: what is filed there stays queued

/** A number beyond what JavaScript counts exactly travels as text in the intent, which the gateway hands on as it is. */
function intent(shop: string): string {
  const item = `${shop}/item/sandbox-store/sencha-100g/`;
  return `{"item_url": "${item}", "quantity": 1, "max_total_yen": 5000, "reference": 12345678901234567890, "note": "煎茶を一袋"}`;
}

/** Runs all checks. `name` goes into the task ids: each run needs one of its own. */
export async function checkAll(ways: Ways, shop: string, name: string): Promise<Checks> {
  const checks = new Checks();
  await checkSubmission(checks, ways.plain, shop, `order-${name}`);
  await checkLists(checks, ways.plain, `list-${name}`);
  await checkRefusals(checks, ways, name);
  if (ways.lossy) await checkLostAnswers(checks, ways.plain, ways.lossy, name);
  if (ways.tls && ways.tlsOfStrangers) await checkTls(checks, ways.tls, ways.tlsOfStrangers, `tls-${name}`);
  return checks;
}

async function checkSubmission(checks: Checks, gateway: Gateway, shop: string, taskId: string): Promise<void> {
  const order: Order = { taskId, site: "sandbox", intentJson: intent(shop), maxTotalYen: 5_000n };
  checks.that("submit: makes a task", (await gateway.submit(order)).created);
  const again = await gateway.submit(order);
  checks.that("submit again: is the same task", !again.created && again.taskId === taskId && again.differs.length === 0);
  const other = await gateway.submit({ ...order, intentJson: "{}" });
  checks.that("submit another intent: changes nothing, and says so", other.differs.includes("intent_json"));
  const task = await gateway.get(taskId);
  checks.that("get: 20 digits and Japanese are as they were sent", task.intentJson === order.intentJson);

  let statuses = 0;
  let last = task;
  for await (last of gateway.watch(taskId, 60_000)) statuses++;
  checks.that("watch: ends with the order paid", last.status === TaskStatus.SUCCEEDED && last.latestState === OrderState.PAID);
  checks.that("watch: told of something", statuses > 0);
}

async function checkLists(checks: Checks, gateway: Gateway, prefix: string): Promise<void> {
  const orders = [1, 2, 3].map((number): Order => ({
    taskId: `${prefix}-${number}`,
    site: QUEUE,
    intentJson: "{}",
    labels: { batch: prefix },
  }));
  const broken: Order = { taskId: `${prefix}-4`, site: QUEUE, intentJson: "no JSON" };
  const results = await gateway.submitMany([...orders, broken]);
  checks.that("batch: files three", results.filter(({ outcome }) => outcome.case === "submitted").length === 3);
  const fourth = results[3]?.outcome;
  checks.that("batch: refuses one, and names its field", fourth?.case === "refusal" && fourth.value.field === "orders[3].intent_json");

  const listed: string[] = [];
  for await (const task of gateway.list({ pageSize: 2, filter: { labels: { batch: prefix } } })) listed.push(task.taskId);
  checks.that("list: gives each once, over two pages", listed.join() === orders.map((order) => order.taskId).reverse().join());
}

async function checkRefusals(checks: Checks, ways: Ways, name: string): Promise<void> {
  const unknown = refusalOf(await checks.failing("an unknown task", ways.plain.get(`unknown-${name}`)));
  checks.that("an unknown task: has its reason", unknown?.reason === ErrorReason.TASK_NOT_FOUND);
  const malformed = await checks.failing("a malformed intent", ways.plain.submit({ taskId: `m-${name}`, site: QUEUE, intentJson: "{" }));
  checks.that("a malformed intent: names the field", refusalOf(malformed)?.violations[0]?.field === "intent_json");
  const stranger = refusalOf(await checks.failing("a wrong token", ways.wrongToken.get(`unknown-${name}`)));
  checks.that("a wrong token: has its reason", stranger?.reason === ErrorReason.UNAUTHENTICATED);

  const taskId = `wait-${name}`;
  await ways.plain.submit({ taskId, site: QUEUE, intentJson: "{}" });
  const late = await checks.failing("a deadline", exhaust(ways.plain.watch(taskId, 300)));
  checks.that("a deadline: is told as such", late.code === Code.DeadlineExceeded);
}

async function checkLostAnswers(checks: Checks, gateway: Gateway, lossy: Gateway, name: string): Promise<void> {
  const submitted = await lossy.submit({ taskId: `lost-submit-${name}`, site: QUEUE, intentJson: "{}" });
  checks.that("a lost answer: the same task_id makes no second task", !submitted.created && submitted.differs.length === 0);
  const taskId = `lost-watch-${name}`;
  await gateway.submit({ taskId, site: QUEUE, intentJson: "{}" });
  await gateway.cancel(taskId, "nobody needs it");
  const seen = [];
  for await (const task of lossy.watch(taskId, 30_000)) seen.push(task.status);
  checks.that("a lost stream: is watched again, to the end", seen.join() === String(TaskStatus.FAILED));
}

async function checkTls(checks: Checks, trusting: Gateway, strange: Gateway, taskId: string): Promise<void> {
  checks.that("TLS: with the CA it is a call as any other", (await trusting.submit({ taskId, site: QUEUE, intentJson: "{}" })).created);
  await checks.failing("TLS: without the CA", strange.get(taskId));
}

async function exhaust(generator: AsyncGenerator<unknown>): Promise<void> {
  while (!(await generator.next()).done);
}
