/**
 * A small service with one organization and one license. It implements the rules of docs/api.md that clients depend on, over a real socket.
 * Most tests of the client use this service. `real-services.slow.test.ts` tests the client against the real services.
 */

import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

import {
  CODES,
  deactivateResponse,
  type LicenseMachines,
  licenseMachines,
  verdictV1,
  verdictV2,
} from '@keyward/contract'
import { generateKeyPair, type KeyPair, publicKeyToSpki, refreshAfterMs, signLicenseFile } from '@keyward/license-file'

import { AnswerSigner } from './answers.ts'
import { listen } from './listen.ts'

export interface Service {
  url: string
  apiKey: string
  licenseKey: string
  /** The public keys in the app. */
  publicKeys: { keyId: string; publicKey: string }[]
  /** The state of the license, which tests change. */
  license: {
    rejectedAs: string | null
    expiresAt: string | null
    graceEndsAt: string | null
    maxMachines: number | null
  }
  /** True when the license has reached its limit of releases. */
  isReleaseLimitReached: boolean
  /** Whether apps may list the machines and release them by ref. */
  listsMachines: boolean
  /** The host names of the machines with a slot, by machine id. */
  machines: Map<string, string | null>
  /** The key that signs files. Tests replace it to simulate an impostor. */
  signer: KeyPair
  /** The product of the license; null for a service that issues files without a product id. */
  productId: string | null
  /** The entitlements of the license; null for a service without entitlements. */
  entitlements: Record<string, true | number | string> | null
  /** The wrong license key in issued files, or null for the correct one. */
  fileKey: string | null
  /** The machine of issued files, or null for files that every machine may use. */
  fileMachine: string | null
  /** A text that is sent instead of files, or null. */
  fileText: string | null
  /** Returns the time at which files are issued. */
  now: () => number
  /** Signs the responses to requests that ask for it, unless their key is not `signer`. */
  answers: AnswerSigner
  /** A public key of the organization under which the service does not sign. */
  withdrawnKey: { keyId: string; publicKey: string }
  /** The header `Date` of all responses, or null for the correct time. */
  date: string | null
  /** The last response. */
  lastAnswer: { status: number; headers: Record<string, string>; body: string }
  close: () => Promise<void>
}

interface ServiceResponse {
  status: number
  body: object | string
}

export const DAY_MS = 24 * 60 * 60 * 1000

export async function startService(): Promise<Service> {
  const signer = generateKeyPair()
  const server = createServer((request, response) => {
    void respond(service, request, response)
  })
  const listening = await listen(server)
  const service: Service = {
    ...listening,
    apiKey: 'kwk_test',
    licenseKey: 'K7QX-93FM-TTRW-H2ZD',
    publicKeys: [publicKeyOf(signer)],
    license: {
      rejectedAs: null,
      graceEndsAt: null,
      expiresAt: new Date(Date.now() + 365 * DAY_MS).toISOString(),
      maxMachines: 1,
    },
    isReleaseLimitReached: false,
    listsMachines: true,
    machines: new Map(),
    signer,
    productId: '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a02',
    entitlements: { edition: 'pro', seats: 5 },
    fileKey: null,
    fileMachine: null,
    fileText: null,
    now: Date.now,
    answers: new AnswerSigner(),
    withdrawnKey: publicKeyOf(generateKeyPair()),
    date: null,
    lastAnswer: { status: 0, headers: {}, body: '' },
  }
  return service
}

function publicKeyOf({ keyId, publicKey }: KeyPair): { keyId: string; publicKey: string } {
  return { keyId, publicKey: publicKeyToSpki(publicKey) }
}

async function respond(service: Service, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const sent = await text(request)
  const { status, body } = respondTo(service, request, sent)
  const path = request.url ?? ''
  requireContract(path, body)
  const isText = typeof body === 'string'
  const answer = isText ? body : JSON.stringify(body)
  const signature = sign(service, sent, { path, status, response: answer })
  const headers = {
    'content-type': isText ? 'text/plain' : 'application/json',
    ...(service.date !== null && { date: service.date }),
    ...(signature !== null && { 'keyward-signature': signature }),
  }
  service.lastAnswer = { status, headers, body: answer }
  response.writeHead(status, headers).end(answer)
}

/** The paths that management serves. */
const UNSIGNED = new Set(['/api/v1/licenses/file', '/api/v1/machines'])

/** Returns the signature of a response, or null if the request asks for none. Errors other than `NOT_ENABLED`, and files, have none. */
function sign(service: Service, request: string, answer: { path: string; status: number; response: string }) {
  const { nonce, kid } = readFields(request)
  const isSigned = !UNSIGNED.has(answer.path) && [200, 400, 403].includes(answer.status)
  if (!isSigned || nonce?.length !== 22 || kid !== service.signer.keyId) return null
  return service.answers.sign({ ...answer, apiKey: service.apiKey, request }, service.signer)
}

/** Throws when a response does not match the contract. Ignores codes that the contract does not contain. */
function requireContract(path: string, body: ServiceResponse['body']): void {
  if (typeof body === 'string' || ('code' in body && !CODES.some((code) => code === body.code))) return
  if (path === '/api/v2/license/validate') verdictV2.parse(body)
  if (path === '/api/v1/activate') verdictV1.parse(body)
  if (path === '/api/v1/deactivate') deactivateResponse.parse(body)
  if (path === '/api/v1/machines' && !('code' in body)) licenseMachines.parse(body)
}

