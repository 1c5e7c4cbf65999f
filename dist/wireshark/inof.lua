-- Wireshark dissectors of the iNOF fabric control plane:
--   inof  the protocol between devices and reflectors, TCP port 19516
--   nts   notices, acks and zone queries of storage hosts, EtherType 0x88A7
--   snsd  registration of a storage host: organizational TLV of LLDP, 00-18-82, subtype 101
-- Install and use: see README.md beside this file. Wireshark 4.0 or later.
--
-- Bytes are hostile here too: every length is checked before it is used, and what
-- does not fit becomes an expert info of severity Error, never an error of Lua.

local args = { ... }

local PORT, ETHERTYPE, OUI, SUBTYPE = 19516, 0x88a7, 0x001882, 101
local HEADER, TAG, MAX_MESSAGE, MAX_DOWN_ADDRS, MAX_FENCE_HOSTS, HOUR_MS = 16, 32, 1048576, 16384, 512, 3600000

local inof = Proto("inof", "iNOF Protocol")
local nts = Proto("nts", "SNSD Notification (NTS)")
local snsd = Proto("snsd", "SNSD Registration")

-- Names of values ------------------------------------------------------------

local TYPES = { "Open", "Keepalive", "Update", "End-of-Sync", "Notification", "Report", "Path keys", "Bound" }
local FAMILIES = { [4] = "IPv4", [6] = "IPv6" }
local OPS = { "put", "withdraw" }
local MODES = { "none", "hmac-sha256", "tls" }
local MEMBERS = { "address", "range", "NQN", "port", "NQN at a place" }
local PLACES = { "prefix", "device or port" }
local ROLES = { [0] = "unknown", "target", "initiator", "both" }
local PROTOCOLS = { [0] = "unknown", "RoCE", "TCP", "iSCSI" }
local STATES = { [0] = "inactive", "active" }
local REASONS = { [0] = "none", "link down", "PFC storm", "packet error", "zone changed", "IP changed", "aged out", "BFD down" }
local CODES = { "cease", "not iNOF", "unsupported version", "bad length", "unknown message type", "malformed message",
  "authentication mode mismatch", "authentication failed", "handshake timeout", "hold time expired", "bad sequence number",
  "own device id", "unexpected device id", "unacceptable timers", "unexpected message", "replaced by a newer session",
  "limit reached", "slow reader", "roles do not fit", "certificate refused", "TLS failed", "duplicate device id" }
local KINDS = { "notify", "ack", "query" }
local SUBS = { "Subject (IPv4)", "Notified host (IPv4)", "Subject (IPv6)", "Notified host (IPv6)", "Sequence", "State", "Reason", "Service" }

local function count(n, noun) return n .. " " .. noun .. (n == 1 and "" or "s") end

local function name_of(names, v) return names[v] or ("unknown " .. v) end

-- Fields ---------------------------------------------------------------------

local F = {} -- by filter name
local fields_of = { inof = {}, nts = {}, snsd = {} }

local function field(kind, abbrev, ...)
  F[abbrev] = ProtoField[kind](abbrev, ...)
  table.insert(fields_of[abbrev:match("^%a+")], F[abbrev])
end

-- An address is one of two fields: filters on networks need the real type.
local function address(abbrev, label)
  field("ipv4", abbrev .. ".ipv4", label)
  field("ipv6", abbrev .. ".ipv6", label)
end

local function instant(abbrev, label) field("absolute_time", abbrev, label, base.UTC) end

field("uint32", "inof.length", "Length")
field("uint8", "inof.version", "Version")
field("uint8", "inof.type", "Type", base.DEC, TYPES)
field("uint16", "inof.flags", "Flags", base.HEX)
field("bool", "inof.flags.tag", "Ends with a tag", 16, nil, 0x0001)
field("bool", "inof.flags.critical", "Flags that must be understood", 16, nil, 0xff00)
field("uint64", "inof.number", "Number in the session")
field("bytes", "inof.tag", "Tag (HMAC-SHA256)")
field("bytes", "inof.data", "Data")
field("none", "inof.tlv", "TLV")
field("uint8", "inof.tlv.type", "TLV type")
field("bool", "inof.tlv.critical", "Must be understood", 8, nil, 0x80)
field("uint24", "inof.tlv.length", "TLV length")
field("bytes", "inof.tlv.value", "Value")
field("bytes", "inof.tlv.trailing", "Bytes after the last known field")
field("uint8", "inof.family", "Address family", base.DEC, FAMILIES)
field("uint8", "inof.text.length", "Text length")
field("bytes", "inof.proof", "Proof of a second password")
field("uint64", "inof.demand", "Asks whether the peer is there", base.HEX)
field("uint64", "inof.answer", "Answer", base.HEX)
field("uint64", "inof.epoch", "Epoch", base.HEX)
field("uint64", "inof.seq", "Sequence")
address("inof.device", "Device id")
field("uint8", "inof.version.least", "Least version")
field("uint8", "inof.version.greatest", "Greatest version")
field("uint8", "inof.roles", "Roles", base.HEX)
field("bool", "inof.roles.reflector", "Reflector", 8, nil, 0x01)
field("bool", "inof.roles.client", "Client", 8, nil, 0x02)
field("uint64", "inof.capabilities", "Capabilities", base.HEX)
field("bool", "inof.capabilities.all", "Asks for all hosts", 8, nil, 0x01)
field("bool", "inof.capabilities.fence", "Takes fence records", 8, nil, 0x02)
field("uint32", "inof.hold", "Hold time (ms)")
field("uint32", "inof.keepalive", "Keepalive interval (ms)")
field("bytes", "inof.nonce", "Nonce")
field("uint8", "inof.auth", "Authentication", base.DEC, MODES)
field("uint64", "inof.resume.epoch", "Resume: epoch", base.HEX)
field("uint64", "inof.resume.seq", "Resume: sequence")
field("bytes", "inof.resume.zones", "Resume: digest of the zones that the sender holds of the receiver")
address("inof.origin", "Origin")
instant("inof.time.fault", "Event")
instant("inof.time.sent", "Sent by the origin")
instant("inof.time.reflected", "Passed on by the reflector")
instant("inof.time.decided", "Taken up by the origin")
instant("inof.time.reflector", "Read by the reflector")
field("relative_time", "inof.latency.sent", "From the event to sending")
field("relative_time", "inof.latency.reflected", "From the event to the reflector")
address("inof.record_of.device", "Records of the device")
field("uint64", "inof.record_of.epoch", "State of the device: epoch", base.HEX)
field("uint64", "inof.record_of.seq", "State of the device: sequence")
field("uint64", "inof.cluster.id", "Cluster", base.HEX)
field("uint64", "inof.cluster.index", "Cluster: entry of the log")
address("inof.cluster.member", "Cluster: member")
address("inof.short", "No room for hosts of")
field("uint64", "inof.position.epoch", "Position: epoch", base.HEX)
field("uint64", "inof.position.seq", "Position: sequence")
field("uint32", "inof.refused.hosts", "Hosts refused", base.DEC)
field("uint32", "inof.refused.limit", "Limit of hosts", base.DEC)
field("uint8", "inof.refused.flags", "Flags", base.HEX)
field("bool", "inof.refused.again", "Everything is to be said again", 8, nil, 0x01)
field("uint32", "inof.refused.outside", "Hosts outside of the binding", base.DEC)
address("inof.refused.address", "Host outside")
field("bool", "inof.anew", "A full sync begins")
field("bool", "inof.more", "More zones follow")
field("bool", "inof.partial", "Part of a run that goes on")
field("bool", "inof.resumed", "The session was resumed")
field("uint8", "inof.settings.flags", "Settings", base.HEX)
field("bool", "inof.settings.auto_join", "Hosts of no zone join the default zone", 8, nil, 0x01)
field("bool", "inof.settings.hard", "Hard zoning", 8, nil, 0x02)
field("bool", "inof.settings.bfd", "BFD", 8, nil, 0x04)
field("bool", "inof.settings.bfd.mesh_all", "BFD between all devices", 8, nil, 0x08)
field("bool", "inof.settings.halt", "Act on nothing", 8, nil, 0x10)
field("bool", "inof.settings.halt.open", "Hard zoning lets everything pass", 8, nil, 0x20)
field("uint32", "inof.settings.bfd.interval", "BFD interval (us)")
field("uint8", "inof.settings.bfd.multiplier", "BFD detection multiplier")
field("uint8", "inof.zone.op", "Operation", base.DEC, OPS)
field("string", "inof.zone.name", "Zone")
field("none", "inof.zone.member", "Member")
field("uint8", "inof.zone.member.kind", "Kind", base.DEC, MEMBERS)
field("uint16", "inof.zone.member.length", "Length of the value")
address("inof.zone.member.address", "Address")
address("inof.zone.member.first", "First address")
address("inof.zone.member.last", "Last address")
field("string", "inof.zone.member.nqn", "NQN")
address("inof.zone.member.device", "Device")
field("string", "inof.zone.member.port", "Port")
field("uint8", "inof.zone.member.place", "Place", base.DEC, PLACES)
address("inof.zone.member.prefix", "Prefix")
field("uint8", "inof.zone.member.bits", "Bits of the prefix")
field("uint8", "inof.host.op", "Operation", base.DEC, OPS)
field("uint8", "inof.host.reason", "Reason", base.DEC, REASONS)
address("inof.host.address", "Host")
address("inof.host.device", "Access device")
field("string", "inof.host.port", "Access port")
field("ether", "inof.host.mac", "MAC address")
field("uint8", "inof.host.flags", "Flags", base.HEX)
field("bool", "inof.host.subscribes", "Subscribes to notices", 8, nil, 0x01)
field("bool", "inof.host.rival", "Another host has the address", 8, nil, 0x02)
field("bool", "inof.host.doubt", "May be another host", 8, nil, 0x04)
field("bool", "inof.host.down", "Cannot be reached", 8, nil, 0x08)
field("uint8", "inof.host.role", "Role", base.DEC, ROLES)
field("uint8", "inof.host.protocol", "Storage protocol", base.DEC, PROTOCOLS)
field("uint16", "inof.host.service_port", "Service port")
instant("inof.host.since", "Known there since")
field("string", "inof.host.nqn", "NQN")
field("uint8", "inof.down.reason", "Reason", base.DEC, REASONS)
instant("inof.down.since", "Since")
address("inof.down.device", "Access device")
field("string", "inof.down.port", "Access port")
address("inof.down.address", "Host")
address("inof.fence.device", "Access device")
field("string", "inof.fence.port", "Access port")
address("inof.fence.array", "Array")
field("bool", "inof.fence.all", "All hosts")
address("inof.fence.host", "Host")
field("uint8", "inof.fence.level", "Level", base.DEC, { [0] = "not confirmed", "network" })
instant("inof.fence.since", "Since")
field("uint16", "inof.fence.hold", "The block stands (s)")
field("uint32", "inof.fence.took", "From the fault to the confirmation (ms)")
field("uint16", "inof.code", "Code", base.DEC, CODES)
field("string", "inof.text", "Text")
field("string", "inof.report.rule", "Rule")
field("string", "inof.report.text", "Warning")
address("inof.path.asked", "Asked: path to")
address("inof.path.device", "Path to")
field("uint8", "inof.path.id", "Key id")
field("bytes", "inof.path.secret", "Key")
field("bytes", "inof.path.sealed", "Encrypted")
address("inof.bound.prefix", "Prefix")
field("uint8", "inof.bound.bits", "Bits of the prefix")
field("string", "inof.bound.name", "NQN")
address("inof.bound.host", "Declared host")
field("uint8", "inof.bound.role", "Role", base.DEC, ROLES)
field("uint8", "inof.bound.protocol", "Protocol", base.DEC, PROTOCOLS)
field("uint16", "inof.bound.service", "Service port")
field("string", "inof.bound.nqn", "NQN of the host")
field("string", "inof.bound.port", "Port")

