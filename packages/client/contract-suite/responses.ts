/** The responses that a client can receive from the service or from other programs, and the required results. */

import { CODES } from '@keyward/contract/vocabulary'

import type { Fault } from './service/gateway.ts'
import { type Expected, NO_FILE, OFFLINE_VALID, type World } from './world.ts'

type Outcome =
  | { kind: 'verdict'; expected: Expected }
  /** The response counts as an outage, so the stored file decides. */
  | { kind: 'outage' }
  | { kind: 'configuration'; reason: string; message?: string | undefined }

interface ResponseCase {
  name: string
  command: 'validate' | 'activate'
  fault: 'stopped' | Fault | ((world: World) => Fault)
  outcome: Outcome
  /** True if the response arrives after the time budget. Such a case has a short budget. */
  isLate: boolean
}

const SHORT_BUDGET_MS = 600
const EXPIRES_AT = '2999-01-01T00:00:00.000Z'
const REJECTIONS = CODES.filter((code) => code !== 'VALID')
const GRACE_ENDS_AT = '2999-01-04T00:00:00.000Z'
const OUTAGE: Outcome = { kind: 'outage' }
const VALID = {
  kind: 'verdict',
  expected: { source: 'online', valid: true, code: 'VALID', expiresAt: EXPIRES_AT },
} satisfies Outcome

const IN_GRACE: Outcome = { kind: 'verdict', expected: { ...VALID.expected, graceEndsAt: GRACE_ENDS_AT } }

const validV2 = { valid: true, status: 200, message: 'The license is valid.', code: 'VALID', expiresAt: EXPIRES_AT }
const rejectedV2 = { valid: false, status: 400, message: 'The license is – not – valid.', code: 'REVOKED' }
const validV1 = { valid: true, code: 'VALID', expiresAt: EXPIRES_AT }
const json = JSON.stringify

function respond(status: number, body: object | string, headers: Record<string, string> = {}): Fault {
  const type = { 'content-type': 'application/json' }
  return {
    kind: 'respond',
    status,
    headers: { ...type, ...headers },
    body: typeof body === 'string' ? body : json(body),
  }
}

function html(status: number): Fault {
  return respond(status, '<html><body>Please log in to the network</body></html>', { 'content-type': 'text/html' })
}

function raw(head: string, body = ''): Fault {
  return { kind: 'raw', bytes: `${head}\r\n\r\n${body}` }
}

function row(
  name: string,
  fault: ResponseCase['fault'],
  outcome: Outcome,
  given: Partial<ResponseCase> = {},
): ResponseCase {
  return { name, command: 'validate', fault, outcome, isLate: false, ...given }
}

function rejected(code: string, message: string): Outcome {
  return { kind: 'verdict', expected: { source: 'online', valid: false, code, message } }
}

function verdicts(): ResponseCase[] {
  const detail = 'Not on this machine: "ü".'
  return [
    row('v2 200 `VALID`', respond(200, validV2), VALID),
    ...REJECTIONS.map((code) =>
      row(`v2 400 \`${code}\``, respond(400, { ...rejectedV2, code }), rejected(code, rejectedV2.message)),
    ),
    row(
      'v2 400 with a code of a later version',
      respond(400, { ...rejectedV2, code: 'MOON_PHASE' }),
      rejected('REJECTED', rejectedV2.message),
    ),
    row(
      'v2 400 without a message',
      respond(400, { valid: false, status: 400, code: 'REVOKED' }),
      rejected('REVOKED', 'The check was rejected.'),
    ),
    row('v1 200 `VALID`', respond(200, validV1), VALID, { command: 'activate' }),
    ...REJECTIONS.map((code) =>
      row(`v1 200 \`${code}\``, respond(200, { valid: false, code, detail }), rejected(code, detail), {
        command: 'activate',
      }),
    ),
    row('v2 200 `VALID` in the grace period', respond(200, { ...validV2, graceEndsAt: GRACE_ENDS_AT }), IN_GRACE),
    row('v1 200 `VALID` in the grace period', respond(200, { ...validV1, graceEndsAt: GRACE_ENDS_AT }), IN_GRACE, {
      command: 'activate',
    }),
    row('`VALID` with a `graceEndsAt` that is not a time', respond(200, { ...validV2, graceEndsAt: 'later' }), VALID),
    row('a verdict with unknown fields', respond(200, { ...validV2, extra: [{ a: null }] }), VALID),
    row('a verdict with content type `text/plain`', respond(200, validV2, { 'content-type': 'text/plain' }), VALID),
    row(
      'a verdict with content type `text/html; charset=iso-8859-1`',
      respond(400, rejectedV2, { 'content-type': 'text/html; charset=iso-8859-1' }),
      rejected('REVOKED', rejectedV2.message),
    ),
    row('a verdict with white space around the JSON', respond(200, `\r\n\t ${json(validV2)}\n`), VALID),
    row(
      'a verdict without a `Date` and without a length',
      raw('HTTP/1.1 200 OK\r\nconnection: close', json(validV2)),
      VALID,
    ),
  ]
}

