/** Sends the mails of the outbox (docs/api.md#e3). */

import { type Logger, throttledLog } from '@keyward/runtime'
import { sql } from 'kysely'
import { Counter, Gauge, type Registry } from 'prom-client'

import type { Db } from '../context.ts'
import { firstIdAt } from '../http/pagination.ts'
import { type Allowance, claiming, type DueLane, findDueLanes, type Queue, QUICK } from '../queue/queue.ts'
import { secondsToRetry } from '../queue/retries.ts'
import { type Claim, type Job, type Outcome, QueueWorker, type Work } from '../queue/worker.ts'
import type { Envelope, Mailer } from './mailer.ts'
import { type MailContent, mailedLicenses, type Message, render } from './render.ts'

const MAILS: Queue = { table: 'mails', lane: 'organization_id' }
/** The limits of concurrent attempts. A lane is an organization. The lanes share one mail server. */
const RUNNING = { lane: 2, organization: 2 }
/** No claimed mail waits, so that `inAll` is the number of concurrent attempts. */
const CLAIMED = { ...RUNNING, inAll: 20, failing: 0 }
/** The maximum number of mails of one organization to one address in 24 hours. Anyone can give a shop the address of another person. */
const MAX_OF_ADDRESS = 20
const POSTPONED = `${MAX_OF_ADDRESS} mails of the last 24 hours went to this address. The mail is sent later.`
/** The pause before the next look at a postponed mail. The jitter keeps many of them from being due together. */
const POSTPONED_SECONDS = 3_600
const JITTER = 0.2
const LINK_FAILED = 'The link could not be created. The log of the management service contains the reason.'
/**
 * A mail that has been due for longer than this is not sent, because its text may be wrong by now. A mail is postponed until this time after
 * its creation.
 */
const MAX_LATE_DAYS = 3
const MAX_LATE_MS = MAX_LATE_DAYS * 86_400_000
/** A mail with a link is not sent later than this after its request. */
const MAX_LINK_LATE_MS = 3_600_000
const LOG_INTERVAL_MS = 10_000

interface WorkerOptions {
  db: Db
  mailer: Mailer
  /** The maximum number of mails of one organization in 24 hours. */
  perDay: number
  /** Creates a link to the portal for a customer. */
  createLink: (organizationId: string, customerId: string) => Promise<string>
  log: Logger
  registry: Registry
}

/** A claimed mail with the values of its message. */
interface MailJob extends Job, Envelope, Omit<MailContent, 'licenses' | 'url'> {
  customerId: string
  attempts: number
  licenses: unknown
  /** Whether the mail has been due for too long. */
  isOverdue: boolean
  /** Whether the mail was created too long ago to be postponed, or to be sent if it has a link. */
  isOld: boolean
  /**
   * The number of this mail among those that were sent to its address in 24 hours or are being sent. Links are counted separately, because
   * anyone can request them.
   */
  ofAddress: number
}

