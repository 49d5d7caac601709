/**
 * Measures the search and the filtered lists of the management API in an organization with many licenses, each with a machine, and as many
 * customers. Another organization has a tenth as many.
 */

import { z } from 'zod'

import { fillOrganization } from '../data/searched.ts'
import { numbersFrom, runMain } from '../harness/command-line.ts'
import { caller, OPERATOR_TOKEN, startManagement } from '../harness/management-api.ts'
import { percentiles } from '../harness/stats.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/search.ts [options]

  --licenses N      licenses of the searched organization (default 1000000)
  --requests N      requests of each kind (default 30)
  --help

Writes bench/results/search.json.`

/** The paths of the requests. Each request has a random number in place of N. */
const PATHS = [
  'search?q=KEY-N',
  'search?q=customerN',
  'search?q=customerN@example.com',
  'search?q=machine-N',
  'search?q=HOST-N',
  'search?q=nothing%20like%20it',
  'machines?machineId=machine-N',
  'machines?hostname=host-N',
  'licenses?email=customerN@example.com',
  'licenses?sort=expiresAt',
  'licenses?expiresBefore=2030-01-01T00:00:00Z&status=active',
  'licenses?expiresAfter=2090-01-01T00:00:00Z',
]

const created = z.object({ id: z.string(), managementToken: z.string() })

await runMain('search', async () => {
  const sizes = numbersFrom(HELP, { licenses: 1_000_000, requests: 30 })
  if (sizes === null) return
  const settings = { shared_buffers: '1GB', max_wal_size: '8GB', fsync: 'off' }
  await withPostgres(async (url) => {
    const data = await measure(url, sizes)
    console.log(JSON.stringify(data, null, 2))
    console.log(writeResult('search', data))
  }, settings)
})

async function measure(url: string, { licenses, requests }: { licenses: number; requests: number }): Promise<object> {
  const management = await startManagement(url)
  try {
    const operator = caller(management.port, OPERATOR_TOKEN)
    const create = async (name: string) =>
      (await operator('POST', 'organizations', created, { name, plan: 'STANDARD' })).value
    const [other, searched] = [await create('Other'), await create('Searched')]
    await fillOrganization(url, other.id, { licenses: Math.ceil(licenses / 10) })
    await fillOrganization(url, searched.id, { licenses })
    const call = caller(management.port, searched.managementToken)
    const times: Record<string, object> = {}
    for (const path of PATHS) {
      const all: number[] = []
      for (let i = 0; i < requests; i++) {
        const n = Math.floor(Math.random() * licenses)
        all.push((await call('GET', path.replaceAll('N', String(n)), z.unknown())).ms)
      }
      times[path] = percentiles(all)
    }
    return { licenses, requests, times }
  } finally {
    await management.stop()
  }
}
