/**
 * Defines controls: attacks in which the attackers' process sends requests only to itself. They delay the quiet organization only because
 * all processes of the bench share the processors.
 */

import { Agent, createServer } from 'node:http'

import type { Attack } from './attacks.ts'
import { send } from './http.ts'

const agent = new Agent({ keepAlive: true, maxSockets: 1_000 })
const BODY = Buffer.alloc(2 * 1024 * 1024, 'x')

/** The port of a server in this process that sends empty responses. The server starts with the first request. */
let started: Promise<number> | null = null

function startServer(): Promise<number> {
  const server = createServer((request, response) => request.resume().on('end', () => response.end()))
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : 0)
    })
  })
}

function control(name: string, connections: number, body?: Buffer): Attack {
  return {
    name,
    connections,
    async step({ count }) {
      started ??= startServer()
      const reply = await send({ port: await started, path: '/', body, agent })
      count(reply.status)
    },
  }
}

export const CONTROLS: readonly Attack[] = [
  control('control: small requests that reach no service', 24),
  control('control: bodies of 2 MiB that reach no service', 12, BODY),
]
