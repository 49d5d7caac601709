/** The type of cases with several steps, and steps that several cases share. */

import type { OpenCommand } from '../protocol.ts'
import { NO_FILE, ONLINE_VALID, type World } from '../world.ts'

export interface Scenario {
  /** The required behavior, such as "an empty machine id is omitted from the request". */
  name: string
  run: (world: World) => Promise<void>
  /** Returns what the machine lacks for this case, or null. */
  missing?: (() => string | null) | undefined
}

export const MINUTE_MS = 60 * 1000
export const DAY_MS = 24 * 60 * MINUTE_MS

/** Creates a client and checks once online, so that the client stores a file. */
export async function getFile(world: World, options: Partial<OpenCommand> = {}): Promise<void> {
  await world.open(options)
  await world.requireResult('validate', ONLINE_VALID)
  world.gateway.requests.length = 0
}

/** Starts the app again while the service is not reachable. */
export async function restartOffline(world: World, options: Partial<OpenCommand> = {}): Promise<void> {
  world.gateway.fault = { kind: 'drop' }
  await world.open(options)
}

/** Starts the app again while the service is reachable. */
export async function restartOnline(world: World, options: Partial<OpenCommand> = {}): Promise<void> {
  world.gateway.fault = { kind: 'none' }
  await world.open(options)
}

/** Makes an online check with the current settings of the service, and requires that the client stores no file. */
export async function requireNoFileStored(world: World): Promise<void> {
  await getFile(world)
  await restartOffline(world)
  await world.requireResult('validate', NO_FILE)
}
