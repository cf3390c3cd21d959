package orders

import (
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"

	pb "example.com/shop/gen/ordergateway/v1"
)

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// triesWithoutGateway is how often a call is sent again where something other than the gateway says that it cannot
	// be served.
	triesWithoutGateway = 3
)

// Failure is a call that was not answered, or was refused.
type Failure struct {
	Code codes.Code
	// Refusal is the gateway's own word: branch on its Reason. Nil where the gateway did not answer; then nothing is
	// known of what became of the call, whatever the code says.
	Refusal *pb.ErrorDetail
	Err     error
}

func (f *Failure) Error() string { return f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }

// RefusalOf returns the gateway's refusal, nil if err has none.
func RefusalOf(err error) *pb.ErrorDetail {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Refusal
	}
	return nil
}

// PauseBeforeRetry tells how long to wait before the same call is sent again, and whether it is at all. Tries counts
// those that failed before this one. The pause is jittered, so that many clients do not come back at the same moment.
func PauseBeforeRetry(err error, tries int) (time.Duration, bool) {
	longest := min(longestPause, firstPause<<min(tries, 10))
	pause := longest/2 + rand.N(longest/2)
	failure, ok := errors.AsType[*Failure](err)
	switch {
	case !ok:
		return 0, false
	case failure.Refusal.GetRetryAfter() != nil:
		return max(pause, failure.Refusal.GetRetryAfter().AsDuration()), true
	case failure.Refusal != nil:
		return pause, failure.Code == codes.Unavailable
	case failure.Code == codes.Unimplemented || failure.Code == codes.ResourceExhausted:
		return pause, tries < triesWithoutGateway
	default: // a lost connection shows as one of many codes
		return pause, true
	}
}