field("uint8", "nts.version", "Version")
field("uint8", "nts.reserved1", "Reserved", base.HEX)
field("uint16", "nts.length", "Length of the root TLVs")
field("uint32", "nts.reserved2", "Reserved", base.HEX)
field("none", "nts.root", "Root TLV")
field("uint8", "nts.root.type", "Type", base.HEX)
field("bool", "nts.root.structured", "Structured", 8, nil, 0x20)
field("uint8", "nts.kind", "Kind", base.DEC, KINDS, 0x1f)
field("uint16", "nts.root.length", "Length")
field("none", "nts.tlv", "Sub-TLV")
field("uint8", "nts.tlv.type", "Type", base.DEC, SUBS)
field("uint16", "nts.tlv.length", "Length")
field("bytes", "nts.tlv.value", "Value")
address("nts.subject", "Subject")
address("nts.host", "Notified host")
field("uint32", "nts.seq", "Sequence")
field("uint32", "nts.state", "State", base.DEC, STATES)
field("uint32", "nts.reason", "Reason", base.DEC, REASONS)
field("uint8", "nts.role", "Role", base.DEC, ROLES)
field("uint8", "nts.protocol", "Storage protocol", base.DEC, PROTOCOLS)
field("uint16", "nts.service.reserved", "Reserved", base.HEX)
field("uint16", "nts.service_port", "Service port")
field("uint8", "nts.nqn.length", "NQN length")
field("string", "nts.nqn", "NQN")
field("framenum", "nts.acked_in", "Acknowledged in", base.NONE, frametype.ACK)
field("framenum", "nts.ack_of", "Acknowledges the notice in", base.NONE, frametype.REQUEST)
field("relative_time", "nts.ack_time", "From the notice to its ack")
field("bytes", "nts.padding", "Padding")

field("uint24", "snsd.oui", "Organization", base.HEX)
field("uint8", "snsd.subtype", "Subtype")
field("uint8", "snsd.version", "Version")
field("bool", "snsd.subscribes", "Subscribes to notices", 8, nil, 0x80)
field("uint8", "snsd.service_type", "Other service types", base.HEX, nil, 0x70)
field("uint8", "snsd.family", "Address family", base.DEC, { "IPv4", "IPv6" }, 0x0f)
field("bytes", "snsd.reserved", "Reserved")
address("snsd.address", "Address")
field("uint8", "snsd.role", "Role", base.DEC, ROLES)
field("uint8", "snsd.protocol", "Storage protocol", base.DEC, PROTOCOLS)
field("uint16", "snsd.protocol_version", "Protocol version", base.HEX)
field("uint16", "snsd.service_port", "Service port")
field("uint8", "snsd.nqn.length", "NQN length")
field("string", "snsd.nqn", "NQN")
field("bytes", "snsd.trailing", "Bytes after the last known field")

inof.fields, nts.fields, snsd.fields = fields_of.inof, fields_of.nts, fields_of.snsd

-- Expert infos ---------------------------------------------------------------

local E = {}
local experts_of = { inof = {}, nts = {}, snsd = {} }

local function expertise(abbrev, text, group, severity)
  E[abbrev] = ProtoExpert.new(abbrev, text, expert.group[group], expert.severity[severity])
  table.insert(experts_of[abbrev:match("^%a+")], E[abbrev])
end

for p in pairs(experts_of) do
  expertise(p .. ".malformed", "Malformed", "MALFORMED", "ERROR")
  expertise(p .. ".bad_length", "Wrong length", "MALFORMED", "ERROR")
  expertise(p .. ".bad_version", "Version not supported", "PROTOCOL", "ERROR")
  expertise(p .. ".unknown_type", "Unknown type", "UNDECODED", "ERROR")
  expertise(p .. ".skipped_type", "Unknown type, to be skipped", "UNDECODED", "NOTE")
  expertise(p .. ".odd", "Unusual, but taken", "PROTOCOL", "WARN")
  expertise(p .. ".cut", "The capture holds only a part", "UNDECODED", "WARN")
