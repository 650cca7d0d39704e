package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/account"
	"companyscore/internal/redis"
	"companyscore/internal/table"
)

const (
	// LinkTTL is the default lifetime of a link, and linkTTLMax the longest.
	LinkTTL    = 15 * time.Minute
	linkTTLMax = 24 * time.Hour

	sessionIdle = 30 * time.Minute // end of a session that is not used
	sessionMax  = 12 * time.Hour   // end of every session
	// sessionNoted is the time after which a further use of a session is written.
	sessionNoted = time.Minute
	cookieName   = "companyscore_session"

	// wrongLinksMax is the number of wrong links that an address may try in wrongLinksWindow.
	wrongLinksMax    = 20
	wrongLinksWindow = time.Minute
)

var (
	//go:embed redeem.lua
	redeemLua    string
	redeemScript = goredis.NewScript(redeemLua)
)

// Grant is what a link gives to the one who redeems it.
type Grant struct {
	AccountID string
	Operator  bool
}

// SessionStore has what sessions read and write.
type SessionStore interface {
	Account(ctx context.Context, id string) (account.Account, error)
	WriteAudit(ctx context.Context, e table.AuditEntry) error
}

// session is a signed-in browser. Redis holds it under the hash of its id.
type session struct {
	Grant
	Created, Seen time.Time
}

// newSecret returns 130 random bits as text, for links, sessions and idempotency keys.
func newSecret() string { return rand.Text() }

// hashOf returns the hex of the SHA-256 of a secret.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// NewLink stores a link that signs in once, and returns its address below base, the address of the
// service. Only the hash of its token is stored.
func NewLink(ctx context.Context, rdb goredis.UniversalClient, base string, g Grant, ttl time.Duration) (string, error) {
	if ttl <= 0 || ttl > linkTTLMax {
		return "", fmt.Errorf("lifetime %s of a link: use more than 0 and at most %s", ttl, linkTTLMax)
	}
	text, err := json.Marshal(g)
	if err != nil {
		return "", err
	}
	token := newSecret()
	if err := rdb.Set(ctx, redis.ConsoleLink(hashOf(token)), text, ttl).Err(); err != nil {
		return "", fmt.Errorf("store link: %w", err)
	}
	return strings.TrimSuffix(base, "/") + Path + "/link/" + token, nil
}

// tokenIsSane reports whether newSecret can have returned a text.
func tokenIsSane(text string) bool {
	if len(text) != 26 {
		return false
	}
	for i := range len(text) {
		if b := text[i]; !('A' <= b && b <= 'Z' || '2' <= b && b <= '7') {
			return false
		}
	}
	return true
}

// visit is one request of the console.
type visit struct {
	console *Console
	w       http.ResponseWriter
	r       *http.Request
	status  int // of the page, 0 for 200

	id      string // of the session, empty without one
	session session
	account account.Account // of the session
	free    func()          // frees the slot of the page
}

func (v *visit) ctx() context.Context { return v.r.Context() }

// load reads the session of the cookie, takes a slot for the page, and reads the account. It reports
// whether there is a session. The caller calls v.free, also after an error.
func (v *visit) load() (bool, error) {
	cookie, err := v.r.Cookie(cookieName)
	if err != nil || !tokenIsSane(cookie.Value) {
		return false, nil
	}
	c, id := v.console, cookie.Value
	text, err := c.Redis.Get(v.ctx(), redis.ConsoleSession(hashOf(id))).Bytes()
	if errors.Is(err, goredis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read session: %w", err)
	}
	var s session
	if err := json.Unmarshal(text, &s); err != nil {
		return false, fmt.Errorf("read session: %w", err)
	}
	now := c.now()
	if now.Sub(s.Seen) > sessionIdle || now.Sub(s.Created) > sessionMax {
		return false, nil
	}
	free, err := c.slots.take(v.ctx(), s.AccountID)
	if err != nil {
		v.retryAfter(1)
		return false, err
	}
	v.free = free
	acct, err := c.Stores.Sessions.Account(v.ctx(), s.AccountID)
	if errors.Is(err, account.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if now.Sub(s.Seen) > sessionNoted {
		s.Seen = now
		// A session that was signed out meanwhile stays so.
		if err := c.write(v.ctx(), id, s); err != nil {
			return false, err
		}
	}
	v.id, v.session, v.account = id, s, acct
	return true, nil
}

// write replaces a session, if it still exists.
func (c *Console) write(ctx context.Context, id string, s session) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	ttl := min(sessionIdle, max(s.Created.Add(sessionMax).Sub(c.now()), time.Second))
	err = c.Redis.SetArgs(ctx, redis.ConsoleSession(hashOf(id)), text, goredis.SetArgs{Mode: "XX", TTL: ttl}).Err()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return fmt.Errorf("write session: %w", err)
	}
	return nil
}

// formToken returns the token of the form that is sent to an address. It depends on the session, so
// another one cannot know it.
func (v *visit) formToken(path string) string {
	mac := hmac.New(sha256.New, []byte(v.id))
	mac.Write([]byte("form " + path))
	return hex.EncodeToString(mac.Sum(nil))
}

// formIsOwn reports whether the form has the token of its address and this session.
func (v *visit) formIsOwn() bool {
	want := v.formToken(strings.TrimPrefix(v.r.URL.Path, Path))
	return hmac.Equal([]byte(v.r.PostFormValue("token")), []byte(want))
}

