/** Starts receivers of webhooks on this machine, which verify signatures with the official library. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

import { Webhook } from 'standardwebhooks'

/** The variables with which a service may send webhooks to receivers on this machine. */
export const LOCAL_WEBHOOKS = {
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
  WEBHOOK_ALLOWED_PORTS: 'all',
  WEBHOOK_ALLOW_HTTP: 'true',
}

export interface Received {
  id: string
  path: string
  body: string
  headers: Record<string, string>
}

export interface Receiver {
  url: string
  received: Received[]
  close(): Promise<void>
}

type Respond = (received: Received, response: ServerResponse) => void

async function read(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = []
  for await (const chunk of request) if (chunk instanceof Buffer) chunks.push(chunk)
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
  return { id: headers['webhook-id'] ?? '', path: request.url ?? '', body: Buffer.concat(chunks).toString(), headers }
}

/** Returns the payload. Throws unless the official library accepts the signature. */
export function verify(secret: string, { body, headers }: Received): unknown {
  return new Webhook(secret).verify(body, headers)
}

/** Starts a receiver. By default, the receiver responds with 204. */
export async function startReceiver(
  respond: Respond = (_, response) => void response.writeHead(204).end(),
): Promise<Receiver> {
  const received: Received[] = []
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const one = await read(request)
      received.push(one)
      respond(one, response)
    } catch {
      response.destroy()
    }
  }
  const server = createServer((request, response) => {
    void receive(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
