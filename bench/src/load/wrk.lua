-- Sends prepared checks in turn. Arguments: the file of checks, one a line: path, headers and body separated by tabs,
-- headers as name=value separated by "|"; and the mark that is replaced by a number nobody has sent yet.
local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(args)
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
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"durationUs":%d,"meanUs":%.1f,"maxUs":%d,"percentilesUs":{%s},' ..
    '"refusals":%d,"errors":{"connect":%d,"read":%d,"write":%d,"timeout":%d}}\n',
    summary.requests, summary.duration, latency.mean, latency.max, table.concat(percentiles, ","),
    e.status, e.connect, e.read, e.write, e.timeout))
end
