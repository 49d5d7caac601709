import { setTimeout as sleep } from 'node:timers/promises'

import type { Reply } from './client.ts'

export interface Watched {
  answers: number
  /** The unexpected responses, each with the time since the start in ms. */
  wrong: string[]
  slowestMs: number
  tookMs: number[]
}

export interface Watch {
  readonly answers: number
  stop: () => Promise<Watched>
}

/** Starts to repeat a request. `expected` is a code, or a function that returns whether a response is expected. */
export function watch(ask: () => Promise<Reply>, expected: string | ((reply: Reply) => boolean), everyMs = 20): Watch {
  const isRight = typeof expected === 'string' ? (reply: Reply) => reply.code === expected : expected
  const watched: Watched = { answers: 0, wrong: [], slowestMs: 0, tookMs: [] }
  const startedMs = performance.now()
  const state = { isStopping: false }
  const loop = (async () => {
    while (!state.isStopping) {
      const reply = await ask()
      watched.answers++
      watched.tookMs.push(reply.tookMs)
      watched.slowestMs = Math.max(watched.slowestMs, reply.tookMs)
      const atMs = Math.round(reply.sentMs - startedMs)
      if (!isRight(reply))
        watched.wrong.push(`${atMs} ms: ${reply.status} ${reply.code} after ${Math.round(reply.tookMs)} ms`)
      await sleep(everyMs)
    }
  })()
  return {
    get answers() {
      return watched.answers
    },
    stop: async () => {
      state.isStopping = true
      await loop
      return watched
    },
  }
}
