-- Wireshark dissector of Hawser's datagrams and frames (docs/wire.md, README.md).
--
--   tshark -X lua_script:contrib/wireshark/hawser.lua -r links.pcap -V
--
-- 1. UDP (a port, or a conversation that began with a handshake), TCP (records on a port) or a bare IP protocol carries datagrams.
-- 2. A capturing host may hold several datagrams in one: they are told apart.
-- 3. Handshake messages and the header of data are in clear; frames only with `protection = "authenticate"`, which nothing on
--    the wire says: a label whose datagrams read as frames until chance is ruled out has them in clear; one that does not, has not.
-- 4. Inner packets go to Wireshark's own dissectors. Sealed frames: `hawser decode` writes their inner packets as a capture.

local hawser = Proto("hawser", "Hawser")

local DEFAULT_PORT = 4920
local DEFAULT_PROTOCOL = 253 -- for experiments (RFC 3692 section 2.1)
local TAG_LEN = 16
local HEADER_LEN = 9
local LABEL_LEN = 5          -- the label, with the type before it
local GAP_MAX = 4096         -- numbers that may be missing between two datagrams that a kernel put together
local SURE_BITS = 16         -- sealed bytes read as frames by chance once in 2^16 labels
local NO_MAC = string.rep("\0", 16)

local TYPES = { [1] = "Handshake initiation", [2] = "Handshake response", [3] = "Cookie reply", [4] = "Data" }
local LENGTHS = { [1] = 157, [2] = 113, [3] = 61 }
local FRAMES = {
    [0x00] = "PADDING", [0x01] = "PING", [0x02] = "ACK", [0x03] = "PATH_CHALLENGE", [0x04] = "PATH_RESPONSE",
    [0x05] = "PATH_INFO", [0x06] = "GONE", [0x07] = "SPLIT", [0x08] = "DATA", [0x09] = "CLOSE", [0x0a] = "HOLD",
    [0x0b] = "REPAIR", [0x0c] = "TERMS", [0x0d] = "PROTECTED", [0x40] = "LINK_NAME",
    [0x41] = "SPEED", [0x42] = "FILLER",
}
local STATES = { [0] = "usable", [1] = "down", [2] = "closed" }
local WORDS = { [0] = "begin", [1] = "end", [2] = "refused" }
local REASONS = { [0] = "the portal stops", [1] = "the peer is no longer configured", [2] = "protocol violation" }

---------------------------------------------------------------------------------------------------- fields

