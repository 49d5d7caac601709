/**
 * Implements the option `--wait`, with which a command ends when all validators have applied its change, or when the given time has passed.
 */

import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'

const MAX_WAIT_S = 10

export const waitFlags = z.object({ wait: z.int() })

/** Adds `--wait` to a command. */
export function withWait(command: Command): Command {
  const description = `the time to wait until all validators have applied the change, 0 to ${MAX_WAIT_S}`
  return command.option('--wait <seconds>', description, wholeSeconds, 5)
}

/** Returns the member `waitS` for a call, or an empty object for 0 seconds. */
export function waitOf(flags: unknown): { waitS?: number } {
  const { wait } = waitFlags.parse(flags)
  return wait === 0 ? {} : { waitS: wait }
}

/** Formats the result of `Prefer: wait` as a sentence. Returns null when the call did not wait. */
export function describeApplied(appliedBy: string | null): string | null {
  if (appliedBy === null) return null
  const [applied, all] = appliedBy.split('/')
  return applied === all ? `Applied by all ${all} validators.` : `Applied by ${applied} of ${all} validators so far.`
}

function wholeSeconds(text: string): number {
  const value = /^\d{1,2}$/.test(text) ? Number(text) : MAX_WAIT_S + 1
  if (value > MAX_WAIT_S) throw new InvalidArgumentError(`It must be a whole number from 0 to ${MAX_WAIT_S}.`)
  return value
}
