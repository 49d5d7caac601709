/**
 * Runs one request: reads on the pool, changes in one transaction with their audit entry, their activity and the answer
 * kept for a repeat. A deadlock or serialization failure runs the transaction again; nothing of the failed try remains.
 */
import { isRetryable } from '@keyward/database'
import { sql } from 'kysely'

import type { Caller } from './authentication.ts'
import type { Db } from './context.ts'
import type { Services } from './context.ts'
import type { Client, Endpoint } from './endpoint.ts'
import { findAnswer, type IdempotentRequest, keepAnswer, type WireAnswer } from './idempotency.ts'
import { Refusal, toProblem } from './problem.ts'
import { changingTransaction, thisTransaction, waitForValidators } from './propagation.ts'

const tries = 4

type Run = ReturnType<Endpoint['prepare']>

export interface Task {
  endpoint: Endpoint
  /** Judges the input, or throws a Refusal; the result runs the handler. */
  prepare: () => Run
  caller: Caller
  client: () => Client
  path: string
  requestId: string
  idempotent: IdempotentRequest | null
  /** Seconds to wait for the validators; null: do not wait. */
  waitSeconds: number | null
}

async function handle(
  services: Services,
  task: Task,
  run: Run,
  db: Db,
): Promise<{ answer: WireAnswer; kept: WireAnswer }> {
  const { definition } = task.endpoint
  const headers: Record<string, string> = {}
  const { organizationId, permissions, actor } = task.caller
  const result = await run({ db, services, actor, organizationId, permissions, headers, client: task.client })
  if (definition.status === 204) {
    const answer = { status: 204, headers, body: '' }
    return { answer, kept: answer }
  }
  const type = definition.answerType ?? 'application/json'
  headers['content-type'] = `${type}; charset=utf-8`
  const write = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
  const answer = { status: definition.status, headers, body: write(result) }
  const { secrets } = definition
  if (!secrets || typeof result !== 'object' || result === null) return { answer, kept: answer }
  const open = Object.fromEntries(Object.entries(result).filter(([name]) => !secrets.includes(name)))
  return { answer, kept: { ...answer, body: write(open) } }
}

/** A refusal as it goes over the wire. */
export function refuse(refusal: Refusal, path: string, requestId: string): WireAnswer {
  return {
    status: refusal.status,
    headers: { 'content-type': 'application/problem+json; charset=utf-8', ...refusal.extras.headers },
    body: JSON.stringify(toProblem(refusal, path, requestId)),
  }
}

/** Runs the handler so that a refusal takes back what it did but not the transaction, in which the refusal is kept. */
async function handleOnce(services: Services, task: Task, db: Db, request: IdempotentRequest): Promise<WireAnswer> {
  const before = await findAnswer(db, request)
  if (before) return before
  // Not earlier: what was right the first time is answered as then, also when a moment in it has passed since.
  const run = task.prepare()
  await sql`savepoint handler`.execute(db)
  try {
    const { answer, kept } = await handle(services, task, run, db)
    await keepAnswer(db, request, kept)
    return answer
  } catch (error) {
    if (!(error instanceof Refusal) || error.status >= 500) throw error
    await sql`rollback to savepoint handler`.execute(db)
    const answer = refuse(error, task.path, task.requestId)
    await keepAnswer(db, request, answer)
    return answer
  }
}

type Act = (db: Db) => Promise<WireAnswer>

/** What is to be done in a transaction. Without a key the input is judged before there is one. */
function actOf(services: Services, task: Task): Act {
  const { idempotent } = task
  if (idempotent) return (db) => handleOnce(services, task, db, idempotent)
  const run = task.prepare()
  return async (db) => (await handle(services, task, run, db)).answer
}

interface Changed {
  answer: WireAnswer
  /** How long to wait for which transaction; null: not at all. */
  wait: { id: string | null; seconds: number } | null
}

async function change(services: Services, task: Task, act: Act): Promise<Changed> {
  return services.db.transaction().execute(async (db) => {
    const answer = await act(db)
    // A refusal changed nothing that could be waited for.
    if (task.waitSeconds === null || answer.status >= 400) return { answer, wait: null }
    // A repeat changes nothing itself; what it waits for was committed before it.
    const isReplay = 'idempotency-replayed' in answer.headers
    const id = await (isReplay ? thisTransaction(db) : changingTransaction(db))
    return { answer, wait: { id, seconds: task.waitSeconds } }
  })
}

async function changeWithRetries(services: Services, task: Task): Promise<Changed> {
  const act = actOf(services, task)
  for (let attempt = 1; ; attempt++) {
    try {
      return await change(services, task, act)
    } catch (error) {
      if (attempt === tries || !isRetryable(error)) throw error
    }
  }
}

/** The answer of the endpoint; throws a Refusal, or an error that is not for the caller. */
export async function perform(services: Services, task: Task): Promise<WireAnswer> {
  const { definition } = task.endpoint
  if (definition.method === 'get' || definition.readOnly === true)
    return (await handle(services, task, task.prepare(), services.db)).answer
  const { answer, wait } = await changeWithRetries(services, task)
  if (wait === null) return answer
  return { ...answer, headers: { ...answer.headers, ...(await waitForValidators(services.db, wait.id, wait.seconds)) } }
}