local f = {
    record_length = ProtoField.uint16("hawser.record.length", "Record length", base.DEC),
    kind = ProtoField.uint8("hawser.type", "Type", base.DEC, TYPES, 0xf0),
    flags = ProtoField.uint8("hawser.flags", "Flags", base.HEX, nil, 0x0f),
    -- handshake
    index = ProtoField.uint32("hawser.index", "Sender's index", base.HEX),
    receiver = ProtoField.uint32("hawser.receiver", "Receiver's index", base.HEX),
    ephemeral = ProtoField.bytes("hawser.noise.ephemeral", "Noise ephemeral key"),
    static = ProtoField.bytes("hawser.noise.static", "Noise static key, sealed"),
    payload = ProtoField.bytes("hawser.noise.payload", "Noise payload, sealed"),
    mac1 = ProtoField.bytes("hawser.mac1", "MAC 1"),
    mac2 = ProtoField.bytes("hawser.mac2", "MAC 2"),
    has_cookie = ProtoField.bool("hawser.has_cookie", "Shows a cookie"),
    salt = ProtoField.bytes("hawser.salt", "Salt"),
    cookie = ProtoField.bytes("hawser.cookie", "Cookie, sealed"),
    -- data
    label = ProtoField.uint32("hawser.label", "Label", base.HEX),
    number = ProtoField.uint32("hawser.number", "Number (low 32 bits)", base.DEC),
    sealed = ProtoField.bytes("hawser.sealed", "Frames, sealed"),
    tag = ProtoField.bytes("hawser.tag", "Tag"),
    -- frames
    frame = ProtoField.none("hawser.frame", "Frame"),
    frame_type = ProtoField.uint8("hawser.frame.type", "Frame type", base.HEX, FRAMES),
    padding = ProtoField.uint32("hawser.padding.length", "Padding length", base.DEC),
    ack_path = ProtoField.uint64("hawser.ack.path", "Path", base.DEC),
    ack_largest = ProtoField.uint64("hawser.ack.largest", "Largest", base.DEC),
    ack_delay = ProtoField.uint64("hawser.ack.delay", "Delay (µs)", base.DEC),
    ack_received_at = ProtoField.uint64("hawser.ack.received_at", "Received at (µs)", base.DEC),
    ack_more = ProtoField.uint64("hawser.ack.more_ranges", "More ranges", base.DEC),
    ack_first = ProtoField.uint64("hawser.ack.first_range", "First range", base.DEC),
    ack_gap = ProtoField.uint64("hawser.ack.gap", "Gap", base.DEC),
    ack_length = ProtoField.uint64("hawser.ack.length", "Length", base.DEC),
    ack_acked = ProtoField.string("hawser.ack.acked", "Acknowledged"),
    ack_ect0 = ProtoField.uint64("hawser.ack.ect0", "ECT(0)", base.DEC),
    ack_ect1 = ProtoField.uint64("hawser.ack.ect1", "ECT(1)", base.DEC),
    ack_ce = ProtoField.uint64("hawser.ack.ce", "CE", base.DEC),
    token = ProtoField.bytes("hawser.token", "Token"),
    info_path = ProtoField.uint64("hawser.path_info.path", "Path", base.DEC),
    info_state = ProtoField.uint8("hawser.path_info.state", "State", base.DEC, STATES),
    info_metric = ProtoField.uint16("hawser.path_info.metric", "Metric", base.DEC),
    info_revision = ProtoField.uint64("hawser.path_info.revision", "Revision", base.DEC),
    gone_bucket = ProtoField.uint16("hawser.gone.bucket", "Flow bucket", base.DEC),
    gone_upto = ProtoField.uint24("hawser.gone.upto", "Up to", base.DEC),
    split_id = ProtoField.uint16("hawser.split.id", "Packet", base.DEC),
    split_more = ProtoField.bool("hawser.split.more", "More pieces", 16, nil, 0x8000),
    split_offset = ProtoField.uint16("hawser.split.offset", "Offset", base.DEC, nil, 0x7fff),
    split_bytes = ProtoField.bytes("hawser.split.bytes", "Piece"),
    partial = ProtoField.bool("hawser.data.partial", "Partial checksum", 16, nil, 0x1000),
    continues = ProtoField.bool("hawser.data.continues", "Train continues", 16, nil, 0x2000),
    unordered = ProtoField.bool("hawser.data.unordered", "Unordered", 16, nil, 0x4000),
    spare = ProtoField.bool("hawser.data.spare", "Spare", 16, nil, 0x8000),
    bucket = ProtoField.uint16("hawser.data.bucket", "Flow bucket", base.DEC, nil, 0x0fff),
    sequence = ProtoField.uint24("hawser.data.sequence", "Flow sequence", base.DEC),
    packet = ProtoField.bytes("hawser.data.packet", "Inner packet"),
    reason = ProtoField.uint8("hawser.close.reason", "Reason", base.DEC, REASONS),
    hold = ProtoField.uint64("hawser.hold.us", "Hold (µs)", base.DEC),
    repair_first = ProtoField.uint16("hawser.repair.first", "First symbol", base.DEC),
    repair_count = ProtoField.uint8("hawser.repair.count", "Symbols", base.DEC),
    repair_row = ProtoField.uint8("hawser.repair.row", "Row", base.DEC),
    repair_symbol = ProtoField.bytes("hawser.repair.symbol", "Repair symbol"),
    terms_path = ProtoField.uint64("hawser.terms.path", "Path", base.DEC),
    terms_flags = ProtoField.uint8("hawser.terms.flags", "Flags", base.HEX),
    terms_barred = ProtoField.bool("hawser.terms.barred", "Barred from inner packets", 8, nil, 0x01),
    terms_weight = ProtoField.uint8("hawser.terms.weight", "Weight", base.DEC),
    terms_rate = ProtoField.uint64("hawser.terms.max_rate", "Max rate (kbit/s, 0: none)", base.DEC),
    terms_revision = ProtoField.uint64("hawser.terms.revision", "Revision", base.DEC),
    symbol = ProtoField.uint16("hawser.protected.symbol", "Symbol", base.DEC),
    link_name_length = ProtoField.uint64("hawser.link_name.length", "Length", base.DEC),
    link_name_path = ProtoField.uint64("hawser.link_name.path", "Path", base.DEC),
    link_name = ProtoField.bytes("hawser.link_name.name", "Hash of the name"),
    speed_length = ProtoField.uint64("hawser.speed.length", "Length", base.DEC),
    speed_run = ProtoField.uint64("hawser.speed.run", "Run", base.DEC),
    speed_word = ProtoField.uint8("hawser.speed.word", "Word", base.DEC, WORDS),
    speed_link = ProtoField.bytes("hawser.speed.link", "Hash of the link's name"),
    speed_ms = ProtoField.uint64("hawser.speed.ms", "Time (ms)", base.DEC),
    speed_bytes = ProtoField.uint64("hawser.speed.bytes", "Bytes", base.DEC),
    filler_length = ProtoField.uint64("hawser.filler.length", "Length", base.DEC),
    filler = ProtoField.bytes("hawser.filler.bytes", "Filler"),
    reserved_length = ProtoField.uint64("hawser.reserved.length", "Length", base.DEC),
    unknown = ProtoField.bytes("hawser.unknown", "Unknown data"),
}
local fields = {}
for _, field in pairs(f) do fields[#fields + 1] = field end
hawser.fields = fields

local e_malformed = ProtoExpert.new("hawser.malformed", "Malformed datagram", expert.group.MALFORMED, expert.severity.ERROR)
local e_reserved = ProtoExpert.new("hawser.reserved", "Reserved bits are set", expert.group.PROTOCOL, expert.severity.WARN)
local e_unknown = ProtoExpert.new("hawser.unknown_frame", "Frame of another version", expert.group.UNDECODED, expert.severity.NOTE)
local e_several = ProtoExpert.new("hawser.several", "Several datagrams, held in one by the capturing host",
    expert.group.COMMENTS_GROUP, expert.severity.COMMENT)
hawser.experts = { e_malformed, e_reserved, e_unknown, e_several }

---------------------------------------------------------------------------------------------------- preferences

local CLEAR_GUESS, CLEAR_NEVER, CLEAR_ALWAYS = 0, 1, 2
hawser.prefs.port = Pref.uint("Port", DEFAULT_PORT, "UDP and TCP port that a portal listens on")
hawser.prefs.protocol = Pref.uint("IP protocol", DEFAULT_PROTOCOL, "Number of the bare IP protocol")
hawser.prefs.clear = Pref.enum("Frames in clear", CLEAR_GUESS, 'Whether frames are in clear (protection = "authenticate")',
    { { 1, "guess", CLEAR_GUESS }, { 2, "never", CLEAR_NEVER }, { 3, "always", CLEAR_ALWAYS } }, false)
hawser.prefs.heuristic = Pref.bool("Follow handshakes", true, "Take UDP conversations on any port that begin with a handshake")

-- What is known of labels: true where frames are in clear, false where they are sealed; until then, the bits that spoke for clear.
local clear_labels = {}
function hawser.init() clear_labels = {} end

---------------------------------------------------------------------------------------------------- reading

-- What is thrown where bytes are no frame: told by expert info, not as an error of this script.
local MALFORMED = {}
local function malformed(why) error(setmetatable({ why = why }, MALFORMED), 0) end

-- Reads fields of `tvb` from `at` to `stop`. Without a tree nothing is shown: to find out whether the bytes are frames.
local Reader = {}
Reader.__index = Reader

function Reader.new(tvb, at, stop) return setmetatable({ tvb = tvb, at = at, stop = stop, bits = 0 }, Reader) end
function Reader:left() return self.stop - self.at end

-- What was read just now stands so by chance once in 2^bits.
function Reader:speaks(bits) self.bits = self.bits + bits end

function Reader:take(len)
    if self:left() < len then malformed("truncated") end
    local range = self.tvb(self.at, len)
    self.at = self.at + len
    return range
end

-- A field of fixed length; gives its range.
function Reader:field(tree, field, len)
    local range = self:take(len)
    if tree then tree:add(field, range) end
    return range
end

-- A variable-length integer (RFC 9000 section 16).
function Reader:varint(tree, field)
    if self:left() < 1 then malformed("truncated") end
    local len = 2 ^ bit.rshift(self.tvb(self.at, 1):uint(), 6)
    local range = self:take(len)
    local value = range:bitfield(2, len * 8 - 2)
    if type(value) == "number" then value = UInt64.new(value) end
    if tree then tree:add(field, range, value) end
    return value
end

---------------------------------------------------------------------------------------------------- frames

local ip, ipv6 = Dissector.get("ip"), Dissector.get("ipv6")

-- Flags, flow bucket and sequence, which DATA and SPLIT share.
local function place(r, tree)
    local word = r:take(2)
    if tree then
        for _, field in ipairs({ f.spare, f.unordered, f.continues, f.partial, f.bucket }) do tree:add(field, word) end
    end
    if bit.band(word:uint(), 0x8000) ~= 0 then malformed("the spare flag is set") end
    r:speaks(1)
    r:field(tree, f.sequence, 3)
end

-- Whether an inner packet is as long as its own header says.
local function is_packet(range)
    local len = range:len()
    local version = bit.rshift(range(0, 1):uint(), 4)
    if version == 4 and len >= 20 then return range(2, 2):uint() == len end
    if version == 6 and len >= 40 then return range(4, 2):uint() + 40 == len end
    return false
end

local dissect = {}

dissect[0x00] = function(r, tree)
    local start = r.at
    while r:left() > 0 and r.tvb(r.at, 1):uint() == 0 do r.at = r.at + 1 end
    r:speaks(8 * (r.at - start))
    if tree then tree:add(f.padding, r.tvb(start - 1, r.at - start + 1), r.at - start + 1):set_generated() end
end

dissect[0x01] = function() end

dissect[0x02] = function(r, tree)
    local zero, two = UInt64.new(0), UInt64.new(2)
    r:varint(tree, f.ack_path)
    local high = r:varint(tree, f.ack_largest)
    r:varint(tree, f.ack_delay)
    r:varint(tree, f.ack_received_at)
    local more = r:varint(tree, f.ack_more)
    local first = r:varint(tree, f.ack_first)
    if first > high then malformed("a range runs below zero") end
    local low = high - first
    local function show(from)
        if tree then
            local text = low == high and tostring(low) or (tostring(low) .. "–" .. tostring(high))
            tree:add(f.ack_acked, r.tvb(from, r.at - from), text):set_generated()
        end
    end
    show(r.at - 1)
    while more > zero do
        local from = r.at
        local gap = r:varint(tree, f.ack_gap)
        local length = r:varint(tree, f.ack_length)
        if gap + two > low then malformed("a range runs below zero") end
        high = low - gap - two
        if length > high then malformed("a range runs below zero") end
        low = high - length
        show(from)
        more = more - UInt64.new(1)
    end
    r:varint(tree, f.ack_ect0)
    r:varint(tree, f.ack_ect1)
    r:varint(tree, f.ack_ce)
end

dissect[0x03] = function(r, tree) r:field(tree, f.token, 8) end
dissect[0x04] = dissect[0x03]

dissect[0x05] = function(r, tree)
    r:varint(tree, f.info_path)
    if r:field(tree, f.info_state, 1):uint() > 2 then malformed("unknown state") end
    r:speaks(6)
    r:field(tree, f.info_metric, 2)
    r:varint(tree, f.info_revision)
end

dissect[0x06] = function(r, tree)
    if r:field(tree, f.gone_bucket, 2):uint() > 0x0fff then malformed("the bits above the bucket are set") end
    r:speaks(4)
    r:field(tree, f.gone_upto, 3)
end

dissect[0x07] = function(r, tree)
    r:field(tree, f.split_id, 2)
    local word = r:take(2)
    if tree then tree:add(f.split_more, word) tree:add(f.split_offset, word) end
    place(r, tree)
    if r:left() == 0 then malformed("an empty piece") end
    r:field(tree, f.split_bytes, r:left())
end

dissect[0x08] = function(r, tree, pinfo, root)
    place(r, tree)
    if r:left() == 0 then malformed("no inner packet") end
    local packet = r:field(tree, f.packet, r:left())
    if not tree then
        if not is_packet(packet) then malformed("no inner packet") end
        r:speaks(19) -- version and length
        return
    end
    local version = bit.rshift(packet(0, 1):uint(), 4)
    local inner = version == 4 and ip or version == 6 and ipv6 or nil
    if inner then inner:call(packet:tvb(), pinfo, root) end
end

dissect[0x09] = function(r, tree) r:field(tree, f.reason, 1) end
dissect[0x0a] = function(r, tree) r:varint(tree, f.hold) end

dissect[0x0b] = function(r, tree)
    r:field(tree, f.repair_first, 2)
    local count = r:field(tree, f.repair_count, 1):uint()
    if count < 1 or count > 32 then malformed("a repair of 1 to 32 symbols") end
    if r:field(tree, f.repair_row, 1):uint() > 127 then malformed("a row above 127") end
    r:speaks(4)
    if r:left() == 0 then malformed("no repair symbol") end
    r:field(tree, f.repair_symbol, r:left())
end

dissect[0x0c] = function(r, tree)
    r:varint(tree, f.terms_path)
    local flags = r:field(tree, f.terms_flags, 1)
    if tree then tree:add(f.terms_barred, flags) end
    if flags:uint() > 1 then malformed("unknown flags") end
    r:speaks(7)
    if r:field(tree, f.terms_weight, 1):uint() == 0 then malformed("a weight of zero") end
    r:varint(tree, f.terms_rate)
    r:varint(tree, f.terms_revision)
end

dissect[0x0d] = function(r, tree, pinfo, root)
    r:field(tree, f.symbol, 2)
    dissect[0x08](r, tree, pinfo, root)
end

dissect[0x40] = function(r, tree)
    local len = r:varint(tree, f.link_name_length):tonumber()
    local stop = r.at + len
    if len > r:left() then malformed("truncated") end
    r:varint(tree, f.link_name_path)
    if stop - r.at < 8 then malformed("no name") end
    r:field(tree, f.link_name, 8)
    -- What stands behind the name is a later version's.
    if stop > r.at then r:field(tree, f.unknown, stop - r.at) end
end

dissect[0x41] = function(r, tree)
    local len = r:varint(tree, f.speed_length):tonumber()
    local stop = r.at + len
    if len > r:left() then malformed("truncated") end
    r:varint(tree, f.speed_run)
    if r:field(tree, f.speed_word, 1):uint() > 2 then malformed("an unknown word") end
    r:field(tree, f.speed_link, 8)
    r:varint(tree, f.speed_ms)
    r:varint(tree, f.speed_bytes)
    if stop > r.at then r:field(tree, f.unknown, stop - r.at) end
end

dissect[0x42] = function(r, tree)
    local len = r:varint(tree, f.filler_length):tonumber()
    if len > r:left() then malformed("truncated") end
    if len > 0 then r:field(tree, f.filler, len) end
end

-- What a later version says: of the reserved range, with its length.
local function reserved(r, tree)
    local len = r:varint(tree, f.reserved_length):tonumber()
    if len > r:left() then malformed("truncated") end
    if len > 0 then r:field(tree, f.unknown, len) end
    if tree then tree:add_proto_expert_info(e_unknown) end
end

-- One frame; gives its name. Of an unknown one nobody knows the length: it takes the rest.
local function dissect_frame(r, tree, pinfo, root)
    local start = r.at
    local code = r.tvb(start, 1):uint()
    local name, read = FRAMES[code], dissect[code]
    -- Nothing speaks for clear frames where a portal of this version would have sent none.
    if tree and not name and code >= 0x40 and code <= 0x7f then name, read = "RESERVED", reserved end
    r:speaks(4) -- 15 types of 256
    local branch = tree and tree:add(f.frame, r.tvb(start, r:left())):set_text(name or string.format("Frame 0x%02x", code))
    r:field(branch, f.frame_type, 1)
    if read then
        read(r, branch, pinfo, root)
    elseif branch then
        if r:left() > 0 then r:field(branch, f.unknown, r:left()) end
        branch:add_proto_expert_info(e_unknown)
    else
        malformed("unknown frame")
    end
    if branch then branch:set_len(r.at - start) end
    return name or string.format("0x%02x", code)
end

-- How sure it is that frames stand between header and tag, in bits; nil where they cannot.
local function sure_of_frames(tvb, stop)
    local r = Reader.new(tvb, HEADER_LEN, stop)
    local ok, failure = pcall(function() while r:left() > 0 do dissect_frame(r) end end)
    if not ok and getmetatable(failure) ~= MALFORMED then error(failure, 0) end
    return ok and r.bits or nil
end

-- Step 3: whether frames are in clear. Until that is sure they are shown sealed; tshark -2 decides before it shows.
local function is_clear(tvb, label, first_pass)
    local wish = hawser.prefs.clear
    if wish ~= CLEAR_GUESS then return wish == CLEAR_ALWAYS end
    local known = clear_labels[label]
    if first_pass and type(known) ~= "boolean" then
        local bits = sure_of_frames(tvb, tvb:len() - TAG_LEN)
        known = bits ~= nil and (known or 0) + bits
        if known and known >= SURE_BITS then known = true end
        clear_labels[label] = known
    end
    return known == true
end

---------------------------------------------------------------------------------------------------- datagrams

local function dissect_data(tvb, pinfo, tree, root)
    local r = Reader.new(tvb, 1, tvb:len())
    local label = r:field(tree, f.label, 4):uint()
    local number = r:field(tree, f.number, 4):uint()
    local told = string.format("label=0x%08x number=%u", label, number)
    if r:left() < TAG_LEN then malformed("no room for a tag") end
    r.stop = tvb:len() - TAG_LEN
    local complete = tvb:len() == tvb:reported_len()
    if complete and is_clear(tvb, label, not pinfo.visited) then
        local names = {}
        -- The inner packet's dissectors set the columns: what is told here stays before it.
        while r:left() > 0 do names[#names + 1] = dissect_frame(r, tree, pinfo, root) end
        told = told .. " " .. table.concat(names, " ")
    elseif r:left() > 0 then
        r:field(tree, f.sealed, r:left())
    end
    r.stop = tvb:len()
    r.at = r.stop - TAG_LEN
    r:field(tree, f.tag, TAG_LEN)
    return told
end

local function dissect_initiation(tvb, tree)
    local r = Reader.new(tvb, 1, tvb:len())
    local index = r:field(tree, f.index, 4):uint()
    r:field(tree, f.ephemeral, 32)
    r:field(tree, f.static, 48)
    r:field(tree, f.payload, 40)
    r:field(tree, f.mac1, 16)
    local mac2 = r:field(tree, f.mac2, 16)
    local cookie = mac2:raw() ~= NO_MAC
    tree:add(f.has_cookie, mac2, cookie):set_generated()
    return string.format("index=0x%08x%s", index, cookie and " with a cookie" or "")
end

local function dissect_response(tvb, tree)
    local r = Reader.new(tvb, 1, tvb:len())
    local index = r:field(tree, f.index, 4):uint()
    local receiver = r:field(tree, f.receiver, 4):uint()
    r:field(tree, f.ephemeral, 32)
    r:field(tree, f.payload, 40)
    r:field(tree, f.mac1, 16)
    local mac2 = r:field(tree, f.mac2, 16)
    if mac2:raw() ~= NO_MAC then tree:add_proto_expert_info(e_reserved) end
    return string.format("index=0x%08x receiver=0x%08x", index, receiver)
end

local function dissect_cookie(tvb, tree)
    local r = Reader.new(tvb, 1, tvb:len())
    local receiver = r:field(tree, f.receiver, 4):uint()
    r:field(tree, f.salt, 24)
    r:field(tree, f.cookie, 32)
    return string.format("receiver=0x%08x", receiver)
end

-- One datagram; gives a line about it.
local function dissect_datagram(tvb, pinfo, tree, root)
    local first = tvb(0, 1)
    local kind = bit.rshift(first:uint(), 4)
    tree:add(f.kind, first)
    tree:add(f.flags, first)
    local name = TYPES[kind]
    if not name then malformed("unknown type") end
    if bit.band(first:uint(), 0x0f) ~= 0 then tree:add_proto_expert_info(e_reserved) end
    if LENGTHS[kind] and tvb:reported_len() ~= LENGTHS[kind] then malformed("wrong length for its type") end
    local told
    if kind == 1 then told = dissect_initiation(tvb, tree)
    elseif kind == 2 then told = dissect_response(tvb, tree)
    elseif kind == 3 then told = dissect_cookie(tvb, tree)
    else told = dissect_data(tvb, pinfo, tree, root) end
    return name .. " " .. told
end

-- Step 2: the size of the first datagram, where the capturing host holds several.
local function segment_size(tvb)
    local len = tvb:len()
    local message = LENGTHS[bit.rshift(tvb(0, 1):uint(), 4)]
    if message and len > message and len % message == 0 then
        for at = message, len - 1, message do
            if tvb(at, 1):uint() ~= tvb(0, 1):uint() then return len end
        end
        return message
    end
    if len < 2 * (HEADER_LEN + TAG_LEN) or tvb(0, 1):uint() ~= 0x40 then return len end
    local raw = tvb:raw()
    local label, first = raw:sub(1, LABEL_LEN), tvb(LABEL_LEN, 4):uint()
    local at = raw:find(label, HEADER_LEN + TAG_LEN + 1, true)
    while at and at + HEADER_LEN - 1 <= len do
        local ahead = (tvb(at - 1 + LABEL_LEN, 4):uint() - first) % 2 ^ 32
        if ahead >= 1 and ahead <= GAP_MAX then return at - 1 end
        at = raw:find(label, at + 1, true)
    end
    return len
end

-- All datagrams of what was captured as one.
local function dissect_all(tvb, pinfo, root)
    pinfo.cols.protocol = "Hawser"
    pinfo.cols.info = ""
    local size = segment_size(tvb)
    local lines, at = {}, 0
    repeat
        local len = math.min(size, tvb:len() - at)
        -- Where it is one, what the capture does not have of it stays known.
        local one = size == tvb:len() and tvb or tvb(at, len):tvb()
        local tree = root:add(hawser, one(0, len))
        if size < tvb:len() then tree:add_proto_expert_info(e_several) end
        local ok, told = pcall(dissect_datagram, one, pinfo, tree, root)
        if not ok then
            if getmetatable(told) ~= MALFORMED then error(told, 0) end
            if one:len() < one:reported_len() then
                told = "Cut short by the capture"
            else
                tree:add_proto_expert_info(e_malformed, "Malformed datagram: " .. told.why)
                told = "Malformed: " .. told.why
            end
        end
        lines[#lines + 1] = told
        at = at + len
    until at >= tvb:len()
    -- An inner packet's dissectors wrote their own lines.
    pinfo.cols.protocol = "Hawser"
    local inner = tostring(pinfo.cols.info)
    if inner:find("^%(") then inner = "" end
    pinfo.cols.info = table.concat(lines, "; ") .. (inner ~= "" and (" | " .. inner) or "")
end

---------------------------------------------------------------------------------------------------- carriers

-- Whether the bytes are as long as a message of their type is.
local function may_be(tvb)
    if tvb:len() < HEADER_LEN + TAG_LEN then return false end
    local first = tvb(0, 1):uint()
    if bit.band(first, 0x0f) ~= 0 then return false end
    local kind = bit.rshift(first, 4)
    return kind == 4 or LENGTHS[kind] == tvb:reported_len()
end

-- TLS records begin with their type and 03; at the place of its minor version a record of ours has a datagram's type.
local function is_tls(tvb)
    if tvb:len() < 3 then return false end
    local kind = tvb(0, 1):uint()
    return kind >= 20 and kind <= 23 and tvb(1, 1):uint() == 3 and tvb(2, 1):uint() <= 4
end

function hawser.dissector(tvb, pinfo, root)
    if tvb:len() == 0 then return 0 end
    dissect_all(tvb, pinfo, root)
    return tvb:len()
end

local tcp = Proto("hawser.tcp", "Hawser record")
function tcp.dissector(tvb, pinfo, root)
    if is_tls(tvb) then return Dissector.get("tls"):call(tvb, pinfo, root) end
    local function length(at_tvb, _, offset) return 2 + at_tvb(offset, 2):uint() end
    local function record(one, one_pinfo, one_root)
        one_root:add(f.record_length, one(0, 2))
        if one:len() > 2 then dissect_all(one(2):tvb(), one_pinfo, one_root) end
        return one:len()
    end
    dissect_tcp_pdus(tvb, root, 2, length, record)
    return tvb:len()
end

hawser:register_heuristic("udp", function(tvb, pinfo, root)
    if not hawser.prefs.heuristic or not may_be(tvb) or tvb(0, 1):uint() == 0x40 then return false end
    pinfo.conversation = hawser
    hawser.dissector(tvb, pinfo, root)
    return true
end)

local registered = {}
local function register()
    for table_name, entry in pairs(registered) do DissectorTable.get(table_name):remove(entry[1], entry[2]) end
    registered = {
        ["udp.port"] = { hawser.prefs.port, hawser },
        ["tcp.port"] = { hawser.prefs.port, tcp },
        ["ip.proto"] = { hawser.prefs.protocol, hawser },
    }
    for table_name, entry in pairs(registered) do DissectorTable.get(table_name):add(entry[1], entry[2]) end
end
function hawser.prefs_changed() register() end
register()
