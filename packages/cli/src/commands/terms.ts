/** The options for the terms of licenses and templates. */

import { policyType } from '@keyward/contract'
import { InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'

const numberFlag = z.union([z.int(), z.literal('none').transform(() => null)]).optional()
const limitFlags = {
  maxMachines: numberFlag,
  leaseSeconds: numberFlag,
  maxReleases: numberFlag,
  graceDays: z.int().optional(),
  fileDays: numberFlag,
}
const termFlags = z.object({ type: policyType.optional(), durationDays: numberFlag, ...limitFlags })

/** Adds the options of `limitsOf`. */
export function withLimits(command: CliCommand): CliCommand {
  return command
    .option('--max-machines <number>', 'the maximum number of machines, or none', numberOrNone)
    .option(
      '--lease-seconds <seconds>',
      'the time for which a machine holds its slot without a check, or none',
      numberOrNone,
    )
    .option('--max-releases <number>', 'the number of slots that apps may release in 30 days, or none', numberOrNone)
    .option('--grace-days <days>', 'the number of days after the expiry for which checks stay valid', wholeNumber)
    .option(
      '--file-days <days>',
      'the lifetime of offline license files in days, or none: as long as a lease, or 30 days without leases',
      numberOrNone,
    )
}

/** Adds the options of `termsOf`. */
export function withTerms(command: CliCommand): CliCommand {
  return withLimits(
    command
      .addOption(new Option('--type <type>', 'the type of the license').choices(policyType.options))
      .option(
        '--duration-days <days>',
        'the length of a term that starts with the first VALID check, or none',
        numberOrNone,
      ),
  )
}

/** Returns the given limits. An absent option is an absent member. */
export function limitsOf(flags: unknown): z.output<z.ZodObject<typeof limitFlags>> {
  return z.object(limitFlags).parse(flags)
}

/** Returns the given terms. An absent option is an absent member. */
export function termsOf(flags: unknown): z.output<typeof termFlags> {
  return termFlags.parse(flags)
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

function numberOrNone(text: string): number | 'none' {
  return text === 'none' ? text : wholeNumber(text)
}
