/** Tests the shares and turns of owners at a fair gate, and the rejection of tasks beyond its queue. */

import { expect, test } from 'vitest'

import { createFairGate } from '../../src/admission/fair-gate.ts'

const options = { total: 4, perOwner: 2, maxWaiting: 50, maxWaitMs: 1_000, what: 'tasks', onReject: () => undefined }
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('limits each owner to its share and serves waiting owners in turns', async () => {
  const gate = createFairGate(options)
  const order: string[] = []
  const leave: (() => void)[] = []
  const enterAndNote = async (owner: string) => {
    leave.push(await gate.enter(owner))
    order.push(owner)
  }
  const enter = (owner: string) => void enterAndNote(owner)
  for (let i = 0; i < 20; i++) enter('hostile')
  await settled()
  expect(order).toEqual(['hostile', 'hostile'])
  for (let i = 0; i < 5; i++) enter('quiet')
  await settled()
  expect(order).toEqual(['hostile', 'hostile', 'quiet', 'quiet'])
  // All places are taken. Each free place goes to the owner whose turn it is.
  for (let i = 0; i < 8; i++) {
    leave.shift()?.()
    await settled()
  }
  expect(order.filter((owner) => owner === 'quiet')).toHaveLength(5)
  expect(order.filter((owner) => owner === 'hostile')).toHaveLength(6)
  while (leave.length > 0) {
    leave.shift()?.()
    await settled()
  }
  expect(order).toHaveLength(25)
})

test('rejects a task when the queue is full or the task has waited too long', async () => {
  let rejected = 0
  const gate = createFairGate({ ...options, maxWaiting: 1, maxWaitMs: 50, onReject: () => rejected++ })
  const leave = await gate.enter('a')
  await gate.enter('a')
  const waiting = gate.enter('a')
  await expect(gate.enter('a')).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    options: { headers: { 'retry-after': '1' } },
  })
  await expect(waiting).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(rejected).toBe(2)
  leave()
  await gate.enter('a')
})
