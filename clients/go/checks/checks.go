// Package checks is what every client of these examples shows, over whatever carries its calls.
package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	pb "example.com/shop/gen/ordergateway/v1"
	"example.com/shop/orders"
)

// queue is a site that no worker serves here: what is filed there stays queued.
const queue = "rakuten"

// Ways are clients of the same gateway.
type Ways struct {
	// Plain is as it should be.
	Plain *orders.Client
	// WrongToken has a token that nobody knows.
	WrongToken *orders.Client
	// Lossy goes through a proxy that loses the first two answers about each task whose id begins with lost-.
	Lossy *orders.Client
	// TLS trusts the CA that signed the gateway's certificate.
	TLS *orders.Client
	// TLSOfStrangers trusts the public CAs alone.
	TLSOfStrangers *orders.Client
}

// Count is what was found right, and what was not.
type Count struct {
	Passed   int
	Failures []string
}

// That counts one check.
func (c *Count) That(what string, holds bool) {
	if holds {
		c.Passed++
	} else {
		c.Failures = append(c.Failures, what)
	}
}

// Summary is the closing line.
func (c *Count) Summary() string {
	return fmt.Sprintf("%d passed, %d failed", c.Passed, len(c.Failures))
}

// All runs all checks. Name goes into the task ids: each run needs one of its own. An error is a call that failed where
// none should.
func All(ctx context.Context, ways Ways, shop, name string) (*Count, error) {
	count := &Count{}
	err := errors.Join(
		submission(ctx, count, ways.Plain, shop, "order-"+name),
		lists(ctx, count, ways.Plain, "list-"+name),
		refusals(ctx, count, ways, name),
		lostAnswers(ctx, count, ways, name),
		overTLS(ctx, count, ways, "tls-"+name),
	)
	return count, err
}

func submission(ctx context.Context, count *Count, client *orders.Client, shop, taskID string) error {
	// The intent is handed on as it is; a number beyond what a program counts exactly travels in it unharmed.
	intent := fmt.Sprintf(`{"item_url": "%s/item/sandbox-store/sencha-100g/", "quantity": 1, "max_total_yen": 5000, `+
		`"reference": 12345678901234567890, "note": "煎茶を一袋"}`, shop)
	order := &pb.SubmitOrderRequest{TaskId: taskID, Site: "sandbox", IntentJson: intent, MaxTotalYen: proto.Int64(5000)}
	first, err := client.Submit(ctx, order)
	if err != nil {
		return err
	}
	count.That("submit: makes a task", first.GetCreated())
	again, err := client.Submit(ctx, order)
	if err != nil {
		return err
	}
	count.That("submit again: is the same task", !again.GetCreated() && again.GetTaskId() == taskID && len(again.GetDiffers()) == 0)
	other, err := client.Submit(ctx, &pb.SubmitOrderRequest{TaskId: taskID, Site: "sandbox", IntentJson: "{}"})
	if err != nil {
		return err
	}
	count.That("submit another intent: changes nothing, and says so", slices.Contains(other.GetDiffers(), "intent_json"))
	task, err := client.Get(ctx, taskID)
	if err != nil {
		return err
	}
	count.That("get: 20 digits and Japanese are as they were sent", task.GetIntentJson() == intent)

	watching, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	for task, err = range client.Watch(watching, taskID) {
		if err != nil {
			return err
		}
	}
	count.That("watch: ends with the order paid",
		task.GetStatus() == pb.TaskStatus_TASK_STATUS_SUCCEEDED && task.GetLatestState() == pb.OrderState_ORDER_STATE_PAID)
	return nil
}