interface MailOutcome extends Outcome {
  error: string | null
  /** Whether the mail server was asked. Other mails do not count toward the daily limit. */
  isTried: boolean
  /** Whether the mail waits because of the limit of its address. This is not an attempt. */
  isPostponed: boolean
  /** The number of seconds until the next attempt, or null when the mail has ended. */
  retryInSeconds: number | null
  /** The customer whose address was requested, or null for mails that have a customer from the start. */
  customerId: string | null
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

/** Claims mails. Deletes the mails with links for addresses that no customer has. */
async function claim(db: Db, worker: string, allowances: readonly Allowance[]): Promise<Claim<MailJob>> {
  const { rows } = await sql<
    Omit<MailJob, 'customerId' | 'recipient'> & Pick<MailOutcome, 'customerId'> & { recipient: string | null }
  >`
    with ${claiming(MAILS, worker, allowances)}
    select m.id, o.id as lane, o.id as organization_id, m.template, c.id as customer_id, c.email as recipient, m.attempts, m.ends_at,
      m.next_attempt_at < now() - ${MAX_LATE_DAYS} * interval '1 day' as is_overdue,
      m.id < case m.template when 'portal' then ${firstIdAt(Date.now() - MAX_LINK_LATE_MS)}::uuid
        else ${firstIdAt(Date.now() - MAX_LATE_MS)}::uuid end as is_old,
      row_number() over (partition by o.id, lower(c.email), m.template = 'portal' order by m.id)::integer + (
        select count(*)::integer from mails s
        where s.organization_id = o.id and lower(s.recipient) = lower(c.email) and s.id not in (select id from claimed)
          and (s.template = 'portal') = (m.template = 'portal')
          and (s.status = 'SUCCEEDED' and s.attempted_at > now() - interval '1 day' or s.worker is not null)
      ) as of_address,
      coalesce(o.mail_sender_name, o.name) as sender, o.mail_reply_to as reply_to, o.time_zone,
      (select jsonb_agg(jsonb_build_object('key', l.key, 'product', p.name, 'status', l.status, 'expiresAt', extract(epoch from l.expires_at) * 1000) order by l.id)
        from licenses l join products p on p.id = l.product_id
        where l.id = any(m.license_ids) and l.organization_id = o.id and l.customer_id = c.id) as licenses
    from claimed m join organizations o on o.id = m.organization_id
      left join customers c on c.organization_id = o.id and c.id = case m.template when 'portal' then (
        select p.id from customers p where p.organization_id = o.id and lower(p.email) = lower(m.recipient) order by p.id limit 1
      ) else m.customer_id end`.execute(db)
  const ended = rows.filter(({ customerId }) => customerId === null)
  await sql`delete from mails where id = any(${ended.map(({ id }) => id)}::uuid[]) and worker = ${worker}`.execute(db)
  const jobs = rows.flatMap(({ customerId, recipient, ...rest }) =>
    customerId === null || recipient === null ? [] : [{ ...rest, customerId, recipient }],
  )
  return { jobs, ended, later: [] }
}

/** Returns the message of a mail, or the reason why it is not sent. A mail that cannot be rendered must not hold up the others. */
function messageOf(mail: MailJob, url: string | null): Message | string {
  try {
    return render({ ...mail, url, licenses: mailedLicenses.parse(mail.licenses) })
  } catch (error) {
    return `The mail could not be rendered: ${String(error)}`
  }
}

function reasonNotToSend({ template, isOverdue, isOld, ofAddress }: MailJob): string | null {
  const isLink = template === 'portal'
  if (!isOverdue && !(isOld && (isLink || ofAddress > MAX_OF_ADDRESS))) return null
  return `The mail could not be sent within ${isLink ? 'an hour' : `${MAX_LATE_DAYS} days`}.`
}

async function writeOutcomes(db: Db, worker: string, outcomes: readonly MailOutcome[]): Promise<void> {
  await sql`
    with ${QUICK}
    update mails m
    set attempts = m.attempts + case when g.postponed then 0 else 1 end, worker = null, error = g.error,
      attempted_at = case when g.tried then now() else m.attempted_at end,
      status = case when g.error is null then 'SUCCEEDED' when g.retry is null then 'FAILED' else 'PENDING' end,
      next_attempt_at = now() + make_interval(secs => g.retry),
      customer_id = coalesce(m.customer_id, (select c.id from customers c where c.id = g.customer))
    from quick cross join unnest(${outcomes.map(({ id }) => id)}::uuid[], ${outcomes.map(({ error }) => error)}::text[],
      ${outcomes.map(({ retryInSeconds }) => retryInSeconds)}::float8[], ${outcomes.map(({ isTried }) => isTried)}::boolean[],
      ${outcomes.map(({ isPostponed }) => isPostponed)}::boolean[], ${outcomes.map(({ customerId }) => customerId)}::uuid[])
      as g (id, error, retry, tried, postponed, customer)
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
  const linkOf = async (organizationId: string, customerId: string): Promise<string | Error> => {
    try {
      return await options.createLink(organizationId, customerId)
    } catch (error) {
      log.error({ err: error, organizationId }, 'a link to the portal could not be created')
      return error instanceof Error ? error : new Error(String(error))
    }
  }
  const work: Work<MailJob, MailOutcome> = {
    queue: MAILS,
    claimed: CLAIMED,
    running: RUNNING,
    failure: 'mails could not be sent',
    setDue: (count) => due.set(count),
    findDue: () => findDue(options),
    claim: (worker, allowances) => claim(db, worker, allowances),
    async attempt(job) {
      const { id, organizationId, customerId } = job
      const isLink = job.template === 'portal'
      // A failure says nothing about the other mails of the organization.
      const outcome = { id, isFailing: false, isPostponed: false, customerId: isLink ? customerId : null }
      const reason = reasonNotToSend(job)
      if (reason === null && job.ofAddress > MAX_OF_ADDRESS) {
        const retryInSeconds = POSTPONED_SECONDS * (1 + JITTER * Math.random())
        return { ...outcome, isPostponed: true, isTried: false, error: POSTPONED, retryInSeconds }
      }
      const link = isLink && reason === null ? await linkOf(organizationId, customerId) : null
      const message = reason ?? (link instanceof Error ? LINK_FAILED : messageOf(job, link))
      const isSendable = typeof message !== 'string'
      const sent = isSendable
        ? await mailer.send(job, message, ended.signal)
        : { error: message, isFinal: !(link instanceof Error), outage: null }
      if (ended.signal.aborted && sent.error !== null) return null
      if (sent.outage !== null) logOutage({ err: sent.outage })
      const pause = sent.isFinal ? null : secondsToRetry(job.attempts + 1, { status: null, retryAfterSeconds: null })
      attempts.inc({ outcome: sent.error === null ? 'succeeded' : pause === null ? 'ended' : 'failed' })
      return { ...outcome, isTried: isSendable, error: sent.error, retryInSeconds: pause }
    },
    write: (worker, outcomes) => writeOutcomes(db, worker, outcomes),
    close() {
      ended.abort()
      return Promise.resolve()
    },
  }
  return new QueueWorker(db, log, work)
}
