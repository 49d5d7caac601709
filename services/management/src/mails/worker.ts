/** Sends the mails of the outbox (docs/api.md#e3). */

import { type Logger, throttledLog } from '@keyward/runtime'
import { sql } from 'kysely'
import { Counter, Gauge, type Registry } from 'prom-client'

import type { Db } from '../context.ts'
import { type Allowance, claiming, type DueLane, findDueLanes, type Queue, QUICK } from '../queue/queue.ts'
import { secondsToRetry } from '../queue/retries.ts'
import { type Job, type Outcome, QueueWorker, type Work } from '../queue/worker.ts'
import type { Envelope, Mailer } from './mailer.ts'
import { type MailContent, mailedLicenses, type Message, render } from './render.ts'

const MAILS: Queue = { table: 'mails', lane: 'organization_id' }
/** The limits of concurrent attempts. A lane is an organization. The lanes share one mail server. */
const RUNNING = { lane: 2, organization: 2 }
/** No claimed mail waits, so that `inAll` is the number of concurrent attempts. */
const CLAIMED = { ...RUNNING, inAll: 20, failing: 0 }
/** The maximum number of mails of one organization to one address in 24 hours. Anyone can give a shop the address of another person. */
const MAX_OF_ADDRESS = 20
/** A mail that has been due for longer than this is not sent, because its text may be wrong by now. */
const MAX_LATE_DAYS = 3
const LOG_INTERVAL_MS = 10_000

interface WorkerOptions {
  db: Db
  mailer: Mailer
  /** The maximum number of mails of one organization in 24 hours. */
  perDay: number
  log: Logger
  registry: Registry
}

/** A claimed mail with its message, or the reason why it is not sent. */
interface MailJob extends Job, Envelope {
  attempts: number
  message: Message | string
}

interface MailOutcome extends Outcome {
  error: string | null
  /** Whether the mail server was asked. Other mails do not count toward the daily limit. */
  isTried: boolean
  /** The number of seconds until the next attempt, or null when the mail has ended. */
  retryInSeconds: number | null
}

/** Returns the organizations with due mails, except suspended ones. */
async function findDue({ db, perDay }: WorkerOptions): Promise<DueLane[]> {
  const attempted = sql`
    select count(*)::integer from (
      select from mails m where m.organization_id = w.lane and m.attempted_at > now() - interval '1 day' limit ${perDay}) counted`
  // The outcomes of these mails are not stored yet.
  const running = sql`select count(*)::integer from mails m where m.organization_id = w.lane and m.worker is not null`
  return findDueLanes(
    db,
    MAILS,
    sql`o.id as organization_id, o.suspended_at is null as enabled, false as is_failing, ${perDay}::integer - (${attempted}) - (${running}) as most`,
    sql`join organizations o on o.id = w.lane`,
  )
}

interface ClaimedMail extends Omit<MailJob, 'message'>, Omit<MailContent, 'licenses'> {
  licenses: unknown
  isLate: boolean
  /** The number of this mail among those to its address in 24 hours. */
  ofAddress: number
}

async function claim(db: Db, worker: string, allowances: readonly Allowance[]): Promise<MailJob[]> {
  const { rows } = await sql<ClaimedMail>`
    with ${claiming(MAILS, worker, allowances)}
    select m.id, o.id as lane, o.id as organization_id, m.template, c.email as recipient, m.attempts, m.ends_at,
      m.next_attempt_at < now() - ${MAX_LATE_DAYS} * interval '1 day' as is_late,
      row_number() over (partition by o.id, lower(c.email) order by m.id)::integer + (
        select count(*)::integer from mails s
        where s.organization_id = o.id and lower(s.recipient) = lower(c.email) and s.id not in (select id from claimed)
          and (s.attempted_at > now() - interval '1 day' or s.worker is not null)
      ) as of_address,
      coalesce(o.mail_sender_name, o.name) as sender, o.mail_reply_to as reply_to, o.time_zone,
      (select jsonb_agg(jsonb_build_object('key', l.key, 'product', p.name, 'status', l.status, 'expiresAt', extract(epoch from l.expires_at) * 1000) order by l.id)
        from licenses l join products p on p.id = l.product_id
        where l.id = any(m.license_ids) and l.organization_id = o.id and l.customer_id = c.id) as licenses
    from claimed m join organizations o on o.id = m.organization_id join customers c on c.id = m.customer_id`.execute(
    db,
  )
  return rows.map((row) => {
    return Object.assign(row, { message: messageOf(row) })
  })
}

