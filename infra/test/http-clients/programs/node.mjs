/** Sends checks with fetch (undici), node:http and axios. */

import { Agent, request } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'

import axios from 'axios'

const [apiKey, license, idle, ...paths] = process.argv.slice(2)
const json = JSON.stringify({ license })
const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
const bodies = { gzip: gzipSync(json), bom: `\ufeff${json}`, large: json.padEnd(1_100_000) }

async function viaFetch(url, body, given = {}, options = {}) {
  const response = await fetch(url, { method: 'POST', headers: { ...headers, ...given }, body, ...options })
  await response.text()
  return response.status
}

function viaHttp(url, body, given = {}, agent = false) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers: { ...headers, ...given }, agent })
    sent.on('error', reject)
    sent.on('response', (response) => response.resume().on('end', () => resolve(response.statusCode)))
    if (given.expect) sent.on('continue', () => sent.end(body)).flushHeaders()
    else if (given['transfer-encoding']) {
      sent.write(body.slice(0, 5))
      sent.end(body.slice(5))
    } else sent.end(body)
  })
}

async function viaAxios(url, body, given = {}, httpAgent) {
  const options = { headers: { ...headers, ...given }, httpAgent, validateStatus: null, maxRedirects: 0 }
  return (await axios.post(url, body, options)).status
}

async function twice(send, seconds) {
  await send()
  await sleep(seconds * 1_000)
  return send()
}

for (const [path, url] of paths.map((one) => one.split('='))) {
  const agent = new Agent({ keepAlive: true })
  const length = { 'content-length': Buffer.byteLength(json) }
  const clients = {
    'Node fetch': {
      length: () => viaFetch(url, json),
      chunked: () => viaFetch(url, new Blob([json]).stream(), {}, { duplex: 'half' }),
      reuse: () => twice(() => viaFetch(url, json), 0),
      gzip: () => viaFetch(url, bodies.gzip, { 'content-encoding': 'gzip' }),
      bom: () => viaFetch(url, bodies.bom),
      large: () => viaFetch(url, bodies.large),
      idle: () => twice(() => viaFetch(url, json), Number(idle)),
    },
    'Node http': {
      length: () => viaHttp(url, json, length),
      chunked: () => viaHttp(url, json, { 'transfer-encoding': 'chunked' }),
      expect: () => viaHttp(url, json, { ...length, expect: '100-continue' }),
      reuse: () => twice(() => viaHttp(url, json, length, agent), 0),
      gzip: () => viaHttp(url, bodies.gzip, { 'content-encoding': 'gzip' }),
      bom: () => viaHttp(url, bodies.bom),
      large: () => viaHttp(url, bodies.large, { 'content-length': bodies.large.length }),
      idle: () => twice(() => viaHttp(url, json, length, agent), Number(idle)),
    },
    axios: {
      length: () => viaAxios(url, json),
      chunked: () => viaAxios(url, Readable.from([json.slice(0, 5), json.slice(5)])),
      reuse: () => twice(() => viaAxios(url, json, {}, agent), 0),
      gzip: () => viaAxios(url, bodies.gzip, { 'content-encoding': 'gzip' }),
      // Given a text, axios would serialize it as JSON again.
      bom: () => viaAxios(url, Buffer.from(bodies.bom)),
      large: () => viaAxios(url, Buffer.from(bodies.large)),
      idle: () => twice(() => viaAxios(url, json, {}, agent), Number(idle)),
    },
  }
  for (const [client, cases] of Object.entries(clients))
    for (const [name, send] of Object.entries(cases)) {
      if (name === 'idle' && idle === '0') continue
      const result = await send().catch((error) => `error: ${error.cause ?? error}`)
      console.log([client, path, name, result].join('\t'))
    }
  agent.destroy()
}
