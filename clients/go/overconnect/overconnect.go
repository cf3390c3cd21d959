// Package overconnect carries calls by connect-go, to the gateway's HTTP port.
package overconnect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"

	pb "example.com/shop/gen/ordergateway/v1"
	"example.com/shop/gen/ordergateway/v1/ordergatewayv1connect"
	"example.com/shop/orders"
)

// Calls fulfils orders.Calls.
type Calls struct {
	client ordergatewayv1connect.OrderServiceClient
}

// New returns the calls to an address such as https://gateway.example. With roots it trusts these CAs in place of the
// system's.
func New(url, token string, roots *x509.CertPool) Calls {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	transport.Proxy = nil // who is named in HTTPS_PROXY need not be shown the token
	client := &http.Client{Transport: transport}
	return Calls{ordergatewayv1connect.NewOrderServiceClient(client, url, connect.WithInterceptors(bearer(token)))}
}

// bearer sends the token with every call.
type bearer string

func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		request.Header().Set("Authorization", "Bearer "+string(b))
		return next(ctx, request)
	}
}

func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		connection := next(ctx, spec)
		connection.RequestHeader().Set("Authorization", "Bearer "+string(b))
		return connection
	}
}

func (b bearer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	// The codes of Connect are those of gRPC.
	failure := &orders.Failure{Code: codes.Code(connect.CodeOf(err)), Err: err}
	if told, ok := errors.AsType[*connect.Error](err); ok {
		for _, detail := range told.Details() {
			value, unreadable := detail.Value()
			if refusal, ok := value.(*pb.ErrorDetail); ok && unreadable == nil {
				failure.Refusal = refusal
			}
		}
	}
	return failure
}

func (c Calls) SubmitOrder(ctx context.Context, request *pb.SubmitOrderRequest) (*pb.SubmitOrderResponse, error) {
	response, err := c.client.SubmitOrder(ctx, request)
	return response, failed(err)
}

func (c Calls) SubmitOrders(ctx context.Context, request *pb.SubmitOrdersRequest) (*pb.SubmitOrdersResponse, error) {
	response, err := c.client.SubmitOrders(ctx, request)
	return response, failed(err)
}

func (c Calls) GetOrder(ctx context.Context, request *pb.GetOrderRequest) (*pb.GetOrderResponse, error) {
	response, err := c.client.GetOrder(ctx, request)
	return response, failed(err)
}

func (c Calls) ListOrders(ctx context.Context, request *pb.ListOrdersRequest) (*pb.ListOrdersResponse, error) {
	response, err := c.client.ListOrders(ctx, request)
	return response, failed(err)
}

func (c Calls) CancelOrder(ctx context.Context, request *pb.CancelOrderRequest) (*pb.CancelOrderResponse, error) {
	response, err := c.client.CancelOrder(ctx, request)
	return response, failed(err)
}

func (c Calls) WatchOrder(ctx context.Context, request *pb.WatchOrderRequest, told func(*pb.WatchOrderResponse) bool) error {
	stream, err := c.client.WatchOrder(ctx, request)
	if err != nil {
		return failed(err)
	}
	defer stream.Close()
	for stream.Receive() {
		if !told(stream.Msg()) {
			return nil
		}
	}
	return failed(stream.Err())
}
