// Package overgrpc carries calls by grpc-go, to the gateway's gRPC port.
package overgrpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	pb "example.com/shop/gen/ordergateway/v1"
	"example.com/shop/orders"
)

// Dial returns a connection to the gateway, which is opened at the first call. With roots it is TLS, trusting these CAs;
// without, plain text.
func Dial(target, token string, roots *x509.CertPool) (*grpc.ClientConn, error) {
	channel := insecure.NewCredentials()
	if roots != nil {
		channel = credentials.NewTLS(&tls.Config{RootCAs: roots})
	}
	return grpc.NewClient(target,
		grpc.WithTransportCredentials(channel),
		grpc.WithPerRPCCredentials(bearer(token)),
		// The gateway ends a connection that pings more often than every 5 s.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}),
		grpc.WithNoProxy(),      // who is named in HTTPS_PROXY need not be shown the token
		grpc.WithDisableRetry(), // package orders knows what may be repeated
	)
}

// bearer sends the token with every call; in plain text too, which is for loopback and private networks alone.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (b bearer) RequireTransportSecurity() bool { return false }

// Calls fulfils orders.Calls.
type Calls struct {
	client pb.OrderServiceClient
}

// New returns the calls over a connection.
func New(connection grpc.ClientConnInterface) Calls {
	return Calls{pb.NewOrderServiceClient(connection)}
}

// Failed makes an orders.Failure of an error of grpc-go; nil stays nil.
func Failed(err error) error {
	if err == nil {
		return nil
	}
	told := status.Convert(err)
	failure := &orders.Failure{Code: told.Code(), Err: err}
	for _, detail := range told.Details() {
		if refusal, ok := detail.(*pb.ErrorDetail); ok {
			failure.Refusal = refusal
		}
	}
	return failure
}

func (c Calls) SubmitOrder(ctx context.Context, request *pb.SubmitOrderRequest) (*pb.SubmitOrderResponse, error) {
	response, err := c.client.SubmitOrder(ctx, request)
	return response, Failed(err)
}

func (c Calls) SubmitOrders(ctx context.Context, request *pb.SubmitOrdersRequest) (*pb.SubmitOrdersResponse, error) {
	response, err := c.client.SubmitOrders(ctx, request)
	return response, Failed(err)
}

func (c Calls) GetOrder(ctx context.Context, request *pb.GetOrderRequest) (*pb.GetOrderResponse, error) {
	response, err := c.client.GetOrder(ctx, request)
	return response, Failed(err)
}

func (c Calls) ListOrders(ctx context.Context, request *pb.ListOrdersRequest) (*pb.ListOrdersResponse, error) {
	response, err := c.client.ListOrders(ctx, request)
	return response, Failed(err)
}

func (c Calls) CancelOrder(ctx context.Context, request *pb.CancelOrderRequest) (*pb.CancelOrderResponse, error) {
	response, err := c.client.CancelOrder(ctx, request)
	return response, Failed(err)
}

func (c Calls) WatchOrder(ctx context.Context, request *pb.WatchOrderRequest, told func(*pb.WatchOrderResponse) bool) error {
	stream, err := c.client.WatchOrder(ctx, request)
	for err == nil {
		var message *pb.WatchOrderResponse
		if message, err = stream.Recv(); err == nil && !told(message) {
			return nil
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return Failed(err)
}
