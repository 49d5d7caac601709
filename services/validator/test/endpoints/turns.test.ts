import { expect, test } from 'vitest'

import { Turns } from '../../src/endpoints/turns.ts'

interface Item {
  name: string
  work: number
}

function start() {
  const ran: string[] = []
  const dead = new Set<string>()
  let pending: (() => void)[] = []
  const turns: Turns<Item> = new Turns<Item>({
    most: 100,
    isDead: ({ name }) => dead.has(name),
    run: ({ name, work }) => {
      ran.push(name)
      turns.spend(work)
    },
    later: (next) => pending.push(next),
  })
  /** Runs the next turn. Returns the names of its items. */
  const turn = (): string[] => {
    const due = pending
    pending = []
    for (const next of due) next()
    return ran.splice(0)
  }
  return { turns, dead, turn, isIdle: () => pending.length === 0 }
}

test('one turn runs items until their work reaches the limit, and owners take turns', () => {
  const { turns, turn, isIdle } = start()
  expect(turns.isFree).toBe(true)
  turns.spend(100)
  expect(turns.isFree).toBe(false)
  for (const name of ['a1', 'a2', 'a3']) turns.add(1, { name, work: 100 })
  turns.add(2, { name: 'b1', work: 60 })
  turns.add(2, { name: 'b2', work: 60 })
  expect([turn(), turn(), turn(), turn()]).toEqual([['a1'], ['b1', 'a2'], ['b2', 'a3'], []])
  expect([turns.isFree, isIdle()]).toEqual([true, true])
})

test('an item that has ended meanwhile does not run', () => {
  const { turns, dead, turn } = start()
  turns.spend(100)
  turns.add(1, { name: 'a1', work: 100 })
  turns.add(1, { name: 'a2', work: 100 })
  dead.add('a1')
  expect(turn()).toEqual(['a2'])
})

test('new work runs at once again after a turn without any', () => {
  const { turns, turn } = start()
  turns.spend(100)
  expect(turns.isFree).toBe(false)
  turn()
  expect(turns.isFree).toBe(true)
})
