package lease

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	pb "example.com/shop/gen/ordergateway/v1"
	"example.com/shop/orders"
	"example.com/shop/sandbox"
)

const (
	// The error codes of docs/protocol.md that this worker needs.
	malformed  = 422
	overLimit  = 5004
	overBudget = 5005
	// pauseBeforePermit is how long to wait while a person has paused dispatch.
	pauseBeforePermit = 2 * time.Second
)

// intent is what of an upstream's intent this worker knows.
type intent struct {
	ItemURL     string `json:"item_url"`
	Quantity    int    `json:"quantity"`
	MaxTotalYen int64  `json:"max_total_yen"`
}

// run is one order on its way.
type run struct {
	worker *Worker
	ctx    context.Context
	held   *hold
	lease  *pb.Lease
	entry  entry
	state  pb.OrderState
}

// place buys, and returns the report that ends the task; nil: the lease is lost before the click, and nothing is said.
func (r *run) place() *pb.ReportOrderRequest {
	r.state = pb.OrderState_ORDER_STATE_CREATED
	if r.lease.GetLeaseCount() > 1 || r.worker.Journal.Clicked(r.lease.GetTaskId()) {
		return r.toPerson(0, "the task was in hand before, and this worker verifies nothing")
	}
	var wanted intent
	if err := json.Unmarshal([]byte(r.lease.GetIntentJson()), &wanted); err != nil || wanted.ItemURL == "" || wanted.Quantity < 1 {
		return r.end(pb.TaskStatus_TASK_STATUS_FAILED, malformed, "malformed intent: this worker buys one item_url, in a quantity")
	}
	if err := r.report(&pb.ReportOrderRequest{State: r.state}); err != nil {
		return nil
	}
	shop, err := r.worker.openShop()
	if err == nil {
		if !r.held.trusted() {
			return nil
		}
		err = shop.Fill(wanted.ItemURL, wanted.Quantity)
	}
	if err != nil {
		return r.end(pb.TaskStatus_TASK_STATUS_FAILED, 0, err.Error())
	}
	confirmation, err := shop.Confirm()
	if err != nil {
		return r.toPerson(0, err.Error())
	}
	r.state = pb.OrderState_ORDER_STATE_IN_CART
	if err := r.report(&pb.ReportOrderRequest{State: r.state, PayableYen: confirmation.Terms.PayableYen}); err != nil {
		return nil
	}
	items := confirmation.Terms.GetItems()
	if len(items) != 1 || items[0].GetItemUrl() != wanted.ItemURL || items[0].GetQuantity() != int64(wanted.Quantity) {
		return r.toPerson(0, "the confirmation page shows something else than what is wanted")
	}
	if confirmation.Terms.GetPayableYen() > wanted.MaxTotalYen {
		return r.toPerson(overLimit, "the order costs more than the intent allows")
	}
	until, refusal := r.permit(shop, &confirmation)
	if refusal != nil {
		return refusal
	}
	return r.click(shop, confirmation, until)
}

// permit asks until it is granted or refused for good, while the lease lives; returned are the moment until which the
// click may begin, or the report that ends the task. After a wait the confirmation page is opened again.
func (r *run) permit(shop *sandbox.Shop, confirmation **sandbox.Confirmation) (time.Time, *pb.ReportOrderRequest) {
	request := &pb.RequestSubmitPermitRequest{
		TaskId: r.lease.GetTaskId(), WorkerId: r.worker.ID, LeaseToken: r.lease.GetLeaseToken(),
		JournalId: r.worker.Journal.ID, AttestsNoClickRecord: true, Terms: (*confirmation).Terms,
	}
	for {
		var sent time.Time
		bounded, stop := context.WithTimeout(r.held.ctx, untilAnswered)
		granted, err := orders.Repeat(bounded, request, func(ctx context.Context, request *pb.RequestSubmitPermitRequest) (*pb.RequestSubmitPermitResponse, error) {
			sent = time.Now()
			return once(r.worker.client.RequestSubmitPermit(ctx, request))
		})
		stop()
		if err == nil {
			return sent.Add(granted.GetValidFor().AsDuration()), nil
		}
		told, ok := errors.AsType[*refused](err)
		switch {
		case !ok:
			return time.Time{}, r.toPerson(0, "no permit while the lease was held; nothing was clicked")
		case told.GetReason() != pb.ErrorReason_ERROR_REASON_DISPATCH_PAUSED:
			return time.Time{}, r.afterRefusal(shop, told)
		}
		select {
		case <-r.held.ctx.Done():
		case <-time.After(pauseBeforePermit):
		}
		again, err := shop.Confirm()
		if err != nil || !proto.Equal(again.Terms, request.Terms) {
			return time.Time{}, r.toPerson(0, "the confirmation page shows other terms than before; nothing was clicked")
		}
		*confirmation = again
	}
}

