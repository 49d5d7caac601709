/** The error responses of the gateway. None of them has the field `valid`, so no client reads one as a verdict. */

import { type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'

interface GatewayError {
  status: number
  code: string
  detail: string
}

const UNAVAILABLE: GatewayError = {
  status: 503,
  code: 'UNAVAILABLE',
  detail: 'The service is temporarily unavailable.',
}
export const INVALID_HTTP: GatewayError = { status: 400, code: 'BAD_REQUEST', detail: 'The request is not valid HTTP.' }
export const SLOW: GatewayError = {
  status: 408,
  code: 'REQUEST_TIMEOUT',
  detail: 'The request did not arrive in time.',
}
const LONG_HEADERS: GatewayError = { status: 431, code: 'BAD_REQUEST', detail: 'The headers are too large.' }

export function tooLarge(mostBytes: number): GatewayError {
  return { status: 413, code: 'PAYLOAD_TOO_LARGE', detail: `The body is larger than ${mostBytes / 1024} KiB.` }
}

/** The responses to errors of Node's HTTP parser, by error code. Any other error of the parser gets INVALID_HTTP. */
const PARSER_ERRORS: Record<string, GatewayError> = {
  HPE_HEADER_OVERFLOW: LONG_HEADERS,
  ERR_HTTP_REQUEST_TIMEOUT: SLOW,
}

/** Returns the error that replaces a response of the validator's HTTP library that is not in JSON. */
export function libraryError(status: number): GatewayError {
  if (status === 431) return LONG_HEADERS
  return { ...INVALID_HTTP, status }
}

/** Returns a problem body with the field `message`, which clients of the validation API read. */
function errorBody({ status, code, detail }: GatewayError): string {
  return JSON.stringify({
    type: 'about:blank',
    title: STATUS_CODES[status],
    status,
    detail,
    message: detail,
    code,
  })
}

/** Sends the error. If a response has begun, closes the connection instead. */
export function sendError(response: ServerResponse, error: GatewayError): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.writeHead(error.status, {
    'content-type': 'application/problem+json',
    ...(error.status === 503 ? { 'retry-after': '1' } : {}),
    'cache-control': 'no-store',
  })
  response.end(errorBody(error))
}

export function sendUnavailable(response: ServerResponse): void {
  sendError(response, UNAVAILABLE)
}

/** Sends an error for requests that Node's parser rejects, and closes the connection. */
export function respondToInvalidHttp(server: Server): void {
  /** The connections with an incomplete response. An error on such a connection would become part of the response. */
  const busy = new WeakSet<Duplex>()
  server.on('request', ({ socket }, response) => {
    busy.add(socket)
    response.once('close', () => busy.delete(socket))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || busy.has(socket)) return socket.destroy(error)
    const rejection = PARSER_ERRORS[error.code ?? ''] ?? INVALID_HTTP
    const body = errorBody(rejection)
    const head = [
      `HTTP/1.1 ${rejection.status} ${STATUS_CODES[rejection.status]}`,
      'content-type: application/problem+json',
      `content-length: ${Buffer.byteLength(body)}`,
      'cache-control: no-store',
      'connection: close',
    ]
    return socket.end([...head, '', body].join('\r\n'), () => socket.destroy())
  })
}
