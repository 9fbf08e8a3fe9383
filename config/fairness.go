package config

const (
	// maxWeight is the most that one tenant can weigh against one of weight 1.
	maxWeight = 1000
	// maxMeasured is the most tenants that can have time series of their own.
	maxMeasured = 10_000
)

// quota returns what tenants without a quota of their own have.
func (l *Limits) quota() Quota { return Quota{Day: l.QuotaDay, Month: l.QuotaMonth} }

// fairness reads the members of a tenant that hold it against other tenants
// and over time.
func (r *reader) fairness(o *object, t *Tenant) {
	if at, ok := o.get("quota"); ok {
		q := r.object(at)
		q.count("day", &t.Quota.Day, 0, maxCount)
		q.count("month", &t.Quota.Month, 0, maxCount)
		q.done()
	}
	o.count("weight", &t.Weight, 1, maxWeight)
}
