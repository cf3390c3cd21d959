// Serves an account of the sandbox shop until it is stopped. Where everything is, the environment says.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"example.com/shop/checks"
	"example.com/shop/lease"
	"example.com/shop/overgrpc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	journal, err := lease.OpenJournal(checks.Setting("JOURNAL"))
	if err != nil {
		return err
	}
	defer journal.Close()
	connection, err := overgrpc.Dial(checks.Setting("GRPC"), checks.Setting("WORKER_TOKEN"), nil)
	if err != nil {
		return err
	}
	defer connection.Close()
	worker := &lease.Worker{
		ID: "go-worker", Account: os.Getenv("ORDER_GATEWAY_ACCOUNT"), Journal: journal,
		ShopURL: checks.Setting("SHOP"), User: "go@accounts.sandbox.example", Password: "sandbox",
	}
	worker.Connect(connection)
	return worker.Run(ctx)
}