// client returns the address of the client, and whether it uses TLS. Headers count only if they come
// from a proxy.
func (c *Console) client(r *http.Request) (address netip.Addr, tls bool) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	address, _ = netip.ParseAddr(host)
	address = address.Unmap()
	for _, proxy := range c.proxies {
		if !proxy.Contains(address) {
			continue
		}
		tls = strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
		hops := r.Header.Values("X-Forwarded-For")
		if len(hops) == 0 {
			return address, tls
		}
		last := hops[len(hops)-1] // the only part that the proxy has written
		if i := strings.LastIndexByte(last, ','); i >= 0 {
			last = last[i+1:]
		}
		if forwarded, err := netip.ParseAddr(strings.TrimSpace(last)); err == nil {
			return forwarded.Unmap(), tls
		}
		return address, tls
	}
	return address, false
}

// audit writes what the session does. Callers make the change after it, only if it succeeds. The
// sign-out is the exception: it is written after the session has ended.
func (v *visit) audit(action table.Action, subject, detail string) error {
	address, _ := v.console.client(v.r)
	return v.console.Stores.Sessions.WriteAudit(v.ctx(), table.AuditEntry{
		At: v.console.now(), AccountID: v.session.AccountID, Operator: v.session.Operator, Session: hashOf(v.id)[:12],
		Address: address.String(), Action: action, Subject: subject, Detail: detail,
	})
}

func (c *Console) signInPage(v *visit) error { return v.render("signin", "Sign in", "", nil) }

// linkPage shows a button. It uses nothing up, so that previews of links do no harm.
func (c *Console) linkPage(v *visit) error {
	return v.render("link", "Sign in", "", v.r.PathValue("token"))
}

var (
	errLink = &pageError{http.StatusForbidden, "Link not valid",
		"This link was used, has expired, or never existed. Make another one with `companyscore console link`."}
	errWrongLinks = &pageError{http.StatusTooManyRequests, "Too many wrong links",
		"Your address has tried too many links that are not valid. Wait a minute."}
)

// redeemLink begins a session and uses the link up, in one step after all that can fail. A link whose
// sign-in failed can be used again.
func (c *Console) redeemLink(v *visit) error {
	address, tls := c.client(v.r)
	wrong := redis.ConsoleWrongLinks(rangeOf(address))
	tried, err := c.Redis.Get(v.ctx(), wrong).Int()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return fmt.Errorf("count wrong links: %w", err)
	}
	if tried >= wrongLinksMax {
		v.retryAfter(int(wrongLinksWindow.Seconds()))
		return errWrongLinks
	}
	token := v.r.PathValue("token")
	link := redis.ConsoleLink(hashOf(token))
	var text []byte
	if err = goredis.Nil; tokenIsSane(token) {
		text, err = c.Redis.Get(v.ctx(), link).Bytes()
	}
	switch {
	case errors.Is(err, goredis.Nil):
		pipe := c.Redis.TxPipeline()
		pipe.Incr(v.ctx(), wrong)
		pipe.ExpireNX(v.ctx(), wrong, wrongLinksWindow)
		if _, err := pipe.Exec(v.ctx()); err != nil {
			return fmt.Errorf("count wrong links: %w", err)
		}
		return errLink
	case err != nil:
		return fmt.Errorf("redeem link: %w", err)
	}
	now := c.now()
	v.session, v.id = session{Created: now, Seen: now}, newSecret()
	if err := json.Unmarshal(text, &v.session.Grant); err != nil {
		return fmt.Errorf("redeem link: %w", err)
	}
	if err := v.audit(table.SignIn, "", ""); err != nil {
		return err
	}
	if text, err = json.Marshal(v.session); err != nil {
		return err
	}
	keys := []string{link, redis.ConsoleSession(hashOf(v.id))}
	began, err := redeemScript.Run(v.ctx(), c.Redis, keys, text, sessionIdle.Milliseconds()).Bool()
	switch {
	case err != nil:
		return fmt.Errorf("redeem link: %w", err)
	case !began: // another browser was faster
		return errLink
	}
	v.setCookie(v.id, tls, 0)
	return v.redirect("")
}

// rangeOf returns the range of addresses that one client has: an IPv4 address, or a network of 64
// bits.
func rangeOf(address netip.Addr) string {
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}

// setCookie sends the cookie of a session. A negative age removes it.
func (v *visit) setCookie(id string, tls bool, age int) {
	http.SetCookie(v.w, &http.Cookie{Name: cookieName, Value: id, Path: Path, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: tls, MaxAge: age})
}

// signOut ends the session in Redis, for all browsers that have its cookie.
func (c *Console) signOut(v *visit) error {
	if err := c.Redis.Del(v.ctx(), redis.ConsoleSession(hashOf(v.id))).Err(); err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	_, tls := c.client(v.r)
	v.setCookie("", tls, -1)
	if err := v.audit(table.SignOut, "", ""); err != nil {
		return err
	}
	return v.redirect("/sign-in")
}

// retryAfter sets the header Retry-After, unless the number of seconds is 0.
func (v *visit) retryAfter(seconds int) {
	if seconds > 0 {
		v.w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
}

// redirect sends the browser to a page of the console.
func (v *visit) redirect(path string) error {
	http.Redirect(v.w, v.r, Path+path, http.StatusSeeOther)
	return nil
}
