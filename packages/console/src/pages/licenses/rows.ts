/** Reads licenses from CSV. Every row is checked with the schema of the API before anything is sent. */

import { createLicense } from '@keyward/contract'
import type { Product } from '@keyward/contract/management/products'
import type { z } from 'zod'

import { checked, gather, noRows, readCsv, type Rows } from '../../api/csv-rows.ts'
import { checkInput } from '../../api/input.ts'
import type { BadRow } from '../../api/work.ts'
import { text } from '../../text.ts'

export interface LicenseRow {
  where: string
  email: string
  name: string
  /** The license to send. The id of its customer is a placeholder. */
  body: z.input<typeof createLicense>
}

export type ReadLicenses = Rows<LicenseRow>

const MAX_ROWS = 20_000
const NUMBERS = ['durationDays', 'maxMachines', 'leaseSeconds', 'maxReleases', 'graceDays', 'fileDays'] as const
const KNOWN = new Set<string>([
  'product',
  'templateId',
  'externalId',
  'email',
  'name',
  'key',
  'type',
  'expiresAt',
  ...NUMBERS,
])
/** A placeholder for the id of the customer, which is known only when the row is sent. */
const ANY_ID = '00000000-0000-7000-8000-000000000000'

export const EXAMPLE = (product: string): string =>
  `product,email,name,type,expiresAt,maxMachines\n"${product}",ada@example.com,Ada Lovelace,PERPETUAL,,2\n"${product}",grace@example.com,Grace Hopper,SUBSCRIPTION,2030-01-01,5\n`

function policyOf(record: Readonly<Record<string, string>>): Record<string, unknown> {
  const { type = '', expiresAt = '', templateId = '' } = record
  const ends = (record['durationDays'] ?? '') !== '' || expiresAt !== ''
  const policy: Record<string, unknown> = {}
  if (type !== '') policy['type'] = type.toUpperCase()
  else if (templateId === '') policy['type'] = ends ? 'SUBSCRIPTION' : 'PERPETUAL'
  if (expiresAt !== '')
    policy['expiresAt'] = /^\d{4}-\d{2}-\d{2}$/.test(expiresAt) ? `${expiresAt}T00:00:00Z` : expiresAt
  for (const name of NUMBERS) {
    const cell = record[name] ?? ''
    if (cell !== '') policy[name] = /^\d+$/.test(cell) ? Number(cell) : cell
  }
  return policy
}

function checkRow(
  where: string,
  record: Readonly<Record<string, string>>,
  products: readonly Product[],
): LicenseRow | BadRow {
  const { product = '', email = '', name = '', key = '', templateId = '', externalId = '' } = record
  if (product === '') return { where, detail: 'product: is required' }
  if (email === '') return { where, detail: 'email: is required' }
  const found = products.find((one) => one.id === product) ?? products.find((one) => one.name === product)
  if (!found) return { where, detail: `product: no product has the name or id "${product}"` }
  const metadata = Object.fromEntries(
    Object.entries(record).filter(([column, cell]) => !KNOWN.has(column) && cell !== ''),
  )
  const body: unknown = {
    productId: found.id,
    customerId: ANY_ID,
    ...(templateId !== '' && { templateId }),
    ...(externalId !== '' && { externalId }),
    policy: policyOf(record),
    ...(key !== '' && { key }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  }
  return checked(where, () => {
    checkInput(createLicense, body)
    return { where, email, name, body }
  })
}

const REQUIRED = ['product', 'email'] as const

/** Returns the separator of the columns. Spreadsheets of some countries write semicolons or tabs instead of commas. */
function delimiterOf(content: string): string {
  const [heading = ''] = content.trimStart().split('\n')
  return [';', '\t'].find((one) => heading.includes(one)) ?? ','
}

/** Reads rows of CSV with a heading line. A row contains the name or the id of its product. */
export async function readLicenseRows(content: string, products: readonly Product[]): Promise<ReadLicenses> {
  if (content.trim() === '') return { rows: [], bad: [] }
  const read = await readCsv(content, delimiterOf(content))
  if (!Array.isArray(read)) return read
  const columns = Object.keys(read[0]?.record ?? {})
  const missing = REQUIRED.filter((column) => !columns.includes(column))
  if (read.length > 0 && missing.length > 0)
    return noRows(
      text.line(1),
      `The heading lacks the column ${missing.join(' and ')}. Its columns: ${columns.join(', ')}.`,
    )
  if (read.length > MAX_ROWS) return noRows('CSV', `More than ${MAX_ROWS.toLocaleString()} rows. Divide the file.`)
  return gather(read.map(({ where, record }) => checkRow(where, record, products)))
}