function brokenConnections(): ResponseCase[] {
  const short = json(validV2).slice(0, 40)
  return [
    row('nothing listens', 'stopped', OUTAGE),
    row('the connection is closed before the first byte of the response', { kind: 'drop' }, OUTAGE),
    row('the response ends in the middle of its body', { kind: 'cut' }, OUTAGE),
    row(
      'the response ends in the middle of its headers',
      { kind: 'raw', bytes: 'HTTP/1.1 200 OK\r\ncontent-le' },
      OUTAGE,
    ),
    row(
      'a chunked response ends without its last chunk',
      raw(
        'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked',
        `${json(validV2).length.toString(16)}\r\n${json(validV2)}\r\n`,
      ),
      OUTAGE,
    ),
    row(
      'a body shorter than its length',
      raw('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4000', json(validV2)),
      OUTAGE,
    ),
    row('a truncated verdict with a matching `content-length`', respond(200, short), OUTAGE),
    row('bytes that are not HTTP', { kind: 'raw', bytes: 'SSH-2.0-OpenSSH_9.2\r\n\r\n' }, OUTAGE),
    row('no response within the time budget', { kind: 'hang' }, OUTAGE, { isLate: true }),
    row('a response after the time budget', { kind: 'slow', delayMs: 9000 }, OUTAGE, { isLate: true }),
    row('endless headers that arrive byte by byte', { kind: 'trickle', start: 'HTTP/1.1 200 OK\r\ndate: ' }, OUTAGE, {
      isLate: true,
    }),
    row(
      'an endless body that arrives byte by byte',
      { kind: 'trickle', start: 'HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n' },
      OUTAGE,
      { isLate: true },
    ),
    row('a body of 200,000 bytes', respond(200, `${json(validV2)}${' '.repeat(200_000)}`), OUTAGE),
  ]
}

function otherPrograms(): ResponseCase[] {
  const redirect = (status: number) => (world: World) =>
    respond(status, '', { location: `${world.service.url}/api/v2/license/validate` })
  return [
    row('408', respond(408, { status: 408, message: 'Too slow.', code: 'REQUEST_TIMEOUT' }), OUTAGE),
    ...[500, 502, 503, 504, 599].map((status) =>
      row(`${status}`, respond(status, { status, message: 'Away.', code: 'UNAVAILABLE' }), OUTAGE),
    ),
    row('500 with a `VALID` verdict in its body', respond(500, validV2), OUTAGE),
    row('503 with a rejection in its body', respond(503, rejectedV2), OUTAGE),
    row('a login page with status 200', html(200), OUTAGE),
    row('a page of a proxy with status 400', html(400), OUTAGE),
    row('400 with JSON without `valid`', respond(400, { message: 'Bad request.', code: 'BAD_REQUEST' }), OUTAGE),
    row('200 with JSON without `valid`', respond(200, { ok: true }), OUTAGE),
    row('200 with an empty body', respond(200, ''), OUTAGE),
    row('204', { kind: 'respond', status: 204 }, OUTAGE),
    row('206 with a verdict', respond(206, validV2), OUTAGE),
    ...[301, 302, 307, 308].map((status) => row(`${status} to a URL that responds`, redirect(status), OUTAGE)),
  ]
}

function invalidVerdicts(): ResponseCase[] {
  const latin1 = Buffer.concat([Buffer.from(json(validV2).slice(0, -1)), Buffer.from(',"name":"Zo\xEB"}', 'latin1')])
  const bad: [string, number, object | string][] = [
    ['400 with `valid: true`', 400, validV2],
    ['v2 200 with `valid: false`', 200, rejectedV2],
    ['a `status` in the body that differs from the HTTP status', 200, { ...validV2, status: 400 }],
    ['`valid` as a string', 200, { ...validV2, valid: 'true' }],
    ['`valid` as a number', 200, { ...validV2, valid: 1 }],
    ['`valid: true` with the code of a rejection', 200, { ...validV2, code: 'REVOKED' }],
    ['`valid: false` with code `VALID`', 400, { ...rejectedV2, code: 'VALID' }],
    ['`valid: false` without a code', 400, { valid: false, status: 400, message: 'No.' }],
    ['a code in lower case', 400, { ...rejectedV2, code: 'revoked' }],
    ['`VALID` without `expiresAt`', 200, { valid: true, status: 200, message: '', code: 'VALID' }],
    ['`VALID` with an `expiresAt` that is not a time', 200, { ...validV2, expiresAt: 'tomorrow' }],
    ['a verdict in an array', 200, [validV2]],
    ['`null`', 200, 'null'],
    ['two concatenated verdicts', 200, json(validV2) + json(validV2)],
    ['a byte order mark before the verdict', 200, `\uFEFF${json(validV2)}`],
  ]
  return [
    ...bad.map(([name, status, body]) => row(name, respond(status, body), OUTAGE)),
    row(
      'a verdict that is not UTF-8',
      raw(`HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ${latin1.length}`, latin1.toString('latin1')),
      OUTAGE,
    ),
    row('v1 200 with `valid: false` and code `VALID`', respond(200, { ...validV1, valid: false }), OUTAGE, {
      command: 'activate',
    }),
    row('v1 200 with a login page', html(200), OUTAGE, { command: 'activate' }),
  ]
}

