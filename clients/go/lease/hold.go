package lease

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	pb "example.com/shop/gen/ordergateway/v1"
	"example.com/shop/orders"
	"example.com/shop/overgrpc"
)

const (
	longestBetweenRenewals = time.Minute
	// margin is how long before its end a lease is trusted no more, at most a fifth of it.
	margin = 5 * time.Second
)

var errLost = errors.New("the lease is lost")

// refused is the gateway's answer to a request of which no repeat makes anything else.
type refused struct{ *pb.ErrorDetail }

func (r *refused) Error() string { return r.GetMessage() }

// once makes one try of a call, which is idempotent. Its refusals are final, but for those that a repeat may heal: these
// become failures like a lost connection.
func once[A any](answer A, err error) (A, error) {
	failed := overgrpc.Failed(err)
	refusal := orders.RefusalOf(failed)
	switch refusal.GetReason() {
	case pb.ErrorReason_ERROR_REASON_UNSPECIFIED:
		return answer, failed
	case pb.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE, pb.ErrorReason_ERROR_REASON_SHUTTING_DOWN,
		pb.ErrorReason_ERROR_REASON_TOO_MANY, pb.ErrorReason_ERROR_REASON_INTERNAL:
		return answer, &orders.Failure{Code: codes.Unavailable, Err: err}
	default:
		return answer, &refused{refusal}
	}
}

// hold keeps a lease. Its context ends when the lease can be trusted no more: then nothing is written to the site.
type hold struct {
	ctx    context.Context
	lose   context.CancelCauseFunc
	worker *Worker
	lease  *pb.Lease
	mutex  sync.Mutex
	until  time.Time
	timer  *time.Timer
}

// acknowledge makes the first renewal, before which nothing may be done, and keeps renewing until release.
func (w *Worker) acknowledge(ctx context.Context, lease *pb.Lease) (*hold, error) {
	h := &hold{worker: w, lease: lease}
	h.ctx, h.lose = context.WithCancelCause(ctx)
	soon, stop := context.WithTimeout(h.ctx, lease.GetAcknowledgeWithin().AsDuration())
	defer stop()
	if err := h.renew(soon); err != nil {
		h.lose(err)
		return nil, err
	}
	go h.keep()
	return h, nil
}

func (h *hold) release() { h.lose(errLost) }

// renew extends the lease. It counts from the moment at which the request was sent, by a clock that nobody sets.
func (h *hold) renew(ctx context.Context) error {
	request := &pb.RenewLeaseRequest{TaskId: h.lease.GetTaskId(), WorkerId: h.worker.ID, LeaseToken: h.lease.GetLeaseToken()}
	var sent time.Time
	response, err := orders.Repeat(ctx, request, func(ctx context.Context, request *pb.RenewLeaseRequest) (*pb.RenewLeaseResponse, error) {
		sent = time.Now()
		return once(h.worker.client.RenewLease(ctx, request))
	})
	if err != nil {
		return err
	}
	ttl := response.GetLeaseTtl().AsDuration()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.until = sent.Add(ttl - min(margin, ttl/5))
	if h.timer == nil {
		h.timer = time.AfterFunc(time.Until(h.until), func() { h.lose(errLost) })
	} else {
		h.timer.Reset(time.Until(h.until))
	}
	return nil
}

func (h *hold) keep() {
	defer h.timer.Stop()
	ttl := h.lease.GetLeaseTtl().AsDuration()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-time.After(min(longestBetweenRenewals, ttl/3)):
		}
		var told *refused
		if err := h.renew(h.ctx); errors.As(err, &told) {
			h.lose(errLost)
		}
	}
}

// trusted tells whether the lease may be acted on now.
func (h *hold) trusted() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.ctx.Err() == nil && before(h.until)
}

// before tells whether a moment is still to come, by both clocks: the one that nobody sets stands still while the machine
// sleeps, the other one goes on.
func before(moment time.Time) bool {
	now := time.Now()
	return now.Before(moment) && now.Round(0).Before(moment.Round(0))
}
