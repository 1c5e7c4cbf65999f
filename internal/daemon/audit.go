package daemon

import (
	"context"
	"maps"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/audit"
)

// openAudit opens the record of what operators do.
func (d *Daemon) openAudit(dir string) {
	var err error
	d.audit, err = audit.Open(dir)
	d.warn("audit", err)
}

// Audit implements api.Auditor.
func (d *Daemon) Audit(_ context.Context, x api.Deed) {
	detail := maps.Clone(x.Detail)
	if x.Body != "" {
		if detail == nil {
			detail = map[string]string{}
		}
		detail["body"] = x.Body
	}
	d.keepDeed(audit.Record{By: x.By, From: x.From, What: x.What, Detail: detail, Result: x.Result, Error: x.Error})
}

// keepDeed writes a record with the time.
func (d *Daemon) keepDeed(r audit.Record) {
	r.Time = d.env.Now().UTC()
	d.auditTrouble(d.audit.Append(r))
}

// auditTrouble tells when records cannot be written, and once when they can be again.
func (d *Daemon) auditTrouble(err error) {
	if bad := err != nil; d.auditBad.Swap(bad) != bad {
		if bad {
			d.warn("audit", err)
		} else {
			d.log.Append(api.Event{Time: d.env.Now(), Kind: "state", Text: "what operators do is kept again"})
		}
	}
}

// AuditRecords implements api.Source.
func (d *Daemon) AuditRecords(_ context.Context, limit int) (api.AuditList, error) {
	list, err := d.audit.Newest(limit)
	if err != nil && len(list) == 0 {
		return api.AuditList{}, err
	}
	n, err := audit.Verify(d.cfg.Load().State)
	out := api.AuditList{Records: n, Whole: err == nil}
	if err != nil {
		out.Trouble = err.Error()
	}
	for _, r := range list {
		out.Newest = append(out.Newest, api.AuditRecord(r))
	}
	return out, nil
}
