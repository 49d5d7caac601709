/** Tests that the number of a worker's waiting requests is bounded and divided between organizations. */

import { MessageChannel } from 'node:worker_threads'

import { expect, test } from 'vitest'

import type { ClaimDecision, MessageToMain } from '../../src/shared/messages.ts'
import { MainThreadClient } from '../../src/workers/main-thread-client.ts'

const HOSTILE = 1
const QUIET = 2
const LEASE = { license: 1, licenseGeneration: 1, machineHash0: 1, machineHash1: 1 }

test("rejects requests beyond an organization's share, and sends the requests of other organizations", async () => {
  const { port1, port2 } = new MessageChannel()
  const client = new MainThreadClient(port1, () => undefined, 100)
  const received: number[] = []
  const arrived = new Promise<void>((resolve) => {
    port2.on('message', (message: MessageToMain) => {
      if (message.type !== 'work') return
      received.push(...message.requests.map(({ organization }) => organization))
      const responses = message.requests.map(({ requestId }) => ({
        kind: 'claim' as const,
        requestId,
        decision: { isDecided: true as const, code: 0, used: 0, max: 1, expiresAtMs: Infinity, leaseEndsMs: Infinity },
      }))
      port2.postMessage({ type: 'responses', responses })
      resolve()
    })
  })
  const decisions: ClaimDecision[] = []
  const claim = (organization: number): void =>
    client.claim(organization, new Uint8Array(16), new Uint8Array(1), null, false, LEASE, (decision) =>
      decisions.push(decision),
    )
  for (let i = 0; i < 1_000; i++) claim(HOSTILE)
  const rejected = decisions.length
  expect(rejected).toBe(950)
  claim(QUIET)
  await arrived
  while (decisions.length < 1_001) await new Promise((resolve) => setImmediate(resolve))
  expect(received.filter((organization) => organization === HOSTILE)).toHaveLength(50)
  expect(received.filter((organization) => organization === QUIET)).toHaveLength(1)
  expect(decisions.filter(({ isDecided }) => isDecided)).toHaveLength(51)
  // Completed requests release their capacity.
  claim(HOSTILE)
  while (decisions.length < 1_002) await new Promise((resolve) => setImmediate(resolve))
  expect(decisions.at(-1)).toMatchObject({ isDecided: true })
  port1.close()
})
