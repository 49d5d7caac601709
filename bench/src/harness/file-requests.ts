/** Creates apps that request license files, and sends their requests to the management service. */

import { createPool } from '@keyward/database'
import { insertLicense, insertMachine } from '@keyward/testkit'
import autocannon from 'autocannon'
import { z } from 'zod'

import { caller, OPERATOR_TOKEN } from './management-api.ts'

/** An app of an organization of its own. */
export interface App {
  organizationId: string
  apiKey: string
  /** The keys of licenses whose only machine is MACHINE. */
  licenseKeys: string[]
}

const MACHINE = 'bench'
/** The number of prepared requests of a connection. Each has another address, so that few requests come from one address. */
const PREPARED_REQUESTS = 200
const created = z.object({ id: z.string(), apiKey: z.string(), managementToken: z.string() })
const withId = z.object({ id: z.string() })

/** Creates apps with `licenses` licenses each. `port` is that of the management service. */
export async function createApps(databaseUrl: string, port: number, count: number, licenses: number): Promise<App[]> {
  const operator = caller(port, OPERATOR_TOKEN)
  const pool = createPool(databaseUrl, { name: 'keyward-bench-files', max: 4 })
  try {
    const apps: App[] = []
    for (let n = 0; n < count; n += 1) {
      const { value } = await operator('POST', 'organizations', created, { name: `Bench ${n}`, plan: 'STANDARD' })
      const call = caller(port, value.managementToken)
      const product = await call('POST', 'products', withId, { name: 'Product' })
      const customer = await call('POST', 'customers', withId, { email: `customer-${n}@example.com` })
      const ids = { organizationId: value.id, productId: product.value.id, customerId: customer.value.id }
      const licenseKeys: string[] = []
      for (let license = 0; license < licenses; license += 1) {
        const { id, key } = await insertLicense(pool, ids)
        await insertMachine(pool, { licenseId: id, machineId: MACHINE })
        licenseKeys.push(key)
      }
      apps.push({ organizationId: value.id, apiKey: value.apiKey, licenseKeys })
    }
    return apps
  } finally {
    await pool.end()
  }
}

/** Requests the file of a license. Throws for an error response. */
export async function requestFile(port: number, apiKey: string, licenseKey: string): Promise<void> {
  const { path, ...request } = fileRequest(apiKey, licenseKey)
  const response = await fetch(`http://127.0.0.1:${port}${path}`, request)
  const text = await response.text()
  if (!response.ok) throw new Error(`POST ${path} returned ${response.status}: ${text.slice(0, 400)}`)
}

/**
 * Requests files with each connection, one after the other, for a number of seconds. Returns the number of files. Throws for an error
 * response. autocannon sends requests that it has prepared, because `fetch` would take more processor time than the service.
 */
export function requestFiles(port: number, app: App, connections: number, seconds: number): Promise<number> {
  const { apiKey, licenseKeys } = app
  let clients = 0
  const setupClient = (client: autocannon.Client) => {
    const first = clients++
    const keys = Array.from({ length: PREPARED_REQUESTS }, (_, n) => licenseKeys[(first + n) % licenseKeys.length]!)
    client.setRequests(keys.map((licenseKey) => fileRequest(apiKey, licenseKey)))
  }
  return new Promise((resolve, reject) => {
    const options = { url: `http://127.0.0.1:${port}`, connections, duration: seconds, setupClient }
    autocannon(options, (error: unknown, { errors, non2xx, '2xx': files }) => {
      if (error instanceof Error) reject(error)
      else if (errors + non2xx > 0) reject(new Error(`${errors} requests failed, and ${non2xx} returned an error`))
      else resolve(files)
    })
  })
}

function fileRequest(apiKey: string, licenseKey: string) {
  return {
    method: 'POST' as const,
    path: '/api/v1/licenses/file',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', 'x-forwarded-for': address() },
    body: JSON.stringify({ licenseKey, fingerprint: MACHINE }),
  }
}

/** Returns one of a million addresses, because the requests of one address are limited. */
function address(): string {
  const number = Math.floor(Math.random() * 2 ** 20)
  return `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`
}
