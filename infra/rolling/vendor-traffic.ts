/**
 * Sends management requests during a rolling upgrade: creates licenses, checks them, revokes them and checks them again.
 * When `x-applied-by` reports that every validator has applied a change, every later check must reflect the change.
 */

import { z } from 'zod'

import type { HttpsClient } from '../shared/https-client.ts'
import type { Fixture } from './fixture.ts'

export interface VendorReport {
  rounds: number
  /** Descriptions of the failed management requests, and of the verdicts that did not reflect an applied change. */
  failed: string[]
}

interface VendorTraffic {
  stop: () => Promise<VendorReport>
}

const licenseSchema = z.object({ id: z.string(), key: z.string() })
const verdictSchema = z.object({ code: z.string() })
const CHECKS_PER_CHANGE = 6

export function startVendorTraffic(client: HttpsClient, fixture: Fixture): VendorTraffic {
  const failed: string[] = []
  let rounds = 0
  const stopping = new AbortController()

  async function change(path: string, body: object): Promise<{ body: unknown; byAll: boolean } | null> {
    try {
      const wait = { prefer: 'wait=10' }
      const response = await client.send('POST', `/api/v1${path}`, fixture.managementToken, body, wait)
      const [applied, all] = String(response.headers['x-applied-by'] ?? '0/1').split('/')
      if (response.status === 200 || response.status === 201) return { body: response.body, byAll: applied === all }
      failed.push(`POST ${path}: ${response.status} ${JSON.stringify(response.body)}`)
    } catch (error) {
      failed.push(`POST ${path}: ${String(error)}`)
    }
    return null
  }

  async function codeOf(key: string): Promise<string> {
    const body = { license: key, fingerprint: 'm' }
    const response = await client.send('POST', '/api/v2/license/validate', fixture.apiKey, body)
    return verdictSchema.safeParse(response.body).data?.code ?? `${response.status}`
  }

  async function round(): Promise<void> {
    const { productId, customerId } = fixture
    const policy = { type: 'PERPETUAL', maxMachines: 3 }
    const created = await change('/licenses', { productId, customerId, policy })
    if (!created) return
    const license = licenseSchema.parse(created.body)
    if (created.byAll) await expectCode(license.key, 'VALID')
    const revoked = await change(`/licenses/${license.id}/revoke`, {})
    if (revoked?.byAll === true) await expectCode(license.key, 'REVOKED')
    rounds++
  }

  async function expectCode(key: string, expected: string): Promise<void> {
    for (let i = 0; i < CHECKS_PER_CHANGE; i++) {
      const code = await codeOf(key).catch(String)
      if (code !== expected) failed.push(`${code} instead of ${expected} after every validator had applied the change`)
    }
  }

  const working = (async () => {
    while (!stopping.signal.aborted) await round()
  })()
  return {
    stop: async () => {
      stopping.abort()
      await working
      return { rounds, failed }
    },
  }
}
