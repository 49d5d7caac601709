/** `search`: finds licenses, customers, products, machines and access rules (docs/api.md#m15). */

import { search, type SearchResults } from '@keyward/contract/management/search'

import type { CliCommand } from '../command.ts'
import { table } from '../output.ts'

export function addSearchCommand(parent: CliCommand): void {
  parent
    .command('search')
    .description('find a license, customer, product, machine or rule by a part of its key, name or value')
    .argument(
      '<text>',
      'the beginning of a key, machine id or host name, a part of an e-mail address or name, or an address',
    )
    .run(async ({ api, output }, _flags, q: string) => {
      const { data } = await api.call(search.search, { query: { q } }, { retry: { attempts: 3 } })
      const rows = rowsOf(data)
      output.result(data, rows.length === 0 ? 'None.' : table(['KIND', 'FOUND', 'DETAIL', 'ID'], rows))
    })
}

function rowsOf({ licenses, customers, products, machines, accessRules }: SearchResults): string[][] {
  return [
    ...licenses.map((one) => ['license', one.key, one.status, one.id]),
    ...customers.map((one) => ['customer', one.email, one.name ?? '–', one.id]),
    ...products.map((one) => ['product', one.name, '–', one.id]),
    ...machines.map((one) => ['machine', one.machineId, `${one.hostname ?? '–'}, license ${one.licenseId}`, one.id]),
    ...accessRules.map((one) => ['rule', one.value, `${one.kind} ${one.type}`, one.id]),
  ]
}
