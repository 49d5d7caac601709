/** The options for the fields of access rules: of one rule, or of the rows of a file that lack these fields. */

import { ruleKind, ruleType } from '@keyward/contract'
import { Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import type { Defaults } from '../import/validate-row.ts'
import { parseMoment } from '../times.ts'

export const scopeFlags = z.object({ product: z.string().optional(), license: z.string().optional() })
export const ruleFlags = scopeFlags.extend({
  kind: ruleKind,
  type: ruleType,
  note: z.string().optional(),
  expires: z.string().optional(),
  monitor: z.boolean().optional(),
})

/** Adds the options of `ruleFlags` to a command. `what` names the rules: `the rule`, or `rows without one`. */
export function withRuleFlags(command: CliCommand, what: string): CliCommand {
  return command
    .addOption(new Option('--kind <kind>', `the kind of ${what}`).choices(ruleKind.options).default('BLACKLIST'))
    .addOption(new Option('--type <type>', `the type of the value of ${what}`).choices(ruleType.options).default('IP'))
    .option('--product <id>', `the product of ${what} (default: the whole organization)`)
    .addOption(new Option('--license <id>', `the license of ${what}`).conflicts('product'))
    .option('--note <text>', `the note of ${what}`)
    .option('--expires <when>', `the expiry of ${what}: a date, or 30d, 12h, 1y from now (default: never)`)
    .option('--monitor', 'only count the matches')
}

/** Converts flags to fields of a rule. Durations such as `30d` count from `nowMs`. */
export function defaultsOf(flags: z.infer<typeof ruleFlags>, nowMs: number): Defaults {
  const { kind, type, note, expires, monitor } = flags
  return {
    kind,
    type,
    ...scopeOf(flags),
    ...(monitor === true && { mode: 'MONITOR' }),
    ...(note !== undefined && { note }),
    ...(expires !== undefined && { expiresAt: parseMoment(expires, nowMs) }),
  }
}

export function scopeOf({ product, license }: z.infer<typeof scopeFlags>): Pick<Defaults, 'scope' | 'scopeId'> {
  if (product !== undefined) return { scope: 'PRODUCT', scopeId: product }
  return license === undefined ? { scope: 'ORGANIZATION' } : { scope: 'LICENSE', scopeId: license }
}
