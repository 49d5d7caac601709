/** The cases of entitlements, used slots, and the calls `refreshFile`, `importFile` and `requestCode`. */

import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { generateKeyPair, parseRequestCode } from '@keyward/license-file'

import { NO_FILE, OFFLINE_VALID, offlineRejection, ONLINE_VALID, requireEqual, type World } from '../world.ts'
import { DAY_MS, getFile, restartOffline, type Scenario } from './scenario.ts'

const WITH_ENTITLEMENTS = { entitlements: true }
const OTHER_PRODUCT = '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a03'
const REFRESHED = { source: 'online', code: 'REFRESHED' }

const validWith = (entitlements: unknown): object => ({
  valid: true,
  status: 200,
  message: 'The license is valid.',
  code: 'VALID',
  expiresAt: null,
  entitlements,
})

const entitlements: Scenario[] = [
  {
    name: 'with the option `entitlements`, online and offline results contain the entitlements of the license',
    async run(world) {
      const granted = { edition: 'pro – "ü"', seats: 9_007_199_254_740_991, debt: -1, sso: true } as const
      world.service.entitlements = granted
      await world.open(WITH_ENTITLEMENTS)
      await world.requireResult('validate', { ...ONLINE_VALID, entitlements: granted })
      await world.requireResult('activate', { ...ONLINE_VALID, entitlements: granted })
      await restartOffline(world, WITH_ENTITLEMENTS)
      await world.requireResult('validate', { ...OFFLINE_VALID, entitlements: granted })
    },
  },
  {
    name: 'an entitlement that is `false` is not granted, online and offline',
    async run(world) {
      const granted = { edition: 'pro', none: 0 } as const
      const given = { sso: false, ...granted, export: false }
      // A service omits `false`, so the type of its entitlements excludes it.
      Object.assign(world.service, { entitlements: given })
      await getFile(world)
      await world.open(WITH_ENTITLEMENTS)
      world.gateway.fault = { kind: 'respond', status: 200, body: JSON.stringify(validWith(given)) }
      await world.requireResult('validate', { ...ONLINE_VALID, entitlements: granted })
      await restartOffline(world, WITH_ENTITLEMENTS)
      await world.requireResult('validate', { ...OFFLINE_VALID, entitlements: granted })
    },
  },
  {
    name: 'without the option, neither online nor offline results contain entitlements',
    async run(world) {
      await world.open()
      const online = await world.requireResult('validate', ONLINE_VALID)
      await restartOffline(world)
      const offline = await world.requireResult('validate', OFFLINE_VALID)
      requireEqual('the entitlements', [online['entitlements'] ?? null, offline['entitlements'] ?? null], [null, null])
    },
  },
  {
    name: 'the entitlements of a service that sends none are empty',
    async run(world) {
      world.service.entitlements = null
      await world.open(WITH_ENTITLEMENTS)
      await world.requireResult('validate', { ...ONLINE_VALID, entitlements: {} })
      await restartOffline(world, WITH_ENTITLEMENTS)
      await world.requireResult('validate', { ...OFFLINE_VALID, entitlements: {} })
    },
  },
  {
    name: 'a `VALID` with an entitlement of an unknown type counts as an outage',
    async run(world) {
      await world.open({ ...WITH_ENTITLEMENTS, timeoutMs: 1000 })
      for (const given of [{ seats: 1.5 }, { modules: ['a'] }, { edition: null }, 'pro', ['pro']]) {
        world.gateway.fault = { kind: 'respond', status: 200, body: JSON.stringify(validWith(given)) }
        await world.requireResult('validate', NO_FILE)
      }
    },
  },
]

const slots: Scenario[] = [
  {
    name: '`activate` returns the used slots and their limit with `TOO_MANY_MACHINES`',
    async run(world) {
      await getFile(world)
      await world.open({ machineId: 'machine-2' })
      const machines = { used: 1, max: 1 }
      await world.requireResult('activate', { valid: false, code: 'TOO_MANY_MACHINES', machines })
    },
  },
]

