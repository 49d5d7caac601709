-- Sends prepared checks in turn. Arguments: the file of checks, one a line: path, headers and body separated by tabs,
-- headers as name=value separated by "|"; the mark that is replaced by a number nobody has sent yet; and "naps" if it shall nap.
local threads = {}

function setup(thread)
  thread:set("number", #threads)
  threads[#threads + 1] = thread
end

-- wrk waits for answers asleep, and each one that comes then wakes it: an interrupt to another core, which the server's core has to
-- send and on a virtual machine pays dearly. So where no answer is there it naps by a timer, which costs the server nothing,
-- and finds some when it wakes. It looks before every fourth request, since looking costs it time, too. Meant for dozens of
-- connections: with a few of them there is often nothing to find. Linux alone.
local NAP_US, LOOK_EVERY = 50, 4
local ffi, queue, ready

local function prepareNaps()
  ffi = require("ffi")
  ffi.cdef("int epoll_wait(int, void *, int, int); int usleep(unsigned); ssize_t readlink(const char *, char *, size_t);")
  ready = ffi.new("char[64]")
  local name = ffi.new("char[64]")
  for descriptor = 3, 1023 do
    local length = ffi.C.readlink("/proc/self/fd/" .. descriptor, name, 64)
    -- The last one is this thread's own: the next thread's is not made yet.
    if length > 0 and ffi.string(name, length) == "anon_inode:[eventpoll]" then queue = descriptor end
  end
end

local function napIfIdle()
  asked = asked + 1
  -- One is always ready: the connection that is about to be written to.
  if asked % LOOK_EVERY > 0 or ffi.C.epoll_wait(queue, ready, 2, 0) > 1 then return end
  naps = naps + 1
  ffi.C.usleep(NAP_US)
end

function init(args)
  if args[3] == "naps" then prepareNaps() end
  asked, naps = 0, queue and 0
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
    '"naps":%s,"refusals":%d,"errors":{"connect":%d,"read":%d,"write":%d,"timeout":%d}}\n',
    summary.requests, summary.duration, latency.mean, latency.max, table.concat(percentiles, ","),
    slept or "null", e.status, e.connect, e.read, e.write, e.timeout))
end
