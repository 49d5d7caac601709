/**
 * Receives webhooks and returns 204 to each. `GET` returns the number of received events, the number of repeated attempts, and percentiles
 * of the time from the creation of an event to its receipt. `DELETE` resets these figures.
 */

import { createServer } from 'node:http'

import { announce } from '../baselines/announce.ts'
import { percentiles } from './stats.ts'

const received = new Map<string, number>()
let attempts = 0

/** Returns the time in a UUIDv7, in milliseconds since 1970. */
function msOf(id: string): number {
  return Number.parseInt(id.replace('-', '').slice(0, 12), 16)
}

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    const times = Array.from(received, ([id, atMs]) => atMs - msOf(id))
    response.end(
      JSON.stringify({ received: received.size, repeated: attempts - received.size, ms: percentiles(times) }),
    )
    return
  }
  if (request.method === 'DELETE') {
    received.clear()
    attempts = 0
    response.end('{}')
    return
  }
  request.resume()
  request.once('end', () => {
    const id = String(request.headers['webhook-id'])
    attempts++
    if (!received.has(id)) received.set(id, Date.now())
    response.writeHead(204).end()
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  announce(typeof address === 'object' && address ? address.port : 0, () => server.close())
})