end
expertise("inof.foreign", "Not iNOF", "PROTOCOL", "ERROR")
expertise("inof.tag_unchecked", "Tag not checked (it needs the password)", "SECURITY", "CHAT")
expertise("inof.tag_missing", "The message has no tag", "SECURITY", "WARN")
expertise("inof.number_unexpected", "Number out of order", "SEQUENCE", "WARN")
inof.experts, nts.experts, snsd.experts = experts_of.inof, experts_of.nts, experts_of.snsd

-- Text -----------------------------------------------------------------------

-- Ranges of the first continuation byte, by lead byte (Unicode, table 3-7): neither
-- overlong forms nor surrogates.
local SECOND = { [0xe0] = { 0xa0, 0xbf }, [0xed] = { 0x80, 0x9f }, [0xf0] = { 0x90, 0xbf }, [0xf4] = { 0x80, 0x8f } }

-- printable tells whether s is UTF-8 without control characters (U+0000..1F, 7F..9F).
local function printable(s)
  local i, n = 1, #s
  while i <= n do
    local c = s:byte(i)
    local more = (c >= 0xc2 and c <= 0xdf) and 1 or (c >= 0xe0 and c <= 0xef) and 2 or (c >= 0xf0 and c <= 0xf4) and 3 or 0
    if c < 0x20 or c == 0x7f or (c >= 0x80 and more == 0) then return false end
    for k = 1, more do
      local low, high = 0x80, 0xbf
      if k == 1 and SECOND[c] then low, high = SECOND[c][1], SECOND[c][2] end
      if k == 1 and c == 0xc2 then low = 0xa0 end
      local b = s:byte(i + k)
      if not b or b < low or b > high then return false end
    end
    i = i + 1 + more
  end
  return true
end

local MAPPED = ("\0"):rep(10) .. "\255\255"

local function is_mapped(raw) return #raw == 16 and raw:sub(1, 12) == MAPPED end

