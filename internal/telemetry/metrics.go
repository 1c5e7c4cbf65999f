package telemetry

import (
	"cmp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// namespace begins the name of every metric.
const namespace = "inof_"

// Collector gives Prometheus the metrics of the table.
type Collector struct {
	// Read gives a snapshot; nil: there is none now, and the scrape has nothing.
	Read func() *Snapshot
	// MaxSeries bounds what one scrape has; beyond it, what there is most of goes first.
	MaxSeries int
}

// Describe implements prometheus.Collector: what there is is known at each scrape only.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	s := c.Read()
	if s == nil {
		return
	}
	series, all := map[string][]Value{}, 0
	seen := map[id]bool{} // a metric that comes twice would fail the whole scrape
	for _, v := range Read(s) {
		m := &v.Leaf.Metric
		key := id{v.Leaf, strings.Join(v.Keys[:min(len(strings.Fields(m.Labels)), len(v.Keys))], "\x00")}
		if m.Name == "" || seen[key] {
			continue
		}
		seen[key] = true
		series[m.Bulk] = append(series[m.Bulk], v)
		all += cost(&v)
	}
	for _, bulk := range []string{BulkPriority, BulkPeer, ""} {
		list, dropped := series[bulk], 0
		for len(list) > 0 && (all > c.MaxSeries || bulk != "" && dropped > 0) { // a class goes as a whole, but the last
			n := cost(&list[len(list)-1])
			list, all, dropped = list[:len(list)-1], all-n, dropped+n
		}
		for i := range list {
			out <- metric(&list[i])
		}
		out <- prometheus.MustNewConstMetric(droppedDesc, prometheus.GaugeValue, float64(dropped), cmp.Or(bulk, "other"))
	}
}

var droppedDesc = prometheus.NewDesc(namespace+"metrics_dropped_series", "Series left out of this scrape, by what they are of (metrics.max-series).", []string{"class"}, nil)

// cost is how many series a value is.
func cost(v *Value) int {
	if h, ok := v.V.(Histogram); ok {
		return len(h.Bounds) + 3
	}
	return 1
}

// metric is a value as Prometheus has it, in base units.
func metric(v *Value) prometheus.Metric {
	m := &v.Leaf.Metric
	labels := strings.Fields(m.Labels)
	values := append([]string{}, v.Keys[:min(len(labels), len(v.Keys))]...)
	if name, value, ok := strings.Cut(m.Fixed, "="); ok {
		labels, values = append(labels, name), append(values, value)
	}
	if m.As != "" {
		text, _ := v.V.(string)
		labels, values = append(labels, m.As), append(values, strings.ToValidUTF8(text, "?"))
	}
	for i := range values {
		values[i] = strings.ToValidUTF8(values[i], "?")
	}
	desc := prometheus.NewDesc(namespace+m.Name, help(v.Leaf), labels, nil)
	if h, ok := v.V.(Histogram); ok {
		buckets := make(map[float64]uint64, len(h.Bounds))
		for i, b := range h.Bounds {
			buckets[b] = h.Buckets[i]
		}
		return prometheus.MustNewConstHistogram(desc, h.Count, h.Sum, buckets, values...)
	}
	kind := prometheus.GaugeValue
	if v.Leaf.Class == Counter {
		kind = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(desc, kind, number(v.V), values...)
}

// help is the same for all leaves of one metric.
func help(l *Leaf) string {
	name := strings.ReplaceAll(strings.TrimSuffix(l.Metric.Name, "_total"), "_", " ")
	return strings.ToUpper(name[:1]) + name[1:] + ": see docs/telemetry.md."
}

// number is a value in base units: seconds, and 1 for what is true or a word.
func number(v any) float64 {
	switch v := v.(type) {
	case uint64:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v
	case time.Duration:
		return v.Seconds()
	case time.Time:
		return float64(v.UnixNano()) / 1e9
	case bool:
		if !v {
			return 0
		}
	}
	return 1
}
