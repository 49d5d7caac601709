import { page } from '@keyward/contract'
import { type Operation, type QueryOf, urlOf } from '@keyward/contract/operations'
import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'

import type { Api, Call } from '../api.ts'
import { table } from '../output.ts'
import type { Session } from '../session.ts'
import { parsePast } from '../times.ts'

const PAGE_SIZE = 100
const DEFAULT_LIMIT = 50

/** The schema of a response without a body. */
export const noContent = z.undefined()

export const listFlags = z.object({ limit: z.int() })

/** Adds `--limit` to a command. */
export function withLimit(command: Command): Command {
  return command.option('--limit <number>', 'the maximum number of items', positiveNumber, DEFAULT_LIMIT)
}

/** The schema of the options of `withPeriod`. */
export const periodFlags = z.object({ since: z.string().optional(), until: z.string().optional() })

/** Adds `--since` and `--until` to a command. */
export function withPeriod(command: Command): Command {
  return command
    .option('--since <when>', 'only entries from this time on: a date, or 12h, 30d, 2w before now')
    .option('--until <when>', 'only entries before this time')
}

/** Returns the filters `from` and `to` of the period. */
export function periodOf(
  { since, until }: z.infer<typeof periodFlags>,
  nowMs: number,
): Record<'from' | 'to', string | undefined> {
  return { from: since && parsePast(since, nowMs), to: until && parsePast(until, nowMs) }
}

/**
 * Reads up to `limit` items of a list, in the order of the service. `query` contains the filters. Undefined filters are omitted. `more` is
 * true when the service has further items.
 */
export async function fetchList<T>(
  api: Api,
  path: string,
  item: z.ZodType<T>,
  limit: number,
  query: Readonly<Record<string, string | undefined>> = {},
  as?: 'operator',
): Promise<{ items: T[]; more: boolean }> {
  const items: T[] = []
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value)
  for (;;) {
    parameters.set('limit', String(Math.min(PAGE_SIZE, limit - items.length)))
    const { data } = await api.call(
      { method: 'GET', path: `${path}?${parameters.toString()}`, retry: { attempts: 3 }, ...(as && { as }) },
      page(item),
    )
    items.push(...data.data)
    if (data.nextCursor === null || items.length >= limit) return { items, more: data.nextCursor !== null }
    parameters.set('cursor', data.nextCursor)
  }
}

type ListOperation = Operation & { returns: z.ZodType<{ data: unknown[]; nextCursor: string | null }> }
type ItemOf<One extends ListOperation> = z.output<One['returns']>['data'][number]

/** Reads up to `limit` items of a list, in the order of the service. */
export async function readList<One extends ListOperation>(
  api: Api,
  operation: One,
  limit: number,
  query: Partial<Record<keyof z.input<QueryOf<One>>, string | undefined>> = {},
): Promise<{ items: ItemOf<One>[]; more: boolean }> {
  const { needs } = operation
  return fetchPages(
    operation.returns,
    limit,
    (part) => {
      const path = urlOf(operation, { query: { ...query, ...part } })
      return { method: 'GET', path, retry: { attempts: 3 }, ...(needs === 'operator' && { as: needs }) }
    },
    api,
  )
}

async function fetchPages<Item>(
  schema: z.ZodType<{ data: Item[]; nextCursor: string | null }>,
  limit: number,
  callOf: (part: { limit: number; cursor?: string }) => Call,
  api: Api,
): Promise<{ items: Item[]; more: boolean }> {
  const items: Item[] = []
  for (let cursor: string | null | undefined; ;) {
    const sent = callOf({ limit: Math.min(PAGE_SIZE, limit - items.length), ...(cursor && { cursor }) })
    const { data } = await api.call(sent, schema)
    items.push(...data.data)
    cursor = data.nextCursor
    if (cursor === null || items.length >= limit) return { items, more: cursor !== null }
  }
}

/** Prints a list as an array with --json, otherwise as a table with a row for each item. */
export function printList<T>(
  { output }: Session,
  { items, more }: { items: readonly T[]; more: boolean },
  heading: readonly string[],
  row: (item: T) => readonly string[],
): void {
  output.result(items, items.length === 0 ? 'None.' : table(heading, items.map(row)))
  if (more) output.note('\nThere are more items. Use a higher --limit to show them.')
}

function positiveNumber(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 to 9,999,999.')
  return Number(text)
}
