// Package lease is a worker: it takes one order at a time, asks for the permit before the one irreversible click, and
// reports. It keeps the promises of docs/clients.md#a-worker-in-another-language, with one thing left out: it verifies
// nothing, so a task that was leased before goes to a person.
package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "example.com/shop/gen/ordergateway/v1"
	"example.com/shop/orders"
	"example.com/shop/overgrpc"
	"example.com/shop/sandbox"
)

// untilAnswered bounds a report, which is sent until the gateway has answered: longer than any outage that is left alone.
const untilAnswered = 24 * time.Hour

const (
	waitForOrder = 30 * time.Second
	// overdue is how much longer a stream is waited for: one that has not ended by then is dead.
	overdue = 10 * time.Second
)

// Worker serves one account of the sandbox shop.
type Worker struct {
	ID string
	// Account is the account's name at the gateway; empty: the site's only one.
	Account string
	// Log in there.
	ShopURL, User, Password string

	Journal *Journal
	client  pb.OrderLeaseServiceClient
	session string
	streams int64
}

// Connect names the gateway that the worker is for.
func (w *Worker) Connect(connection grpc.ClientConnInterface) {
	w.client = pb.NewOrderLeaseServiceClient(connection)
	w.session = rand.Text() // another one in each process
}

// Run serves until the context ends.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.finishFormerLife(ctx); err != nil {
		return err
	}
	tries := 0
	for ctx.Err() == nil {
		lease, err := w.wait(ctx)
		if err != nil {
			pause, again := orders.PauseBeforeRetry(err, tries)
			if !again {
				return err
			}
			tries++
			log.Printf("no lease stream: %v", err)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			continue
		}
		tries = 0
		if lease != nil {
			if err := w.serve(ctx, lease); err != nil {
				log.Printf("%s: %v", lease.GetTaskId(), err)
			}
		}
	}
	return ctx.Err()
}

// wait opens one stream, which is also the worker's heartbeat; nil: it brought no lease.
func (w *Worker) wait(ctx context.Context) (*pb.Lease, error) {
	ctx, stop := context.WithTimeout(ctx, waitForOrder+overdue)
	defer stop()
	w.streams++
	stream, err := w.client.LeaseOrders(ctx, &pb.LeaseOrdersRequest{
		WorkerId: w.ID, SessionId: w.session, JournalId: w.Journal.ID, StreamNumber: w.streams,
		Sites: []string{"sandbox"}, Accounts: []string{w.Account}, Wait: durationpb.New(waitForOrder),
	})
	for err == nil {
		var message *pb.LeaseOrdersResponse
		if message, err = stream.Recv(); err == nil && message.GetLease() != nil {
			return message.GetLease(), nil
		}
	}
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return nil, overgrpc.Failed(err)
}

// serve takes a lease, from the acknowledgement to the last report.
func (w *Worker) serve(ctx context.Context, lease *pb.Lease) error {
	known, err := w.Journal.load(lease.GetTaskId())
	switch {
	case err != nil:
		return err
	case known.LeaseToken == lease.GetLeaseToken():
		return errors.New("this lease was taken before")
	case lease.GetAccount() != w.Account:
		return errors.New("the lease is for an account of somebody else")
	}
	held, err := w.acknowledge(ctx, lease)
	if err != nil {
		return err
	}
	defer held.release()
	known = entry{LeaseToken: lease.GetLeaseToken(), Sequence: known.Sequence}
	if err := w.Journal.store(lease.GetTaskId(), known); err != nil {
		return err
	}
	order := &run{worker: w, ctx: ctx, held: held, lease: lease, entry: known}
	return order.report(order.place())
}

// finishFormerLife tells what an earlier process left unsaid, before the first order is taken.
func (w *Worker) finishFormerLife(ctx context.Context) error {
	tasks, err := w.Journal.tasks()
	if err != nil {
		return err
	}
	for _, taskID := range tasks {
		known, err := w.Journal.load(taskID)
		if err != nil {
			return err
		}
		if known.Ended {
			continue
		}
		lease := &pb.Lease{TaskId: taskID, LeaseToken: known.LeaseToken}
		order := &run{worker: w, ctx: ctx, lease: lease, entry: known, state: known.State}
		// The lease may have ended meanwhile: the gateway keeps what is told late, and its refusal is an answer too.
		err = order.finish()
		if _, answered := errors.AsType[*refused](err); err != nil && !answered {
			return fmt.Errorf("%s: %w", taskID, err)
		}
	}
	return nil
}

// openShop logs in.
func (w *Worker) openShop() (*sandbox.Shop, error) {
	return sandbox.Open(w.ShopURL, w.User, w.Password)
}
