import { z } from 'zod'

/**
 * A vendor at work while the cluster is restarted: licenses are made, checked, revoked and checked again. A revocation
 * whose answer says that every validator has applied it must hold for every check after it.
 */
import type { Client } from './client.ts'
import type { World } from './world.ts'

export interface ChangesReport {
  rounds: number
  /** Requests of the management API that did not succeed, and verdicts that came too late. */
  failed: string[]
}

export interface Changes {
  stop: () => Promise<ChangesReport>
}

const made = z.object({ id: z.string(), key: z.string() })
const verdict = z.object({ code: z.string() })
const CHECKS_AFTER = 6

export function startChanges(client: Client, world: World): Changes {
  const failed: string[] = []
  let rounds = 0
  const stopping = new AbortController()

  async function change(path: string, body: object): Promise<{ body: unknown; all: boolean } | null> {
    try {
      const wait = { prefer: 'wait=10' }
      const answer = await client.send('POST', `/api/v1${path}`, world.managementToken, body, wait)
      const [applied, all] = String(answer.headers['x-applied-by'] ?? '0/1').split('/')
      if (answer.status === 200 || answer.status === 201) return { body: answer.body, all: applied === all }
      failed.push(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    } catch (error) {
      failed.push(`POST ${path}: ${String(error)}`)
    }
    return null
  }

  async function codeOf(key: string): Promise<string> {
    const body = { license: key, fingerprint: 'm' }
    const answer = await client.send('POST', '/api/v2/license/validate', world.apiKey, body)
    return verdict.safeParse(answer.body).data?.code ?? `${answer.status}`
  }

  async function round(): Promise<void> {
    const { productId, customerId } = world
    const policy = { type: 'PERPETUAL', maxMachines: 3 }
    const created = await change('/licenses', { productId, customerId, policy })
    if (!created) return
    const license = made.parse(created.body)
    if (created.all) await expectCode(license.key, 'VALID')
    const revoked = await change(`/licenses/${license.id}/revoke`, {})
    if (revoked?.all === true) await expectCode(license.key, 'REVOKED')
    rounds++
  }

  async function expectCode(key: string, expected: string): Promise<void> {
    for (let i = 0; i < CHECKS_AFTER; i++) {
      const code = await codeOf(key).catch(String)
      if (code !== expected) failed.push(`After every validator had applied it: ${code} instead of ${expected}`)
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
