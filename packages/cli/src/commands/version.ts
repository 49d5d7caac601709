/** Implements the option `--if-match`, with which a command changes a resource only if nobody has changed it since it was read. */

import { z } from 'zod'

import type { CliCommand } from '../command.ts'

const versionFlags = z.object({ ifMatch: z.string().optional() })

/** Adds `--if-match` to a command. */
export function withVersion(command: CliCommand): CliCommand {
  return command.option('--if-match <updatedAt>', 'the updatedAt that you have read; fail if it has changed since')
}

/** Returns the options of a call that requires the version of `--if-match`, or else the version of `found`. */
export function versionOf(flags: unknown, found?: { updatedAt: string }): { version?: string } {
  const version = versionFlags.parse(flags).ifMatch ?? found?.updatedAt
  return version === undefined ? {} : { version }
}
