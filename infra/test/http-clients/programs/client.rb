# Sends checks with Net::HTTP.

require 'json'
require 'net/http'
require 'stringio'
require 'zlib'

api_key, license, idle, *paths = ARGV
body = JSON.generate(license: license)
idle = idle.to_i
headers = { 'Authorization' => "Bearer #{api_key}", 'Content-Type' => 'application/json' }

paths.each do |one|
  path, url = one.split('=', 2)
  uri = URI(url)
  post = lambda do |http, data, given = {}|
    request = Net::HTTP::Post.new(uri, headers.merge(given))
    data.is_a?(StringIO) ? request.body_stream = data : request.body = data
    http.request(request).code
  end
  once = ->(data, given = {}) { Net::HTTP.start(uri.host, uri.port) { |http| post.(http, data, given) } }
  twice = lambda do |seconds|
    http = Net::HTTP.new(uri.host, uri.port)
    http.keep_alive_timeout = 60
    http.start do
      post.(http, body)
      sleep seconds
      post.(http, body)
    end
  end
  expecting = lambda do
    http = Net::HTTP.new(uri.host, uri.port)
    http.continue_timeout = 5
    http.start { post.(http, body, 'Expect' => '100-continue') }
  end
  cases = {
    'length' => -> { once.(body) },
    'chunked' => -> { once.(StringIO.new(body), 'Transfer-Encoding' => 'chunked') },
    'expect' => expecting,
    'reuse' => -> { twice.(0) },
    'gzip' => -> { once.(Zlib.gzip(body), 'Content-Encoding' => 'gzip') },
    'bom' => -> { once.("\uFEFF#{body}") },
    'large' => -> { once.(body.ljust(1_100_000)) },
  }
  cases['idle'] = -> { twice.(idle) } if idle > 0
  cases.each do |name, send|
    result = begin
      send.call
    rescue StandardError => e
      "error: #{e.class}: #{e.message}"
    end
    puts ['Ruby Net::HTTP', path, name, result].join("\t")
  end
end
