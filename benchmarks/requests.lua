-- Signed requests from a file, one per line, each sent once (and from the start again where they run out).
-- wrk … -- FILE PATH; prints one JSON line at the end.
-- wrk asks for one request before it begins, and does not send it: it gets the last one.
local requests, at = {}, -1

function init(args)
  for line in io.lines(args[1]) do
    local id, stamp, signature, body = line:match("^(.-)\t(.-)\t(.-)\t(.*)$")
    requests[#requests + 1] = "POST " .. args[2] .. " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
      .. "webhook-id: " .. id .. "\r\nwebhook-timestamp: " .. stamp .. "\r\nwebhook-signature: " .. signature
      .. "\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
  end
end

function request()
  at = at + 1
  return requests[(at - 1) % #requests + 1]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.6f, "failed": %d, "p50_ms": %.3f, "p99_ms": %.3f}\n',
    summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
