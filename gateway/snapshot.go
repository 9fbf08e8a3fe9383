package gateway

import (
	"crypto/sha256"
	"sync/atomic"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/backend"
	"github.com/ahp-gateway/ahp-gateway/breaker"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
	"github.com/ahp-gateway/ahp-gateway/routing"
	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// snapshot is one generation of the configuration, ready to serve. It never
// changes; what counts and remembers inside it (limiters, breakers, caches,
// statistics) is safe for concurrent use.
type snapshot struct {
	generation uint64
	file       *config.File
	budget     time.Duration
	// failClosed is the deny effect of a fail-closed failure.
	failClosed []byte
	tenants    *tenant.Directory[*party]
	issuers    *tenant.Issuers // nil for none
	resource   *resource       // nil where the gateway is called nothing
	parties    []*party
	claims     *claims // of places for time series
	vault      *vault  // that it was assembled with
}

// party is one tenant at work.
type party struct {
	id      string
	made    making
	limiter *tenant.Limiter
	// documents are indexed by snapshot version; nil where the tenant has none.
	documents [len(ahp.Versions) + 1]*document
	supported []ahp.Version
	answers   *dedupe.Cache
	observed  *dedupe.Seen // events whose observers have been told
	questions questions
	peers     []*peer
	// discovered is how those of them answered that list no subscriptions.
	discovered []discovery
	// questionKeys start the keys of its questions in the state that replicas
	// share: "" where there is none.
	questionKeys string
	share        *share        // of the room for observations
	bodies       *atomic.Int64 // bytes of the large ones that are being answered
	records      *audit.Share  // of the audit queue; nil for an open tenant
	seat         *tenant.Seat  // among the places for requests in flight; nil for an open tenant
	allowance    *allowance    // nil without a quota
	stats        *partyStats
}

// document is one registration document, resolved to what is called for each event.
type document struct {
	// routes are an empty one and those of events that anybody subscribes to,
	// and route is where among them that of each event is. There may be many
	// documents, and few of them are about many events.
	routes []route
	route  [ahp.EventTypeCount]uint8
	// configuration is the JSON that answers hooks/configuration, or nil.
	configuration []byte
}

// route is what is called for one event, in registration order.
type route struct {
	intercept, observe []*hop
	// shown is what of an intercepted event's content hooks/configuration asks
	// harnesses to show.
	shown ahp.ContentSelection
}

// of returns the route of an event, which is empty where nobody subscribes to it.
func (d *document) of(e ahp.EventType) *route { return &d.routes[d.route[e]] }

// hop is one subscription and what it takes to call it.
type hop struct {
	sub  *routing.Subscription
	peer *peer
	view ahp.View
	// selection numbers the distinct views of a document.
	selection int
}

// peer is one backend of one tenant. It outlives a reload that does not change
// it, and with it its connections, its breaker and its waiting deliveries.
type peer struct {
	tenant, id string
	key        peerKey
	// decides is the digest of what of its settings a decision may depend on
	// besides its document: who asks, who is trusted, and where that may be.
	decides [sha256.Size]byte
	client  *backend.Client
	breaker *breaker.Breaker
	courier *courier
	stats   *peerStats

	lastFailure atomic.Uint32 // an ahp.FailureClass
}

// failure counts one operational failure.
func (p *peer) failure(c ahp.FailureClass) {
	if c.TripsBreaker() {
		p.lastFailure.Store(uint32(c))
	}
	p.stats.failures[c].Add(1)
}
