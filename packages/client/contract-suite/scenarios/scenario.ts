/** The form of a case of several steps, and steps that many of them share. */

import type { OpenCommand } from '../protocol.ts'
import { NO_FILE, ONLINE_VALID, type World } from '../world.ts'

export interface Scenario {
  /** States the required behaviour: "sends the name of the machine with activate". */
  name: string
  run: (world: World) => Promise<void>
}

export const MINUTE_MS = 60 * 1000
export const DAY_MS = 24 * 60 * MINUTE_MS

/** Creates a client and checks once online, which stores a file. */
export async function getFile(world: World, options: Partial<OpenCommand> = {}): Promise<void> {
  await world.open(options)
  await world.requireResult('validate', ONLINE_VALID)
  world.gateway.requests.length = 0
}

/** Starts the app again while the service cannot be reached. */
export async function restartOffline(world: World, options: Partial<OpenCommand> = {}): Promise<void> {
  world.gateway.fault = { kind: 'drop' }
  await world.open(options)
}

/** Starts the app again with a service that can be reached. */
export async function restartOnline(world: World, options: Partial<OpenCommand> = {}): Promise<void> {
  world.gateway.fault = { kind: 'none' }
  await world.open(options)
}

/** Requires that no file can be used after a check with these options while the service signs files as it does now. */
export async function requireNoFileStored(world: World): Promise<void> {
  await getFile(world)
  await restartOffline(world)
  await world.requireResult('validate', NO_FILE)
}