// afterRefusal ends a task that gets no permit: nothing is clicked.
func (r *run) afterRefusal(shop *sandbox.Shop, told *refused) *pb.ReportOrderRequest {
	switch told.GetReason() {
	case pb.ErrorReason_ERROR_REASON_PERMIT_DRY_RUN:
		if !r.held.trusted() {
			return nil
		}
		if err := shop.Empty(); err != nil {
			return r.toPerson(0, err.Error())
		}
		return r.end(pb.TaskStatus_TASK_STATUS_SUCCEEDED, 0, "dry run")
	case pb.ErrorReason_ERROR_REASON_TOO_LATE, pb.ErrorReason_ERROR_REASON_CANCEL_REQUESTED:
		return r.end(pb.TaskStatus_TASK_STATUS_FAILED, 0, told.GetMessage())
	case pb.ErrorReason_ERROR_REASON_TERMS_OVER_CAP:
		return r.toPerson(overLimit, told.GetMessage())
	case pb.ErrorReason_ERROR_REASON_BUDGET_EXCEEDED:
		return r.toPerson(overBudget, told.GetMessage())
	case pb.ErrorReason_ERROR_REASON_LEASE_INVALID:
		r.held.release()
		return nil
	default:
		return r.toPerson(0, told.GetMessage())
	}
}

// click clicks, once, if the permit and the lease still hold when the click record is on disk.
func (r *run) click(shop *sandbox.Shop, confirmation *sandbox.Confirmation, until time.Time) *pb.ReportOrderRequest {
	if !r.mayClick(until) {
		return r.toPerson(0, "the permit or the lease ran out before the click; nothing was clicked")
	}
	if err := r.worker.Journal.RecordClick(r.lease.GetTaskId()); err != nil {
		return r.toPerson(0, "no click record could be made; nothing was clicked")
	}
	if !r.mayClick(until) {
		return r.toPerson(0, "the permit or the lease ran out at the click; nothing was clicked")
	}
	number, err := shop.Click(confirmation)
	if err != nil {
		return r.toPerson(0, "the answer to the click was lost, look on the site: "+err.Error())
	}
	r.state = pb.OrderState_ORDER_STATE_ORDERED
	ordered := &pb.ReportOrderRequest{State: r.state, SiteOrderId: &number, PayableYen: confirmation.Terms.PayableYen}
	if err := r.report(ordered); err != nil || !r.held.trusted() {
		return r.toPerson(0, "ordered, not paid: the lease is lost")
	}
	if paid, err := shop.Pay(number); err != nil || !paid {
		r.state = pb.OrderState_ORDER_STATE_AWAITING_PAYMENT
		return r.toPerson(0, "ordered; the payment is for a person")
	}
	r.state = pb.OrderState_ORDER_STATE_PAID
	return r.end(pb.TaskStatus_TASK_STATUS_SUCCEEDED, 0, "")
}

// mayClick tells whether the lease is held, and the permit still good, at this moment.
func (r *run) mayClick(until time.Time) bool {
	return r.held.trusted() && before(until)
}
