/** Tests how tasks form batches, that each task gets its own outcome, and the rejection of tasks beyond the limits. */

import { setImmediate } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { Batches } from '../../src/admission/batches.ts'

/** Creates batches that run until `finish` is called. The tasks are numbers, and negative ones fail. */
function createBatches() {
  const running: { owner: string; tasks: readonly number[]; finish: (error?: Error) => void }[] = []
  let rejected = 0
  const batches = new Batches<number, string>({
    maxBatch: 32,
    onReject: () => rejected++,
    async run(owner, tasks) {
      await new Promise<void>((resolve, reject) => {
        const finish = (error?: Error) => (error ? reject(error) : resolve())
        running.push({ owner, tasks, finish })
      })
      return Promise.allSettled(
        tasks.map(async (task) => {
          if (task < 0) throw new Error(`task ${task}`)
          return `${owner} ${task}`
        }),
      )
    },
  })
  return { batches, running, rejected: () => rejected }
}

/** Resolves when the batches that can begin have begun. */
async function settled(): Promise<void> {
  await setImmediate()
  await setImmediate()
}

test('runs the tasks of an owner that arrive together, and then the tasks that arrived meanwhile', async () => {
  const { batches, running } = createBatches()
  const first = [1, 2].map((task) => batches.add('a', task))
  const other = batches.add('b', 9)
  await settled()
  const results = Promise.allSettled([...first, ...[-3, 4].map((task) => batches.add('a', task))])
  expect(running.map(({ owner, tasks }) => [owner, tasks])).toEqual([
    ['a', [1, 2]],
    ['b', [9]],
  ])
  running[1]?.finish()
  expect(await other).toBe('b 9')
  running[0]?.finish()
  await settled()
  expect(running[2]?.tasks).toEqual([-3, 4])
  running[2]?.finish()
  expect(await results).toEqual([
    { status: 'fulfilled', value: 'a 1' },
    { status: 'fulfilled', value: 'a 2' },
    { status: 'rejected', reason: new Error('task -3') },
    { status: 'fulfilled', value: 'a 4' },
  ])
})

test('rejects all tasks of a batch that fails, and runs the next batch', async () => {
  const { batches, running } = createBatches()
  const first = batches.add('a', 1)
  await settled()
  const second = batches.add('a', 2)
  running[0]?.finish(new Error('lost connection'))
  await expect(first).rejects.toThrow('lost connection')
  await settled()
  running[1]?.finish()
  expect(await second).toBe('a 2')
  void batches.add('a', 3)
  await settled()
  expect(running[2]?.tasks).toEqual([3])
})

test('limits the size of a batch and the number of waiting tasks', async () => {
  const { batches, running, rejected } = createBatches()
  const first = batches.add('a', 0)
  await settled()
  const tasks = [first, ...Array.from({ length: 200 }, (_, i) => batches.add('a', i + 1))]
  await expect(batches.add('a', 999)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(rejected()).toBe(1)
  for (let i = 0; i < running.length; i++) {
    running[i]?.finish()
    await settled()
  }
  expect(running.map((batch) => batch.tasks.length)).toEqual([1, 32, 32, 32, 32, 32, 32, 8])
  expect(await Promise.all(tasks)).toEqual(Array.from({ length: 201 }, (_, i) => `a ${i}`))
})
