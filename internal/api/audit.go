package api

import (
	"net/http"
	"time"
)

// AuditRecord is what somebody did, or was refused; Hash is the SHA-256 of the record without it,
// Prev that of the record before.
type AuditRecord struct {
	Seq    uint64            `json:"seq"`
	Time   time.Time         `json:"time"`
	By     string            `json:"by"`
	From   string            `json:"from"`
	What   string            `json:"what"`
	Detail map[string]string `json:"detail,omitempty"`
	Result string            `json:"result"`
	Error  string            `json:"error,omitempty"`
	Prev   string            `json:"prev"`
	Hash   string            `json:"hash"`
}

// AuditList are the newest records, and whether nothing was changed in any of those on the disk.
type AuditList struct {
	Newest  []AuditRecord `json:"newest"` // oldest first
	Records int           `json:"records"`
	Whole   bool          `json:"whole"`
	Trouble string        `json:"trouble"` // the first line that is wrong; empty: none
}

// auditShown is how many records are given where nobody says.
const auditShown = 50

func (h *handler) auditRecords(r *http.Request) (any, error) {
	p := query(r)
	limit := int(p.number("limit", 16))
	if err := p.close(); err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = auditShown
	}
	l, err := h.src.AuditRecords(r.Context(), limit)
	Some(&l.Newest)
	return l, err
}
