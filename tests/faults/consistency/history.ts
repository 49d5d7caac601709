/**
 * Judges the responses of validators by the versions of an organization. Each response must be correct for a version that
 * existed at the time of the check. Later responses of a validator must not be of older versions. Without a fault, a validator
 * must not be more than `slackMs` behind Postgres.
 */

import { allows, judge, type ModelCheck, type ModelState } from './model.ts'

export interface Version {
  name: string
  state: ModelState
  /** The times at which the change was sent, and at which its response arrived. */
  sentMs: number
  doneMs: number
}

export interface Observation {
  validator: number
  /** The number of the validator's start. A restart may load an older version. */
  life: number
  check: ModelCheck
  code: string
  sentMs: number
  receivedMs: number
}

export interface Fault {
  name: string
  /** The index of the validator; null for a fault of all validators. */
  validator: number | null
  beganMs: number
  endedMs: number
}

export interface Judged {
  wrong: string[]
  judged: number
  /** The number of responses that are wrong for at least one version. A response that fits all versions proves little. */
  telling: number
}

/**
 * Judges all observations. `slackMs` is the maximum age of the version that a response reflects, unless a fault disturbed the validator
 * within `slackMs` before the check.
 */
export function judgeAll(
  versions: readonly Version[],
  observations: readonly Observation[],
  faults: readonly Fault[],
  slackMs: number,
): Judged {
  const judged: Judged = { wrong: [], judged: 0, telling: 0 }
  for (const [life, all] of Object.entries(groupByLife(observations))) {
    const shown: { receivedMs: number; version: number }[] = []
    for (const seen of all.toSorted((a, b) => a.sentMs - b.sentMs)) {
      const last = versions.findLastIndex((version) => version.sentMs <= seen.receivedMs)
      const shownBefore = shown.filter(({ receivedMs }) => receivedMs < seen.sentMs).map(({ version }) => version)
      const first = Math.max(0, freshest(versions, faults, seen, slackMs), ...shownBefore)
      const states = versions.slice(0, last + 1).map(({ state }) => state)
      const isRight = states.map((state, i) => allows(state, states.slice(i + 1), seen.check, seen.code))
      const found = isRight.indexOf(true, first)
      judged.judged++
      if (isRight.includes(false)) judged.telling++
      if (found < 0) judged.wrong.push(explain(life, seen, versions, states, first))
      else shown.push({ receivedMs: seen.receivedMs, version: found })
    }
  }
  return judged
}

function groupByLife(observations: readonly Observation[]): Record<string, Observation[]> {
  const lives: Record<string, Observation[]> = {}
  for (const one of observations) (lives[`validator ${one.validator}, start ${one.life}`] ??= []).push(one)
  return lives
}

/**
 * Returns the oldest version that the validator may have. Without a fault, this is the last version that was complete `slackMs`
 * before the check.
 */
function freshest(
  versions: readonly Version[],
  faults: readonly Fault[],
  { validator, sentMs }: Observation,
  slackMs: number,
): number {
  const troubled = faults.some(
    (fault) =>
      (fault.validator === null || fault.validator === validator) &&
      fault.beganMs < sentMs &&
      fault.endedMs > sentMs - slackMs,
  )
  return troubled ? 0 : versions.findLastIndex((version) => version.doneMs < sentMs - slackMs)
}

function explain(
  life: string,
  seen: Observation,
  versions: readonly Version[],
  states: readonly ModelState[],
  first: number,
): string {
  const codes = states.map((state) => judge(state, seen.check))
  const said = codes.map((code, i) => `${i} ${code}`).filter((_, i) => i === 0 || codes[i] !== codes[i - 1])
  const at = Math.round(seen.sentMs - (versions[1]?.sentMs ?? 0))
  return `${life}, ${at} ms: ${JSON.stringify(seen.check)} was ${seen.code}; from version ${first} on: ${said.join(', ')}`
}
