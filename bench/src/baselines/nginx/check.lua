-- Decides a check from the shared dictionaries.
local ffi = require("ffi")
local address = require("address")
local json = require("cjson.safe")

ffi.cdef("unsigned char *SHA256(const unsigned char *bytes, size_t length, unsigned char *hash);")

local credentials, licenses = ngx.shared.credentials, ngx.shared.licenses
local machines, rules = ngx.shared.machines, ngx.shared.rules
local var, req, now = ngx.var, ngx.req, ngx.now
local license_p = ffi.typeof("const license_t *")
local hash = ffi.new("unsigned char[32]")
local SUSPENDED, REVOKED = ("s"):byte(), ("r"):byte()
local RANK = { B = 1, E = 2, A = 3 }
local MESSAGES = {
  NOT_FOUND = "No license with this key exists.",
  BLACKLISTED = "This check was refused.",
  REVOKED = "The license has been revoked.",
  SUSPENDED = "The license is suspended.",
  EXPIRED = "The license has expired.",
  FINGERPRINT_REQUIRED = "This license needs a machine id.",
  TOO_MANY_MACHINES = "The license is already active on the maximum number of machines.",
}
local VALID = '{"valid":true,"status":200,"message":"The license is valid.","code":"VALID","expiresAt":'

local function respond(status, body)
  ngx.status = status
  ngx.header["Content-Length"] = #body
  ngx.print(body)
end

local function problem(status, code, message)
  respond(status, json.encode({ status = status, code = code, message = message }))
end

local function reject(code)
  respond(400, '{"valid":false,"status":400,"message":"' .. MESSAGES[code] .. '","code":"' .. code .. '"}')
end

local function accept(license)
  local text = license.length == 0 and "null" or '"' .. ffi.string(license.text, license.length) .. '"'
  respond(200, VALID .. text .. "}")
end

-- Returns the organization of an API key. A worker keeps the keys of a second in a table.
local seen, seenAt = {}, 0
local function authenticate(header)
  if now() - seenAt > 1 then seen, seenAt = {}, now() end
  local known = header and seen[header]
  if known then return known end
  local secret = header and header:match("^[Bb]earer +(%S+)$")
  if not secret then return nil end
  ffi.C.SHA256(secret, #secret, hash)
  local entry = credentials:get(ffi.string(hash, 32))
  if not entry then return nil end
  local organization, expires = entry:match("^(%d+) (%d*)$")
  if expires ~= "" and tonumber(expires) <= now() * 1000 then return nil end
  seen[header] = organization
  return organization
end

-- The deciding rule so far: the rank of its scope, and of its effect within the scope.
local level, rank
local function consider(list, license, time)
  for scope, effect, expires in list:gmatch("([^=;]+)=(%a)(%d*);") do
    if expires == "" or tonumber(expires) > time then
      local at = scope == "O" and 1 or scope == "P" .. license.product and 2 or scope == "L" .. license.number and 3 or 0
      if at > level or (at == level and at > 0 and RANK[effect] > rank) then level, rank = at, RANK[effect] end
    end
  end
end

local function findRules(organization, license, machine, lengths, time)
  level, rank = 0, 0
  local list = rules:get(organization .. "U" .. license.customer)
  if list then consider(list, license, time) end
  list = machine and rules:get(organization .. "H" .. machine)
  if list then consider(list, license, time) end
  local country = var.http_x_country
  list = country and rules:get(organization .. "C" .. country)
  if list then consider(list, license, time) end
  local known = lengths[organization]
  if not known then return end
  local forwarded = var.http_x_forwarded_for
  local family = address.parse(forwarded and forwarded:match("([^, ]+)$") or var.remote_addr)
  if not family then return end
  local own = known[family]
  for n = 1, #own do
    list = rules:get(organization .. "I" .. address.key(family, own[n]))
    if list then consider(list, license, time) end
  end
end

-- Takes a slot, or records the machine where there is no limit. Returns false when no slot is free. The counter of a license starts with
-- the slots that were taken when the data was loaded. Increments are atomic, so workers never exceed the limit together.
local function claim(license, key)
  if license.limit < 0 then return machines:safe_add(key, true) or true end
  local counter = "used " .. license.number
  local used = machines:incr(counter, 1, license.used)
  if used > license.limit then
    machines:incr(counter, -1)
    return false
  end
  if not machines:safe_add(key, true) then machines:incr(counter, -1) end
  return true
end

return function(lengths)
  local organization = authenticate(var.http_authorization)
  if not organization then return problem(401, "UNAUTHORIZED", "The API key is missing or unknown.") end
  req.read_body()
  local body = json.decode(req.get_body_data())
  if type(body) ~= "table" or type(body.license) ~= "string" then
    return problem(422, "INVALID_REQUEST", "license must be a string.")
  end
  local machine
  for _, field in ipairs({ "fingerprint", "hwid", "host", "macAddress" }) do
    local value = body[field]
    if not machine and value and value ~= json.null and value ~= "" then machine = value end
  end
  if machine and type(machine) ~= "string" then
    return problem(422, "INVALID_REQUEST", "The machine id must be a string.")
  end
  local value = licenses:get(organization .. ":" .. body.license)
  if not value then return reject("NOT_FOUND") end
  local license = ffi.cast(license_p, value)
  local time = now() * 1000
  findRules(organization, license, machine, lengths, time)
  if rank == RANK.B then return reject("BLACKLISTED") end
  if license.status == REVOKED then return reject("REVOKED") end
  if rank ~= RANK.A then
    if license.status == SUSPENDED then return reject("SUSPENDED") end
    if license.expires <= time then return reject("EXPIRED") end
  end
  if level > 0 then return accept(license) end
  if not machine then
    if license.limit < 0 then return accept(license) end
    return reject("FINGERPRINT_REQUIRED")
  end
  local key = license.number .. ":" .. machine
  if machines:get(key) or claim(license, key) then return accept(license) end
  return reject("TOO_MANY_MACHINES")
end
