// Checks the worker: files orders for an account of its own, and looks at what becomes of them and of the shop.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"example.com/shop/checks"
	pb "example.com/shop/gen/ordergateway/v1"
	"example.com/shop/orders"
	"example.com/shop/overgrpc"
)

const account = "go"

func main() {
	count := &checks.Count{}
	if err := run(count); err != nil {
		count.Failures = append(count.Failures, err.Error())
	}
	count.End()
}

func run(count *checks.Count) error {
	journal, err := os.MkdirTemp("", "journal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(journal)
	worker, err := started(journal)
	if err != nil {
		return err
	}
	defer worker.Process.Kill()

	connection, err := overgrpc.Dial(checks.Setting("GRPC"), checks.Setting("TOKEN"), nil)
	if err != nil {
		return err
	}
	upstream := orders.NewClient(overgrpc.New(connection))
	before, err := ordersPlaced()
	if err != nil {
		return err
	}
	paid, err := ended(upstream, &pb.SubmitOrderRequest{MaxTotalYen: proto.Int64(5000)})
	if err != nil {
		return err
	}
	count.That("an order: is paid", paid.GetStatus() == pb.TaskStatus_TASK_STATUS_SUCCEEDED && paid.GetLatestState() == pb.OrderState_ORDER_STATE_PAID)
	count.That("an order: was permitted, with its terms", paid.GetSubmitPermittedAt() != nil && len(paid.GetTerms().GetItems()) == 1)
	dear, err := ended(upstream, &pb.SubmitOrderRequest{MaxTotalYen: proto.Int64(1)})
	if err != nil {
		return err
	}
	reports := dear.GetReports()
	count.That("a cap of 1 yen: is for a person", dear.GetStatus() == pb.TaskStatus_TASK_STATUS_NEEDS_HUMAN && reports[len(reports)-1].GetErrorCode() == 5004)
	count.That("a cap of 1 yen: nothing can be ordered", dear.GetPlacement() == pb.Placement_PLACEMENT_IMPOSSIBLE)
	dry, err := ended(upstream, &pb.SubmitOrderRequest{StopBeforeSubmit: true})
	if err != nil {
		return err
	}
	count.That("a dry run: ends in the cart", dry.GetStatus() == pb.TaskStatus_TASK_STATUS_SUCCEEDED && dry.GetLatestState() == pb.OrderState_ORDER_STATE_IN_CART)
	after, err := ordersPlaced()
	count.That("the shop has counted one order", after == before+1)
	worker.Process.Signal(syscall.SIGTERM)
	count.That("the worker stops when it is told to", worker.Wait() == nil)
	return err
}

// started runs the worker, which is built beside this program.
func started(journal string) (*exec.Cmd, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	worker := exec.Command(filepath.Join(filepath.Dir(own), "worker"))
	worker.Env = append(os.Environ(), "ORDER_GATEWAY_JOURNAL="+journal, "ORDER_GATEWAY_ACCOUNT="+account)
	worker.Stdout, worker.Stderr = os.Stderr, os.Stderr
	return worker, worker.Start()
}

// ended files an order for the worker's account and waits for its end.
func ended(upstream *orders.Client, order *pb.SubmitOrderRequest) (*pb.Task, error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	order.TaskId, order.Site, order.Account = fmt.Sprintf("go-worker-%d", time.Now().UnixNano()), "sandbox", account
	item := strings.TrimSuffix(checks.Setting("SHOP"), "/") + "/item/sandbox-store/sencha-100g/"
	order.IntentJson = fmt.Sprintf(`{"item_url": "%s", "quantity": 1, "max_total_yen": 5000}`, item)
	if _, err := upstream.Submit(ctx, order); err != nil {
		return nil, err
	}
	var last *pb.Task
	for task, err := range upstream.Watch(ctx, order.GetTaskId()) {
		if err != nil {
			return nil, fmt.Errorf("%s stands at %v: %w", order.GetTaskId(), last.GetStatus(), err)
		}
		last = task
	}
	return last, nil
}

// ordersPlaced asks the shop what it counted.
func ordersPlaced() (int, error) {
	response, err := http.Get(checks.Setting("SHOP") + "/_control/counters")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var counters struct {
		OrdersPlaced int `json:"orders_placed"`
	}
	err = json.NewDecoder(response.Body).Decode(&counters)
	if err != nil {
		log.Print(err)
	}
	return counters.OrdersPlaced, err
}
