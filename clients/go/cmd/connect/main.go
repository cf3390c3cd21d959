// Checks the gateway by connect-go. Where it is, the environment says.
package main

import (
	"crypto/x509"

	"example.com/shop/checks"
	"example.com/shop/orders"
	"example.com/shop/overconnect"
)

func main() {
	checks.Main("go-connect", func(way, token string, roots *x509.CertPool) *orders.Client {
		return orders.NewClient(overconnect.New(checks.Setting(way+"HTTP"), token, roots))
	})
}
