package lease

import (
	"context"
	"errors"
	"log"

	"google.golang.org/protobuf/proto"

	pb "example.com/shop/gen/ordergateway/v1"
	"example.com/shop/orders"
)

func (r *run) toPerson(code int32, words string) *pb.ReportOrderRequest {
	return r.end(pb.TaskStatus_TASK_STATUS_NEEDS_HUMAN, code, words)
}

func (r *run) end(status pb.TaskStatus, code int32, words string) *pb.ReportOrderRequest {
	report := &pb.ReportOrderRequest{State: max(r.state, pb.OrderState_ORDER_STATE_CREATED), Terminal: true, TerminalStatus: status, Detail: words}
	if code != 0 {
		report.ErrorCode = &code
	}
	return report
}

// report numbers a report, writes it down, and sends it. Nil is no report.
func (r *run) report(report *pb.ReportOrderRequest) error {
	if report == nil {
		return errLost
	}
	r.entry.Sequence++
	report.TaskId, report.WorkerId = r.lease.GetTaskId(), r.worker.ID
	report.LeaseToken, report.Sequence = r.lease.GetLeaseToken(), r.entry.Sequence
	unsent, err := proto.Marshal(report)
	if err != nil {
		return err
	}
	r.entry.Unsent, r.entry.State = unsent, report.GetState()
	if err := r.worker.Journal.store(report.GetTaskId(), r.entry); err != nil {
		return err
	}
	return r.send(report)
}

// send repeats a report as it is until the gateway has answered. A refused one was kept there, and is not sent again.
func (r *run) send(report *pb.ReportOrderRequest) error {
	ctx, stop := context.WithTimeout(r.ctx, untilAnswered)
	defer stop()
	_, err := orders.Repeat(ctx, report, func(ctx context.Context, report *pb.ReportOrderRequest) (*pb.ReportOrderResponse, error) {
		return once(r.worker.client.ReportOrder(ctx, report))
	})
	told, isRefused := errors.AsType[*refused](err)
	if err != nil && !isRefused {
		return err
	}
	if isRefused {
		log.Printf("%s: report %d was refused: %v", report.GetTaskId(), report.GetSequence(), told)
		if r.held != nil {
			r.held.release()
		}
	}
	r.entry.Unsent = nil
	r.entry.Ended = report.GetTerminal() || isRefused
	if stored := r.worker.Journal.store(report.GetTaskId(), r.entry); stored != nil {
		return stored
	}
	return err
}

// finish sends the report that an earlier process could not, and hands to a person what that one had in hand.
func (r *run) finish() error {
	if r.entry.Unsent != nil {
		report := &pb.ReportOrderRequest{}
		if err := proto.Unmarshal(r.entry.Unsent, report); err != nil {
			return err
		}
		if err := r.send(report); err != nil {
			return err
		}
	}
	if r.entry.Ended {
		return nil
	}
	words := "the worker was started anew; nothing was clicked"
	if r.worker.Journal.Clicked(r.lease.GetTaskId()) {
		words = "the worker was started anew, and may have clicked: look on the site"
	}
	return r.report(r.toPerson(0, words))
}
