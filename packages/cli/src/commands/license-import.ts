/**
 * `license import`: validates a list of any length, then sends it in batches. A repeated command skips the licenses that exist, and gets the
 * stored responses for the batches that it has sent before.
 */

import { createHash, randomUUID } from 'node:crypto'
import { resolve } from 'node:path'

import { describeIssue, importLicense, type ImportLicense, licenses } from '@keyward/contract'
import { licenseOfCells, licenseOfJson } from '@keyward/contract/management/license-cells'
import { products } from '@keyward/contract/management/products'
import { Option } from 'commander'
import { z } from 'zod'

import { ValidationFailure } from '../api.ts'
import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import { csvRecords } from '../import/csv-rows.ts'
import { jsonLineRows, jsonRows } from '../import/json-rows.ts'
import { formatOf, readLines, type Row } from '../import/rows.ts'
import { isStored } from '../import/send.ts'
import type { Session } from '../session.ts'
import { readList } from './lists.ts'

const BATCH = 500
const MAX_SHOWN = 20
const FORMATS = ['csv', 'json', 'jsonl'] as const

interface LocatedLicense {
  where: string
  license: ImportLicense
}
type CheckedRow = LocatedLicense | { problem: string }

const flagsOf = z.object({
  format: z.enum(FORMATS).optional(),
  createCustomers: z.boolean().default(false),
  dryRun: z.boolean().default(false),
})

/** Adds `import` to the group `license`. */
export function addLicenseImport(group: CliCommand): void {
  group
    .command('import')
    .description(
      'add licenses from a file, with their status and machines; those whose key or external id exists are skipped',
    )
    .argument('<file>', 'csv (with a heading line), json or jsonl')
    .addOption(new Option('--format <format>', 'the format of the file (default: by its extension)').choices(FORMATS))
    .option('--create-customers', 'create the customers that do not exist')
    .option('--dry-run', 'validate the file without sending it')
    .run((session, flags, file: string) =>
      importFile(session, resolve(session.context.folder, file), flagsOf.parse(flags)),
    )
}

async function* jsonLicenses(rows: AsyncIterable<Row>): AsyncGenerator<Row> {
  for await (const { where, fields } of rows) yield { where, fields: licenseOfJson({ ...fields }) }
}

async function* csvLicenses(path: string): AsyncGenerator<Row> {
  let delimiter: string | undefined
  for await (const { line } of readLines(path)) {
    delimiter = [';', '\t'].find((one) => line.includes(one))
    break
  }
  for await (const { where, record } of csvRecords(path, delimiter)) {
    const product = record['product'] ?? ''
    yield { where, fields: { ...licenseOfCells(record), ...(product !== '' && { product }) } }
  }
}

function readRows(path: string, given: (typeof FORMATS)[number] | undefined): AsyncIterable<Row> {
  const format = given ?? formatOf(path)
  switch (format) {
    case 'csv':
      return csvLicenses(path)
    case 'json':
      return jsonLicenses(jsonRows(path, 'licenses'))
    case 'jsonl':
      return jsonLicenses(jsonLineRows(path))
    case 'txt':
      throw new Failure(EXIT.usage, 'Licenses need the format csv, json or jsonl. Set --format')
    default:
      return format satisfies never
  }
}

/** Checks the rows. `productIds` has the ids of the products by name and by id. */
async function* checkRows(
  rows: AsyncIterable<Row>,
  productIds: ReadonlyMap<string, string>,
): AsyncGenerator<CheckedRow> {
  for await (const { where, fields } of rows) {
    const { product, ...row } = fields
    const productId = productIds.get(String(product))
    if (product !== undefined && productId === undefined) {
      yield { problem: `${where}: product: no product has the name or id ${JSON.stringify(product)}` }
      continue
    }
    const license: unknown = { ...row, ...(productId !== undefined && { productId }) }
    const problems: string[] = []
    if (isLicense(license, problems)) yield { where, license }
    else yield { problem: `${where}: ${problems.join('; ')}` }
  }
}

