/**
 * Sends rules in batches of the maximum size of one request. A batch is imported completely or not at all. An error message contains the
 * position of each rejected row in the file. If a batch fails, the rules of earlier batches stay.
 */

import { accessRules, MAX_IMPORT_ROWS } from '@keyward/contract'

import { type Api, type FieldError, ValidationFailure } from '../api.ts'
import { EXIT, Failure } from '../failure.ts'
import { newRun, type Progress, type ProgressState } from './progress.ts'
import type { RuleInput } from './validate-row.ts'

/** A rule and its position in the file. */
export interface LocatedRule {
  where: string
  rule: RuleInput
}

/** Skips the batches that `from` counts as sent, sends the others, and returns the final state. Throws Failure for errors of the API. */
export async function sendAll(
  api: Api,
  rules: AsyncIterable<LocatedRule>,
  progress: Progress,
  from: ProgressState,
  report: (state: ProgressState) => void,
): Promise<ProgressState> {
  const state = { ...from }
  // The state is saved before the first batch is sent, because the response to this batch can be lost.
  await progress.save(state)
  let index = 0
  for await (const batch of inBatches(rules)) {
    if (index++ < from.batches) continue
    const idempotencyKey = `${state.run}-${index}`
    const { created, skipped } = await sendBatch(api, batch, idempotencyKey, state).catch(async (error: unknown) => {
      if (isStored(error)) await (state.batches === 0 ? progress.done() : progress.save({ ...state, run: newRun() }))
      throw error
    })
    state.batches = index
    state.created += created
    state.skipped += skipped
    await progress.save(state)
    report(state)
  }
  await progress.done()
  return state
}

/** Returns whether the service stored the error for the idempotency key. A retry after a stored error needs another key. */
function isStored(error: unknown): boolean {
  return error instanceof Failure && error.exitCode === EXIT.apiError && error.code !== 'IDEMPOTENCY_KEY_IN_USE'
}

async function sendBatch(
  api: Api,
  batch: readonly LocatedRule[],
  idempotencyKey: string,
  state: ProgressState,
): Promise<{ created: number; skipped: number }> {
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
  const [, row = '', field = ''] = /^#\/rules\/(\d+)(?:\/(.*))?$/.exec(pointer) ?? []
  const where = batch[Number(row)]?.where
  return where === undefined || row === '' ? `${pointer} ${detail}` : `${where}: ${field} ${detail}`
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
