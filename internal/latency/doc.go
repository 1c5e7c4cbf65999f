// Package latency keeps the distribution of durations: how long each stage of the way
// from a fault to a host took.
//
// A Histogram counts in logarithmic buckets, eight to each power of two, so that a
// percentile is right to an eighth of its value whatever its size, and beside that in
// the fixed Bounds that a Prometheus histogram wants, whose counts are exact. A Series
// is a Histogram of everything since the start with one of the newest values, and
// counts apart what cannot be a duration. Recording never allocates once a Series has
// its first value, and none of this reads a clock: the caller brings durations.
//
// Values are not safe for concurrent use: they belong to the goroutine that records;
// readers get a Summary.
package latency
