import type { AnyInput, InputOf, Operation } from '@keyward/contract/operations'
import { InvalidArgumentError } from 'commander'
import { z } from 'zod'

import type { Api, CallOptions } from '../api.ts'
import type { CliCommand } from '../command.ts'
import { table } from '../output.ts'
import type { Session } from '../session.ts'
import { parsePast } from '../times.ts'

const PAGE_SIZE = 100
const DEFAULT_LIMIT = 50

export const listFlags = z.object({ limit: z.int() })

/** Adds `--limit` to a command. */
export function withLimit(command: CliCommand): CliCommand {
  return command.option('--limit <number>', 'the maximum number of items', positiveNumber, DEFAULT_LIMIT)
}

/** The schema of the options of `withPeriod`. */
export const periodFlags = z.object({ since: z.string().optional(), until: z.string().optional() })

/** Adds `--since` and `--until` to a command. */
export function withPeriod(command: CliCommand): CliCommand {
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

type ListOperation = Operation & { returns: z.ZodType<{ data: unknown[]; nextCursor: string | null }> }
export type ItemOf<One extends ListOperation> = z.output<One['returns']>['data'][number]

export interface List<Item> {
  items: Item[]
  /** Whether the service has further items. */
  more: boolean
}

/** Reads up to `limit` items of a list, in the order of the service. The query of `input` contains the filters. */
export function readList<One extends ListOperation>(
  api: Api,
  operation: One,
  input: InputOf<One>,
  limit?: number,
  retry?: CallOptions['retry'],
): Promise<List<ItemOf<One>>>
export async function readList(
  api: Api,
  operation: ListOperation,
  input: AnyInput,
  limit = Number.MAX_SAFE_INTEGER,
  retry: CallOptions['retry'] = { attempts: 3 },
): Promise<List<unknown>> {
  const items: unknown[] = []
  for (let cursor: string | null = null; ;) {
    const query: AnyInput['query'] = { ...input.query, limit: Math.min(PAGE_SIZE, limit - items.length), cursor }
    const { data }: { data: { data: unknown[]; nextCursor: string | null } } = await api.call(
      operation,
      { ...input, query },
      { retry },
    )
    items.push(...data.data)
    cursor = data.nextCursor
    if (cursor === null || items.length >= limit) return { items, more: cursor !== null }
  }
}

/** Maps the heading of each column to the cell of an item. */
type Row = Readonly<Record<string, string>>

/** Prints a list as an array with --json, otherwise as a table with a row for each item. */
export function printList<T>({ output }: Session, { items, more }: List<T>, row: (item: T) => Row): void {
  const rows = items.map(row)
  const [first] = rows
  output.result(items, first ? table(Object.keys(first), rows.map(Object.values<string>)) : 'None.')
  if (more) output.note('\nThere are more items. Use a higher --limit to show them.')
}

/** Adds the command `list` without filters to a group. `noun` names the resources: `products`. */
export function addList<One extends ListOperation>(
  group: CliCommand,
  operation: One,
  noun: string,
  row: (item: ItemOf<One>) => Row,
): void
export function addList(group: CliCommand, operation: ListOperation, noun: string, row: (item: unknown) => Row): void {
  withLimit(group.command('list').description(`list ${noun}, newest first`)).run(async (session, flags) => {
    printList(session, await readList(session.api, operation, {}, listFlags.parse(flags).limit), row)
  })
}

function positiveNumber(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 to 9,999,999.')
  return Number(text)
}
