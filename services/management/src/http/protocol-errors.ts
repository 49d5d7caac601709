/**
 * What Node's HTTP layer would answer by itself, without a request id and in words of its own: what is no HTTP, headers that are too
 * large, a request that does not come to its end, an expectation. Here they are problems as every other refusal is.
 */
import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'

import type { ProblemCode } from '@keyward/contract'

import type { WireAnswer } from './idempotency.ts'
import { Refusal } from './problem.ts'
import { requestIdOf } from './router.ts'
import { refuse } from './transaction.ts'

/** By the code of Node's error; anything else is no HTTP. */
const codes: Record<string, ProblemCode> = {
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'PAYLOAD_TOO_LARGE',
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
}

/** The connection ends with it: what follows on it cannot be told from the rest of what was refused. */
function lastAnswer(code: ProblemCode, path: string, requestId: string): WireAnswer {
  const { status, headers, body } = refuse(new Refusal(code), path, requestId)
  const closing = { 'x-request-id': requestId, 'cache-control': 'no-store', connection: 'close' }
  return { status, headers: { ...headers, ...closing, 'content-length': String(Buffer.byteLength(body)) }, body }
}

function write({ status, headers, body }: WireAnswer): string {
  const lines = Object.entries({ date: new Date().toUTCString(), ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  )
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n')
}

function send(request: IncomingMessage, response: ServerResponse, code: ProblemCode): void {
  const [path = ''] = (request.url ?? '').split('?')
  const { status, headers, body } = lastAnswer(code, path, requestIdOf(request))
  response.writeHead(status, headers).end(body)
}

/** The answers on one connection that may be under way: the last that was begun, and the one before, whose request was whole. */
interface Answers {
  before: ServerResponse | null
  last: ServerResponse
  isRefused: boolean
}

/** The server must be one that does not ask for a `host` itself. */
export function answerUnserved(
  server: Server,
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): void {
  const connections = new WeakMap<Duplex, Answers>()
  server.on('request', (request, response) => {
    const before = connections.get(request.socket)?.last ?? null
    connections.set(request.socket, { before, last: response, isRefused: false })
    if (request.headers.host === undefined && request.httpVersion !== '1.0') send(request, response, 'MALFORMED_HTTP')
    else serve(request, response)
  })
  server.on('checkExpectation', (request, response) => send(request, response, 'EXPECTATION_FAILED'))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const refuseRest = () => {
      if (!socket.writable) return socket.destroy(error)
      const code = codes[error.code ?? ''] ?? 'MALFORMED_HTTP'
      return socket.end(write(lastAnswer(code, '', randomUUID())), () => socket.destroy())
    }
    const answers = connections.get(socket)
    if (!answers) {
      refuseRest()
      return
    }
    if (answers.isRefused) return
    answers.isRefused = true
    const { before, last } = answers
    // To requests that were whole the answers come first; what is wrong stands behind them. One that was refused before its
    // body came to its end has its answer already.
    const isAnswered = !last.req.complete && last.headersSent
    const awaited = last.req.complete || isAnswered ? last : before
    const end = isAnswered ? () => socket.destroy(error) : refuseRest
    if (awaited === null || awaited.writableFinished) end()
    else awaited.once('finish', end)
  })
}
