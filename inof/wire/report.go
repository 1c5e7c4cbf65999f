package wire

// Report is what is wrong at a client, for the operators of its reflectors: all its
// warnings, in place of those of the report before. Nothing follows from it but that it is
// shown; it ends with the session. One without warnings says that all is well.
type Report struct {
	Warnings []ReportedWarning
}

// ReportedWarning is one warning of a Report.
type ReportedWarning struct {
	Rule string // its kind, 1..MaxReportRule bytes; a receiver need not know it
	Text string // for people, at most MaxReportText bytes of UTF-8
}

// Limits of a Report.
const (
	MaxReportWarnings = 32
	MaxReportRule     = 64
	MaxReportText     = 255
)

// tlvReportWarning is one warning (docs/protocol.md, "Report"), any number of times.
const tlvReportWarning uint8 = 1

// Type implements Message.
func (*Report) Type() MsgType { return TypeReport }

func (m *Report) appendBody(b []byte) ([]byte, error) {
	if len(m.Warnings) > MaxReportWarnings {
		return nil, Malformed("Report.warnings", "%d, want at most %d", len(m.Warnings), MaxReportWarnings)
	}
	for _, w := range m.Warnings {
		if err := checkText("Report.rule", w.Rule, 1, MaxReportRule); err != nil {
			return nil, err
		}
		if err := checkText("Report.text", w.Text, 0, MaxReportText); err != nil {
			return nil, err
		}
		var at int
		b, at = beginTLV(b, tlvReportWarning)
		b = endTLV(appendText(appendText(b, w.Rule), w.Text), at)
	}
	return b, nil
}

func decodeReport(body []byte) (*Report, error) {
	var m Report
	err := eachTLV("Report", body, func(typ uint8, r *reader) bool {
		if typ != tlvReportWarning {
			return false
		}
		if len(m.Warnings) == MaxReportWarnings {
			r.fail("warnings", "more than %d", MaxReportWarnings)
			return true
		}
		w := ReportedWarning{Rule: r.text("rule", 1, MaxReportRule), Text: r.text("text", 0, MaxReportText)}
		m.Warnings = append(m.Warnings, w)
		return true
	})
	if err != nil {
		return nil, err
	}
	return &m, nil
}
