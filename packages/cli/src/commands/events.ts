/** `events`: lists events, and forwards them to a URL in the form of webhooks (docs/webhooks.md). */

import { createHmac, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Event, events as operations } from '@keyward/contract/management/events'
import { z } from 'zod'

import type { Api } from '../api.ts'
import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'

const POLL_MS = 1_000
/** The period before now that each read covers, because an event about checks may be written later than its timestamp. */
const OVERLAP_MS = 60_000
const ATTEMPTS = 3
const PAUSE_MS = 1_000
const TIMEOUT_MS = 15_000
const PREFIX = 'whsec_'

const typeFlag = z.object({ type: z.string().optional() })
const listenFlags = typeFlag.extend({
  forward: z.string(),
  secret: z.string().optional(),
  stopAfter: z.coerce.number().int().min(1).optional(),
})

export function addEventCommands(parent: CliCommand): void {
  const events = parent.command('events').description('list events, or forward them to a receiver')
  withLimit(
    events
      .command('list')
      .description('list events, newest first')
      .option('--type <type>', 'only events of this type, or of a group such as license.*'),
  ).run(async (session, flags) => {
    const { limit, type } = listFlags.extend(typeFlag.shape).parse(flags)
    const list = await readList(session.api, operations.listEvents, { query: { type } }, limit)
    printList(session, list, (one) => ({
      AT: one.timestamp,
      TYPE: one.type,
      RESOURCE: resourceOf(one),
      ID: one.id,
    }))
  })
  events
    .command('listen')
    .description('forward new events to a receiver, signed like webhooks, until the command is interrupted')
    .requiredOption('--forward <url>', 'the URL of the receiver, such as http://127.0.0.1:3000/hook')
    .option('--type <type>', 'only events of this type, or of a group such as license.*')
    .option('--secret <secret>', 'the signing secret, which begins with whsec_ (default: a new one, which is printed)')
    .option('--stop-after <count>', 'end after this number of events')
    .run(async (session, flags) => {
      const { forward, type, secret, stopAfter } = listenFlags.parse(flags)
      const receiver = { url: parseUrl(forward), ...parseSecret(secret) }
      session.output.note(`The secret is ${receiver.text}. Forwarding to ${receiver.url}; interrupt with Ctrl-C.`)
      await listen(session, receiver, type, stopAfter ?? Number.POSITIVE_INFINITY)
    })
}

function resourceOf({ data }: Event): string {
  return z.object({ resource: z.object({ id: z.string() }) }).safeParse(data).data?.resource.id ?? '–'
}

function parseUrl(text: string): string {
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol)) return url.href
  throw new Failure(EXIT.usage, `--forward must be a URL such as http://127.0.0.1:3000/hook; got ${text}`)
}

/** Returns the secret as text, and the bytes of the signing key that it contains. */
function parseSecret(given = PREFIX + randomBytes(32).toString('base64')): { text: string; key: Buffer } {
  const key = Buffer.from(given.slice(PREFIX.length), 'base64')
  if (given.startsWith(PREFIX) && key.length >= 16) return { text: given, key }
  throw new Failure(EXIT.usage, '--secret must be whsec_ followed by the base64 of at least 16 bytes')
}

/** Returns the events since `fromMs` that are not in `seen`, oldest first. Adds their ids to `seen`. */
async function fetchNew(
  api: Api,
  fromMs: number,
  type: string | undefined,
  seen: Map<string, number>,
): Promise<Event[]> {
  const query = { type, from: new Date(fromMs).toISOString() }
  const { items } = await readList(api, operations.listEvents, { query }, Number.MAX_SAFE_INTEGER, {})
  const fresh = items.filter(({ id }) => !seen.has(id))
  for (const { id, timestamp } of fresh) seen.set(id, Date.parse(timestamp))
  return fresh.toReversed()
}

async function listen(
  { api, output, context }: Session,
  receiver: { url: string; key: Uint8Array },
  type: string | undefined,
  stopAfter: number,
): Promise<void> {
  const seen = new Map<string, number>()
  // Adds earlier events to `seen`, so that they are not forwarded.
  await fetchNew(api, context.nowMs() - OVERLAP_MS, type, seen)
  for (let forwarded = 0; forwarded < stopAfter;) {
    const fromMs = context.nowMs() - OVERLAP_MS
    for (const [id, atMs] of seen) if (atMs < fromMs - OVERLAP_MS) seen.delete(id)
    for (const one of await fetchNew(api, fromMs, type, seen)) {
      const outcome = await forwardEvent(receiver, one)
      output.result({ ...one, outcome }, `${one.timestamp}  ${one.type}  ${resourceOf(one)}  ${outcome}`)
      if (++forwarded === stopAfter) return
    }
    await sleep(POLL_MS)
  }
}

/** Sends an event up to three times. Returns the status of the last response, or the reason why there was none. */
async function forwardEvent({ url, key }: { url: string; key: Uint8Array }, one: Event): Promise<string> {
  const body = JSON.stringify(one)
  let outcome = ''
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    if (attempt > 1) await sleep(PAUSE_MS)
    const timestamp = String(Math.floor(Date.now() / 1_000))
    const signature = createHmac('sha256', key).update(`${one.id}.${timestamp}.${body}`).digest('base64')
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'webhook-id': one.id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    }
    try {
      const init: RequestInit = {
        method: 'POST',
        headers,
        body,
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      }
      const response = await fetch(url, init)
      await response.body?.cancel()
      outcome = String(response.status)
      if (response.ok) return outcome
    } catch (error) {
      outcome = error instanceof Error && error.name === 'TimeoutError' ? 'no response' : 'not reachable'
    }
  }
  return outcome
}
