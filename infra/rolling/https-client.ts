/**
 * A client of the base address over TLS with keep-alive connections. It verifies the certificate. It never retries, so
 * that every failure is visible.
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
  /** Sends a request. Rejects if no response arrives within 15 s. */
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

export function createHttpsClient(baseUrl: string, certificate: string, connections: number): HttpsClient {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, ca: certificate })
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
        const sent = request(`${baseUrl}${path}`, { method, agent, headers: all }, (response) => {
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

function parse(body: string): unknown {
  try {
    const value: unknown = JSON.parse(body)
    return value
  } catch {
    return body
  }
}
