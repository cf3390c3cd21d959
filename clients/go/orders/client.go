// Package orders is an upstream's client of the gateway, over whatever carries its calls.
package orders

import (
	"context"
	"errors"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"

	pb "example.com/shop/gen/ordergateway/v1"
)

const (
	// wholeCall bounds a call with all of its repeats where its context has no deadline.
	wholeCall = 30 * time.Second
	// oneTry gets no longer than this of it: a connection may be dead without saying so.
	oneTry = 10 * time.Second
	// silence: a watch says something every 10 s; when it has been silent for three times as long, its connection is dead.
	silence = 30 * time.Second
)

// Calls carries single calls to the gateway. Its errors are of type *Failure.
type Calls interface {
	SubmitOrder(context.Context, *pb.SubmitOrderRequest) (*pb.SubmitOrderResponse, error)
	SubmitOrders(context.Context, *pb.SubmitOrdersRequest) (*pb.SubmitOrdersResponse, error)
	GetOrder(context.Context, *pb.GetOrderRequest) (*pb.GetOrderResponse, error)
	ListOrders(context.Context, *pb.ListOrdersRequest) (*pb.ListOrdersResponse, error)
	CancelOrder(context.Context, *pb.CancelOrderRequest) (*pb.CancelOrderResponse, error)
	// WatchOrder hands on each message until the stream ends; it ends early where told says so.
	WatchOrder(ctx context.Context, request *pb.WatchOrderRequest, told func(*pb.WatchOrderResponse) bool) error
}

// Client repeats calls that were not answered until their context ends, or for 30 s where that has no deadline.
type Client struct {
	calls Calls
}

// NewClient returns a client that sends its calls this way.
func NewClient(calls Calls) *Client {
	return &Client{calls}
}

// Submit files an order. A lost answer is healed by sending the same request again, which needs a task_id of your own:
// keep it with the thing that is to be bought, before the first call.
func (c *Client) Submit(ctx context.Context, order *pb.SubmitOrderRequest) (*pb.SubmitOrderResponse, error) {
	if order.GetTaskId() == "" {
		return nil, errors.New("an order without a task_id of your own cannot be sent again")
	}
	return Repeat(ctx, order, c.calls.SubmitOrder)
}

// SubmitMany files up to 500 orders by one commit; each result tells of the order in its place.
func (c *Client) SubmitMany(ctx context.Context, orders []*pb.SubmitOrderRequest) ([]*pb.SubmitOrdersResult, error) {
	response, err := Repeat(ctx, &pb.SubmitOrdersRequest{Orders: orders}, c.calls.SubmitOrders)
	return response.GetResults(), err
}

// Get returns a task with its reports.
func (c *Client) Get(ctx context.Context, taskID string) (*pb.Task, error) {
	response, err := Repeat(ctx, &pb.GetOrderRequest{TaskId: taskID}, c.calls.GetOrder)
	return response.GetTask(), err
}

// List yields all tasks that match, newest first, and fetches the pages as they are wanted. An error is the last thing
// that it yields.
func (c *Client) List(ctx context.Context, wanted *pb.ListOrdersRequest) iter.Seq2[*pb.Task, error] {
	return func(yield func(*pb.Task, error) bool) {
		request := proto.CloneOf(wanted)
		for {
			page, err := Repeat(ctx, request, c.calls.ListOrders)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, task := range page.GetTasks() { // a page may be empty and yet not be the last one
				if !yield(task, nil) {
					return
				}
			}
			if page.GetNextPageToken() == "" {
				return
			}
			request.PageToken = page.GetNextPageToken()
		}
	}
}

// Cancel ends a task that no worker has taken yet, as failed.
func (c *Client) Cancel(ctx context.Context, taskID, reason string) (*pb.Task, error) {
	request := &pb.CancelOrderRequest{TaskId: taskID, Reason: reason}
	response, err := Repeat(ctx, request, c.calls.CancelOrder)
	return response.GetTask(), err
}

// Watch yields the task as it is, then after each change, until it has ended. Where the stream breaks it is opened
// again, and what was seen already is not told twice. An error, such as the end of the context, is the last thing that
// it yields.
func (c *Client) Watch(ctx context.Context, taskID string) iter.Seq2[*pb.Task, error] {
	return func(yield func(*pb.Task, error) bool) {
		var seen *pb.Task
		wanted := true
		for tries := 0; ; tries++ {
			attempt, stop := context.WithCancel(ctx)
			timer := time.AfterFunc(silence, stop)
			err := c.calls.WatchOrder(attempt, &pb.WatchOrderRequest{TaskId: taskID}, func(message *pb.WatchOrderResponse) bool {
				timer.Reset(silence)
				tries = 0
				if task := message.GetTask(); task != nil && !proto.Equal(task, seen) {
					seen = task
					wanted = yield(task, nil)
				}
				return wanted
			})
			timer.Stop()
			stop()
			if !wanted || (err == nil && Ended(seen)) {
				return
			}
			if err != nil && !pause(ctx, err, tries) {
				yield(nil, err)
				return
			}
		}
	}
}

// Ended tells whether nothing more happens to a task by itself.
func Ended(task *pb.Task) bool {
	switch task.GetStatus() {
	case pb.TaskStatus_TASK_STATUS_SUCCEEDED, pb.TaskStatus_TASK_STATUS_FAILED, pb.TaskStatus_TASK_STATUS_NEEDS_HUMAN:
		return true
	default:
		return false
	}
}

// Repeat sends a call until it is answered, refused for good, or the context has ended, after 30 s where it has no
// deadline; then the last error is returned.
func Repeat[Q, A any](ctx context.Context, request Q, call func(context.Context, Q) (A, error)) (A, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, wholeCall)
		defer stop()
	}
	for tries := 0; ; tries++ {
		attempt, stop := context.WithTimeout(ctx, oneTry)
		answer, err := call(attempt, request)
		stop()
		if err == nil || !pause(ctx, err, tries) {
			return answer, err
		}
	}
}

// pause waits until a call may be sent again; false: it may not, or not before the context ends.
func pause(ctx context.Context, err error, tries int) bool {
	length, again := PauseBeforeRetry(err, tries)
	deadline, bounded := ctx.Deadline()
	if !again || ctx.Err() != nil || (bounded && time.Until(deadline) <= length) {
		return false
	}
	select {
	case <-time.After(length):
		return true
	case <-ctx.Done():
		return false
	}
}