/** Returns the message of a mail, or the reason why it is not sent. A mail that cannot be rendered must not hold up the others. */
function messageOf(mail: ClaimedMail): Message | string {
  if (mail.isLate) return `The mail could not be sent within ${MAX_LATE_DAYS} days.`
  if (mail.ofAddress > MAX_OF_ADDRESS)
    return `${MAX_OF_ADDRESS} mails of the last 24 hours went to this address. Send the mail again later.`
  try {
    return render({ ...mail, licenses: mailedLicenses.parse(mail.licenses) })
  } catch (error) {
    return `The mail could not be rendered: ${String(error)}`
  }
}

async function writeOutcomes(db: Db, worker: string, outcomes: readonly MailOutcome[]): Promise<void> {
  await sql`
    with ${QUICK}
    update mails m
    set attempts = m.attempts + 1, worker = null, error = g.error,
      attempted_at = case when g.tried then now() else m.attempted_at end,
      status = case when g.error is null then 'SUCCEEDED' when g.retry is null then 'FAILED' else 'PENDING' end,
      next_attempt_at = now() + make_interval(secs => g.retry)
    from quick cross join unnest(${outcomes.map(({ id }) => id)}::uuid[], ${outcomes.map(({ error }) => error)}::text[],
      ${outcomes.map(({ retryInSeconds }) => retryInSeconds)}::float8[], ${outcomes.map(({ isTried }) => isTried)}::boolean[])
      as g (id, error, retry, tried)
    where m.id = g.id and m.worker = ${worker}`.execute(db)
}

function createMetrics(registry: Registry) {
  return {
    attempts: new Counter({
      name: 'keyward_management_mail_attempts_total',
      help: 'Attempts to send a mail, by outcome: succeeded, failed (another attempt follows), ended (the last attempt failed).',
      labelNames: ['outcome'],
      registers: [registry],
    }),
    due: new Gauge({
      name: 'keyward_management_mail_due',
      help: 'Mails that are due and that no process has claimed, counted up to 100,000.',
      registers: [registry],
    }),
  }
}

export function startMailWorker(options: WorkerOptions): QueueWorker<MailJob, MailOutcome> {
  const { db, mailer, log, registry } = options
  const { attempts, due } = createMetrics(registry)
  const ended = new AbortController()
  const logOutage = throttledLog(log, 'the mail server could not be used', {
    level: 'error',
    intervalMs: LOG_INTERVAL_MS,
  })
  const work: Work<MailJob, MailOutcome> = {
    queue: MAILS,
    claimed: CLAIMED,
    running: RUNNING,
    failure: 'mails could not be sent',
    setDue: (count) => due.set(count),
    findDue: () => findDue(options),
    claim: async (worker, allowances) => ({ jobs: await claim(db, worker, allowances), later: [], ended: [] }),
    async attempt(job) {
      const { id, message } = job
      const isSendable = typeof message !== 'string'
      const sent = isSendable
        ? await mailer.send(job, message, ended.signal)
        : { error: message, isFinal: true, outage: null }
      if (ended.signal.aborted && sent.error !== null) return null
      if (sent.outage !== null) logOutage({ err: sent.outage })
      const pause = sent.isFinal ? null : secondsToRetry(job.attempts + 1, { status: null, retryAfterSeconds: null })
      attempts.inc({ outcome: sent.error === null ? 'succeeded' : pause === null ? 'ended' : 'failed' })
      // A failure says nothing about the other mails of the organization.
      return { id, isFailing: false, isTried: isSendable, error: sent.error, retryInSeconds: pause }
    },
    write: (worker, outcomes) => writeOutcomes(db, worker, outcomes),
    close() {
      ended.abort()
      return Promise.resolve()
    },
  }
  return new QueueWorker(db, log, work)
}