-- unusable tells why an address cannot be a storage host's, nil if it can.
local function unusable(raw)
  local a, b = raw:byte(1, 2)
  if raw == ("\0"):rep(#raw) then return "unspecified" end
  if #raw == 4 then
    if raw == "\255\255\255\255" then return "broadcast" end
    return a == 127 and "loopback" or a == 169 and b == 254 and "link-local" or a >= 224 and a <= 239 and "multicast" or nil
  end
  if raw == ("\0"):rep(15) .. "\1" then return "loopback" end
  return is_mapped(raw) and "IPv4-mapped" or a == 0xff and "multicast" or a == 0xfe and b >= 0x80 and b <= 0xbf and "link-local" or nil
end

-- Cursor: takes fields from a stretch of the buffer. The first error sticks: all
-- that follows takes nothing, so a dissector may go on without asking each time.

local Cursor = {}
Cursor.__index = Cursor

local function cursor(proto, tvb, from, to, tree, what)
  return setmetatable({ proto = proto, tvb = tvb, at = from, to = to, tree = tree, what = what, failed = false }, Cursor)
end

function Cursor:left() return self.failed and 0 or self.to - self.at end

function Cursor:tell(kind, text) self.tree:add_proto_expert_info(E[self.proto .. "." .. kind], self.what .. ": " .. text) end

function Cursor:fail(text, kind)
  if not self.failed then self:tell(kind or "malformed", text) end
  self.failed = true
end

function Cursor:take(n, label)
  if self.failed then return nil end
  if self:left() < n then
    return self:fail(("%s truncated: %d of %d bytes are left"):format(label, self:left(), n), "bad_length")
  end
  self.at = self.at + n
  return self.tvb(self.at - n, n)
end

-- num adds an unsigned field of 1 to 4 bytes and gives its value, 0 after an error.
function Cursor:num(abbrev, n)
  local r = self:take(n, abbrev)
  if not r then return 0 end
  return r:uint(), self.tree:add(F[abbrev], r), r
end

-- u64 gives the value as text, decimal and in hex: numbers of Lua are too narrow.
function Cursor:u64(abbrev)
  local r = self:take(8, abbrev)
  if not r then return "0", "0" end
  self.tree:add(F[abbrev], r)
  return tostring(r:uint64()), "0x" .. r:uint64():tohex()
end

-- plain adds an address of n bytes and gives it as text, "" after an error.
function Cursor:plain(abbrev, n)
  local r = self:take(n, abbrev)
  if not r then return "", "" end
  self.tree:add(F[abbrev .. (n == 4 and ".ipv4" or ".ipv6")], r)
  local raw = r:raw()
  if self.proto == "inof" and is_mapped(raw) then self:fail("IPv4 address in IPv6 form") end
  return tostring(n == 4 and r:ipv4() or r:ipv6()), raw
end

function Cursor:address(abbrev)
  local family = self:num("inof.family", 1)
  if self.failed then return "" end
  if family == 4 then return (self:plain(abbrev, 4)) end
  if family == 6 then return (self:plain(abbrev, 16)) end
  self:fail(("address family %d, want 4 or 6"):format(family))
  return ""
end

-- prefix is an address and a number of bits, behind which no bit may be set.
function Cursor:prefix(address, bits)
  local family = self:num("inof.family", 1)
  if self.failed then return "" end
  local n = ({ [4] = 4, [6] = 16 })[family]
  if not n then
    self:fail(("address family %d, want 4 or 6"):format(family))
    return ""
  end
  local a, raw = self:plain(address, n)
  local count = self:num(bits, 1)
  if self.failed then return "" end
  local clear = count <= 8 * n
  for i = 1, n do
    clear = clear and raw:byte(i) % 2 ^ math.max(0, math.min(8, 8 * i - count)) == 0
  end
  if not clear then self:fail(("%s/%d is no prefix"):format(a, count)) end
  return ("%s/%d"):format(a, count)
end

-- string adds n bytes as text; kind is the expert info when they are none.
function Cursor:string(abbrev, n, kind)
  local r = self:take(n, abbrev)
  if not r or n == 0 then return "" end
  self.tree:add_packet_field(F[abbrev], r, ENC_UTF_8)
  local s = r:raw()
  if self.proto ~= "inof" then s = s:gsub("\0+$", "") end -- a C string's end
  if printable(s) then return s end
  if kind == "malformed" then self:fail(abbrev .. " is not printable UTF-8") else self:tell(kind, abbrev .. " is not printable UTF-8") end
  return "?"
end

function Cursor:text(abbrev, least, most)
  local n = self:num("inof.text.length", 1)
  if not self.failed and (n < least or n > most) then self:fail(("%s has length %d, want %d..%d"):format(abbrev, n, least, most), "bad_length") end
  return self:string(abbrev, n, "malformed")
end

-- time adds nanoseconds since 1970 unless they are 0, which means not known.
function Cursor:time(abbrev, label)
  local r = self:take(8, abbrev)
  if not r then return nil end
  local ns = r:int64()
  if ns == Int64(0) then
    self.tree:add(r, label .. ": not known")
    return nil
  end
  local sec, rest = (ns / 1000000000):tonumber(), (ns % 1000000000):tonumber()
  if rest < 0 then sec, rest = sec - 1, rest + 1000000000 end
  self.tree:add(F[abbrev], r, NSTime.new(sec, rest))
  return ns
end

-- flags adds a byte and the bits of it that have a name.
function Cursor:flags(abbrev, ...)
  local v, item, r = self:num(abbrev, 1)
  for _, bit in ipairs({ ... }) do if item then item:add(F[bit], r) end end
  return v
end

-- trailing shows what a later version appended.
function Cursor:trailing(abbrev)
  if self:left() == 0 then return end
  local n = self:left()
  self.tree:add(F[abbrev], self:take(n, abbrev))
  self:tell("skipped_type", ("%d bytes after the last known field"):format(n))
end

-- iNOF: messages -------------------------------------------------------------

local function op(c, abbrev)
  local v = c:num(abbrev, 1)
  if not c.failed and not OPS[v] then c:fail(("operation %d, want 1 (put) or 2 (withdraw)"):format(v)) end
  return v
end

-- place is where the NQN of a member counts.
local function place(m)
  local kind = m:num("inof.zone.member.place", 1)
  if kind == 1 then
    return m:prefix("inof.zone.member.prefix", "inof.zone.member.bits")
  elseif kind == 2 then
    local device = m:address("inof.zone.member.device")
    local port = m:text("inof.zone.member.port", 0, 63)
    return port == "" and device or device .. "/" .. port
  end
  if not m.failed then m:fail(("place %d is unknown"):format(kind), "unknown_type") end
  return ""
end

local function member(c)
  local whole = c.at
  local item = c.tree:add(F["inof.zone.member"], c.tvb(whole, 1))
  local m = cursor("inof", c.tvb, c.at, c.to, item, "Zone member")
  local kind = m:num("inof.zone.member.kind", 1)
  local n = m:num("inof.zone.member.length", 2)
  local label = ""
  if m:left() < n then m:fail(("%d of %d bytes are left"):format(m:left(), n), "bad_length") end
  if not m.failed then
    m.to = m.at + n
    item:set_len(m.to - whole)
    if kind == 1 and (n == 4 or n == 16) then
      label = m:plain("inof.zone.member.address", n)
    elseif kind == 2 and (n == 8 or n == 32) then
      local first, low = m:plain("inof.zone.member.first", n / 2)
      local last, high = m:plain("inof.zone.member.last", n / 2)
      label = first .. "-" .. last
      for i = 1, #high do
        local d = high:byte(i) - low:byte(i)
        if d < 0 then m:fail("range ends before it begins") end
        if d ~= 0 then break end
      end
    elseif kind == 3 and n > 0 then
      label = m:string("inof.zone.member.nqn", n, "malformed")
    elseif kind == 4 then
      label = "port " .. m:address("inof.zone.member.device")
      if m:left() < 1 or m:left() > 63 then m:fail(("port name of %d bytes, want 1..63"):format(m:left()), "bad_length") end
      label = label .. "/" .. m:string("inof.zone.member.port", m:left(), "malformed")
    elseif kind == 5 then
      local at = place(m)
      if m:left() < 1 or m:left() > 255 then m:fail(("NQN of %d bytes, want 1..255"):format(m:left()), "bad_length") end
      label = m:string("inof.zone.member.nqn", m:left(), "malformed") .. " at " .. at
    else
      m:fail(("kind %d with %d bytes is unknown"):format(kind, n), "unknown_type")
    end
  end
  item:set_text("Member: " .. label)
  c.at, c.failed = m.to, m.failed
end

local function zone_record(c, sum)
  local what = op(c, "inof.zone.op")
  local name = c:text("inof.zone.name", 1, 63)
  local n = 0
  while what == 1 and c:left() > 0 do
    member(c)
    n = n + 1
  end
  sum.zone = (sum.zone or 0) + 1
  return ("%s %s%s"):format(name_of(OPS, what), name, what == 1 and ", " .. count(n, "member") or "")
end

local function host_record(c, sum)
  local what = op(c, "inof.host.op")
  local why = c:num("inof.host.reason", 1)
  local addr, device = c:address("inof.host.address"), c:address("inof.host.device")
  local label = ("%s %s at %s/%s"):format(name_of(OPS, what), addr, device, c:text("inof.host.port", 1, 63))
  sum.host = (sum.host or 0) + 1
  if what ~= 1 then return label .. ", reason " .. name_of(REASONS, why) end
  local mac = c:take(6, "inof.host.mac")
  if mac then c.tree:add(F["inof.host.mac"], mac) end
  local flags = c:flags("inof.host.flags", "inof.host.subscribes", "inof.host.rival", "inof.host.doubt", "inof.host.down")
  local role = c:num("inof.host.role", 1)
  label = ("%s, %s, %s"):format(label, name_of(ROLES, role), name_of(PROTOCOLS, c:num("inof.host.protocol", 1)))
  c:num("inof.host.service_port", 2)
  c:time("inof.host.since", "Known there since")
  c:text("inof.host.nqn", 0, 255)
  if math.floor(flags / 8) % 2 == 1 then
    label = label .. ", " .. name_of(REASONS, c:num("inof.down.reason", 1))
    c:time("inof.down.since", "Since")
  end
  return label
end

local function down_record(c, sum)
  local why = c:num("inof.down.reason", 1)
  c:time("inof.down.since", "Since")
  local label = c:address("inof.down.device") .. "/" .. c:text("inof.down.port", 1, 63)
  local n = 0
  while c:left() > 0 do
    if n == MAX_DOWN_ADDRS then c:fail(("more than %d addresses"):format(MAX_DOWN_ADDRS), "bad_length") break end
    c:address("inof.down.address")
    n = n + 1
  end
  sum.down = (sum.down or 0) + 1
  return ("%s, %s, %s"):format(label, why == 0 and "reachable again" or name_of(REASONS, why), count(n, "host"))
end

local function fence_record(c, sum)
  local label = c:address("inof.fence.device") .. "/" .. c:text("inof.fence.port", 1, 63)
  label = label .. ", array " .. c:address("inof.fence.array")
  local n = 0
  while c:left() > 0 do
    if n == MAX_FENCE_HOSTS then c:fail(("more than %d hosts"):format(MAX_FENCE_HOSTS), "bad_length") break end
    if c.tvb(c.at, 1):uint() == 0 then
      c.tree:add(F["inof.fence.all"], c:take(1, "inof.fence.all"), true)
    else
      c:address("inof.fence.host")
    end
    c:num("inof.fence.level", 1)
    c:time("inof.fence.since", "Since")
    c:num("inof.fence.hold", 2)
    c:num("inof.fence.took", 4)
    n = n + 1
  end
  sum.fence = (sum.fence or 0) + 1
  return ("%s, %s"):format(label, n == 0 and "nothing is fenced" or count(n, "host"))
end

local function stamp(c, sum)
  local _, epoch = c:u64("inof.epoch")
  sum.seq = c:u64("inof.seq")
  return ("epoch %s, sequence %s"):format(epoch, sum.seq)
end

local function times(c)
  local fault = c:time("inof.time.fault", "Event")
  local from = c.at
  for _, t in ipairs({ { "sent", "Sent by the origin" }, { "reflected", "Passed on by the reflector" } }) do
    local at = c:time("inof.time." .. t[1], t[2])
    if fault and at then
      local d = at - fault
      c.tree:add(F["inof.latency." .. t[1]], c.tvb(c.at - 8, 8), NSTime.new((d / 1000000000):tonumber(), (d % 1000000000):tonumber())):set_generated()
    end
  end
  if c:left() > 0 then -- there only when one of them is known
    c:time("inof.time.decided", "Taken up by the origin")
    c:time("inof.time.reflector", "Read by the reflector")
  end
  return fault and "with the time of the event" or "no event"
end

local MAX_MEMBERS = 9 -- of a cluster
local MAX_OUTSIDE = 64 -- hosts outside of a binding that are named
local MAX_WARNINGS = 32 -- of a report
local MAX_PATHS = 256 -- of path keys
local MAX_SHORT = 4096 -- of an End-of-Sync
local MAX_BOUND = 1024 -- prefixes, names of a device

-- cluster is the state of a cluster's log of which a reflector's zones are.
local function cluster(c)
  local _, id = c:u64("inof.cluster.id")
  if not c.failed and id:find("^0x0+$") then c:fail("0 is no cluster") end
  return ("%s, entry %s"):format(id, (c:u64("inof.cluster.index")))
end

local function roles_text(v)
  return ({ [0] = "no role", "reflector", "client", "reflector,client" })[v % 4]
end

-- epoch_and_seq adds two fields below one name: a stamp that is not that of the message.
local function epoch_and_seq(c, prefix)
  local _, epoch = c:u64(prefix .. ".epoch")
  return ("epoch %s, sequence %s"):format(epoch, (c:u64(prefix .. ".seq")))
end

-- present adds a field that is true because its TLV, which has no value, is there.
local function present(c, abbrev, sum, word)
  c.tree:add(F[abbrev], c.tvb(c.at - 4, 4), true)
  sum.note = word
  return word
end

-- TLVs of each message type: { name, dissector, required }. A dissector gives the
-- text of its line. A second one is refused, but for those of which there may be many.
local STAMP = { "Stamp", stamp, true }
local MESSAGES = {
  { { "Device id", function(c, sum) sum.who = c:address("inof.device") return sum.who end, true },
    { "Versions", function(c)
      local least, greatest = c:num("inof.version.least", 1), c:num("inof.version.greatest", 1)
      if not c.failed and (least > 2 or greatest < 2) then c:tell("odd", "version 2 is not among them") end
      return least .. ".." .. greatest
    end, true },
    { "Roles", function(c, sum)
      sum.roles = roles_text(c:flags("inof.roles", "inof.roles.reflector", "inof.roles.client"))
      return sum.roles
    end, true },
    { "Capabilities", function(c)
      local _, bits = c:u64("inof.capabilities")
      if not c.failed then
        c.tree:add(F["inof.capabilities.all"], c.tvb(c.at - 1, 1))
        c.tree:add(F["inof.capabilities.fence"], c.tvb(c.at - 1, 1))
      end
      return bits
    end },
    { "Timers", function(c)
      local hold, every = c:num("inof.hold", 4), c:num("inof.keepalive", 4)
      if hold > HOUR_MS or every > HOUR_MS then c:fail("more than an hour") end
      if not c.failed and (hold < 300 or every < 100 or every > hold) then c:tell("odd", "refused: hold time 300 ms or more, keepalive interval 100 ms up to the hold time") end
      return ("hold %d ms, keepalive %d ms"):format(hold, every)
    end, true },
    { "Nonce", function(c)
      local r = c:take(32, "inof.nonce")
      if r then c.tree:add(F["inof.nonce"], r) end
      return "32 bytes"
    end, true },
    { "Epoch", function(c) return select(2, c:u64("inof.epoch")) end, true },
    { "Authentication", function(c, sum)
      sum.auth = name_of(MODES, c:num("inof.auth", 1))
      return sum.auth
    end, true },
    { "Resume", function(c) return epoch_and_seq(c, "inof.resume") end },
    { "Zones held", function(c)
      local r = c:take(16, "inof.resume.zones")
      if r then c.tree:add(F["inof.resume.zones"], r) end
      return "digest"
    end },
  },
  { { "Second password", function(c)
      local r = c:take(32, "inof.proof")
      if r then c.tree:add(F["inof.proof"], r) end
      return "proof"
    end },
    { "Demand", function(c, sum) sum.note = "asks" return select(2, c:u64("inof.demand")) end },
    { "Answer", function(c, sum) sum.note = "answers" return select(2, c:u64("inof.answer")) end },
  },
  { { "Origin", function(c, sum) sum.who = c:address("inof.origin") return sum.who end, true },
    STAMP,
    { "Times", times },
    { "Settings", function(c)
      c:flags("inof.settings.flags", "inof.settings.auto_join", "inof.settings.hard", "inof.settings.bfd", "inof.settings.bfd.mesh_all", "inof.settings.halt", "inof.settings.halt.open")
      if c:num("inof.settings.bfd.interval", 4) > 60000000 then c:fail("BFD interval of more than a minute") end
      c:num("inof.settings.bfd.multiplier", 1)
      return "of the fabric"
    end },
    { "Zone", zone_record, many = true },
    { "Host", host_record, many = true },
    { "Down", down_record, many = true },
    { "State of a device", function(c)
      local device = c:address("inof.record_of.device")
      return device .. ", " .. epoch_and_seq(c, "inof.record_of")
    end, many = true },
    { "Position", function(c)
      local text = epoch_and_seq(c, "inof.position")
      if not c.failed and text:find("^epoch 0x0+,") then c:fail("0 is no epoch") end
      return text
    end },
    { "Partial", function(c, sum) return present(c, "inof.partial", sum, "more follows") end },
    [12] = { "Cluster", cluster },
    [14] = { "More", function(c, sum) return present(c, "inof.more", sum, "more zones follow") end },
    [15] = { "Anew", function(c, sum) return present(c, "inof.anew", sum, "full sync begins") end },
    [16] = { "Refused", function(c)
      local n, most = c:num("inof.refused.hosts", 4), c:num("inof.refused.limit", 4)
      c:flags("inof.refused.flags", "inof.refused.again")
      local outside, named = c:num("inof.refused.outside", 4), 0
      while not c.failed and c:left() > 0 do
        if named == MAX_OUTSIDE then c:fail(("more than %d"):format(MAX_OUTSIDE)) break end
        c:address("inof.refused.address")
        named = named + 1
      end
      return ("%s refused, limit %d, %d outside of the binding"):format(count(n, "host"), most, outside)
    end },
    [18] = { "Fence", fence_record, many = true },
  },
  { [2] = STAMP, [11] = { "Resumed", function(c, sum) return present(c, "inof.resumed", sum, "resumed") end },
    [12] = { "Cluster", cluster },
    [13] = { "Member", function(c, sum)
      sum.members = (sum.members or 0) + 1
      if sum.members > MAX_MEMBERS then c:fail(("more than %d"):format(MAX_MEMBERS)) end
      return c:address("inof.cluster.member")
    end, many = true },
    [17] = { "Short of room", function(c, sum)
      sum.short = (sum.short or 0) + 1
      if sum.short > MAX_SHORT then c:fail(("more than %d"):format(MAX_SHORT)) end
      return c:address("inof.short")
    end, many = true } },
  { { "Code", function(c, sum)
      local v = c:num("inof.code", 2)
      if not c.failed and v == 0 then c:fail("code 0 says nothing") end
      sum.code = name_of(CODES, v)
      return sum.code
    end, true },
    { "Text", function(c)
      local n = c:left()
      if n > 512 then c:fail(("%d bytes, want at most 512"):format(n), "bad_length") end
      return c:string("inof.text", n, "odd")
    end },
  },
  { { "Warning", function(c, sum)
      sum.warnings = (sum.warnings or 0) + 1
      if sum.warnings > MAX_WARNINGS then c:fail(("more than %d"):format(MAX_WARNINGS)) end
      local rule = c:text("inof.report.rule", 1, 64)
      return rule .. ": " .. c:text("inof.report.text", 0, 255)
    end, many = true },
  },
  { { "Asked", function(c, sum)
      sum.asked = (sum.asked or 0) + 1
      if sum.asked > MAX_PATHS then c:fail(("more than %d"):format(MAX_PATHS)) end
      return c:address("inof.path.asked")
    end, many = true },
    { "Key", function(c, sum)
      sum.keys = (sum.keys or 0) + 1
      if sum.keys > MAX_PATHS then c:fail(("more than %d"):format(MAX_PATHS)) end
      local device = c:address("inof.path.device")
      local id = c:num("inof.path.id", 1)
      local r = c:take(20, "inof.path.secret")
      if r then c.tree:add(F["inof.path.secret"], r) end
      return ("%s, id %d"):format(device, id)
    end, many = true },
    { "Encrypted", function(c)
      local r = c:take(c:left(), "inof.path.sealed")
      if r then c.tree:add(F["inof.path.sealed"], r) end
      return "in mode hmac-sha256"
    end },
  },
  { { "Prefix", function(c, sum)
      sum.prefixes = (sum.prefixes or 0) + 1
      if sum.prefixes > MAX_BOUND then c:fail(("more than %d"):format(MAX_BOUND)) end
      return c:prefix("inof.bound.prefix", "inof.bound.bits")
    end, many = true },
    { "NQN", function(c, sum)
      sum.names = (sum.names or 0) + 1
      if sum.names > MAX_BOUND then c:fail(("more than %d"):format(MAX_BOUND)) end
      return c:text("inof.bound.name", 1, 255)
    end, many = true },
    { "Declared host", function(c, sum)
      sum.hosts = (sum.hosts or 0) + 1
      if sum.hosts > MAX_BOUND then c:fail(("more than %d"):format(MAX_BOUND)) end
      local label = c:address("inof.bound.host")
      local role = c:num("inof.bound.role", 1)
      label = ("%s, %s, %s"):format(label, name_of(ROLES, role), name_of(PROTOCOLS, c:num("inof.bound.protocol", 1)))
      c:num("inof.bound.service", 2)
      c:text("inof.bound.nqn", 0, 255)
      local ports = 0
      while c:left() > 0 do
        if ports == 4 then c:fail("more than 4 ports") break end
        label = label .. (ports == 0 and " at " or ", ") .. c:text("inof.bound.port", 1, 63)
        ports = ports + 1
      end
      return label
    end, many = true },
  },
}

-- tlvs dissects the body of a message; tree is the message's.
local function tlvs(tvb, from, to, tree, mtype, sum)
  local spec, seen, c = MESSAGES[mtype], {}, cursor("inof", tvb, from, to, tree, TYPES[mtype])
  while c:left() > 0 do
    if c:left() < 4 then return c:fail(("%d bytes are no TLV header"):format(c:left()), "bad_length") end
    local start, typ, n = c.at, tvb(c.at, 1):uint(), tvb(c.at + 1, 3):uint()
    local known = spec[typ]
    local item = tree:add(F["inof.tlv"], tvb(start, math.min(4 + n, c:left())))
    item:set_text(known and known[1] or "Unknown TLV " .. typ)
    local head = item:add(F["inof.tlv.type"], tvb(start, 1))
    head:append_text(known and (" (%s)"):format(known[1]) or " (unknown)")
    head:add(F["inof.tlv.critical"], tvb(start, 1))
    item:add(F["inof.tlv.length"], tvb(start + 1, 3))
    c.at = start + 4
    local v = cursor("inof", tvb, c.at, c.at + n, item, ("%s, TLV %d"):format(TYPES[mtype], typ))
    if n > c:left() then return v:fail(("length %d, but %d bytes are left"):format(n, c:left()), "bad_length") end
    c.at = c.at + n
    if not known then
      if n > 0 then item:add(F["inof.tlv.value"], tvb(v.at, n)) end
      if typ >= 0x80 then return v:fail("it must be understood and is unknown", "unknown_type") end
      v:tell("skipped_type", "unknown, a receiver skips it")
    else
      if seen[typ] and not known.many then return v:fail("is there twice") end
      item:append_text(": " .. known[2](v, sum))
      v:trailing("inof.tlv.trailing")
      if v.failed then return end
    end
    seen[typ] = true
  end
  for typ = 1, 9 do
    if spec[typ] and spec[typ][3] and not seen[typ] then c:fail(("TLV %d (%s) is missing"):format(typ, spec[typ][1])) end
  end
end

local function summary(mtype, sum)
  local s = TYPES[mtype]
  if mtype == 1 then
    s = ("%s %s (%s, auth %s)"):format(s, sum.who or "?", sum.roles or "?", sum.auth or "?")
  elseif mtype == 3 then
    s = ("%s of %s seq %s"):format(s, sum.who or "?", sum.seq or "?")
    for _, k in ipairs({ "zone", "host", "down", "fence" }) do if sum[k] then s = s .. ", " .. count(sum[k], k) end end
  elseif mtype == 4 then
    s = ("%s seq %s"):format(s, sum.seq or "?")
  elseif mtype == 5 then
    s = ("%s: %s"):format(s, sum.code or "?")
  elseif mtype == 6 then
    s = ("%s, %s"):format(s, count(sum.warnings or 0, "warning"))
  end
  if sum.note then s = ("%s (%s)"):format(s, sum.note) end
  return s
end

-- What was seen before, by direction of a connection: filled in the first pass over
-- a capture, in which other protocols' fields cannot be asked for, and read in all
-- later ones. Only what is wrong is kept per message.
local secured, last_number, anomalies, noticed, acked_in, ack_of, noticed_at

local function forget()
  secured, last_number, anomalies, noticed, acked_in, ack_of, noticed_at = {}, {}, {}, {}, {}, {}, {}
end
forget()
inof.init = forget

-- check_session tells of a number that is not the last one plus 1, and of a message
-- without the tag that the sender's Open asked for.
local function check_session(pinfo, offset, r, mtype, sum, tagged, tree)
  local number = r:uint64()
  local way = ("%s %d %s %d"):format(tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port)
  local here = ("%d %d %s"):format(pinfo.number, offset, tostring(number))
  if not pinfo.visited then
    local found, last = {}, last_number[way]
    if mtype == 1 then
      secured[way] = sum.auth == MODES[2]
    elseif mtype ~= 5 or tagged then -- before the keys a Notification has neither
      if last and number ~= last + 1 then found["inof.number_unexpected"] = ("Number %s, expected %s"):format(tostring(number), tostring(last + 1)) end
      if secured[way] and not tagged then found["inof.tag_missing"] = "The message has no tag, but the Open asked for hmac-sha256" end
    end
    last_number[way] = number
    if next(found) then anomalies[here] = found end
  end
  for kind, text in pairs(anomalies[here] or {}) do tree:add_proto_expert_info(E[kind], text) end
end

-- message dissects one message of length bytes, of which have are there.
local function message(tvb, pinfo, root, offset, length, have)
  local tree = root:add(inof, tvb(offset, have))
  local c = cursor("inof", tvb, offset, offset + have, tree, "Header")
  c:num("inof.length", 4)
  local version, vitem = c:num("inof.version", 1)
  local mtype, titem = c:num("inof.type", 1)
  local flags, fitem, fr = c:num("inof.flags", 2)
  c:u64("inof.number")
  local body, tagged = length, flags % 2 == 1
  local function refuse(item, kind, text)
    item:add_proto_expert_info(E["inof." .. kind], text)
    if have > HEADER then tree:add(F["inof.data"], tvb(offset + HEADER, have - HEADER)) end
    tree:append_text(", " .. text)
    return text
  end
  if version ~= 2 and (mtype ~= 5 or flags ~= 0) then return refuse(vitem, "bad_version", ("Version %d, want 2"):format(version)) end
  fitem:add(F["inof.flags.tag"], fr)
  fitem:add(F["inof.flags.critical"], fr)
  if tagged then body = body - TAG end
  if body < HEADER then return refuse(fitem, "bad_length", ("Length %d has no room for the tag of 32 bytes"):format(length)) end
  if not TYPES[mtype] then return refuse(titem, "unknown_type", ("Unknown message type %d"):format(mtype)) end
  if flags >= 0x100 then return refuse(fitem, "malformed", ("Flags 0x%04x hold one that must be understood"):format(flags)) end
  local sum = {}
  if have < length then
    tree:add_proto_expert_info(E["inof.cut"], ("The capture holds %d of %d bytes"):format(have, length))
    if have > HEADER then tree:add(F["inof.data"], tvb(offset + HEADER, have - HEADER)) end
  else
    tlvs(tvb, offset + HEADER, offset + body, tree, mtype, sum)
    if tagged then
      tree:add(F["inof.tag"], tvb(offset + body, TAG)):add_proto_expert_info(E["inof.tag_unchecked"])
      if mtype == 1 then fitem:add_proto_expert_info(E["inof.odd"], "An Open has no tag") end
    end
  end
  check_session(pinfo, offset, tvb(offset + 8, 8), mtype, sum, tagged, tree)
  local s = summary(mtype, sum)
  tree:append_text(", " .. s)
  return s
end

local FOREIGN = { ["\22\3"] = "TLS", ["SSH-"] = "SSH", ["GET "] = "HTTP", ["POST"] = "HTTP", ["PUT "] = "HTTP", ["HEAD"] = "HTTP",
  ["OPTI"] = "HTTP", ["PRI "] = "HTTP/2", ["HTTP"] = "HTTP", ["\255\255\255\255"] = "BGP" }

local function show(pinfo, texts)
  if #texts == 0 then return end
  if #texts > 8 then texts = { texts[1], texts[2], texts[3], ("%d more messages"):format(#texts - 3) } end
  local text = table.concat(texts, "; ")
  pinfo.cols.protocol = "iNOF"
  -- One segment can end one message and begin the next: then this is the second call.
  if pinfo.private["inof"] then text = "; " .. text end
  pinfo.private["inof"] = "1"
  pinfo.cols.info:set(text)
  pinfo.cols.info:fence()
end

function inof.dissector(tvb, pinfo, root)
  local offset, total, texts = 0, tvb:len(), {}
  local function more(n)
    pinfo.desegment_offset, pinfo.desegment_len = offset, n
    show(pinfo, texts)
    return total
  end
  local function refuse(kind, text)
    local tree = root:add(inof, tvb(offset))
    tree:append_text(", " .. text)
    tree:add(F["inof.data"], tvb(offset)):add_proto_expert_info(E["inof." .. kind], text)
    table.insert(texts, text)
    show(pinfo, texts)
    return total
  end
  local whole = pinfo.can_desegment > 0
  while offset < total do
    local left = total - offset
    local first = tvb(offset, math.min(left, 4)):raw()
    if first:byte(1) ~= 0 then
      return refuse("foreign", "No iNOF header here: " .. (FOREIGN[first] or FOREIGN[first:sub(1, 2)] or "another protocol, or the middle of a message"))
    end
    if left < 4 and whole then return more(DESEGMENT_ONE_MORE_SEGMENT) end
    if left < HEADER and not whole then return refuse("cut", "The capture holds only a part of a header") end
    local length = tvb(offset, 4):uint()
    if length < HEADER or length > MAX_MESSAGE then
      return refuse("bad_length", ("Length %d, want %d..%d"):format(length, HEADER, MAX_MESSAGE))
    end
    if left < length and whole then return more(length - left) end
    table.insert(texts, message(tvb, pinfo, root, offset, length, math.min(length, left)))
    offset = offset + length
  end
  show(pinfo, texts)
  return total
end

-- NTS: notices, acks, zone queries -------------------------------------------

-- Sub-TLVs that decide whether a root TLV of a kind is taken.
local NEEDS = {
  { [1] = true, [2] = true, [3] = true, [4] = true, [5] = true, [6] = true, [7] = true, [8] = true },
  { [1] = true, [2] = true, [3] = true, [4] = true, [5] = true },
  { [2] = true, [4] = true },
}

local function host_address(c, abbrev, n)
  local text, raw = c:plain(abbrev, n)
  local why = not c.failed and unusable(raw)
  if why then c:fail(("%s is not usable as a host address: %s"):format(text, why)) end
  return text
end

local function enum(c, abbrev, names, greatest)
  local v = c:num(abbrev, c:left())
  if v > greatest then c:fail(("value %d, at most %d"):format(v, greatest)) end
  return name_of(names, v)
end

-- role_and_protocol warns of values that are read as unknown.
local function role_and_protocol(c, prefix)
  local role, protocol = c:num(prefix .. ".role", 1), c:num(prefix .. ".protocol", 1)
  if not c.failed and (not ROLES[role] or not PROTOCOLS[protocol]) then c:tell("odd", "role or storage protocol is unknown") end
  return name_of(ROLES, role)
end

-- By sub-TLV type: length in version 0, in version 1 (nil: any), dissector.
local SUB = {
  { 4, 4, function(c, r) r.subject = host_address(c, "nts.subject", 4) return r.subject end },
  { 4, 4, function(c, r) r.host = host_address(c, "nts.host", 4) return r.host end },
  { 16, 16, function(c, r) r.subject = host_address(c, "nts.subject", 16) return r.subject end },
  { 16, 16, function(c, r) r.host = host_address(c, "nts.host", 16) return r.host end },
  { 4, 4, function(c, r) r.seq = c:num("nts.seq", 4) return r.seq end },
  { 1, 4, function(c, r) r.state = enum(c, "nts.state", STATES, 1) return r.state end },
  { 1, 4, function(c, r) r.reason = enum(c, "nts.reason", REASONS, 255) return r.reason end },
  { nil, nil, function(c)
    local role = role_and_protocol(c, "nts")
    c:num("nts.service.reserved", 2)
    c:num("nts.service_port", 2)
    local nqn = c:string("nts.nqn", (c:num("nts.nqn.length", 1)), "odd")
    return nqn == "" and role or role .. " " .. nqn
  end },
}

-- cut reads type and length of a TLV; nil when it does not fit.
local function cut(c)
  if c:left() < 3 then return nil end
  local typ, n = c.tvb(c.at, 1):uint(), c.tvb(c.at + 1, 2):uint()
  if n > c:left() - 3 then return nil end
  local start = c.at
  c.at = start + 3 + n
  return typ, n, start
end

local function sub_tlv(c, kind, version, typ, n, start, root, seen)
  local known = SUB[typ]
  local item = c.tree:add(F["nts.tlv"], c.tvb(start, 3 + n))
  item:set_text(SUBS[typ] or "Unknown sub-TLV " .. typ)
  item:add(F["nts.tlv.type"], c.tvb(start, 1))
  item:add(F["nts.tlv.length"], c.tvb(start + 1, 2))
  local v = cursor("nts", c.tvb, start + 3, start + 3 + n, item, ("%s, sub-TLV %d"):format(KINDS[kind], typ))
  local want = known and known[version + 1]
  if not known then
    if n > 0 then item:add(F["nts.tlv.value"], c.tvb(start + 3, n)) end
    return v:tell("skipped_type", "unknown, a receiver skips it")
  end
  if seen[typ] then v:fail("is there twice") end
  seen[typ] = true
  if not NEEDS[kind][typ] then
    if n > 0 then item:add(F["nts.tlv.value"], c.tvb(start + 3, n)) end
    return v:tell("odd", "has no meaning here")
  end
  if want and n ~= want then
    if n > 0 then item:add(F["nts.tlv.value"], c.tvb(start + 3, n)) end
    return v:fail(("length %d, want %d"):format(n, want), "bad_length")
  end
  item:append_text(": " .. tostring(known[3](v, root)))
end

-- complete tells what a root TLV lacks.
local function complete(c, kind, seen)
  local needs = kind == 3 and { { 2, 4 } } or { { 1, 3 }, { 2, 4 }, { 5, 5 } }
  if kind == 1 then for typ = 6, 8 do table.insert(needs, { typ, typ }) end end
  for _, p in ipairs(needs) do
    if not seen[p[1]] and not seen[p[2]] then return c:fail(("%s (sub-TLV %d) is missing"):format(SUBS[p[1]], p[1])) end
    if p[1] ~= p[2] and seen[p[1]] and seen[p[2]] then return c:fail(("sub-TLVs %d and %d are both there"):format(p[1], p[2])) end
  end
  if kind ~= 3 and (seen[1] and seen[4] or seen[3] and seen[2]) then c:fail("the two addresses are of different families") end
end

-- pair links a notice and its ack: the ack echoes addresses and sequence.
local function pair(pinfo, kind, r, tree)
  local key = ("%s %s %d"):format(r.subject, r.host, r.seq)
  local here = pinfo.number .. " " .. key
  if not pinfo.visited then
    if kind == 1 then
      noticed[key], noticed_at[here] = pinfo.number, pinfo.rel_ts
    elseif noticed[key] then
      ack_of[here] = noticed[key]
      local there = noticed[key] .. " " .. key
      acked_in[there] = acked_in[there] or pinfo.number
    end
  end
  if kind == 1 and acked_in[here] then tree:add(F["nts.acked_in"], acked_in[here]):set_generated() end
  if kind == 2 and ack_of[here] then
    tree:add(F["nts.ack_of"], ack_of[here]):set_generated()
    local wait = pinfo.rel_ts - noticed_at[ack_of[here] .. " " .. key]
    local sec = math.floor(wait)
    tree:add(F["nts.ack_time"], NSTime.new(sec, math.floor((wait - sec) * 1e6 + 0.5) * 1000)):set_generated()
  end
end

local function root_tlv(tvb, pinfo, version, typ, n, start, tree)
  local kind = typ % 32
  local item = tree:add(F["nts.root"], tvb(start, 3 + n))
  local head = item:add(F["nts.root.type"], tvb(start, 1))
  head:add(F["nts.root.structured"], tvb(start, 1))
  head:add(F["nts.kind"], tvb(start, 1))
  item:add(F["nts.root.length"], tvb(start + 1, 2))
  local c = cursor("nts", tvb, start + 3, start + 3 + n, item, name_of(KINDS, kind))
  item:set_text("Root TLV: " .. name_of(KINDS, kind))
  if not KINDS[kind] or typ - kind ~= 0x20 then
    if n > 0 then item:add(F["nts.tlv.value"], tvb(start + 3, n)) end
    c:fail(("root TLV of type 0x%02x"):format(typ), "unknown_type")
    return ("unknown root TLV 0x%02x"):format(typ)
  end
  local r, seen = {}, {}
  while c:left() > 0 do
    local sub, m, at = cut(c)
    if not sub then c:fail(("sub-TLV in the last %d bytes does not fit"):format(c:left()), "bad_length") break end
    sub_tlv(c, kind, version, sub, m, at, r, seen)
  end
  if not c.failed then complete(c, kind, seen) end
  local text = KINDS[kind] .. " " .. (kind == 3 and (r.host or "?") or (r.subject or "?"))
  if kind ~= 3 then text = ("%s to %s seq %s"):format(text, r.host or "?", tostring(r.seq or "?")) end
  if kind == 1 then text = ("%s: %s"):format(text, r.state or "?") .. (r.state == "inactive" and (" (%s)"):format(r.reason or "?") or "") end
  if kind ~= 3 and r.subject and r.host and r.seq then pair(pinfo, kind, r, item) end
  item:set_text("Root TLV: " .. text)
  return text
end

function nts.dissector(tvb, pinfo, root)
  pinfo.cols.protocol = "NTS"
  pinfo.cols.info:set("malformed")
  local tree = root:add(nts, tvb())
  local c = cursor("nts", tvb, 0, tvb:len(), tree, "Header")
  local version, vitem = c:num("nts.version", 1)
  c:num("nts.reserved1", 1)
  local length, litem = c:num("nts.length", 2)
  c:num("nts.reserved2", 4)
  if c.failed then return tvb:len() end
  if version > 1 then
    vitem:add_proto_expert_info(E["nts.bad_version"], ("Version %d, a receiver drops it"):format(version))
    return tvb:len()
  end
  local complete_frame, texts = length <= c:left(), {}
  if complete_frame then
    c.to = c.at + length
  elseif tvb:len() < tvb:reported_len() then
    litem:add_proto_expert_info(E["nts.cut"], ("The capture holds %d of %d bytes"):format(c:left(), length))
  else
    litem:add_proto_expert_info(E["nts.bad_length"], ("Length %d, but %d bytes follow"):format(length, c:left()))
  end
  while c:left() > 0 do
    local typ, n, start = cut(c)
    if not typ then
      if complete_frame then c:fail(("root TLV in the last %d bytes does not fit"):format(c:left()), "bad_length") end
      break
    end
    table.insert(texts, root_tlv(tvb, pinfo, version, typ, n, start, tree))
  end
  if complete_frame and c.to < tvb:len() then tree:add(F["nts.padding"], tvb(c.to)) end
  if #texts == 0 then return tvb:len() end
  if #texts > 4 then texts = { texts[1], texts[2], ("%d more"):format(#texts - 2) } end
  pinfo.cols.info:set(table.concat(texts, "; "))
  return tvb:len()
end

-- SNSD: the registration in LLDP ---------------------------------------------

-- registration dissects the value of an organizational TLV (from its OUI on).
local function registration(tvb, from, to, pinfo, tree)
  local item = tree:add(snsd, tvb(from, to - from))
  local c = cursor("snsd", tvb, from, to, item, "Registration")
  c:num("snsd.oui", 3)
  c:num("snsd.subtype", 1)
  if c:left() < 26 then return c:fail(("%d bytes, want 30 or more"):format(c:left() + 4), "bad_length") end
  local version = c:num("snsd.version", 1)
  if version ~= 1 then return c:fail(("version %d, want 1"):format(version), "bad_version") end
  local r = c:take(1, "family")
  for _, f in ipairs({ "snsd.subscribes", "snsd.service_type", "snsd.family" }) do item:add(F[f], r) end
  local family = r:uint() % 16
  item:add(F["snsd.reserved"], c:take(2, "reserved"))
  local area, addr = c.at, ""
  if family == 1 then
    addr = host_address(c, "snsd.address", 4)
    c:take(12, "rest of the address")
  elseif family == 2 then
    addr = host_address(c, "snsd.address", 16)
  else
    c:fail(("address family %d, want 1 (IPv4) or 2 (IPv6)"):format(family))
  end
  c.at, c.to = area + 16, c.failed and area + 16 or to
  local role = role_and_protocol(c, "snsd")
  c:num("snsd.protocol_version", 2)
  c:num("snsd.service_port", 2)
  if not c.failed and c:left() == 0 then
    c:tell("odd", "the NQN length is not there")
  else
    c:string("snsd.nqn", (c:num("snsd.nqn.length", 1)), "odd")
  end
  c:trailing("snsd.trailing")
  if c.failed then return item:append_text(", malformed") end
  local text = ("SNSD registration of %s, %s"):format(addr, role)
  item:append_text((", %s, %s%s"):format(addr, role, r:uint() >= 0x80 and ", subscribes to notices" or ""))
  pinfo.cols.info:append(text) -- LLDP ends what it says with a space
end

-- LLDP hands over the whole TLV, header included; 0 gives it back as not ours.
function snsd.dissector(tvb, pinfo, tree)
  local total = tvb:len()
  if total < 6 or tvb(0, 1):uint() < 0xfe or tvb(2, 3):uint() ~= OUI or tvb(5, 1):uint() ~= SUBTYPE then return 0 end
  registration(tvb, 2, total, pinfo, tree)
  return total
end

-- after_lldp finds the TLV by itself, for a Wireshark that has no table for it.
local function after_lldp()
  local lldp = Field.new("lldp")
  local post = Proto("snsd_post", "SNSD Registration (after LLDP)")
  function post.dissector(tvb, pinfo, tree)
    for _, pdu in ipairs({ lldp() }) do
      local at, stop = pdu.offset, math.min(pdu.offset + pdu.len, tvb:len())
      while stop - at >= 2 do
        local head = tvb(at, 2):uint()
        local typ, n = math.floor(head / 512), head % 512
        if typ == 0 or n > stop - at - 2 then break end
        if typ == 127 and n >= 4 and tvb(at + 2, 3):uint() == OUI and tvb(at + 5, 1):uint() == SUBTYPE then
          registration(tvb, at + 2, at + 2 + n, pinfo, tree)
        end
        at = at + 2 + n
      end
    end
  end
  register_postdissector(post)
end

local has_table, table_or_error = pcall(DissectorTable.get, "lldp.orgtlv.oui")
if has_table and args[1] ~= "after-lldp" then
  table_or_error:add(OUI, snsd)
else
  after_lldp()
end
DissectorTable.get("ethertype"):add(ETHERTYPE, nts)
DissectorTable.get("tcp.port"):add(PORT, inof)
