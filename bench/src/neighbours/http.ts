/** Sends the requests of the generators. The status is 0 if the connection breaks or no response arrives in time. */

import { type Agent, request as httpRequest } from 'node:http'

const TIMEOUT_MS = 10_000

export interface Sent {
  port: number
  method?: string
  path: string
  /** The API key or token of the request. */
  secret?: string | undefined
  /** The address of the caller, which is sent in the header `x-client-ip`. */
  address?: string | undefined
  headers?: Record<string, string>
  body?: string | Buffer | undefined
  agent: Agent
}

export interface Reply {
  status: number
  text: string
}

export function send({ port, method = 'POST', path, secret, address, headers, body, agent }: Sent): Promise<Reply> {
  return new Promise((resolve) => {
    const request = httpRequest(
      {
        agent,
        port,
        host: '127.0.0.1',
        method,
        path,
        headers: {
          ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
          ...(address !== undefined && { 'x-client-ip': address }),
          ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
          ...headers,
        },
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      },
    )
    const broken = (): void => resolve({ status: 0, text: '' })
    request.on('error', broken)
    // A connection that ends within the response causes `close`, but no `error`.
    request.on('close', broken)
    request.setTimeout(TIMEOUT_MS, () => request.destroy())
    request.end(body)
  })
}
