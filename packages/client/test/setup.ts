/** Starts a service, a gateway in front of it and a client with the public key of the service, for one test. */

import { afterAll } from 'vitest'

import { type Gateway, startGateway } from '../contract-suite/service/gateway.ts'
import { type Service, startService } from '../contract-suite/service/service.ts'
import { parseContent } from '../src/cache/content.ts'
import { type ClientOptions, createLicenseClient, type LicenseClient, type LicenseStorage } from '../src/index.ts'
import { memoryStorage, type RefreshResult } from '../src/index.ts'

export interface World {
  service: Service
  gateway: Gateway
  client: LicenseClient
  storage: LicenseStorage
  /** The results of all refreshes in the background. */
  refreshes: RefreshResult[]
  /** The time by which the device's clock is ahead of the real clock. */
  clock: { aheadMs: number }
  /** Creates another client with the same storage, as after a restart of the app. */
  restart: (options?: Partial<ClientOptions>) => LicenseClient
}

const closing: (() => Promise<void>)[] = []

afterAll(async () => {
  await Promise.all(closing.map((close) => close()))
})

export async function startWorld(given: Partial<ClientOptions> = {}): Promise<World> {
  const service = await startService()
  const gateway = await startGateway(() => service.url)
  closing.push(gateway.stop, service.close)
  const storage = given.storage ?? memoryStorage()
  const clock = { aheadMs: 0 }
  const refreshes: RefreshResult[] = []
  const restart = (options: Partial<ClientOptions> = {}) =>
    createLicenseClient({
      baseUrl: gateway.url,
      apiKey: service.apiKey,
      publicKeys: service.publicKeys,
      licenseKey: service.licenseKey,
      machineId: 'machine-1',
      now: () => Date.now() + clock.aheadMs,
      onRefresh: (result) => refreshes.push(result),
      ...given,
      storage,
      ...options,
    })
  return { service, gateway, client: restart(), storage, refreshes, clock, restart }
}

/** Returns the newest license file in the storage. */
export async function storedFileOf(storage: LicenseStorage): Promise<string> {
  const [newest] = parseContent(await storage.read(), '').licenses
  if (newest === undefined) throw new Error('No file is stored.')
  return newest.file
}

/** Starts a world whose client has made an online check and stored a file. */
export async function startWorldWithFile(given: Partial<ClientOptions> = {}): Promise<World> {
  const world = await startWorld(given)
  await world.client.validate()
  await world.client.settled()
  world.gateway.requests.length = 0
  return world
}
