/**
 * Sends rules in batches of what one request may hold. Each batch is all or nothing; a refusal names the rows as they
 * stand in the file, and what earlier batches added stays.
 */
import { importedAccessRules, maxImportRows } from '@keyward/contract'

import { type Api, RefusedPlaces } from '../api.ts'
import { EXIT, Failure } from '../failure.ts'
import type { RuleInput } from './judge.ts'
import { newRun, type Progress, type ProgressState } from './progress.ts'

export interface PlacedRule {
  where: string
  rule: RuleInput
}

export async function sendAll(
  api: Api,
  rules: AsyncIterable<PlacedRule>,
  progress: Progress,
  from: ProgressState,
  report: (state: ProgressState) => void,
): Promise<ProgressState> {
  const state = { ...from }
  // Also before the first batch, whose answer may be lost as any other.
  await progress.save(state)
  let index = 0
  for await (const batch of inBatches(rules)) {
    if (index++ < from.batches) continue
    const idempotencyKey = `${state.run}-${index}`
    const { created, skipped } = await sendBatch(api, batch, idempotencyKey, state).catch(async (error: unknown) => {
      if (isKept(error)) await (state.batches === 0 ? progress.done() : progress.save({ ...state, run: newRun() }))
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

/** The service keeps a refusal for its idempotency key, as it keeps an answer: under another key it judges again. */
function isKept(error: unknown): boolean {
  return error instanceof Failure && error.exitCode === EXIT.refused && error.code !== 'IDEMPOTENCY_KEY_IN_USE'
}

async function sendBatch(
  api: Api,
  batch: readonly PlacedRule[],
  idempotencyKey: string,
  state: ProgressState,
): Promise<{ created: number; skipped: number }> {
  const body = { rules: batch.map(({ rule }) => rule) }
  const call = { method: 'POST', path: '/access-rules/import', body, retry: { idempotencyKey } } as const
  try {
    return (await api.call(call, importedAccessRules)).data
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const places = error instanceof RefusedPlaces ? error.places : []
    throw new Failure(error.exitCode, `${error.message.replace(/\.$/, '')}. ${whatStands(error.exitCode, state)}`, {
      ...(error.code === undefined ? {} : { code: error.code }),
      details: places.length > 0 ? places.map((place) => inFile(place, batch)) : error.details,
    })
  }
}

function whatStands(exitCode: number, { created }: ProgressState): string {
  const goesOn = exitCode === EXIT.unreachable ? '; the same command goes on from there' : ''
  return `Added before: ${created}${goesOn}`
}

/** `#/rules/17/value` of a batch as the line of the file. */
function inFile(place: { pointer: string; detail: string }, batch: readonly PlacedRule[]): string {
  const [, row = '', field = ''] = /^#\/rules\/(\d+)(?:\/(.*))?$/.exec(place.pointer) ?? []
  const where = batch[Number(row)]?.where
  return where === undefined || row === '' ? `${place.pointer} ${place.detail}` : `${where}: ${field} ${place.detail}`
}

async function* inBatches(rules: AsyncIterable<PlacedRule>): AsyncGenerator<PlacedRule[]> {
  let batch: PlacedRule[] = []
  for await (const rule of rules) {
    batch.push(rule)
    if (batch.length < maxImportRows) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
