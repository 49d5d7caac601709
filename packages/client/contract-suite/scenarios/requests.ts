import { NO_FILE, OFFLINE_VALID, ONLINE_VALID, requireEqual } from '../world.ts'
import { getFile, restartOffline, restartOnline, type Scenario } from './scenario.ts'

const VALIDATE = '/api/v2/license/validate'
const UNREACHABLE = { source: 'offline', code: 'UNREACHABLE' }

const activation: Scenario[] = [
  {
    name: '`activate` sends special characters in the machine id and the host name unchanged',
    async run(world) {
      const [machineId, hostname] = ['m-1 "\\ü\u{1F600}\n', 'Zoë\'s \\ "laptop"\t']
      await world.open({ machineId, hostname })
      await world.requireResult('activate', ONLINE_VALID)
      requireEqual('the machines', [...world.service.machines], [[machineId, hostname]])
    },
  },
  {
    name: 'an empty machine id is omitted from the request',
    async run(world) {
      world.service.license.maxMachines = null
      await world.open({ machineId: '' })
      await world.requireResult('activate', ONLINE_VALID)
      requireEqual('the machines', [...world.service.machines], [])
    },
  },
  {
    name: 'a missing machine id is omitted from the request',
    async run(world) {
      await world.open({ machineId: null, hostname: null })
      await world.requireResult('validate', { source: 'online', valid: false, code: 'FINGERPRINT_REQUIRED' })
    },
  },
  {
    name: '`deactivate` releases the slot and ends the use of the file, and a second call returns `NOT_ACTIVE`',
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
    name: '`deactivate` keeps the file when the license has reached its limit of releases',
    async run(world) {
      await getFile(world)
      world.service.isReleaseLimitReached = true
      await world.requireResult('deactivate', { source: 'online', deactivated: false, code: 'NOT_ACTIVE' })
      world.gateway.fault = { kind: 'drop' }
      await world.requireResult('validate', OFFLINE_VALID)
      await restartOffline(world)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: '`deactivate` keeps the file after an outage, an HTML page, or a configuration error',
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
    name: '`  k7qx 93fm–ttrw - h2zd ` is sent as the generated key `K7QX-93FM-TTRW-H2ZD`, whose file is used offline',
    async run(world) {
      const licenseKey = '  k7qx 93fm\u2013ttrw - h2zd\t'
      await getFile(world, { licenseKey })
      await restartOffline(world, { licenseKey })
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: 'a key of another form keeps its case: `acme-0001` is not `ACME-0001`',
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
    name: 'a slow response within the time budget is used',
    async run(world) {
      await world.open()
      world.gateway.next = [{ kind: 'slow', delayMs: 300 }]
      await world.requireResult('validate', ONLINE_VALID)
    },
  },
  {
    name: 'after a `Retry-After` beyond the time budget, the file decides without another request',
    async run(world) {
      await getFile(world)
      world.gateway.fault = { kind: 'respond', status: 503, headers: { 'retry-after': '60' } }
      await world.requireResult('validate', OFFLINE_VALID)
      requireEqual('the requests', world.gateway.requests, [VALIDATE])
    },
  },
  {
    name: 'a hanging connection is abandoned in time for a successful second attempt',
    async run(world) {
      world.gateway.next = [{ kind: 'hang' }]
      await world.open({ timeoutMs: 6000 })
      await world.requireResult('validate', ONLINE_VALID)
    },
  },
]

const options: Scenario[] = [
  {
    name: 'a wrong API key returns `CONFIGURATION` with `UNAUTHORIZED`',
    async run(world) {
      await world.open({ apiKey: 'kwk_other' })
      const mistake = { code: 'CONFIGURATION', reason: 'UNAUTHORIZED', message: 'No such API key.' }
      await world.requireResult('validate', mistake)
    },
  },
  {
    name: 'a base URL may contain a path, with or without a slash at its end',
    async run(world) {
      for (const baseUrl of [`${world.gateway.url}/licenses`, `${world.gateway.url}/licenses/`]) {
        await world.open({ baseUrl })
        await world.requireResult('validate', { code: 'CONFIGURATION', reason: 'WRONG_ADDRESS' })
      }
      requireEqual('the requests', world.gateway.requests, [`/licenses${VALIDATE}`, `/licenses${VALIDATE}`])
    },
  },
  {
    name: 'an `http:` URL of another host is rejected when the client is created',
    run: (world) => world.openError({ baseUrl: 'http://licenses.example.com' }),
  },
  {
    name: 'a URL of another scheme, and a text that is no URL, are rejected when the client is created',
    async run(world) {
      await world.openError({ baseUrl: 'ftp://licenses.example.com' })
      await world.openError({ baseUrl: 'licenses example' })
    },
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
    name: 'an empty license key, and an API key with a line break, are rejected when the client is created',
    async run(world) {
      await world.openError({ apiKey: 'kwk_test\r\nx-other: 1' })
      await world.openError({ licenseKey: '' })
    },
  },
  {
    name: 'after a configuration error, the file is still good',
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
