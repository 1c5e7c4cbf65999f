package failover

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Print writes the table as Markdown. "Times ours" is a stall as a multiple of ours in the same
// run.
func Print(w io.Writer, rows []Row) {
	fmt.Fprintln(w, "| fault | method | longest I/O held up | times ours | fault to notice | held up beyond that | notice to act | notice to last held up | I/O begun later | when it is back | before | I/O errors | live again after |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %d | %s |\n", r.Fault, r.Method, seconds(r.Stall), times(r.Stall, rows, r.Fault),
			known(r.Notice, r.Reason), seconds(r.Beyond), known(r.Done, ""), seconds(r.Last), seconds(r.Later), seconds(r.Back), seconds(r.Other), r.Errors, known(r.Usable, ""))
	}
}

// times gives a stall as a multiple of ours at the same fault.
func times(stall time.Duration, rows []Row, fault string) string {
	i := slices.IndexFunc(rows, func(r Row) bool { return r.ours && r.Fault == fault })
	if i < 0 || rows[i].Stall <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(stall)/float64(rows[i].Stall))
}

func known(d time.Duration, what string) string {
	if d < 0 {
		return "-"
	}
	if what != "" {
		return fmt.Sprintf("%s (%s)", seconds(d), what)
	}
	return seconds(d)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
