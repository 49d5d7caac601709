/** Sends HTTP requests. Each request ends with a response, or with an error after a time limit, by default 10 s. */

import { type Agent, request } from 'node:http'

import { z } from 'zod'

export interface Reply {
  /** The HTTP status; 0 without a response. */
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  /** The code of the verdict or error; without a response, the code of the connection error. */
  code: string
  tookMs: number
  sentMs: number
}

export interface Sent {
  method?: string
  headers?: Record<string, string>
  body?: object | string | undefined
  secret?: string
  agent?: Agent
  limitMs?: number
}

const Coded = z.object({ code: z.string() })

function codeOf(text: string): string {
  try {
    return Coded.safeParse(JSON.parse(text)).data?.code ?? ''
  } catch {
    return ''
  }
}

/** Sends a request. All times are on the monotonic clock. */
export function send(port: number, path: string, sent: Sent = {}): Promise<Reply> {
  const { body, secret } = sent
  const bytes = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  const sentMs = performance.now()
  return new Promise((resolve) => {
    const end = (status: number, headers: Reply['headers'], text: string, code: string): void =>
      resolve({ status, headers, text, code, sentMs, tookMs: performance.now() - sentMs })
    const outgoing = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method: sent.method ?? 'POST',
        agent: sent.agent ?? false,
        headers: {
          ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(bytes) }),
          ...sent.headers,
        },
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.on('end', () => end(response.statusCode ?? 0, response.headers, text, codeOf(text)))
        response.on('error', (error) => end(0, {}, '', error.message))
      },
    )
    outgoing.setTimeout(sent.limitMs ?? 10_000, () => outgoing.destroy(new Error('no response in time')))
    outgoing.on('error', (error) => end(0, {}, '', error.message))
    outgoing.end(bytes)
  })
}

export interface CheckFields {
  license: string
  fingerprint?: string
  ip?: string
  country?: string
}

/** Sends a v2 check. The address and country are in headers that the validators of these tests trust. */
export function check(port: number, secret: string, fields: CheckFields, agent?: Agent): Promise<Reply> {
  const { ip, country, ...body } = fields
  const headers = {
    ...(ip !== undefined && { 'x-forwarded-for': ip }),
    ...(country !== undefined && { 'x-country': country }),
  }
  return send(port, '/api/v2/license/validate', { body, secret, headers, ...(agent && { agent }) })
}

export function deactivate(port: number, secret: string, licenseKey: string, fingerprint: string): Promise<Reply> {
  return send(port, '/api/v1/deactivate', { body: { licenseKey, fingerprint }, secret })
}

/** Sends a check. Returns whether the response has this code. */
export async function says(port: number, secret: string, fields: CheckFields, code: string): Promise<boolean> {
  return (await check(port, secret, fields)).code === code
}
