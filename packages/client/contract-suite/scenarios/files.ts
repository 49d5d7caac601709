/** The cases of license files: the time of a fetch, the conditions for storing a file, and the validity of a file. */

import { generateKeyPair } from '@keyward/license-file'

import { NO_FILE, OFFLINE_VALID, offlineRejection, ONLINE_VALID, requireEqual, type World } from '../world.ts'
import {
  DAY_MS,
  getFile,
  MINUTE_MS,
  requireNoFileStored,
  restartOffline,
  restartOnline,
  type Scenario,
} from './scenario.ts'

const FILE = '/api/v1/licenses/file'

const fetched = ({ gateway }: World): number => gateway.requests.filter((path) => path === FILE).length

const fetching: Scenario[] = [
  {
    name: 'the first valid check stores a file for the next start of the app',
    async run(world) {
      await getFile(world)
      await restartOffline(world)
      await world.requireResult('validate', { ...OFFLINE_VALID, expiresAt: world.service.license.expiresAt })
      await world.requireResult('activate', OFFLINE_VALID)
    },
  },
  {
    name: 'an offline result contains the `refreshAfter` of the file',
    async run(world) {
      const issuedMs = Date.now() - DAY_MS / 4
      world.service.now = () => issuedMs
      await getFile(world)
      await restartOffline(world)
      const refreshAfter = new Date(issuedMs + 30 * DAY_MS).toISOString()
      await world.requireResult('validate', { ...OFFLINE_VALID, refreshAfter })
    },
  },
  {
    name: 'a license that never expires has `expiresAt` null both online and offline',
    async run(world) {
      world.service.license.expiresAt = null
      await world.open()
      await world.requireResult('validate', { ...ONLINE_VALID, expiresAt: null })
      await restartOffline(world)
      await world.requireResult('validate', { ...OFFLINE_VALID, expiresAt: null })
    },
  },
  {
    name: 'a file ends with the grace period of the license, and its `graceEndsAt` appears after the expiry',
    async run(world) {
      const expiresAt = new Date(Date.now() + DAY_MS).toISOString()
      const graceEndsAt = new Date(Date.now() + 3 * DAY_MS).toISOString()
      Object.assign(world.service.license, { expiresAt, graceEndsAt })
      await getFile(world)
      await restartOffline(world)
      const early = await world.requireResult('validate', { ...OFFLINE_VALID, expiresAt })
      requireEqual('the end of a grace period that has not begun', early['graceEndsAt'] ?? null, null)
      await restartOffline(world, { clockAheadMs: 2 * DAY_MS })
      await world.requireResult('validate', { ...OFFLINE_VALID, expiresAt, graceEndsAt })
      await restartOffline(world, { clockAheadMs: 3 * DAY_MS + MINUTE_MS })
      await world.requireResult('validate', offlineRejection('FILE_EXPIRED'))
    },
  },
  {
    name: 'a new file is fetched when the stored file is at least a day old',
    async run(world) {
      await getFile(world)
      await world.open({ clockAheadMs: DAY_MS - 10 * MINUTE_MS })
      await world.requireResult('validate', ONLINE_VALID)
      requireEqual('files fetched before a day', fetched(world), 0)
      await world.open({ clockAheadMs: DAY_MS + MINUTE_MS })
      await world.requireResult('validate', ONLINE_VALID)
      requireEqual('files fetched after a day', fetched(world), 1)
    },
  },
  {
    name: 'a file of a license that expires soon is replaced after half of its lifetime',
    async run(world) {
      world.service.license.expiresAt = new Date(Date.now() + DAY_MS).toISOString()
      await getFile(world)
      await world.open({ clockAheadMs: DAY_MS / 2 + MINUTE_MS })
      await world.requireResult('validate', ONLINE_VALID)
      requireEqual('files fetched', fetched(world), 1)
    },
  },
  {
    name: 'the file of a renewed license is replaced at the next check',
    async run(world) {
      await getFile(world)
      const expiresAt = new Date(Date.now() + 500 * DAY_MS).toISOString()
      world.service.license.expiresAt = expiresAt
      await world.open()
      await world.requireResult('validate', { ...ONLINE_VALID, expiresAt })
      await restartOffline(world)
      await world.requireResult('validate', { ...OFFLINE_VALID, expiresAt })
    },
  },
  {
    name: 'after a rejection, the stored file is used again only after a later `VALID`',
    async run(world) {
      await getFile(world)
      world.service.license.rejectedAs = 'SUSPENDED'
      await world.requireResult('validate', { source: 'online', valid: false, code: 'SUSPENDED' })
      await restartOffline(world)
      await world.requireResult('validate', { ...NO_FILE, rejectedAs: 'SUSPENDED' })
      world.service.license.rejectedAs = null
      await restartOnline(world)
      await world.requireResult('validate', ONLINE_VALID)
      requireEqual('files fetched', fetched(world), 0)
      await restartOffline(world)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: 'the rejection of a mistyped license key does not affect the file of the correct key',
    async run(world) {
      await getFile(world)
      await world.open({ licenseKey: 'K7QX-93FM-TTRW-H2ZE' })
      await world.requireResult('validate', { source: 'online', valid: false, code: 'NOT_FOUND' })
      await restartOffline(world)
      await world.requireResult('validate', OFFLINE_VALID)
      await world.open({ licenseKey: 'K7QX-93FM-TTRW-H2ZE' })
      await world.requireResult('validate', NO_FILE)
    },
  },
]

/** Changes the files that the service sends, and requires that the client does not store them. */
async function requireRejectedFile(world: World, spoil: (world: World) => void): Promise<void> {
  spoil(world)
  await requireNoFileStored(world)
}

const received: Scenario[] = [
  {
    name: 'a received file is not stored if it is signed by an unknown key',
    run: (world) => requireRejectedFile(world, ({ service }) => (service.signer = generateKeyPair())),
  },
  {
    name: 'a received file is not stored if another key signed it with the `kid` of a shipped key',
    run: (world) =>
      requireRejectedFile(world, ({ service }) => {
        service.signer = { ...service.signer, privateKey: generateKeyPair().privateKey }
      }),
  },
  {
    name: 'a received file is not stored if it belongs to another license key',
    run: (world) => requireRejectedFile(world, ({ service }) => (service.fileKey = 'AAAA-BBBB-CCCC-DDDD')),
  },
  {
    name: 'a received file is not stored if it belongs to another machine',
    run: (world) => requireRejectedFile(world, ({ service }) => (service.fileMachine = 'machine-2')),
  },
  {
    name: 'an HTML page that arrives instead of a file is not stored',
    run: (world) => requireRejectedFile(world, ({ service }) => (service.fileText = '<html>Please log in</html>')),
  },
  {
    name: 'a bad file does not replace a good file',
    async run(world) {
      await getFile(world)
      world.service.signer = generateKeyPair()
      const clockAheadMs = 2 * DAY_MS
      await world.open({ clockAheadMs })
      await world.requireResult('validate', ONLINE_VALID)
      requireEqual('files fetched', fetched(world), 1)
      await restartOffline(world, { clockAheadMs })
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: 'a stored file is rejected if the app no longer contains the key that signed the file',
    async run(world) {
      await getFile(world)
      await restartOffline(world, {
        publicKeys: [{ keyId: 'other', publicKey: 'MCowBQYDK2VwAyEACIrzLLjzfdBlXmCxAaSq0L+NSV5Y+UkAW/BddM/lpqM=' }],
      })
      await world.requireResult('validate', offlineRejection('UNKNOWN_KEY'))
    },
  },
]

const times: Scenario[] = [
  {
    name: 'a file is good until `refreshAfter`, 30 days after its issue',
    async run(world) {
      await getFile(world)
      await restartOffline(world, { clockAheadMs: 30 * DAY_MS - MINUTE_MS })
      await world.requireResult('validate', OFFLINE_VALID)
      await restartOffline(world, { clockAheadMs: 30 * DAY_MS + 1 })
      await world.requireResult('validate', offlineRejection('REFRESH_NEEDED'))
    },
  },
  {
    name: 'a file is good until the license expires',
    async run(world) {
      world.service.license.expiresAt = new Date(Date.now() + DAY_MS).toISOString()
      await getFile(world)
      await restartOffline(world, { clockAheadMs: DAY_MS - MINUTE_MS })
      await world.requireResult('validate', OFFLINE_VALID)
      await restartOffline(world, { clockAheadMs: DAY_MS + 1 })
      await world.requireResult('validate', offlineRejection('FILE_EXPIRED'))
    },
  },
  {
    name: 'a file that is received after its `refreshAfter` is stored, but rejected offline',
    async run(world) {
      world.service.now = () => Date.now() - 31 * DAY_MS
      await getFile(world)
      await restartOffline(world)
      await world.requireResult('validate', offlineRejection('REFRESH_NEEDED'))
    },
  },
  {
    name: 'a clock may be up to 5 minutes behind: 4 minutes are accepted, 6 are rejected',
    async run(world) {
      await getFile(world)
      await restartOffline(world, { clockAheadMs: -4 * MINUTE_MS })
      await world.requireResult('validate', OFFLINE_VALID)
      await restartOffline(world, { clockAheadMs: -6 * MINUTE_MS })
      await world.requireResult('validate', offlineRejection('CLOCK_SET_BACK'))
    },
  },
  {
    name: 'a file is rejected if the clock is set back between two offline checks',
    async run(world) {
      await getFile(world)
      await restartOffline(world, { clockAheadMs: 10 * DAY_MS })
      await world.requireResult('validate', OFFLINE_VALID)
      await restartOffline(world, { clockAheadMs: 9 * DAY_MS })
      await world.requireResult('validate', offlineRejection('CLOCK_SET_BACK'))
    },
  },
  {
    name: 'after a rejected offline check, setting the clock back does not make the file valid',
    async run(world) {
      await getFile(world)
      await restartOffline(world, { clockAheadMs: 40 * DAY_MS })
      await world.requireResult('validate', offlineRejection('REFRESH_NEEDED'))
      await restartOffline(world, { clockAheadMs: DAY_MS })
      await world.requireResult('validate', offlineRejection('CLOCK_SET_BACK'))
    },
  },
  {
    name: "the service's `Date` corrects the latest observed time after the clock was ahead",
    async run(world) {
      await getFile(world)
      await restartOffline(world, { clockAheadMs: 20 * DAY_MS })
      await world.requireResult('validate', OFFLINE_VALID)
      await restartOnline(world)
      await world.requireResult('validate', ONLINE_VALID)
      await restartOffline(world)
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
  {
    name: "the service's `Date` is stored as the latest time even if the device's clock is behind",
    async run(world) {
      await getFile(world, { clockAheadMs: -10 * DAY_MS })
      await restartOffline(world, { clockAheadMs: -9 * DAY_MS })
      await world.requireResult('validate', offlineRejection('CLOCK_SET_BACK'))
    },
  },
]

export const fileScenarios: readonly Scenario[] = [...fetching, ...received, ...times]
