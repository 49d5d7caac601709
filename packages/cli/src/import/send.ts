/**
 * Sends rules in batches of the maximum size of one request. A batch is imported completely or not at all. An error message contains the
 * position of each rejected row in the file. If a batch fails, the rules of earlier batches stay.
 */

import { accessRules, MAX_IMPORT_ROWS, MAX_SKIPPED_ROWS, type SkippedRow } from '@keyward/contract'
import type { ResultOf } from '@keyward/contract/operations'

import { type Api, type FieldError, ValidationFailure } from '../api.ts'
import { EXIT, Failure } from '../failure.ts'
import { newRun, type Progress, type ProgressState } from './progress.ts'
import type { RuleInput } from './validate-row.ts'

/** A rule and its position in the file. */
export interface LocatedRule {
  where: string
  rule: RuleInput
}

/** A row that was not added, because the rule with the id does all that the row says (docs/api.md#r4). */
export interface CoveredRow {
  where: string
  ruleId: string
}

/**
 * Skips the batches that `from` counts as sent, and sends the others. Returns the final state, and the first skipped rows of the sent
 * batches. Throws Failure for errors of the API.
 */
export async function sendAll(
  api: Api,
  rules: AsyncIterable<LocatedRule>,
  progress: Progress,
  from: ProgressState,
  report: (state: ProgressState) => void,
): Promise<ProgressState & { skippedRows: CoveredRow[] }> {
  const state = { ...from }
  const covered: CoveredRow[] = []
  // The state is saved before the first batch is sent, because the response to this batch can be lost.
  await progress.save(state)
  let index = 0
  for await (const batch of inBatches(rules)) {
    if (index++ < from.batches) continue
    const idempotencyKey = `${state.run}-${index}`
    const { created, skipped, skippedRows } = await sendBatch(api, batch, idempotencyKey, state).catch(
      async (error: unknown) => {
        if (isStored(error)) await (state.batches === 0 ? progress.done() : progress.save({ ...state, run: newRun() }))
        throw error
      },
    )
    state.batches = index
    state.created += created
    state.skipped += skipped
    covered.push(...coveredRows(skippedRows, batch).slice(0, MAX_SKIPPED_ROWS - covered.length))
    await progress.save(state)
    report(state)
  }
  await progress.done()
  return { ...state, skippedRows: covered }
}

/** Returns the skipped rows of a request with the positions of its rows in the file. */
export function coveredRows(skipped: readonly SkippedRow[], sent: readonly LocatedRule[]): CoveredRow[] {
  return skipped.map(({ pointer, ruleId }) => ({ where: placeOf(pointer, sent).where ?? pointer, ruleId }))
}

/** Returns whether the service stored the error for the idempotency key. A retry after a stored error needs another key. */
export function isStored(error: unknown): boolean {
  return error instanceof Failure && error.exitCode === EXIT.apiError && error.code !== 'IDEMPOTENCY_KEY_IN_USE'
}

async function sendBatch(
  api: Api,
  batch: readonly LocatedRule[],
  idempotencyKey: string,
  state: ProgressState,
): Promise<ResultOf<typeof accessRules.importAccessRules>> {
  const body = { rules: batch.map(({ rule }) => rule) }
  try {
    return (await api.call(accessRules.importAccessRules, { body }, { retry: { idempotencyKey } })).data
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const errors = error instanceof ValidationFailure ? error.errors : []
    throw new Failure(error.exitCode, `${error.message.replace(/\.$/, '')}. ${addedBefore(error.exitCode, state)}`, {
      ...(error.code === undefined ? {} : { code: error.code }),
      details: errors.length > 0 ? errors.map((each) => inFile(each, batch)) : error.details,
    })
  }
}

function addedBefore(exitCode: number, { created }: ProgressState): string {
  const resume = exitCode === EXIT.unreachable ? '. Run the same command to resume' : ''
  return `Added before: ${created}${resume}`
}

/** Formats a validation error of a batch with the row's position in the file instead of `#/rules/17/`. */
function inFile({ pointer, detail }: FieldError, batch: readonly LocatedRule[]): string {
  const { where, field } = placeOf(pointer, batch)
  return where === undefined ? `${pointer} ${detail}` : `${where}: ${field} ${detail}`
}

/** Returns the position in the file of the row that a JSON pointer names, if it names one, and the rest of the pointer. */
function placeOf(pointer: string, rows: readonly LocatedRule[]): { where: string | undefined; field: string } {
  const [, row, field = ''] = /^#\/rules\/(\d+)(?:\/(.*))?$/.exec(pointer) ?? []
  return { where: row === undefined ? undefined : rows[Number(row)]?.where, field }
}

async function* inBatches(rules: AsyncIterable<LocatedRule>): AsyncGenerator<LocatedRule[]> {
  let batch: LocatedRule[] = []
  for await (const rule of rules) {
    batch.push(rule)
    if (batch.length < MAX_IMPORT_ROWS) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
