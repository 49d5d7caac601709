-- Converts addresses and networks to the bytes under which rules are stored: the family, the prefix length and the masked address.
local ffi = require("ffi")
local bit = require("bit")
local band, lshift = bit.band, bit.lshift

ffi.cdef("int inet_pton(int family, const char *text, void *address);")

local FAMILIES = { [4] = 2, [6] = 10 } -- AF_INET and AF_INET6 of Linux
local BYTES = { [4] = 4, [6] = 16 }
local MAPPED = string.rep("\0", 10) .. "\255\255" -- ::ffff:0:0/96
local parsed, masked = ffi.new("uint8_t[16]"), ffi.new("uint8_t[16]")

local address = {}

-- Parses an address into the bytes that `key` uses. Returns its family, 4 or 6, or nil for other text.
function address.parse(text)
  if ffi.C.inet_pton(FAMILIES[4], text, parsed) == 1 then return 4 end
  if ffi.C.inet_pton(FAMILIES[6], text, parsed) ~= 1 then return nil end
  if ffi.string(parsed, 12) ~= MAPPED then return 6 end
  ffi.copy(parsed, parsed + 12, 4)
  return 4
end

-- Returns the key of the network of this length that contains the parsed address.
function address.key(family, length)
  local bytes, whole = BYTES[family], (length - length % 8) / 8
  ffi.fill(masked, bytes)
  ffi.copy(masked, parsed, whole)
  if whole < bytes then masked[whole] = band(parsed[whole], lshift(255, 8 - length % 8)) end
  return string.char(family, length) .. ffi.string(masked, bytes)
end

return address