func lists(ctx context.Context, count *Count, client *orders.Client, prefix string) error {
	labels := map[string]string{"batch": prefix}
	var batch []*pb.SubmitOrderRequest
	for number := 1; number <= 3; number++ {
		taskID := fmt.Sprintf("%s-%d", prefix, number)
		batch = append(batch, &pb.SubmitOrderRequest{TaskId: taskID, Site: queue, IntentJson: "{}", Labels: labels})
	}
	batch = append(batch, &pb.SubmitOrderRequest{TaskId: prefix + "-4", Site: queue, IntentJson: "no JSON"})
	results, err := client.SubmitMany(ctx, batch)
	if err != nil {
		return err
	}
	filed := 0
	for _, result := range results {
		if result.GetSubmitted().GetCreated() {
			filed++
		}
	}
	count.That("batch: files three", filed == 3)
	count.That("batch: refuses one, and names its field",
		len(results) == 4 && results[3].GetRefusal().GetField() == "orders[3].intent_json")

	var listed []string
	wanted := &pb.ListOrdersRequest{PageSize: 2, Filter: &pb.TaskFilter{Labels: labels}}
	for task, err := range client.List(ctx, wanted) {
		if err != nil {
			return err
		}
		listed = append(listed, strings.TrimPrefix(task.GetTaskId(), prefix))
	}
	count.That("list: gives each once, over two pages", slices.Equal(listed, []string{"-3", "-2", "-1"}))
	return nil
}

func refusals(ctx context.Context, count *Count, ways Ways, name string) error {
	_, err := ways.Plain.Get(ctx, "unknown-"+name)
	count.That("an unknown task: has its reason", orders.RefusalOf(err).GetReason() == pb.ErrorReason_ERROR_REASON_TASK_NOT_FOUND)
	_, err = ways.Plain.Submit(ctx, &pb.SubmitOrderRequest{TaskId: "m-" + name, Site: queue, IntentJson: "{"})
	violations := orders.RefusalOf(err).GetViolations()
	count.That("a malformed intent: names the field", len(violations) == 1 && violations[0].GetField() == "intent_json")
	_, err = ways.WrongToken.Get(ctx, "unknown-"+name)
	count.That("a wrong token: has its reason", orders.RefusalOf(err).GetReason() == pb.ErrorReason_ERROR_REASON_UNAUTHENTICATED)

	taskID := "wait-" + name
	if _, err = ways.Plain.Submit(ctx, &pb.SubmitOrderRequest{TaskId: taskID, Site: queue, IntentJson: "{}"}); err != nil {
		return err
	}
	soon, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	for _, err = range ways.Plain.Watch(soon, taskID) {
	}
	failure, ok := errors.AsType[*orders.Failure](err)
	count.That("a deadline: is told as such", ok && failure.Code == codes.DeadlineExceeded)
	return nil
}

func lostAnswers(ctx context.Context, count *Count, ways Ways, name string) error {
	lost, err := ways.Lossy.Submit(ctx, &pb.SubmitOrderRequest{TaskId: "lost-submit-" + name, Site: queue, IntentJson: "{}"})
	if err != nil {
		return err
	}
	count.That("a lost answer: the same task_id makes no second task", !lost.GetCreated() && len(lost.GetDiffers()) == 0)
	taskID := "lost-watch-" + name
	if _, err = ways.Plain.Submit(ctx, &pb.SubmitOrderRequest{TaskId: taskID, Site: queue, IntentJson: "{}"}); err != nil {
		return err
	}
	if _, err = ways.Plain.Cancel(ctx, taskID, "nobody needs it"); err != nil {
		return err
	}
	var seen []pb.TaskStatus
	for task, err := range ways.Lossy.Watch(ctx, taskID) {
		if err != nil {
			return err
		}
		seen = append(seen, task.GetStatus())
	}
	count.That("a lost stream: is watched again, to the end", slices.Equal(seen, []pb.TaskStatus{pb.TaskStatus_TASK_STATUS_FAILED}))
	return nil
}

func overTLS(ctx context.Context, count *Count, ways Ways, taskID string) error {
	trusted, err := ways.TLS.Submit(ctx, &pb.SubmitOrderRequest{TaskId: taskID, Site: queue, IntentJson: "{}"})
	if err != nil {
		return err
	}
	count.That("TLS: with the CA it is a call as any other", trusted.GetCreated())
	soon, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	_, err = ways.TLSOfStrangers.Get(soon, taskID)
	count.That("TLS: without the CA there is no call", err != nil && orders.RefusalOf(err) == nil)
	return nil
}