function configurationErrors(): ResponseCase[] {
  const reasons: [number, string][] = [
    [401, 'UNAUTHORIZED'],
    [403, 'FORBIDDEN'],
    [404, 'WRONG_ADDRESS'],
    [405, 'WRONG_ADDRESS'],
    [413, 'INVALID_REQUEST'],
    [415, 'INVALID_REQUEST'],
    [422, 'INVALID_REQUEST'],
    [429, 'RATE_LIMITED'],
    [409, 'UNEXPECTED_STATUS'],
    [418, 'UNEXPECTED_STATUS'],
  ]
  const config = (reason: string, message?: string): Outcome => ({ kind: 'configuration', reason, message })
  return [
    ...reasons.map(([status, reason]) =>
      row(`${status}`, respond(status, { status, message: 'No.', code: 'NO' }), config(reason)),
    ),
    row('401 with a rejection in its body', respond(401, rejectedV2), config('UNAUTHORIZED')),
    row('403 with the page of a firewall', html(403), config('FORBIDDEN', 'The service responded with status 403.')),
    row('404 with the page of a proxy', html(404), config('WRONG_ADDRESS', 'The service responded with status 404.')),
    row(
      '404 with an empty message',
      respond(404, { message: '' }),
      config('WRONG_ADDRESS', 'The service responded with status 404.'),
    ),
    row('v1 401', respond(401, { code: 'UNAUTHORIZED', detail: 'No.' }), config('UNAUTHORIZED'), {
      command: 'activate',
    }),
  ]
}

export const responseCases: readonly ResponseCase[] = [
  ...verdicts(),
  ...brokenConnections(),
  ...otherPrograms(),
  ...invalidVerdicts(),
  ...configurationErrors(),
]

/** Describes the required result for the list of cases. */
export function describeOutcome({ outcome }: ResponseCase): string {
  if (outcome.kind === 'verdict') return `online, \`${String(outcome.expected['code'])}\``
  return outcome.kind === 'outage' ? 'the stored file decides' : `\`CONFIGURATION\`, \`${outcome.reason}\``
}

/**
 * Stores a good file, sends the response to the client, and requires the result. Then requires that the app can still run offline with the
 * file, except after a rejection.
 */
export async function runResponseCase(world: World, { command, fault, outcome, isLate }: ResponseCase): Promise<void> {
  const budget = isLate ? { timeoutMs: SHORT_BUDGET_MS } : {}
  await world.open()
  await world.requireResult('validate', { source: 'online', valid: true })
  await world.open(budget)
  await applyFault(world, fault)
  const { expiresAt } = world.service.license
  switch (outcome.kind) {
    case 'outage':
      await world.requireResult(command, { ...OFFLINE_VALID, expiresAt })
      await world.open({ ...budget, storage: `${world.storage}.new` })
      await world.requireResult(command, NO_FILE)
      return
    case 'configuration':
      await world.requireResult(command, {
        source: 'online',
        valid: false,
        code: 'CONFIGURATION',
        reason: outcome.reason,
        ...(outcome.message !== undefined && { message: outcome.message }),
      })
      requireOneRequest(world)
      return requireFileAfter(world, { ...OFFLINE_VALID, expiresAt })
    case 'verdict': {
      const { valid, code } = await world.requireResult(command, outcome.expected)
      if (valid === true) return requireFileAfter(world, OFFLINE_VALID)
      requireOneRequest(world)
      return requireFileAfter(world, { ...NO_FILE, rejectedAs: code })
    }
  }
}

async function applyFault(world: World, fault: ResponseCase['fault']): Promise<void> {
  world.gateway.requests.length = 0
  if (fault === 'stopped') await world.gateway.stop()
  else world.gateway.fault = typeof fault === 'function' ? fault(world) : fault
}

async function requireFileAfter(world: World, expected: Expected): Promise<void> {
  world.gateway.fault = { kind: 'drop' }
  await world.open()
  await world.requireResult('validate', expected)
}

/** Throws unless the client sent exactly one request, because a client must not retry after a response of the service. */
function requireOneRequest({ gateway }: World): void {
  if (gateway.requests.length !== 1) throw new Error(`expected one request, got ${gateway.requests.join(', ')}`)
}
