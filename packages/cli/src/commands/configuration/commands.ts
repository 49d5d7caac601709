import { resolve } from 'node:path'

import { z } from 'zod'

import type { CliCommand } from '../../command.ts'
import { EXIT, Failure } from '../../failure.ts'
import type { Session } from '../../session.ts'
import { NegativeResult } from '../check.ts'
import { waitOf, withWait } from '../wait.ts'
import { readConfiguration, writeConfiguration } from './file.ts'
import { type Change, planChanges } from './plan.ts'
import { exportConfiguration } from './present.ts'

const applyFlags = z.object({
  file: z.string(),
  dryRun: z.boolean().default(false),
  allowEmpty: z.boolean().default(false),
})

export function addConfigurationCommands(parent: CliCommand): void {
  withWait(parent.command('apply'))
    .description('bring products, templates, webhook endpoints and sets of rules to the state of a file')
    .requiredOption('-f, --file <path>', 'the file, YAML or JSON, as "export" prints it')
    .option('--dry-run', 'only show the changes; the exit code is 2 if there are any')
    .option('--allow-empty', 'delete all rules of a set whose list is empty')
    .run(apply)
  parent
    .command('export')
    .description('print products, templates, webhook endpoints and sets of rules as the file that "apply" reads')
    .run(async ({ api, output }) => {
      const configuration = await exportConfiguration(api)
      output.result(configuration, writeConfiguration(configuration).trimEnd())
    })
}

async function apply(session: Session, flags: unknown): Promise<void> {
  const { file, dryRun, allowEmpty } = applyFlags.parse(flags)
  const { api, context, output } = session
  const wanted = await readConfiguration(resolve(context.folder, file))
  const changes = await planChanges(api, wanted, { allowEmpty, wait: waitOf(flags) })
  const plan = changes.map(({ action, resource, details }) => ({ action, resource, details }))
  if (dryRun) {
    output.result({ changes: plan }, changes.length === 0 ? 'Nothing would change.' : describePlan(changes))
    if (changes.length > 0) throw new NegativeResult(EXIT.wouldChange)
    return
  }
  if (changes.length > 0) output.note(`${describePlan(changes)}\n`)
  const notes: string[] = []
  for (const [i, change] of changes.entries()) notes.push(...(await makeOne(change, i, changes.length)))
  const sum = changes.length === 0 ? 'Nothing has changed.' : `Made ${changes.length} changes.`
  output.result({ changes: plan, notes }, [sum, ...notes].join('\n'))
}

/** Makes a change. A failure says how many changes have been made, because another run continues with the others. */
async function makeOne({ resource, make }: Change, made: number, all: number): Promise<string[]> {
  try {
    const note = await make()
    return note === undefined ? [] : [note]
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const message = `${resource}: ${error.message}. ${made} of ${all} changes have been made`
    throw new Failure(error.exitCode, message, { ...(error.code && { code: error.code }), details: error.details })
  }
}

function describePlan(changes: readonly Change[]): string {
  const sign = { create: '+', change: '~' } as const
  return changes
    .flatMap(({ action, resource, details }) => [`${sign[action]} ${resource}`, ...details.map((one) => `    ${one}`)])
    .join('\n')
}
