package checks

import (
	"context"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"time"

	"example.com/shop/orders"
)

// Connect returns a client over one kind of transport: way is empty, LOSSY_ or TLS_, as in the names of the variables that
// tell the addresses. With roots it trusts these CAs.
type Connect func(way, token string, roots *x509.CertPool) *orders.Client

// Main runs all checks over one kind of transport, prints the closing line, and ends the program.
func Main(name string, connect Connect) {
	log.SetFlags(0)
	pem, err := os.ReadFile(Setting("CA"))
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		log.Fatal("ORDER_GATEWAY_CA holds no certificate")
	}
	token := Setting("TOKEN")
	ways := Ways{
		Plain:          connect("", token, nil),
		WrongToken:     connect("", "a-token-that-nobody-knows", nil),
		Lossy:          connect("LOSSY_", token, nil),
		TLS:            connect("TLS_", token, roots),
		TLSOfStrangers: connect("TLS_", token, x509.NewCertPool()),
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	count, err := All(ctx, ways, Setting("SHOP"), fmt.Sprintf("%s-%d", name, time.Now().UnixMilli()))
	if err != nil {
		count.Failures = append(count.Failures, err.Error())
	}
	count.End()
}

// End says what failed, prints the closing line, and ends the program.
func (c *Count) End() {
	for _, failure := range c.Failures {
		log.Print("failed: ", failure)
	}
	fmt.Println(c.Summary())
	if len(c.Failures) > 0 {
		os.Exit(1)
	}
}

// Setting returns the value of an ORDER_GATEWAY_ variable; the program ends where it is not set.
func Setting(name string) string {
	value := os.Getenv("ORDER_GATEWAY_" + name)
	if value == "" {
		log.Fatalf("ORDER_GATEWAY_%s is not set", name)
	}
	return value
}
