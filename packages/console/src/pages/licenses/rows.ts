/** Reads licenses from CSV or JSON. Every row is checked with the schema of the API before anything is sent. */

import { importLicense, type ImportLicense } from '@keyward/contract'
import { licenseOfCells, licenseOfJson } from '@keyward/contract/management/license-cells'
import type { Product } from '@keyward/contract/management/products'

import { checked, gather, noRows, readCsv, type Rows } from '../../api/csv-rows.ts'
import { checkInput } from '../../api/input.ts'
import type { BadRow } from '../../api/work.ts'
import { text } from '../../text.ts'

export interface LicenseRow {
  where: string
  body: ImportLicense
}

export type ReadLicenses = Rows<LicenseRow>

interface GivenRow {
  where: string
  /** The name or the id of a product, instead of `productId`. */
  product: string
  row: Record<string, unknown>
}

const MAX_ROWS = 20_000

export const EXAMPLE = (product: string): string =>
  `product,email,name,type,expiresAt,maxMachines,status\n"${product}",ada@example.com,Ada Lovelace,PERPETUAL,,2,\n"${product}",grace@example.com,Grace Hopper,SUBSCRIPTION,2030-01-01,5,suspended\n`

function checkRow({ where, product, row }: GivenRow, products: readonly Product[]): LicenseRow | BadRow {
  const found = products.find((one) => one.id === product) ?? products.find((one) => one.name === product)
  if (product !== '' && !found) return { where, detail: `product: no product has the name or id "${product}"` }
  const body: unknown = { ...row, ...(found && { productId: found.id }) }
  return checked(where, () => {
    checkInput(importLicense, body)
    return { where, body }
  })
}

/** Returns the separator of the columns. Spreadsheets of some countries write semicolons or tabs instead of commas. */
function delimiterOf(content: string): string {
  const [heading = ''] = content.trimStart().split('\n')
  return [';', '\t'].find((one) => heading.includes(one)) ?? ','
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the rows of JSON: an array, `{"licenses": […]}`, or one object in each line. */
function readJson(content: string): GivenRow[] | ReturnType<typeof noRows> {
  const parse = (json: string): unknown => JSON.parse(json)
  const listOf = (value: unknown): unknown => (isRecord(value) && 'licenses' in value ? value['licenses'] : value)
  try {
    let list: unknown
    try {
      list = listOf(parse(content))
    } catch {
      list = content.split('\n').flatMap((line) => (line.trim() === '' ? [] : [parse(line)]))
    }
    return (Array.isArray(list) ? list : [list]).map((value: unknown, at) => {
      const { product = '', ...row } = isRecord(value) ? value : {}
      return { where: `Item ${at + 1}`, product: typeof product === 'string' ? product : '', row: licenseOfJson(row) }
    })
  } catch (error) {
    return noRows('JSON', error instanceof Error ? error.message : '')
  }
}

/** A table has one column of each list. */
const REQUIRED = [
  ['product', 'productId', 'templateId'],
  ['email', 'customerExternalId', 'customerId'],
] as const

async function readTable(content: string): Promise<GivenRow[] | ReturnType<typeof noRows>> {
  const read = await readCsv(content, delimiterOf(content))
  if (!Array.isArray(read)) return read
  const columns = Object.keys(read[0]?.record ?? {})
  const missing = REQUIRED.filter((names) => !names.some((name) => columns.includes(name))).map(([name]) => name)
  if (read.length > 0 && missing.length > 0)
    return noRows(
      text.line(1),
      `The heading lacks the column ${missing.join(' and ')}. Its columns: ${columns.join(', ')}.`,
    )
  return read.map(({ where, record }) => ({ where, product: record['product'] ?? '', row: licenseOfCells(record) }))
}

/** Reads rows of CSV with a heading line, or of JSON. */
export async function readLicenseRows(content: string, products: readonly Product[]): Promise<ReadLicenses> {
  if (content.trim() === '') return { rows: [], bad: [] }
  const read = /^\s*[[{]/.test(content) ? readJson(content) : await readTable(content)
  if (!Array.isArray(read)) return read
  if (read.length > MAX_ROWS) return noRows('File', `More than ${MAX_ROWS.toLocaleString()} rows. Divide the file.`)
  return gather(read.map((row) => checkRow(row, products)))
}
