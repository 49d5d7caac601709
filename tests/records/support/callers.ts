/** Defines the callers of the privacy test, whose addresses have every form that networks forward, and sends their requests. */

import { request } from 'node:http'

export interface Caller {
  /** The address in its canonical form. */
  readonly address: string
  /** The address in the form in which an edge network or proxy sends it. */
  readonly sent: string
  readonly country: string
}

/** No other test and no rule contains these addresses, so every occurrence comes from a check. */
export const CALLERS: readonly Caller[] = [
  { address: '203.0.113.77', sent: '203.0.113.77', country: 'NR' },
  { address: '198.51.100.142', sent: '198.51.100.142', country: 'TV' }, // in the range of a blacklist
  { address: '192.0.2.211', sent: '192.0.2.211', country: 'KI' }, // in the range of an exclusion
  { address: '198.18.227.59', sent: '198.18.227.59:51234', country: 'NU' },
  { address: '198.19.86.173', sent: '::ffff:198.19.86.173', country: 'TK' },
  { address: '203.0.113.189', sent: '[::ffff:cb00:71bd]:47115', country: 'WF' },
  { address: '2001:db8:7a77:a1b2:c3d4:e5f6:1728:394a', sent: '2001:db8:7a77:a1b2:c3d4:e5f6:1728:394a', country: 'NR' },
  { address: '2001:db8:ab00::c0de:1f3b', sent: '2001:0DB8:AB00:0000:0000:0000:C0DE:1F3B', country: 'PM' }, // in the range of a blacklist
  { address: '2001:db8:cd00:9d::7e57:beef', sent: '[2001:db8:cd00:9d::7e57:beef]:44300', country: 'SJ' }, // in the range of an exclusion
]

/** The source addresses of connections. On Linux, all addresses of 127.0.0.0/8 are this machine. */
export const PEERS: readonly string[] = process.platform === 'linux' ? ['127.113.86.201', '127.94.207.33'] : []

/** Invalid values that clients send as addresses. */
export const JUNK = ['unknown-caller-b7e1', '999.113.86.4412', '2001:db8::junk-5ac3', '127.113.86.201.evil']

export interface Reply {
  readonly status: number
  /** The status, headers and body as one text. */
  readonly text: string
  readonly code: string
}

export interface Request {
  readonly method?: string
  readonly path: string
  readonly body?: unknown
  readonly secret?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The source address of the connection. */
  readonly from?: string
}

/** Returns all headers in which a proxy or CDN sends the origin of a request. */
export function forwardedBy(caller: Caller, before?: Caller): Record<string, string> {
  const { sent, country } = caller
  return {
    'x-forwarded-for': before === undefined ? sent : `${before.sent}, ${sent}`,
    forwarded: `for="${sent}"`,
    'x-real-ip': sent,
    'cf-connecting-ip': caller.address,
    'true-client-ip': sent,
    'x-country': country,
    'cf-ipcountry': country,
  }
}

/** Sends a request. Never rejects: after a failed request, `text` is the error message. */
export function ask(port: number, { method = 'POST', path, body, secret, headers, from }: Request): Promise<Reply> {
  const bytes =
    body === undefined ? null : body instanceof Uint8Array || typeof body === 'string' ? body : JSON.stringify(body)
  return new Promise((resolve) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method,
        agent: false,
        ...(from !== undefined && { localAddress: from }),
        headers: {
          ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
          ...(bytes !== null && {
            'content-type': 'application/json',
            'content-length': String(Buffer.byteLength(bytes)),
          }),
          ...headers,
        },
      },
      (response) => {
        let text = ''
        response.setEncoding('latin1')
        response.on('data', (chunk: string) => (text += chunk))
        response.on('error', (error) => resolve({ status: 0, text: error.message, code: '' }))
        response.on('end', () => {
          const status = response.statusCode ?? 0
          const code = /"code":"(\w+)"/.exec(text)?.[1] ?? String(status)
          resolve({ status, text: `${status} ${response.rawHeaders.join(' ')}\n${text}`, code })
        })
      },
    )
    outgoing.setTimeout(10_000, () => outgoing.destroy(new Error('no response in time')))
    // The error message contains the target of the request and not its source.
    outgoing.on('error', (error) => resolve({ status: 0, text: error.message, code: '' }))
    outgoing.end(bytes ?? undefined)
  })
}
