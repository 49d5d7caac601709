/** The options and the output of the commands that create credentials. */

import { ALL_PERMISSIONS, permissions } from '@keyward/contract'
import { Option } from 'commander'
import { z } from 'zod'

import type { ApiResponse } from '../api.ts'
import type { CliCommand } from '../command.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'
import { printChange } from './wait.ts'

/** Adds the mandatory option `--permission` to a command. */
export function withPermissions(command: CliCommand, description: string): CliCommand {
  const option = new Option('-p, --permission <permission...>', description)
  return command.addOption(option.choices(ALL_PERMISSIONS).makeOptionMandatory())
}

export function permissionsOf(flags: unknown) {
  return z.object({ permission: permissions }).parse(flags).permission
}

/** Adds the option `--expires` to a command. */
export function withExpiry(command: CliCommand): CliCommand {
  return command.option('--expires <when>', 'the expiry: a date, or 30d, 12h, 1y from now (default: never)')
}

/** Returns the member `expiresAt` for the body of a request, or an empty object without the option. */
export function expiryOf(flags: unknown, { context }: Session): { expiresAt?: string } {
  const { expires } = z.object({ expires: z.string().optional() }).parse(flags)
  return expires === undefined ? {} : { expiresAt: parseMoment(expires, context.nowMs()) }
}

/** Prints a credential that was created, whose secret is shown once. */
export function printSecret(session: Session, created: ApiResponse<object>, text: string): void {
  printChange(session, created, text)
  session.output.note('\nStore the secret now. It is not shown again.')
}
