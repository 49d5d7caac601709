/**
 * Limits the number of tasks that run at once, in total and for each owner. Waiting owners take turns, so an owner with many waiting tasks
 * does not delay an owner with few tasks.
 */

import { ApiError } from '../http/problem.ts'

interface GateOptions {
  /** The maximum number of tasks that run at once. */
  total: number
  /** The maximum number of tasks of one owner that run at once. */
  perOwner: number
  /** The maximum number of waiting tasks of one owner. Further tasks are rejected immediately. */
  maxWaiting: number
  /** The time after which a waiting task is rejected. */
  maxWaitMs: number
  /** Called for each rejected task. */
  onReject: () => void
  /** The name of the tasks in the detail of a rejection: "Too many … are running". */
  what: string
  /** The error of a rejected task. Default: UNAVAILABLE. */
  code?: 'UNAVAILABLE' | 'RATE_LIMITED'
}

interface Waiting {
  admit(): void
}

interface Owner {
  inside: number
  waiting: Set<Waiting>
}

export interface FairGate {
  /**
   * Waits until a task of the owner may begin. The caller must call the returned function once, when the task ends. Rejects with the error
   * `code`.
   */
  enter(owner: string): Promise<() => void>
}

export function createFairGate(options: GateOptions): FairGate {
  /** Owners with a running or waiting task, in the order of their turns. */
  const owners = new Map<string, Owner>()
  let inside = 0

  const overShare = (): ApiError => {
    options.onReject()
    return new ApiError(options.code ?? 'UNAVAILABLE', `Too many ${options.what} are running at once. Retry in 1 s.`, {
      headers: { 'retry-after': '1' },
    })
  }

  const mayEnter = (owner: Owner) => inside < options.total && owner.inside < options.perOwner

  /** Moves the owner to the end of `owners`, or removes it when it has no tasks. */
  const requeue = (name: string, owner: Owner) => {
    owners.delete(name)
    if (owner.inside > 0 || owner.waiting.size > 0) owners.set(name, owner)
  }

  const admitNext = () => {
    for (const [name, owner] of owners) {
      if (inside >= options.total) return
      const [first] = owner.waiting
      if (!first || !mayEnter(owner)) continue
      owner.waiting.delete(first)
      first.admit()
      requeue(name, owner)
    }
  }

  /** Counts a task that begins, and returns the function that ends the task. */
  const begin = (name: string, owner: Owner): (() => void) => {
    inside++
    owner.inside++
    return () => {
      inside--
      owner.inside--
      if (owner.inside === 0 && owner.waiting.size === 0) owners.delete(name)
      admitNext()
    }
  }

  return {
    enter(name) {
      const owner = owners.get(name) ?? { inside: 0, waiting: new Set<Waiting>() }
      owners.set(name, owner)
      if (owner.waiting.size === 0 && mayEnter(owner)) return Promise.resolve(begin(name, owner))
      if (owner.waiting.size >= options.maxWaiting) return Promise.reject(overShare())
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          owner.waiting.delete(waiting)
          requeue(name, owner)
          reject(overShare())
        }, options.maxWaitMs)
        const waiting: Waiting = {
          admit() {
            clearTimeout(timer)
            resolve(begin(name, owner))
          },
        }
        owner.waiting.add(waiting)
      })
    },
  }
}

/** Runs the task as soon as the gate admits it. */
export async function runInside<Result>(gate: FairGate, owner: string, task: () => Promise<Result>): Promise<Result> {
  const leave = await gate.enter(owner)
  try {
    return await task()
  } finally {
    leave()
  }
}
