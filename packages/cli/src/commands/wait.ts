/**
 * Implements the option `--wait`, with which a command ends when all validators have applied its change, or when the given time has passed.
 */

import { InvalidArgumentError } from 'commander'
import { z } from 'zod'

import type { ApiResponse } from '../api.ts'
import type { CliCommand } from '../command.ts'
import type { Session } from '../session.ts'

const MAX_WAIT_S = 10

const waitFlags = z.object({ wait: z.int() })

/** Adds `--wait` to a command. */
export function withWait(command: CliCommand): CliCommand {
  const description = `the time to wait until all validators have applied the change, 0 to ${MAX_WAIT_S}`
  return command.option('--wait <seconds>', description, wholeSeconds, 5)
}

/** Returns the options of a call that waits, or an empty object for 0 seconds. */
export function waitOf(flags: unknown): { waitS?: number } {
  const { wait } = waitFlags.parse(flags)
  return wait === 0 ? {} : { waitS: wait }
}

/** Prints the result of a change. If the command waited, also prints how many validators have applied the change. */
export function printChange(
  { output }: Session,
  { data, appliedBy }: Omit<ApiResponse<object>, 'isReplayed'>,
  text: string,
): void {
  const [applied, all] = appliedBy?.split('/') ?? []
  const state =
    all === '0'
      ? 'No validator is running.'
      : applied === all
        ? `Applied by all ${all} validators.`
        : `Applied by ${applied} of ${all} validators so far.`
  output.result({ ...data, appliedBy }, appliedBy === null ? text : `${text}\n\n${state}`)
}

function wholeSeconds(text: string): number {
  const value = /^\d{1,2}$/.test(text) ? Number(text) : MAX_WAIT_S + 1
  if (value > MAX_WAIT_S) throw new InvalidArgumentError(`It must be a whole number from 0 to ${MAX_WAIT_S}.`)
  return value
}
