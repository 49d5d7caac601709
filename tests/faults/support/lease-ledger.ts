/**
 * Reconstructs which machine held a leased slot at which time, by the clock of Postgres, the reference clock of these tests. A
 * trigger records every grant and renewal in its transaction. A VALID response is correct if its machine held a slot at an
 * instant at which the validator may have decided the check.
 */

import type { openPool } from './postgres.ts'

type Pool = ReturnType<typeof openPool>

/** A period. Both ends are in milliseconds since 1970. */
export interface Span {
  fromMs: number
  untilMs: number
}

/** The periods in which each machine held a slot, in chronological order and without overlaps. */
export type Holds = ReadonlyMap<string, readonly Span[]>

export interface ValidResponse extends Span {
  machine: string
  /** The periods in which the validator that sent the response was certainly suspended. */
  suspended: readonly Span[]
}

export async function keepLedger(pool: Pool): Promise<void> {
  await pool.query(`
    create table lease_ledger (machine bytea not null, at timestamptz not null, ends_at timestamptz not null);
    create function keep_lease_ledger() returns trigger language plpgsql security definer as $$
    begin
      insert into lease_ledger values (new.machine_id, clock_timestamp(), new.lease_ends_at);
      return null;
    end $$;
    create trigger lease_ledger after insert or update of lease_ends_at on machines
      for each row when (new.lease_ends_at is not null) execute function keep_lease_ledger()`)
}

export async function readHolds(pool: Pool): Promise<Holds> {
  const { rows } = await pool.query<{ machine: Buffer; from: number; until: number }>(
    `select machine, extract(epoch from at)::float8 * 1000 as from, extract(epoch from ends_at)::float8 * 1000 as until
     from lease_ledger order by at`,
  )
  const holds = new Map<string, Span[]>()
  for (const { machine, from, until } of rows) {
    const spans = holds.get(machine.toString()) ?? []
    const last = spans.at(-1)
    if (last && from <= last.untilMs) last.untilMs = Math.max(last.untilMs, until)
    else spans.push({ fromMs: from, untilMs: until })
    holds.set(machine.toString(), spans)
  }
  return holds
}

/** Returns the number of machines that hold slots, after each change. */
function changes(holds: Holds): { atMs: number; held: number }[] {
  const all = [...holds.values()].flat()
  const steps = [
    ...all.map(({ fromMs }) => ({ atMs: fromMs, by: 1 })),
    ...all.map(({ untilMs }) => ({ atMs: untilMs, by: -1 })),
  ]
  // At equal times, the end of a lease precedes the grant of the same slot to another machine.
  steps.sort((a, b) => a.atMs - b.atMs || a.by - b.by)
  let held = 0
  return steps.map(({ atMs, by }) => ({ atMs, held: (held += by) }))
}

/** Returns the maximum number of machines that held slots at one instant. */
export function mostAtOnce(holds: Holds): number {
  return Math.max(0, ...changes(holds).map(({ held }) => held))
}

/**
 * Returns the time in ms for which each slot of a full license stayed free after the end of its lease. Leaves out the times that
 * overlap with a fault.
 */
export function freeTimes(holds: Holds, slots: number, disturbed: readonly Span[]): number[] {
  const steps = changes(holds)
  const times: number[] = []
  for (const [i, { atMs, held }] of steps.entries()) {
    const taken = steps.slice(i + 1).find((later) => later.held > held)
    if (held !== slots - 1 || steps[i - 1]?.held !== slots || taken === undefined) continue
    const isDisturbed = disturbed.some(({ fromMs, untilMs }) => fromMs <= taken.atMs && untilMs >= atMs)
    if (!isDisturbed) times.push(taken.atMs - atMs)
  }
  return times
}

/** Returns the parts of a period in which the process was not suspended. */
function running(span: Span, suspended: readonly Span[]): Span[] {
  let parts = [span]
  for (const { fromMs, untilMs } of suspended)
    parts = parts.flatMap((part) => {
      if (untilMs <= part.fromMs || fromMs >= part.untilMs) return [part]
      const rest = [
        { fromMs: part.fromMs, untilMs: fromMs },
        { fromMs: untilMs, untilMs: part.untilMs },
      ]
      return rest.filter((one) => one.fromMs < one.untilMs)
    })
  return parts
}

/**
 * Returns a description of each VALID response whose machine held no slot at any instant at which the check may have been
 * decided.
 */
export function wrongResponses(responses: readonly ValidResponse[], holds: Holds): string[] {
  return responses
    .filter(({ machine, suspended, ...span }) => {
      const held = holds.get(machine) ?? []
      return !running(span, suspended).some((part) =>
        held.some(({ fromMs, untilMs }) => fromMs <= part.untilMs && untilMs >= part.fromMs),
      )
    })
    .map(({ machine, fromMs, untilMs }) => `${machine} was VALID at ${fromMs} to ${untilMs} without a slot`)
}