/** Returns whether the service accepts the form of a license. Adds the problems of its fields. */
function isLicense(value: unknown, problems: string[]): value is ImportLicense {
  const parsed = importLicense.safeParse(value, { error: describeIssue })
  if (parsed.success) return true
  problems.push(
    ...parsed.error.issues.slice(0, MAX_SHOWN).map(({ path, message }) => `${path.join('.')} ${message}`.trim()),
  )
  return false
}

async function importFile(session: Session, path: string, flags: z.infer<typeof flagsOf>): Promise<void> {
  const { api, output } = session
  const { items } = await readList(api, products.listProducts, {})
  const productIds = new Map([
    ...items.map(({ id, name }) => [name, id] as const),
    ...items.map(({ id }) => [id, id] as const),
  ])
  const open = () => checkRows(readRows(path, flags.format), productIds)
  const problems: string[] = []
  let rows = 0
  for await (const row of open()) {
    rows++
    if ('problem' in row) problems.push(row.problem)
  }
  if (problems.length > 0)
    throw new Failure(EXIT.usage, `${problems.length} of ${rows} rows are invalid. Nothing was sent`, {
      details: [
        ...problems.slice(0, MAX_SHOWN),
        ...(problems.length > MAX_SHOWN ? [`… and ${problems.length - MAX_SHOWN} more`] : []),
      ],
    })
  if (flags.dryRun) return output.result({ rows, dryRun: true }, `${rows} licenses are valid. Nothing was sent.`)
  const sum = { rows, created: 0, skipped: 0, createdCustomers: 0 }
  let sent = 0
  for await (const batch of inBatches(open())) {
    const body = {
      licenses: batch.map(({ license }) => license),
      createCustomers: flags.createCustomers,
      skipExisting: true,
    }
    // The key is that of an equal batch of an earlier run, so rows without a key and an external id are not created twice.
    const idempotencyKey = createHash('sha256').update(JSON.stringify(body)).digest('hex')
    const send = (key: string) => api.call(licenses.importLicenses, { body }, { retry: { idempotencyKey: key } })
    const { data, isReplayed } = await send(idempotencyKey)
      // The error may be the stored one of an earlier run. A batch that failed created nothing, so it may be sent again.
      .catch((error: unknown) => {
        if (isStored(error)) return send(randomUUID())
        throw error
      })
      .catch((error: unknown) => {
        throw failureOf(error, batch, sum.created)
      })
    sum.created += isReplayed ? 0 : data.created
    sum.skipped += data.skipped + (isReplayed ? data.created : 0)
    sum.createdCustomers += isReplayed ? 0 : data.createdCustomers
    sent += batch.length
    output.progress(`${sent} of ${rows} licenses sent, ${sum.created} new`)
  }
  output.result(
    sum,
    `${sum.created} licenses and ${sum.createdCustomers} customers added, ${sum.skipped} licenses existed.`,
  )
}

/** Returns the failure of a batch with the positions of its rows in the file. */
function failureOf(error: unknown, batch: readonly LocatedLicense[], created: number): unknown {
  if (!(error instanceof Failure)) return error
  const details =
    error instanceof ValidationFailure
      ? error.errors.map(({ pointer, detail }) => {
          const [, , at, ...field] = pointer.split('/')
          const where = batch[Number(at)]?.where
          return where === undefined ? `${pointer} ${detail}` : `${where}: ${field.join('.')} ${detail}`
        })
      : error.details
  const message = `${error.message.replace(/\.$/, '')}. Added before: ${created}. Correct the rows, and run the command again`
  return new Failure(error.exitCode, message, { ...(error.code !== undefined && { code: error.code }), details })
}

async function* inBatches(rows: AsyncIterable<CheckedRow>): AsyncGenerator<LocatedLicense[]> {
  let batch: LocatedLicense[] = []
  for await (const row of rows) {
    if ('problem' in row) continue
    batch.push(row)
    if (batch.length < BATCH) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
