/** Delivers events to webhook endpoints (docs/api.md#w5). */

import type { Logger } from '@keyward/runtime'

import type { Db } from '../context.ts'
import { eventBody } from '../events/body.ts'
import type { Keyring } from '../keyring/keyring.ts'
import type { Sender } from '../outbound/sender.ts'
import { signatureHeaders } from '../outbound/signature.ts'
import { GONE, secondsToRetry } from '../queue/retries.ts'
import { QueueWorker, type Work } from '../queue/worker.ts'
import { disableEndpoint } from './disable.ts'
import type { WebhookMetrics } from './metrics.ts'
import {
  claim,
  type Claimed,
  DELIVERIES,
  failClaimed,
  failPending,
  findDue,
  type Outcome,
  writeOutcomes,
} from './queue.ts'
import { ResponseBytes } from './response-bytes.ts'
import { type EndpointRow, openSecrets } from './secrets.ts'

/** The limits of claimed deliveries and of concurrent attempts. A lane is an endpoint. */
export const CLAIMED = { lane: 100, organization: 300, inAll: 1_200, failing: 600 }
const RUNNING = { lane: 20, organization: 60 }
const USER_AGENT = 'Keyward-Webhooks/1'

interface WorkerOptions {
  db: Db
  keyring: Keyring
  sender: Sender
  metrics: WebhookMetrics
  log: Logger
}

/** A claimed delivery with its endpoint and the body of its attempt. */
interface Ready extends Claimed {
  endpoint: EndpointRow
  body: string
}

async function disableFailing({ db, log }: WorkerOptions, outcomes: readonly Outcome[]): Promise<void> {
  const failed = outcomes.filter(({ isFailing }) => isFailing)
  for (const endpointId of new Set(failed.map((outcome) => outcome.endpointId))) {
    const isGone = failed.some((outcome) => outcome.endpointId === endpointId && outcome.attempt.status === GONE)
    const reason = isGone ? 'GONE' : 'FAILING'
    if (await disableEndpoint(db, endpointId, reason)) log.warn({ endpointId, reason }, 'webhook endpoint disabled')
  }
}

/** Returns the claimed deliveries that can be attempted. Ends those whose event or endpoint has been deleted. */
async function claimReady({ db, keyring }: WorkerOptions, worker: string, claimed: readonly Claimed[]) {
  const jobs: Ready[] = []
  const ended: Claimed[] = []
  const later: string[] = []
  for (const one of claimed) {
    const { id, type, data, endpoint } = one
    if (endpoint === null || type === null || data === null) ended.push(one)
    // Only a process with another master key can open the secret.
    else if (!keyring.canOpen(endpoint.masterKeyId)) later.push(id)
    else jobs.push({ ...one, endpoint, body: eventBody({ ...one, id: one.eventId, type, data }) })
  }
  await failClaimed(
    db,
    worker,
    ended.map(({ id }) => id),
  )
  return { jobs, ended, later }
}

export function startWebhookWorker(options: WorkerOptions): QueueWorker<Ready, Outcome> {
  const { db, keyring, sender, metrics } = options
  const responses = new ResponseBytes()
  const work: Work<Ready, Outcome> = {
    queue: DELIVERIES,
    claimed: CLAIMED,
    running: RUNNING,
    failure: 'webhooks could not be delivered',
    setDue: metrics.setDue,
    async findDue() {
      const due = await findDue(db)
      const disabled = due.filter(({ enabled }) => enabled !== true)
      await failPending(
        db,
        disabled.map(({ lane }) => lane),
      )
      return due
    },
    claim: async (worker, allowances) => claimReady(options, worker, await claim(db, worker, allowances)),
    async attempt({ id, endpoint, body, organizationId, eventId, attempts }, stopping) {
      const headers = {
        'content-type': 'application/json; charset=utf-8',
        'user-agent': USER_AGENT,
        ...signatureHeaders(openSecrets(keyring, endpoint), eventId, body),
      }
      const sent = await sender.send(endpoint.url, headers, body)
      const attempt = { ...sent, response: responses.take(organizationId, sent.response) }
      if (stopping.aborted && attempt.status === null) return null
      metrics.observe(attempt)
      const isFailing = attempt.error !== null
      const retryInSeconds = isFailing ? secondsToRetry(attempts + 1, attempt) : null
      return { id, endpointId: endpoint.id, attempt, isFailing, retryInSeconds }
    },
    write: (worker, outcomes) => writeOutcomes(db, worker, outcomes),
    written: (outcomes) => disableFailing(options, outcomes),
    close: () => sender.close(),
  }
  return new QueueWorker(db, options.log, work)
}
