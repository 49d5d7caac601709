/**
 * A client of the one base address: keep-alive connections over TLS, its certificate verified, and no retries of its own,
 * so that nothing a caller would have seen stays hidden.
 */
import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'

export interface Answer {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** Parsed when it is JSON. */
  body: unknown
}

export interface Client {
  /** Rejects when there is no answer. */
  send: (
    method: string,
    path: string,
    token: string,
    body?: object,
    headers?: Record<string, string>,
  ) => Promise<Answer>
  close: () => void
}

const TIMEOUT_MS = 15_000

export function createClient(baseUrl: string, certificate: string, connections: number): Client {
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
        const asked = request(`${baseUrl}${path}`, { method, agent, headers: all }, (response) => {
          text(response).then(
            (answer) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: parse(answer) }),
            reject,
          )
        })
        asked.setTimeout(TIMEOUT_MS, () => asked.destroy(new Error('No answer in time')))
        asked.on('error', reject).end(payload)
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
