/** `check`: shows the verdict of a check and the deciding rule. A validator decides the check without recording it. */

import { type AccessRule, type Code, CODE_MESSAGES, type evaluation } from '@keyward/contract'
import { dryRuns } from '@keyward/contract/dry-run'
import { oneLine } from '@keyward/contract/text'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { EXIT, type ExitCode, Failure } from '../failure.ts'
import { findById } from './license-format.ts'

const flagsOf = z.object({ machine: z.string().optional(), ip: z.string().optional(), country: z.string().optional() })

export function addCheckCommand(parent: CliCommand): void {
  parent
    .command('check')
    .description('show the verdict of a check and its reason without recording the check or taking a slot')
    .argument('<license>', 'the id or the key of the license')
    .option('--machine <id>', 'the machine id of the check')
    .option('--ip <address>', 'the address of the check')
    .option('--country <code>', 'the country of the check')
    .run(async ({ api, output }, given, idOrKey: string) => {
      const { machine, ip, country } = flagsOf.parse(given)
      const found = await findById(api, idOrKey)
      const which = found === null ? { licenseKey: idOrKey } : { licenseId: found.id }
      const body = { ...which, machineId: machine, ip, country }
      const { data } = await api.call(dryRuns.evaluateAccessRules, { body })
      output.result(data, explain(data))
      if (data.code !== 'VALID') throw new NegativeResult()
    })
}

/** A failure without a message. A command throws it after its output, to exit with a code. */
export class NegativeResult extends Failure {
  constructor(exitCode: ExitCode = EXIT.negative) {
    super(exitCode, '')
  }
}

type Evaluation = z.infer<typeof evaluation>

function explain({ code, decidedBy, matched, monitored, restricted }: Evaluation): string {
  const others = matched.filter((rule) => rule.id !== decidedBy?.id)
  return [
    `${code}: ${CODE_MESSAGES[code]}`,
    ...(decidedBy === null ? [] : [`Decided by ${describeRule(decidedBy)}.`]),
    ...(restricted === null ? [] : [describeRestricted(restricted)]),
    ...(decidedBy === null && restricted === null ? [withoutRule(code)] : []),
    ...others.map((rule) => `Also matched: ${describeRule(rule)}.`),
    ...monitored.map((rule) => `Matched without effect, because it is monitored: ${describeRule(rule)}.`),
  ].join('\n')
}

function withoutRule(code: Code): string {
  return code === 'NOT_FOUND'
    ? 'No license has this key, so no access rule was evaluated.'
    : 'No access rule decides. The verdict follows from status, expiry and machine limit.'
}

function describeRestricted({ types, ...where }: NonNullable<Evaluation['restricted']>): string {
  return `Rejected because the check satisfies no restriction of ${describeScope(where)} of these types: ${types.join(', ')}.`
}

function describeScope({ scope, scopeId }: Pick<AccessRule, 'scope' | 'scopeId'>): string {
  return scope === 'ORGANIZATION' ? 'the organization' : `the ${scope.toLowerCase()} ${scopeId}`
}

const KINDS = { BLACKLIST: 'the blacklist rule', EXCLUSION: 'the exclusion', RESTRICTION: 'the restriction' }

function describeRule(rule: AccessRule): string {
  const kind = KINDS[rule.kind]
  const scope = describeScope(rule)
  const note = rule.note === null || rule.note === '' ? '' : `, noted "${oneLine(rule.note)}"`
  return `${kind} ${rule.id} (${rule.type} ${oneLine(rule.value)}, for ${scope}${note})`
}
