/** The requests of a client: their content, their number, and the options that it rejects. */

import { NO_FILE, OFFLINE_VALID, ONLINE_VALID, requireEqual } from '../world.ts'
import { getFile, restartOffline, restartOnline, type Scenario } from './scenario.ts'

const VALIDATE = '/api/v2/license/validate'
const UNREACHABLE = { source: 'offline', code: 'UNREACHABLE' }

const activation: Scenario[] = [
  {
    name: '`activate` takes a slot and sends the machine id and the name of the machine as they are, whatever their characters',
    async run(world) {
      const [machineId, hostname] = ['m-1 "\\ü\u{1F600}\n', 'Zoë\'s \\ "laptop"\t']
      await world.open({ machineId, hostname })
      await world.requireResult('activate', ONLINE_VALID)
      requireEqual('the machines', [...world.service.machines], [[machineId, hostname]])
    },
  },
  {
    name: 'an empty machine id is not sent',
    async run(world) {
      world.service.license.maxMachines = null
      await world.open({ machineId: '' })
      await world.requireResult('activate', ONLINE_VALID)
      requireEqual('the machines', [...world.service.machines], [])
    },
  },
  {
    name: 'a machine id that is not given is not sent',
    async run(world) {
      await world.open({ machineId: null, hostname: null })
      await world.requireResult('validate', { source: 'online', valid: false, code: 'FINGERPRINT_REQUIRED' })
    },
  },
  {
    name: '`deactivate` releases the slot and ends the use of the file; a second call finds no slot',
    async run(world) {
      await getFile(world)
      await world.requireResult('deactivate', { source: 'online', deactivated: true, code: 'DEACTIVATED' })
      await world.requireResult('deactivate', { source: 'online', deactivated: false, code: 'NOT_ACTIVE' })
      requireEqual('the machines', [...world.service.machines], [])
      await restartOffline(world)
      await world.requireResult('validate', { ...NO_FILE, rejectedAs: 'DEACTIVATED' })
    },
  },
  {
    name: '`deactivate` reports an outage, a page instead of JSON, and a mistake in the setup, and keeps the file',
    async run(world) {
      await getFile(world)
      await restartOffline(world)
      await world.requireResult('deactivate', { ...UNREACHABLE, deactivated: false })
      world.gateway.fault = { kind: 'respond', status: 200, body: '<html></html>' }
      await world.requireResult('deactivate', { ...UNREACHABLE, deactivated: false })
      world.gateway.fault = { kind: 'respond', status: 422, body: '{"code":"INVALID_REQUEST","detail":"No machine."}' }
      const mistake = { source: 'online', deactivated: false, code: 'CONFIGURATION', reason: 'INVALID_REQUEST' }
      await world.requireResult('deactivate', mistake)
      await restartOffline(world)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
]

const licenseKeys: Scenario[] = [
  {
    name: 'a generated key is corrected: `  k7qx 93fm–ttrw - h2zd ` stands for `K7QX-93FM-TTRW-H2ZD`, and its file is found',
    async run(world) {
      const licenseKey = '  k7qx 93fm\u2013ttrw - h2zd\t'
      await getFile(world, { licenseKey })
      await restartOffline(world, { licenseKey })
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: 'a key of another shape keeps its case: `acme-0001` is not `ACME-0001`',
    async run(world) {
      world.service.licenseKey = 'acme-0001'
      await world.open({ licenseKey: 'acme-0001' })
      await world.requireResult('validate', ONLINE_VALID)
      await world.open({ licenseKey: 'ACME-0001' })
      await world.requireResult('validate', { source: 'online', valid: false, code: 'NOT_FOUND' })
    },
  },
]

const retries: Scenario[] = [
  {
    name: 'two dropped connections are retried within one call',
    async run(world) {
      world.gateway.next = [{ kind: 'drop' }, { kind: 'drop' }]
      await world.open()
      await world.requireResult('validate', ONLINE_VALID)
      requireEqual('the first requests', world.gateway.requests.slice(0, 3), [VALIDATE, VALIDATE, VALIDATE])
    },
  },
  {
    name: 'a response that comes within the time budget counts',
    async run(world) {
      await world.open()
      world.gateway.next = [{ kind: 'slow', delayMs: 300 }]
      await world.requireResult('validate', ONLINE_VALID)
    },
  },
  {
    name: 'a `Retry-After` beyond the time budget lets the file decide at once, without another request',
    async run(world) {
      await getFile(world)
      world.gateway.fault = { kind: 'respond', status: 503, headers: { 'retry-after': '60' } }
      await world.requireResult('validate', OFFLINE_VALID)
      requireEqual('the requests', world.gateway.requests, [VALIDATE])
    },
  },
  {
    name: 'a connection that hangs is abandoned within the time budget, and the next attempt counts',
    async run(world) {
      world.gateway.next = [{ kind: 'hang' }]
      await world.open({ timeoutMs: 6000 })
      await world.requireResult('validate', ONLINE_VALID)
    },
  },
]

const options: Scenario[] = [
  {
    name: 'a wrong API key is a mistake in the setup',
    async run(world) {
      await world.open({ apiKey: 'kwk_other' })
      const mistake = { code: 'CONFIGURATION', reason: 'UNAUTHORIZED', message: 'No such API key.' }
      await world.requireResult('validate', mistake)
    },
  },
  {
    name: 'a base address may contain a path, with or without a slash at its end',
    async run(world) {
      for (const baseUrl of [`${world.gateway.url}/licenses`, `${world.gateway.url}/licenses/`]) {
        await world.open({ baseUrl })
        await world.requireResult('validate', { code: 'CONFIGURATION', reason: 'WRONG_ADDRESS' })
      }
      requireEqual('the requests', world.gateway.requests, [`/licenses${VALIDATE}`, `/licenses${VALIDATE}`])
    },
  },
  {
    name: 'an `http:` address on another host is rejected when the client is created',
    run: async (world) => void (await world.openError({ baseUrl: 'http://licenses.example.com' })),
  },
  {
    name: 'an address that is not HTTP is rejected when the client is created',
    run: async (world) => void (await world.openError({ baseUrl: 'ftp://licenses.example.com' })),
  },
  {
    name: 'public keys that are missing or not Ed25519 are rejected when the client is created',
    async run(world) {
      const [key] = world.service.publicKeys
      await world.openError({ publicKeys: [] })
      await world.openError({ publicKeys: [{ keyId: 'a', publicKey: 'not a key' }] })
      await world.openError({ publicKeys: [{ keyId: 'a', publicKey: `${key?.publicKey.slice(0, -4)}` }] })
    },
  },
  {
    name: 'an API key with a line break, and an empty license key, are rejected when the client is created',
    async run(world) {
      await world.openError({ apiKey: 'kwk_test\r\nx-other: 1' })
      await world.openError({ licenseKey: '' })
    },
  },
  {
    name: 'after a mistake in the setup, the file is still good',
    async run(world) {
      await getFile(world)
      await world.open({ apiKey: 'kwk_other' })
      await world.requireResult('validate', { code: 'CONFIGURATION' })
      await restartOffline(world)
      await world.requireResult('validate', OFFLINE_VALID)
      await restartOnline(world)
      await world.requireResult('validate', ONLINE_VALID)
    },
  },
]

export const requestScenarios: readonly Scenario[] = [...activation, ...licenseKeys, ...retries, ...options]
