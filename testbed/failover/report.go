package failover

import (
	"fmt"
	"io"
	"time"
)

// Print writes the table as Markdown.
func Print(w io.Writer, rows []Row) {
	fmt.Fprintln(w, "| fault | method | longest I/O held up | other I/O | I/O errors | fault to notice | notice to act | notice to last stalled I/O | live again after |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %d | %s | %s | %s | %s |\n", r.Fault, r.Method, seconds(r.Stall), seconds(r.Other), r.Errors, known(r.Notice, r.Reason), known(r.Done, ""), seconds(r.Last), known(r.Usable, ""))
	}
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
