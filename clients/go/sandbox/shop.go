// Package sandbox buys at the sandbox shop, as a worker does: a page or a form a call, nothing repeated.
package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	pb "example.com/shop/gen/ordergateway/v1"
)

const (
	pageTimeout = 15 * time.Second
	pageBytes   = 1 << 20
)

var (
	tokenShown   = regexp.MustCompile(`name="token" value="([^"]+)"`)
	payableShown = regexp.MustCompile(`id="payable">([^<]+)<`)
	lineShown    = regexp.MustCompile(`(?s)<tr class="line" data-variant-id="([^"]*)">.*?href="([^"]+)".*?unit-price">([^<]+)<.*?quantity">([^<]+)<`)
	removeShown  = regexp.MustCompile(`class="remove"`)
	paidShown    = regexp.MustCompile(`id="payment-state" data-state="paid"`)
)

// Shop is one account's session.
type Shop struct {
	url    string
	client *http.Client
	// once sends a form over a connection of its own: clients send a request again where a reused one turns out dead,
	// which the one irreversible click must not be.
	once *http.Client
}

// Confirmation is the last page before the click.
type Confirmation struct {
	Terms *pb.Terms
	token string
}

// Open logs in.
func Open(shopURL, user, password string) (*Shop, error) {
	cookies, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	shop := &Shop{
		url:    shopURL,
		client: &http.Client{Jar: cookies, Timeout: pageTimeout, CheckRedirect: stay},
		once: &http.Client{
			Jar: cookies, Timeout: pageTimeout, CheckRedirect: stay,
			Transport: &http.Transport{DisableKeepAlives: true},
		},
	}
	_, to, err := shop.send(shop.client, "/login", url.Values{"username": {user}, "password": {password}})
	if err == nil && to != "/account" {
		err = errors.New("the shop refused the login")
	}
	return shop, err
}

// Fill makes the cart hold so many of one item and nothing else.
func (s *Shop) Fill(itemURL string, quantity int) error {
	code, found := strings.CutPrefix(itemURL, s.url+"/item/sandbox-store/")
	if !found {
		return fmt.Errorf("%s is no item of this shop", itemURL)
	}
	if err := s.Empty(); err != nil {
		return err
	}
	form := url.Values{"code": {strings.TrimSuffix(code, "/")}, "quantity": {strconv.Itoa(quantity)}}
	_, to, err := s.send(s.client, "/cart/add", form)
	if err == nil && to != "/cart" {
		err = errors.New("the shop did not put the item into the cart")
	}
	return err
}

// Empty takes everything out of the cart.
func (s *Shop) Empty() error {
	page, _, err := s.send(s.client, "/cart", nil)
	for range removeShown.FindAllString(page, -1) {
		if err == nil {
			_, _, err = s.send(s.client, "/cart/remove", url.Values{"line": {"0"}})
		}
	}
	return err
}

// Confirm opens the confirmation page and reads its terms.
func (s *Shop) Confirm() (*Confirmation, error) {
	page, _, err := s.send(s.client, "/order/confirm?payment_method=card", nil)
	if err != nil {
		return nil, err
	}
	token, payable := tokenShown.FindStringSubmatch(page), payableShown.FindStringSubmatch(page)
	if token == nil || payable == nil {
		return nil, errors.New("the confirmation page does not show what it should")
	}
	yen, err := number(payable[1])
	if err != nil {
		return nil, err
	}
	terms := &pb.Terms{PayableYen: &yen}
	text := fmt.Sprintf("%d\n", yen)
	for _, line := range lineShown.FindAllStringSubmatch(page, -1) {
		price, priceErr := number(line[3])
		quantity, quantityErr := number(line[4])
		if err := errors.Join(priceErr, quantityErr); err != nil {
			return nil, err
		}
		item := &pb.TermsItem{ItemUrl: s.url + line[2], VariantId: line[1], Quantity: quantity, UnitPriceYen: &price}
		terms.Items = append(terms.Items, item)
		text += fmt.Sprintf("%s\t%s\t%d\t%d\n", item.ItemUrl, item.VariantId, quantity, price)
	}
	digest := sha256.Sum256([]byte(text))
	terms.Digest = hex.EncodeToString(digest[:])
	return &Confirmation{Terms: terms, token: token[1]}, nil
}

// Click is the one irreversible click. It returns the order's number; after an error nobody knows whether there is one.
func (s *Shop) Click(confirmation *Confirmation) (string, error) {
	_, to, err := s.send(s.once, "/order/submit", url.Values{"token": {confirmation.token}})
	if err != nil {
		return "", err
	}
	thanks, err := url.Parse(to)
	if err != nil || thanks.Path != "/order/thanks" {
		return "", errors.New("the shop did not thank for the order")
	}
	return thanks.Query().Get("order_number"), nil
}

// Pay pays an order by card; false: the shop wants a person for it.
func (s *Shop) Pay(order string) (bool, error) {
	form := url.Values{"order_number": {order}}
	_, to, err := s.send(s.once, "/payment", form)
	if err != nil || !strings.HasPrefix(to, "/payment/result") {
		return false, err
	}
	page, _, err := s.send(s.client, to, nil)
	return err == nil && paidShown.MatchString(page), err
}

// send gets a page, or posts a form, and returns the page and where it leads.
func (s *Shop) send(client *http.Client, path string, form url.Values) (page, to string, err error) {
	var response *http.Response
	if form == nil {
		response, err = client.Get(s.url + path)
	} else {
		response, err = client.PostForm(s.url+path, form)
	}
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, pageBytes))
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("the shop answered %s with %s", path, response.Status)
	}
	return string(body), response.Header.Get("Location"), err
}

// number reads what a page shows: 1,080円 is 1080.
func number(shown string) (int64, error) {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, shown)
	return strconv.ParseInt(digits, 10, 64)
}
