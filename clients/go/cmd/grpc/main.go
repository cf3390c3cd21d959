// Checks the gateway by grpc-go. Where it is, the environment says.
package main

import (
	"crypto/x509"
	"log"

	"example.com/shop/checks"
	"example.com/shop/orders"
	"example.com/shop/overgrpc"
)

func main() {
	checks.Main("go-grpc", func(way, token string, roots *x509.CertPool) *orders.Client {
		connection, err := overgrpc.Dial(checks.Setting(way+"GRPC"), token, roots)
		if err != nil {
			log.Fatal(err)
		}
		return orders.NewClient(overgrpc.New(connection))
	})
}
