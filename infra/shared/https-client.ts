/**
 * An HTTPS client for the base address, with keep-alive connections. It verifies the certificate. It never retries, so that
 * every failure is visible.
 */

import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'

export interface HttpResponse {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** The parsed JSON, or the text if it is not JSON. */
  body: unknown
}

export interface HttpsClient {
  /** Sends a request. Rejects if the connection is idle for 15 s. */
  send: (
    method: string,
    path: string,
    token: string,
    body?: object,
    headers?: Record<string, string>,
  ) => Promise<HttpResponse>
  close: () => void
}

const TIMEOUT_MS = 15_000

/** The options for a client on a machine that cannot resolve the base address. */
interface ConnectOptions {
  /** The host and the port to connect to, such as `keyward-balancer:443`, instead of those of the base address. */
  connectTo?: string | undefined
}

/**
 * Creates a client with at most `connections` connections. Without `certificate`, the client trusts the certificate authorities of Node.
 */
export function createHttpsClient(
  baseUrl: string,
  certificate: string | undefined,
  connections: number,
  { connectTo }: ConnectOptions = {},
): HttpsClient {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, ...(certificate ? { ca: certificate } : {}) })
  const { hostname, host } = new URL(baseUrl)
  const target = connectTo === undefined ? { headers: {} } : addressed(connectTo, hostname, host)
  return {
    close: () => agent.destroy(),
    send: async (method, path, token, body, headers = {}) => {
      const payload = body === undefined ? undefined : JSON.stringify(body)
      const all = {
        authorization: `Bearer ${token}`,
        ...(payload === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(payload)) }),
        ...headers,
      }
      return new Promise((resolve, reject) => {
        const options = { method, agent, ...target, headers: { ...all, ...target.headers } }
        const sent = request(`${baseUrl}${path}`, options, (response) => {
          text(response).then(
            (content) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: parse(content) }),
            reject,
          )
        })
        sent.setTimeout(TIMEOUT_MS, () => sent.destroy(new Error('no response in time')))
        sent.on('error', reject).end(payload)
      })
    },
  }
}

/** Returns the options of a request that connects to `connectTo` instead of the host in its URL. */
function addressed(connectTo: string, hostname: string, host: string) {
  const { hostname: name, port } = new URL(`https://${connectTo}`)
  return { host: name, hostname: name, port: port || 443, servername: hostname, headers: { host } }
}

function parse(body: string): unknown {
  try {
    const value: unknown = JSON.parse(body)
    return value
  } catch {
    return body
  }
}
