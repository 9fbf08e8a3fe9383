package gateway

import (
	"encoding/json"
	"net/http"
	"time"
)

// usage tells what every tenant holds and has used up, for people and scripts.
func (g *Gateway) usage(w http.ResponseWriter, _ *http.Request) {
	type period struct {
		Used  int `json:"used"`
		Limit int `json:"limit"` // 0 is none
	}
	type quota struct {
		Day   period `json:"day"`
		Month period `json:"month"`
	}
	type row struct {
		Tenant   string `json:"tenant"`
		InFlight int    `json:"in_flight"`
		Weight   int    `json:"weight"`
		// Quota is left out of a tenant that has had none since the process started.
		Quota *quota `json:"quota,omitempty"`
	}
	snap, now := g.current.Load(), time.Now()
	answer := struct {
		Generation uint64 `json:"generation"`
		InFlight   int    `json:"in_flight"`
		Limit      int    `json:"limit"` // of in_flight
		Tenants    []row  `json:"tenants"`
	}{snap.generation, g.places.Taken(), snap.file.Limits.InFlight, make([]row, 0, len(snap.parties))}
	for _, p := range snap.parties {
		r := row{Tenant: p.id, InFlight: answer.InFlight, Weight: 1} // of an open tenant, which is alone
		if p.seat != nil {
			r.InFlight, r.Weight = p.seat.Held(), p.seat.Weight()
		}
		if a := p.allowance; a != nil {
			if day, month, counted := a.used(now); counted {
				r.Quota = &quota{Day: period{day, a.quota.Day}, Month: period{month, a.quota.Month}}
			}
		}
		answer.Tenants = append(answer.Tenants, r)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
