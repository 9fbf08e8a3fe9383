package gateway

import (
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/shared"
	"github.com/ahp-gateway/ahp-gateway/tenant"
)

// allowance is what a tenant may still ask for: of this process, or of all
// replicas together.
type allowance struct {
	quota tenant.Quota
	usage *tenant.Usage
	// common stands for both of them, and for the rate, where replicas share
	// state. The limiter, by its own rate, has let through what comes here: a
	// flood does not reach the server, and there is a rate while that is away.
	common *shared.Allowance
}

// allowanceOf returns that of a tenant, or nil for one that has no quota, nor a
// rate in common with replicas. What was counted before is counted on, also while
// there is no quota any more, so that one that comes back finds it.
func (g *Gateway) allowanceOf(t *config.Tenant, previous *allowance) *allowance {
	q := tenant.Quota(t.Quota)
	switch {
	case g.common != nil:
		var before *shared.Allowance
		if previous != nil {
			before = previous.common
		}
		common := g.common.store.Allowance(t.ID, shared.Terms{
			Rate: t.Rate, Burst: t.Burst, Day: q.Day, Month: q.Month, Required: g.common.refuse,
		}, before)
		if common == nil {
			return nil
		}
		return &allowance{quota: q, common: common}
	case previous != nil:
		return &allowance{quota: q, usage: previous.usage}
	case q == tenant.Quota{}:
		return nil
	default:
		return &allowance{quota: q, usage: new(tenant.Usage)}
	}
}

// take counts a request against the allowance, or says why not and how long the
// caller should wait.
func (a *allowance) take(now time.Time) (tenant.Denied, time.Duration) {
	if a.common == nil {
		if wait, ok := a.usage.Take(a.quota, now); !ok {
			return tenant.DeniedQuota, wait
		}
		return tenant.Admitted, 0
	}
	found, wait := a.common.Take(now)
	switch found {
	case shared.Admitted:
		return tenant.Admitted, 0
	case shared.OverRate:
		return tenant.DeniedRate, wait
	case shared.OverQuota:
		return tenant.DeniedQuota, wait
	default:
		return tenant.DeniedUnknown, wait
	}
}

// used returns how many requests are counted in the UTC day and month of now, of
// all replicas as far as this one was told with the tenant's last request here.
// It is false where nothing is counted.
func (a *allowance) used(now time.Time) (day, month int, counted bool) {
	if a.common != nil {
		return a.common.Used(now)
	}
	day, month = a.usage.Used(now)
	return day, month, true
}
