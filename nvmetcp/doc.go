// Package nvmetcp speaks NVMe over TCP as a host: PDUs with their digests, the fabrics
// commands that open a discovery controller, and its log, which is the same over every transport.
// The host agent asks a storage port with it which subsystems stand behind the port; a discovery
// controller can use the same codecs.
//
// The PDUs are those of the NVMe/TCP transport specification (clause 3.6), the commands those
// of NVMe over Fabrics (clauses 3.3, 3.5) and of the NVMe base specification, as the Linux
// kernel and nvme-cli send them: testdata holds captures of both. Integers are little-endian.
//
// Nothing a controller sends is trusted: a length is checked before anything is allocated,
// and a breach is a ProtocolError that names the field.
package nvmetcp
