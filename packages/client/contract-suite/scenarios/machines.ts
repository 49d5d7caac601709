/** The cases of the list of a license's machines, and of the release of another machine. */

import { refOf } from '../service/service.ts'
import { NO_FILE, OFFLINE_VALID, ONLINE_VALID, requireFields, type World } from '../world.ts'
import { getFile, restartOffline, type Scenario } from './scenario.ts'

const UNREACHABLE = { source: 'offline', code: 'UNREACHABLE' }
const LISTED = { source: 'online', code: 'LISTED', machines: { used: 1, max: 1 }, releasesLeft: 3 }
const NOT_ENABLED = { source: 'online', code: 'NOT_ENABLED', message: 'The list is switched off.' }
const EMPTY = { used: 0, max: 1, releasesLeft: 1, machines: [] }

const machine = (machineId: string, hostname: string | null, current: boolean): object => ({
  ref: refOf(machineId),
  hostname,
  lastSeenAt: '2026-11-20T09:30:00.000Z',
  current,
})

async function requireRelease({ program }: World, machineId: string, expected: object): Promise<void> {
  requireFields('release', await program.send({ command: 'release', ref: refOf(machineId) }), { ...expected })
}

export const machineScenarios: readonly Scenario[] = [
  {
    name: 'a new machine lists the machines of a full license, releases one of them, and takes its slot',
    async run(world) {
      world.service.machines.set('machine-1', 'Zoë’s "old" laptop')
      await world.open({ machineId: 'machine-2' })
      await world.requireResult('activate', { code: 'TOO_MANY_MACHINES' })
      const list = [machine('machine-1', 'Zoë’s "old" laptop', false)]
      await world.requireResult('machines', { ...LISTED, list })
      await requireRelease(world, 'machine-1', { source: 'online', deactivated: true, code: 'DEACTIVATED' })
      await world.requireResult('activate', ONLINE_VALID)
      await world.requireResult('machines', { ...LISTED, list: [machine('machine-2', 'workshop', true)] })
      await requireRelease(world, 'machine-1', { source: 'online', deactivated: false, code: 'NOT_ACTIVE' })
    },
  },
  {
    name: 'the release of another machine does not end the use of the stored file',
    async run(world) {
      await getFile(world, { requireSignature: true })
      world.service.machines.set('machine-2', null)
      await requireRelease(world, 'machine-2', { code: 'DEACTIVATED' })
      const list = [machine('machine-1', null, true)]
      await world.requireResult('machines', { ...LISTED, list })
      await restartOffline(world)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: '`machines` returns the reason why the service lists none',
    async run(world) {
      world.service.listsMachines = false
      await world.open()
      await world.requireResult('machines', NOT_ENABLED)
      await requireRelease(world, 'machine-1', NOT_ENABLED)
      await world.open({ licenseKey: 'other' })
      await world.requireResult('machines', { source: 'online', code: 'NOT_FOUND', message: 'No such license.' })
      await world.open({ apiKey: 'kwk_other' })
      await world.requireResult('machines', { source: 'online', code: 'CONFIGURATION', reason: 'UNAUTHORIZED' })
      await restartOffline(world, { timeoutMs: 2000 })
      await world.requireResult('machines', UNREACHABLE)
      await requireRelease(world, 'machine-1', UNREACHABLE)
      await world.requireResult('validate', NO_FILE)
    },
  },
  {
    name: 'with `requireSignature`, `release` returns a signed `NOT_ENABLED`, and rejects unsigned responses',
    async run(world) {
      await getFile(world, { requireSignature: true })
      world.service.machines.set('machine-2', null)
      world.service.listsMachines = false
      await world.requireResult('machines', NOT_ENABLED)
      await requireRelease(world, 'machine-2', NOT_ENABLED)
      world.service.answers.forgery = { header: () => null }
      await requireRelease(world, 'machine-2', UNREACHABLE)
      world.service.listsMachines = true
      await requireRelease(world, 'machine-2', UNREACHABLE)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: 'a `release` counts as an outage if a firewall responds with its page',
    async run(world) {
      await world.open({ timeoutMs: 1000 })
      for (const body of ['<html>Blocked</html>', '{"code":"FORBIDDEN","detail":"No."}']) {
        world.gateway.fault = { kind: 'respond', status: 403, body }
        await requireRelease(world, 'machine-1', UNREACHABLE)
      }
    },
  },
  {
    name: 'a list may have no limits, and counts as an outage if it is malformed',
    async run(world) {
      await world.open()
      const respond = (status: number, body: object | string): void => {
        world.gateway.fault = { kind: 'respond', status, body: typeof body === 'string' ? body : JSON.stringify(body) }
      }
      respond(200, { ...EMPTY, max: null, releasesLeft: null })
      const { releasesLeft } = await world.requireResult('machines', { code: 'LISTED', list: [] })
      requireFields('machines', { releasesLeft: releasesLeft ?? null }, { releasesLeft: null })
      const unnamed = { ref: 1, hostname: null, lastSeenAt: '2026-11-20T09:30:00.000Z', current: false }
      const bad: [number, object | string][] = [
        [200, '<html>Please log in</html>'],
        [200, { ...EMPTY, machines: null }],
        [200, { ...EMPTY, machines: [null] }],
        [200, { ...EMPTY, machines: [unnamed] }],
        [200, { ...EMPTY, used: '0' }],
        [200, { ...EMPTY, releasesLeft: '1' }],
        [403, '<html>Blocked</html>'],
        [409, { detail: 'No.' }],
      ]
      await world.open({ timeoutMs: 1000 })
      for (const [status, body] of bad) {
        respond(status, body)
        await world.requireResult('machines', UNREACHABLE)
      }
    },
  },
]
