/**
 * Sends problem responses for errors that never reach the application, such as malformed HTTP, headers that are too large, and requests
 * that arrive too slowly. Node's own responses would have no request id.
 */

import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'

import type { ProblemCode } from '@keyward/contract'

import { newRequestId } from './headers.ts'
import { ApiError } from './problem.ts'
import { problemResponse, type WireResponse } from './response.ts'

/** The problem code for each error code of Node. Every other error is MALFORMED_HTTP. */
const CODES: Record<string, ProblemCode> = {
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'PAYLOAD_TOO_LARGE',
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
}

/** Returns a response that closes the connection, because the bytes that follow may belong to the rejected request. */
function closingResponse(code: ProblemCode, path: string, requestId: string): WireResponse {
  const { status, headers, body } = problemResponse(new ApiError(code), path, requestId)
  const closing = { 'x-request-id': requestId, 'cache-control': 'no-store', connection: 'close' }
  return { status, headers: { ...headers, ...closing, 'content-length': String(Buffer.byteLength(body)) }, body }
}

function serialize({ status, headers, body }: WireResponse): string {
  const lines = Object.entries({ date: new Date().toUTCString(), ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  )
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n')
}

function send(request: IncomingMessage, response: ServerResponse, code: ProblemCode): void {
  const [path = ''] = (request.url ?? '').split('?')
  const { status, headers, body } = closingResponse(code, path, newRequestId(request))
  response.writeHead(status, headers).end(body)
}

/** A connection with its last two responses, which may be unfinished. */
interface Connection {
  /** The response to the request before the last one. That request has arrived completely. */
  previous: ServerResponse | null
  last: ServerResponse
  isRejected: boolean
}

/**
 * Responds to requests that violate HTTP, and passes valid requests to `serve`. The server must have `requireHostHeader: false`.
 */
export function handleProtocolErrors(
  server: Server,
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): void {
  const connections = new WeakMap<Duplex, Connection>()
  server.on('request', (request, response) => {
    const previous = connections.get(request.socket)?.last ?? null
    connections.set(request.socket, { previous, last: response, isRejected: false })
    if (request.headers.host === undefined && request.httpVersion !== '1.0') send(request, response, 'MALFORMED_HTTP')
    else serve(request, response)
  })
  server.on('checkExpectation', (request, response) => send(request, response, 'EXPECTATION_FAILED'))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const reject = () => {
      if (!socket.writable) return socket.destroy(error)
      const code = CODES[error.code ?? ''] ?? 'MALFORMED_HTTP'
      return socket.end(serialize(closingResponse(code, '', randomUUID())), () => socket.destroy())
    }
    const connection = connections.get(socket)
    if (!connection) {
      reject()
      return
    }
    if (connection.isRejected) return
    connection.isRejected = true
    const { previous, last } = connection
    // The malformed bytes follow the complete requests, so the responses to these requests are sent first. A request that got its response
    // before its body was complete gets no second response.
    const isResponded = !last.req.complete && last.headersSent
    const awaited = last.req.complete || isResponded ? last : previous
    const end = isResponded ? () => socket.destroy(error) : reject
    if (awaited === null || awaited.writableFinished) end()
    else awaited.once('finish', end)
  })
}
