-- Sends prepared checks in turn. Arguments:
-- 1. the file of checks, one per line: path, headers and body separated by tabs, headers as name=value separated by "|"
-- 2. the placeholder for the number of a new machine
-- 3. "naps" to sleep while no response is waiting
local threads = {}

function setup(thread)
  thread:set("number", #threads)
  threads[#threads + 1] = thread
end

-- wrk sleeps until a response wakes it. The server's core has to send an interrupt for the wake-up, which is expensive on a
-- virtual machine. With "naps" this script sleeps by a timer while no response is waiting, which costs the server no time.
-- It polls before every fourth request, because a poll takes time too. Naps need dozens of connections: with few
-- connections there is often no response waiting. Linux only.
local NAP_US, LOOK_EVERY = 50, 4
local ffi, queue, ready

local function prepareNaps()
  ffi = require("ffi")
  ffi.cdef("int epoll_wait(int, void *, int, int); int usleep(unsigned); ssize_t readlink(const char *, char *, size_t);")
  ready = ffi.new("char[64]")
  local name = ffi.new("char[64]")
  for descriptor = 3, 1023 do
    local length = ffi.C.readlink("/proc/self/fd/" .. descriptor, name, 64)
    -- The last queue belongs to this thread, because the queue of the next thread does not exist yet.
    if length > 0 and ffi.string(name, length) == "anon_inode:[eventpoll]" then queue = descriptor end
  end
end

local function napIfIdle()
  looked = looked + 1
  -- One descriptor is always ready: that of the connection that this request is for.
  if looked % LOOK_EVERY > 0 or ffi.C.epoll_wait(queue, ready, 2, 0) > 1 then return end
  naps = naps + 1
  ffi.C.usleep(NAP_US)
end

function init(args)
  if args[3] == "naps" then prepareNaps() end
  looked, naps = 0, queue and 0
  requests, fresh, mark = {}, {}, args[2]
  prefix = string.format("%d%05d", number, os.time() % 100000)
  for line in io.lines(args[1]) do
    local path, fields, body = line:match("^([^\t]*)\t([^\t]*)\t(.*)$")
    local headers = {}
    for name, value in fields:gmatch("([^=|]+)=([^|]*)") do headers[name] = value end
    requests[#requests + 1] = wrk.format("POST", path, headers, body)
    fresh[#requests] = body:find(mark, 1, true) ~= nil
  end
  at, made = (number * 7919) % #requests, 0
end

function request()
  if queue then napIfIdle() end
  at = at % #requests + 1
  if not fresh[at] then return requests[at] end
  made = made + 1
  local text = string.format("%s%0" .. (#mark - #prefix) .. "d", prefix, made)
  local first, last = requests[at]:find(mark, 1, true)
  return requests[at]:sub(1, first - 1) .. text .. requests[at]:sub(last + 1)
end

function done(summary, latency)
  local percentiles = {}
  for _, p in ipairs({ "50", "75", "90", "99", "99.9", "99.99" }) do
    percentiles[#percentiles + 1] = string.format('"%s":%d', p, latency:percentile(tonumber(p)))
  end
  local e, slept = summary.errors, 0
  for _, thread in ipairs(threads) do slept = thread:get("naps") and slept + thread:get("naps") end
  io.write(string.format(
    'RESULT {"requests":%d,"durationUs":%d,"meanUs":%.1f,"maxUs":%d,"percentilesUs":{%s},' ..
    '"naps":%s,"failures":%d,"errors":{"connect":%d,"read":%d,"write":%d,"timeout":%d}}\n',
    summary.requests, summary.duration, latency.mean, latency.max, table.concat(percentiles, ","),
    slept or "null", e.status, e.connect, e.read, e.write, e.timeout))
end
