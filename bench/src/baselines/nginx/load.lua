-- Loads the lines of `world.ts` into the shared dictionaries, in the master process before it starts the workers.
local ffi = require("ffi")
local address = require("address")

ffi.cdef([[
  typedef struct { double expires; int32_t number, product, customer, limit, used; char status; uint8_t length; char text[24]; } license_t;
]])

local decode, shared = ngx.decode_base64, ngx.shared
-- Per organization and family: the lengths of the networks that rules name. Workers inherit the table.
local lengths = {}

local function store(dictionary, key, value)
  local stored, reason = shared[dictionary]:safe_set(key, value)
  if not stored then error(dictionary .. ": " .. reason) end
end

local add = {}

function add.C(hash, organization, expires)
  store("credentials", decode(hash), organization .. " " .. expires)
end

function add.L(organization, key, number, product, customer, status, expires, text, limit, used)
  local license = ffi.new("license_t")
  license.expires = tonumber(expires) or math.huge
  license.number, license.product, license.customer = tonumber(number), tonumber(product), tonumber(customer)
  license.limit, license.used = tonumber(limit) or -1, tonumber(used)
  license.status, license.length = status:byte(), #text
  ffi.copy(license.text, text, #text)
  store("licenses", organization .. ":" .. decode(key), ffi.string(license, ffi.sizeof(license)))
end

function add.M(license, machine)
  store("machines", license .. ":" .. decode(machine), true)
end

function add.R(organization, type, value, scope, effect, expires)
  local text = decode(value)
  if type == "I" then
    local host, length = text:match("^([^/]*)/?(%d*)$")
    local family = address.parse(host)
    length = tonumber(length) or (family == 4 and 32 or 128)
    local known = lengths[organization] or { [4] = {}, [6] = {} }
    lengths[organization] = known
    if not known[family][length] then
      known[family][length] = true
      table.insert(known[family], length)
    end
    text = address.key(family, length)
  end
  local key = organization .. type .. text
  store("rules", key, (shared.rules:get(key) or "") .. scope .. "=" .. effect .. expires .. ";")
end

return function(path)
  for line in io.lines(path) do
    local fields = {}
    for field in (line .. "\t"):gmatch("([^\t]*)\t") do fields[#fields + 1] = field end
    add[fields[1]](unpack(fields, 2))
  end
  -- In arrays, so that a check iterates over numbers.
  for organization, families in pairs(lengths) do
    lengths[organization] = { [4] = { unpack(families[4]) }, [6] = { unpack(families[6]) } }
  end
  return lengths
end
