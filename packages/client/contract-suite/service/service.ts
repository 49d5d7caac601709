/**
 * A small service with one organization and one license that responds as docs/api.md says, over a real socket. Most
 * tests of the client use it; `real-services.slow.test.ts` tests the client against the real programs.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

import { CODES, deactivateResponse, verdictV1, verdictV2 } from '@keyward/contract'
import { generateKeyPair, type KeyPair, publicKeyToSpki, refreshAfterMs, signLicenseFile } from '@keyward/license-file'

import { listen } from './listen.ts'

export interface Service {
  url: string
  apiKey: string
  licenseKey: string
  /** The public keys that the app ships with. */
  publicKeys: { keyId: string; publicKey: string }[]
  /** The state of the license; tests change it. */
  license: { rejectedAs: string | null; expiresAt: string | null; maxMachines: number | null }
  /** Machine ids that hold a slot, with their names. */
  machines: Map<string, string | null>
  /** The key that signs files; a test replaces it to act as an impostor. */
  signer: KeyPair
  /** The product of the license. A service from before product ids in files has none. */
  productId: string | null
  /** What the license unlocks. Null: the service is from before entitlements. */
  entitlements: Record<string, true | number | string> | null
  /** The license key in files, in place of the right one. */
  fileKey: string | null
  /** The text that is sent in place of files. */
  fileText: string | null
  /** Returns the time at which files are issued. */
  now: () => number
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
    publicKeys: [{ keyId: signer.keyId, publicKey: publicKeyToSpki(signer.publicKey) }],
    license: { rejectedAs: null, expiresAt: new Date(Date.now() + 365 * DAY_MS).toISOString(), maxMachines: 1 },
    machines: new Map(),
    signer,
    productId: '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a02',
    entitlements: { edition: 'pro', seats: 5 },
    fileKey: null,
    fileText: null,
    now: Date.now,
  }
  return service
}

async function respond(service: Service, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { status, body } = await respondTo(service, request)
  requireContract(request.url ?? '', body)
  const isText = typeof body === 'string'
  response.writeHead(status, { 'content-type': isText ? 'text/plain' : 'application/json' })
  response.end(isText ? body : JSON.stringify(body))
}

/** Fails when a verdict differs from the contract, unless a test has set a code that the contract does not know. */
function requireContract(path: string, body: ServiceResponse['body']): void {
  if (typeof body === 'string' || ('code' in body && !CODES.some((code) => code === body.code))) return
  if (path === '/api/v2/license/validate') verdictV2.parse(body)
  if (path === '/api/v1/activate') verdictV1.parse(body)
  if (path === '/api/v1/deactivate') deactivateResponse.parse(body)
}

async function respondTo(service: Service, request: IncomingMessage): Promise<ServiceResponse> {
  const sent = await text(request)
  const body = readFields(sent)
  const wantsEntitlements = sent.includes('"include":["entitlements"]') && service.entitlements !== null
  const included = wantsEntitlements ? { entitlements: service.entitlements } : {}
  if (request.headers.authorization !== `Bearer ${service.apiKey}`)
    return { status: 401, body: { code: 'UNAUTHORIZED', detail: 'No such API key.' } }
  const machine = body['fingerprint']
  switch (request.url ?? '') {
    case '/api/v2/license/validate': {
      const code = decide(service, body['license'], machine, null)
      if (code !== 'VALID') return { status: 400, body: { valid: false, status: 400, message: 'Refused.', code } }
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
      return { status: 200, body: { valid: false, code, detail: 'Refused.', ...counted } }
    }
    case '/api/v1/deactivate':
      return { status: 200, body: { deactivated: service.machines.delete(machine ?? '') } }
    case '/api/v1/licenses/file': {
      const code = decide(service, body['licenseKey'], machine, null)
      return code === 'VALID'
        ? { status: 200, body: service.fileText ?? file(service) }
        : { status: 409, body: { code, detail: 'Refused.' } }
    }
    default:
      return { status: 404, body: { code: 'NOT_FOUND', detail: 'No such path.' } }
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

function file({ license, licenseKey, productId, entitlements, signer, fileKey, now }: Service): string {
  const { maxMachines, expiresAt } = license
  const issuedMs = now()
  const payload = {
    licenseKey: fileKey ?? licenseKey,
    licenseId: '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a01',
    ...(productId === null ? {} : { productId }),
    customerEmail: 'ada@example.com',
    policy: { type: expiresAt === null ? 'PERPETUAL' : 'SUBSCRIPTION', maxMachines, expiresAt },
    issuedAt: new Date(issuedMs).toISOString(),
    refreshAfter: new Date(refreshAfterMs(issuedMs, expiresAt === null ? null : Date.parse(expiresAt))).toISOString(),
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