function respondTo(service: Service, request: IncomingMessage, sent: string): ServiceResponse {
  const body = readFields(sent)
  const wantsEntitlements = /"include":\s*\["entitlements"\]/.test(sent) && service.entitlements !== null
  const included = wantsEntitlements ? { entitlements: service.entitlements } : {}
  if (request.headers.authorization !== `Bearer ${service.apiKey}`)
    return { status: 401, body: { code: 'UNAUTHORIZED', detail: 'No such API key.' } }
  const machine = body['fingerprint']
  switch (request.url ?? '') {
    case '/api/v2/license/validate': {
      const code = decide(service, body['license'], machine, null)
      if (code !== 'VALID')
        return { status: 400, body: { valid: false, status: 400, message: 'The check was rejected.', code } }
      const { expiresAt } = service.license
      const message = 'The license is valid.'
      return { status: 200, body: { valid: true, status: 200, message, code, expiresAt, ...included } }
    }
    case '/api/v1/activate': {
      const code = decide(service, body['licenseKey'], machine, body['hostname'] ?? null)
      const { expiresAt } = service.license
      if (code === 'VALID') return { status: 200, body: { valid: true, code, expiresAt, ...included } }
      const machines = { used: service.machines.size, max: service.license.maxMachines }
      const counted = code === 'TOO_MANY_MACHINES' ? { machines } : {}
      return { status: 200, body: { valid: false, code, detail: 'The check was rejected.', ...counted } }
    }
    case '/api/v1/deactivate': {
      const { ref } = body
      if (ref !== undefined && !service.listsMachines) return NOT_ENABLED
      const named = machine ?? [...service.machines.keys()].find((one) => refOf(one) === ref) ?? ''
      return { status: 200, body: { deactivated: !service.isReleaseLimitReached && service.machines.delete(named) } }
    }
    case '/api/v1/machines': {
      if (body['licenseKey'] !== service.licenseKey)
        return { status: 409, body: { code: 'NOT_FOUND', detail: 'No such license.' } }
      return service.listsMachines ? { status: 200, body: list(service, machine) } : NOT_ENABLED
    }
    case '/api/v1/licenses/file': {
      const code = decide(service, body['licenseKey'], machine, null)
      return code === 'VALID'
        ? { status: 200, body: service.fileText ?? file(service) }
        : { status: 409, body: { code, detail: 'The check was rejected.' } }
    }
    default:
      return { status: 404, body: { code: 'NOT_FOUND', detail: 'No such path.' } }
  }
}

const NOT_ENABLED = { status: 403, body: { code: 'NOT_ENABLED', detail: 'The list is switched off.' } }

export function refOf(machineId: string): string {
  const hash = createHash('sha256').update(machineId).digest('hex')
  return hash.replace(/^(.{8})(.{4})(.{3})(.{3})(.{12}).*/, '$1-$2-7$3-8$4-$5')
}

function list({ machines, license }: Service, caller: string | undefined): LicenseMachines {
  return {
    used: machines.size,
    max: license.maxMachines,
    releasesLeft: 3,
    machines: [...machines].map(([machineId, hostname]) => ({
      ref: refOf(machineId),
      hostname,
      lastSeenAt: '2026-11-20T09:30:00.000Z',
      current: machineId === caller,
    })),
  }
}

function decide(service: Service, key: string | undefined, machine: string | undefined, name: string | null): string {
  const { license, machines } = service
  if (key !== service.licenseKey) return 'NOT_FOUND'
  if (license.rejectedAs !== null) return license.rejectedAs
  if (machine === undefined) return license.maxMachines === null ? 'VALID' : 'FINGERPRINT_REQUIRED'
  if (!machines.has(machine) && machines.size >= (license.maxMachines ?? Infinity)) return 'TOO_MANY_MACHINES'
  machines.set(machine, name ?? machines.get(machine) ?? null)
  return 'VALID'
}

function file({ license, licenseKey, productId, entitlements, signer, fileKey, fileMachine, now }: Service): string {
  const { maxMachines, expiresAt, graceEndsAt } = license
  const end = graceEndsAt ?? expiresAt
  const issuedMs = now()
  const payload = {
    licenseKey: fileKey ?? licenseKey,
    licenseId: '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a01',
    ...(productId === null ? {} : { productId }),
    ...(fileMachine !== null && { machineId: fileMachine }),
    customerEmail: 'ada@example.com',
    policy: {
      type: expiresAt === null ? 'PERPETUAL' : 'SUBSCRIPTION',
      maxMachines,
      expiresAt,
      ...(graceEndsAt !== null && { graceEndsAt }),
    },
    issuedAt: new Date(issuedMs).toISOString(),
    refreshAfter: new Date(refreshAfterMs(issuedMs, end === null ? null : Date.parse(end))).toISOString(),
    kid: signer.keyId,
    ...(entitlements === null ? {} : { entitlements }),
  } as const
  return signLicenseFile(payload, signer.privateKey)
}

function readFields(json: string): Record<string, string | undefined> {
  const value: unknown = json === '' ? null : JSON.parse(json)
  const fields = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return Object.fromEntries(fields.filter((field): field is [string, string] => typeof field[1] === 'string'))
}