const refreshes: Scenario[] = [
  {
    name: '`refreshFile` stores a new file',
    async run(world) {
      const issuedMs = Date.now()
      world.service.now = () => issuedMs
      const { expiresAt } = world.service.license
      const refreshAfter = new Date(issuedMs + 30 * DAY_MS).toISOString()
      await world.open()
      await world.requireResult('refreshFile', { ...REFRESHED, expiresAt, refreshAfter })
      await restartOffline(world)
      await world.requireResult('validate', { ...OFFLINE_VALID, refreshAfter })
    },
  },
  {
    name: '`refreshFile` returns the reason why the service issues no file, and keeps the file',
    async run(world) {
      await getFile(world)
      for (const code of ['SUSPENDED', 'MACHINE_NOT_ACTIVE', 'NOT_STARTED']) {
        world.service.license.rejectedAs = code
        await world.requireResult('refreshFile', { source: 'online', code, message: 'The check was rejected.' })
      }
      world.service.license.rejectedAs = 'MOON_PHASE'
      await world.requireResult('refreshFile', { source: 'online', code: 'REJECTED' })
      await restartOffline(world)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: '`refreshFile` returns `UNREACHABLE` in an outage, and `CONFIGURATION` for a wrong API key',
    async run(world) {
      await restartOffline(world)
      const message = 'The license service cannot be reached. Connect to the internet and try again.'
      await world.requireResult('refreshFile', { source: 'offline', code: 'UNREACHABLE', message })
      world.gateway.fault = { kind: 'none' }
      await world.open({ apiKey: 'kwk_other' })
      await world.requireResult('refreshFile', { source: 'online', code: 'CONFIGURATION', reason: 'UNAUTHORIZED' })
    },
  },
  {
    name: '`deactivate` and `refreshFile` return `CONFIGURATION` with `INVALID_REQUEST` for status 400',
    async run(world) {
      await world.open()
      const body = '{"code":"BAD_REQUEST","detail":"No."}'
      world.gateway.fault = { kind: 'respond', status: 400, body }
      const mistake = { source: 'online', code: 'CONFIGURATION', reason: 'INVALID_REQUEST', message: 'No.' }
      await world.requireResult('deactivate', mistake)
      await world.requireResult('refreshFile', mistake)
    },
  },
  {
    name: '`refreshFile` returns `BAD_FILE` for a file of another product or signer, and keeps the file',
    async run(world) {
      await getFile(world)
      world.service.productId = OTHER_PRODUCT
      await world.open({ productId: '0195A3C0-7B1E-7C44-9F3A-2F6D5B8E1A02' })
      await world.requireResult('refreshFile', { source: 'online', code: 'BAD_FILE', reason: 'WRONG_PRODUCT' })
      world.service.signer = generateKeyPair()
      await world.requireResult('refreshFile', { source: 'online', code: 'BAD_FILE', reason: 'UNKNOWN_KEY' })
      world.service.fileText = 'not a file'
      await world.requireResult('refreshFile', { source: 'online', code: 'BAD_FILE', reason: 'BAD_SIGNATURE' })
      await restartOffline(world, { productId: '0195A3C0-7B1E-7C44-9F3A-2F6D5B8E1A02' })
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: '`refreshFile` and `importFile` return `NOT_STORED` without a working storage',
    async run(world) {
      await mkdir(dirname(world.storage), { recursive: true })
      await writeFile(world.storage, 'a file where a folder should be')
      await world.open({ storage: join(world.storage, 'license.json') })
      await world.requireResult('refreshFile', { source: 'online', code: 'NOT_STORED' })
      await world.requireImport(await issueFile(world), { imported: false, reason: 'NOT_STORED' })
    },
  },
]

/** Fetches a license file from the service, as a vendor does for a machine without a network. */
async function issueFile({ service }: World): Promise<string> {
  const response = await fetch(`${service.url}/api/v1/licenses/file`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.apiKey}` },
    body: JSON.stringify({ licenseKey: service.licenseKey, fingerprint: 'machine-1' }),
  })
  requireEqual('the status of the file', response.status, 200)
  return response.text()
}

const imports: Scenario[] = [
  {
    name: '`importFile` stores a file with blanks around it, and the app runs offline without any request',
    async run(world) {
      const issuedMs = Date.now()
      world.service.now = () => issuedMs
      const file = await issueFile(world)
      const { expiresAt } = world.service.license
      const refreshAfter = new Date(issuedMs + 30 * DAY_MS).toISOString()
      await restartOffline(world)
      await world.requireImport(` \r\n${file}\n`, { imported: true, expiresAt, refreshAfter })
      requireEqual('the requests', world.gateway.requests, [])
      await world.requireResult('validate', OFFLINE_VALID)
      await restartOffline(world)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: '`importFile` stores no file that is not good now, and keeps the stored file',
    async run(world) {
      await getFile(world)
      const file = await issueFile(world)
      await world.requireImport('not a file', { imported: false, reason: 'BAD_SIGNATURE' })
      world.service.fileKey = 'AAAA-BBBB-CCCC-DDDD'
      await world.requireImport(await issueFile(world), { imported: false, reason: 'WRONG_LICENSE' })
      world.service.fileKey = null
      world.service.now = () => Date.now() - 31 * DAY_MS
      await world.requireImport(await issueFile(world), { imported: false, reason: 'REFRESH_NEEDED' })
      await restartOffline(world)
      await world.requireResult('validate', OFFLINE_VALID)
      await world.open({ clockAheadMs: -DAY_MS })
      await world.requireImport(file, { imported: false, reason: 'CLOCK_SET_BACK' })
    },
  },
  {
    name: '`importFile` allows the use of a file again after a rejection',
    async run(world) {
      const file = await issueFile(world)
      await getFile(world)
      world.service.license.rejectedAs = 'SUSPENDED'
      await world.requireResult('validate', { source: 'online', code: 'SUSPENDED' })
      await restartOffline(world)
      await world.requireResult('validate', { ...offlineRejection('NO_FILE'), rejectedAs: 'SUSPENDED' })
      await world.requireImport(file, { imported: true })
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
]

async function requestCode({ program }: World): Promise<string> {
  const { code } = await program.send({ command: 'requestCode' })
  return typeof code === 'string' ? code : ''
}

const withoutNetwork: Scenario[] = [
  {
    name: 'the request code contains the license key, the machine id and the host name, and stays the same',
    async run(world) {
      const request = { licenseKey: world.service.licenseKey, machineId: '"Maschine" ü 🖥', hostname: 'C:\\Zoë/1' }
      await world.open({ ...request, licenseKey: 'k7qx 93fm ttrw h2zd' })
      const code = await requestCode(world)
      requireEqual('the request', await parseRequestCode(code), request)
      requireEqual('the second code', await requestCode(world), code)
      await world.open({ hostname: null })
      const unnamed = { licenseKey: request.licenseKey, machineId: 'machine-1' }
      requireEqual('the request without a host name', await parseRequestCode(await requestCode(world)), unnamed)
      await world.open({ machineId: null })
      requireEqual('the code without a machine id', await requestCode(world), '')
      requireEqual('the requests to the service', world.gateway.requests, [])
    },
  },
  {
    name: 'a machine without a network imports the file for its request code, and every other machine rejects this file',
    async run(world) {
      await restartOffline(world)
      world.service.fileMachine = (await parseRequestCode(await requestCode(world)))?.machineId ?? null
      const file = await issueFile(world)
      await world.requireImport(file, { imported: true })
      await world.requireResult('validate', OFFLINE_VALID)
      for (const machineId of ['machine-2', 'MACHINE-1', null]) {
        await world.open({ machineId })
        await world.requireResult('validate', offlineRejection('WRONG_MACHINE'))
        await world.requireImport(file, { imported: false, reason: 'WRONG_MACHINE' })
      }
    },
  },
]

export const callScenarios: readonly Scenario[] = [
  ...entitlements,
  ...slots,
  ...refreshes,
  ...imports,
  ...withoutNetwork,
]
